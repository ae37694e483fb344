import numpy as np
import pytest

from ssm.export.flax_module import initial_frozen
from ssm.recipes import build
from ssm.training.frozen import frozen_hash, state_hashes
from tests.support.groups import begun, members_of, one_device
from tests.support.quick import quick
from tests.support.runs import short


def test_a_hash_is_of_names_dtypes_shapes_and_bytes():
    kernel = np.asarray([[1, -1, 1]], np.float32)
    wanted = frozen_hash({"Dense_0": kernel})
    assert wanted == "1ae2b55cb466e97b"
    assert frozen_hash({"Dense_0": np.asfortranarray(np.tile(kernel, (2, 1)))[:1]}) == wanted
    others = [{"Dense_1": kernel}, {"Dense_0": kernel.T}, {"Dense_0": -kernel}, {"Dense_0": kernel.astype(np.float64)}]
    assert len({wanted, *map(frozen_hash, others), frozen_hash({"Dense_0": (kernel, kernel)})}) == 6
    assert frozen_hash({"b": kernel, "a": -kernel}) == frozen_hash({"a": -kernel, "b": kernel})
    assert frozen_hash({"Dense_0": ()}) is None  # a dense net


@pytest.mark.parametrize("options", quick([{}, {"weight_distribution": "normal"}]), ids=str)
def test_it_does_not_depend_on_how_the_trainer_holds_the_weights(digits, options):
    config = short(digits, **options)
    drawn = [frozen_hash(initial_frozen(config, seed, (28, 28, 1), 4)) for seed in (3, 5)]
    assert drawn[0] != drawn[1]
    for folded in (None, False):
        made = build.trainer(config, digits, devices=one_device(), folded=folded)
        assert made.task.transposed
        state = begun(made, members_of(config, [3, 5, 5]))
        assert state_hashes(made.task, state, 2) == drawn
