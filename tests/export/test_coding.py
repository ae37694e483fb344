"""The stream of ternary layers: literal bytes, a second reader, and its cost beside the order-0 entropy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssm.analysis import sizes
from ssm.errors import UserError
from ssm.export import coding
from ssm.export.coding import Counts, count, decode, encode
from tests.support.artifacts import second_reader

# What `encode` wrote in version 1 of the format, with constriction 0.5.0; it must be read for as long as that is.
GOLDEN_LAYERS = [
    [1, 0, -1, 0, 0, 0, 0, 1, 0, 0, 0, 1],
    [],
    [0, 0, 0, 0, 0],
    [-1, -1, -1, 1, 1, 0, -1, 0, 1, 1, 1, -1, -1, 0, 1, 0, -1, -1, 1, 0, 0, 0, -1, 1, 1, 1, 1, 0, -1, -1],
]
GOLDEN = "86875c2dcfdfc3c37c940000"

elements = st.sampled_from((-1, 0, 0, 0, 1))
nets = st.lists(st.lists(elements, max_size=60).map(lambda row: np.asarray(row, np.int8)), max_size=5)


def test_a_stream_of_an_older_version():
    words = np.frombuffer(bytes.fromhex(GOLDEN), "<u4")
    counts = [Counts(1, 3, 12), Counts(0, 0, 0), Counts(0, 0, 5), Counts(11, 11, 30)]
    assert [layer.tolist() for layer in decode(words.astype(np.uint32), counts)] == GOLDEN_LAYERS
    assert second_reader().decode(words.tolist(), counts) == GOLDEN_LAYERS
    assert encode([np.asarray(layer, np.int8) for layer in GOLDEN_LAYERS]).astype("<u4").tobytes().hex() == GOLDEN


@given(nets, st.integers(1, 50))
def test_what_was_encoded_comes_again(net, chunk):
    words = encode(net)
    assert words.dtype == np.uint32
    counts = [count(layer) for layer in net]
    assert second_reader().decode(words.tolist(), counts) == [layer.tolist() for layer in net]
    with pytest.MonkeyPatch.context() as patch:  # chunks are nothing that the bytes show
        patch.setattr(coding, "CHUNK", chunk)
        np.testing.assert_array_equal(encode(net), words)
        found = list(decode(words, counts))
    for one, layer in zip(found, net, strict=True):
        assert one.dtype == np.int8
        np.testing.assert_array_equal(one, layer)


def test_shapes_are_flattened_by_rows():
    layer = np.asarray([[1, 0], [0, -1], [0, 0]], np.int8)
    assert encode([layer]).tolist() == encode([layer.reshape(-1)]).tolist()
    assert encode([layer.T]).tolist() == encode([np.asarray([1, 0, 0, 0, -1, 0], np.int8)]).tolist()


@pytest.mark.parametrize("density", [0.001, 0.02, 0.3, 0.9, 1.0])
def test_the_cost_is_the_order_0_entropy(density):
    rng = np.random.default_rng(0)
    layer = (rng.choice((-1, 1), (500, 300)) * (rng.random((500, 300)) < density)).astype(np.int8)
    bound = sizes(layer).entropy
    assert bound - 1 < encode([layer]).nbytes < 1.001 * bound + 8  # 32 bits and what a state holds


@given(nets)
def test_a_small_net_costs_some_bytes_more(net):
    filled = [layer.reshape(1, -1) for layer in net if layer.size]
    assert encode(net).nbytes <= 1.05 * sum(sizes(layer).entropy for layer in filled) + 8


def test_no_layers_are_no_words():
    assert encode([]).size == 0 and list(decode(encode([]), [])) == []


def test_counts():
    assert count(np.asarray([[1, 0, 0], [-1, 1, 0]], np.int8)) == Counts(minus=1, plus=2, size=6)
    for wrong in (2, -2, 127, -128):
        with pytest.raises(ValueError, match="other than -1, 0 and 1"):
            count(np.asarray([0, wrong], np.int8))
        with pytest.raises(ValueError, match="other than -1, 0 and 1"):
            encode([np.asarray([0, wrong], np.int8)])


def test_wrong_counts_and_streams_are_errors():
    rng = np.random.default_rng(0)
    layer = rng.choice(np.asarray([-1, 0, 0, 1], np.int8), 200)
    words, right = encode([layer, layer]), count(layer)
    minus, plus, size = right
    for wrong in (Counts(plus, minus, size), Counts(minus + 1, plus, size), Counts(minus, plus, size - 1)):
        assert wrong != right
        with pytest.raises(UserError, match="part 0 of its stream has other elements"):
            list(decode(words, [wrong, right]))
    with pytest.raises(UserError, match="the stream is longer than its layers"):
        list(decode(words, [right]))
    with pytest.raises(UserError, match="part 2 of its stream has other elements"):
        list(decode(words, [right] * 3))
    for wrong in (Counts(-1, 0, 2), Counts(2, 1, 2), Counts(0, -1, 2), Counts(0, 0, -1)):
        with pytest.raises(UserError, match="more elements of -1"):
            list(decode(words, [wrong]))
    with pytest.raises(UserError, match="the stream of its layers is damaged"):
        list(decode(np.append(words, np.uint32(0)), [right, right]))  # no stream ends in a zero word


@given(st.lists(st.integers(0, 2**32 - 1), max_size=6), st.integers(0, 40), st.data())
def test_any_words_give_these_counts_or_an_error(words, size, data):
    minus = data.draw(st.integers(0, size))
    counts = Counts(minus, data.draw(st.integers(0, size - minus)), size)
    try:
        (layer,) = decode(np.asarray(words, np.uint32), [counts])
    except UserError:
        return
    assert count(layer) == counts
    np.testing.assert_array_equal(encode([layer]), words)  # a net has one stream


def test_a_long_layer_of_one_value_costs_next_to_nothing():
    layer = np.zeros(3 << 20, np.int8)
    words = encode([layer])
    assert words.nbytes <= math.ceil(layer.size * math.log2(1 + 2**-22) / 8) + 8
    (found,) = decode(words, [count(layer)])
    assert found.size == layer.size and not found.any()
