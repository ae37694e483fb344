from hypothesis import given
from hypothesis import strategies as st

from ssm.paths import matches, name_path, path_name

PARTS = st.text(st.sampled_from("ab/%2F5"), min_size=1, max_size=6)


@given(st.lists(PARTS, min_size=1, max_size=3).map(tuple), st.lists(PARTS, min_size=1, max_size=3).map(tuple))
def test_a_name_says_which_path_it_is(one, other):
    assert name_path(path_name(one)) == one
    assert (path_name(one) == path_name(other)) == (one == other)


def test_names_are_what_one_expects():
    assert path_name(("Dense_0", "kernel")) == "Dense_0/kernel"
    assert path_name(("a/b", "50%")) == "a%2Fb/50%25"


def test_patterns():
    assert matches("*/kernel", "a/b/kernel") and matches("layer_[01]", "x", "layer_1")
    assert not matches("kernel", "a/kernel") and not matches("Kernel", "kernel")
