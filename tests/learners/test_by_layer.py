import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ssm import learners, thresholds
from ssm.errors import UserError
from ssm.learners import Learner, by_layer, layerwise
from ssm.learners.base import Step

KERNELS = {f"Dense_{index}/kernel": jnp.full((4, 5), index + 1.0) for index in range(3)}
KEY = jax.random.key(0)


def rated(density):
    return learners.signed(threshold=thresholds.quantile(density))


def share(mask):
    return float(np.mean(np.asarray(mask) != 0))


def test_each_layer_has_its_own_density():
    learner = by_layer({"Dense_0": rated(0.2), "*_1/kernel": rated(0.5), "*": rated(0.9)})
    masks = learner.masks(*learner.init(KEY, KERNELS))
    assert {path: share(mask) for path, mask in masks.items()} == pytest.approx(
        {"Dense_0/kernel": 0.2, "Dense_1/kernel": 0.5, "Dense_2/kernel": 0.9}
    )
    assert learner.elementwise and learner.has_masks and learner.update is None and learner.penalty is None


def test_the_first_pattern_that_matches_counts():
    learner = by_layer({"Dense_1": rated(0.5), "Dense_*": rated(0.2)})
    masks = learner.masks(*learner.init(KEY, KERNELS))
    assert [share(masks[path]) for path in KERNELS] == pytest.approx([0.2, 0.5, 0.2])


def test_a_dense_layer_is_trained_and_has_no_mask():
    learner = by_layer({"Dense_2": learners.dense(), "*": learners.signed()})
    params, state = learner.init(KEY, KERNELS)
    np.testing.assert_array_equal(params["Dense_2/kernel"], KERNELS["Dense_2/kernel"])
    assert set(learner.masks(params, state)) == {"Dense_0/kernel", "Dense_1/kernel"}
    weights = learner.weights(params, state, None)
    np.testing.assert_array_equal(weights["Dense_2/kernel"], KERNELS["Dense_2/kernel"])
    assert set(weights) == set(KERNELS)


def updating(factor, penalty=None):
    """Multiply gradients and momentum by a factor, and count steps in the state."""

    def update(key, step, now):
        return now._replace(
            grads={path: factor * leaf for path, leaf in now.grads.items()},
            state={path: leaf + 1 for path, leaf in now.state.items()},
            opt=(now.opt[0] + 1, {path: factor * leaf for path, leaf in now.opt[1].items()}),
        )

    return layerwise(
        lambda key, kernel: (kernel, jnp.zeros(())),
        lambda params, state, key: params,
        lambda params, state: jnp.ones_like(params),
        update=update,
        penalty=penalty,
    )


def test_updates_and_penalties_see_their_own_layers():
    def penalty(params, state):
        return jnp.asarray(sum(leaf[0, 0] for leaf in params.values()))

    learner = by_layer({"Dense_0": updating(2.0, penalty), "Dense_1": updating(3.0), "*": learners.dense()})
    params, state = learner.init(KEY, KERNELS)
    assert learner.penalty is not None and float(learner.penalty(params, state)) == 1.0
    assert learner.update is not None and not learner.elementwise
    now = Step(KERNELS, params, state, (jnp.zeros(()), KERNELS))
    after = learner.update(KEY, jnp.zeros((), jnp.int32), now)
    for tree in (after.grads, after.opt[1]):
        assert [float(tree[path][0, 0]) for path in KERNELS] == [2.0, 6.0, 3.0]
    assert [float(after.state[path]) for path in list(KERNELS)[:2]] == [1.0, 1.0] and float(after.opt[0]) == 2.0


def test_stochastic_learners_are_given_different_keys():
    def drawing():
        return layerwise(
            lambda key, kernel: (kernel, ()),
            lambda params, state, key: params if key is None else jax.random.normal(key, params.shape),
            lambda params, state: jnp.ones_like(params),
        )

    learner = by_layer({"Dense_0": drawing(), "*": drawing()})
    params, state = learner.init(KEY, KERNELS)
    drawn = learner.weights(params, state, KEY)
    assert not np.array_equal(drawn["Dense_0/kernel"], drawn["Dense_1/kernel"])
    np.testing.assert_array_equal(learner.weights(params, state, None)["Dense_0/kernel"], KERNELS["Dense_0/kernel"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"Dense_0": rated(0.2)}, "no pattern matches Dense_1/kernel; add '\\*'"),
        ({"Dense_9": rated(0.2), "*": rated(0.2)}, "no layer is left for Dense_9; the layers are Dense_0/kernel"),
    ],
)
def test_layers_and_patterns_must_fit(given, message):
    with pytest.raises(UserError, match=message):
        by_layer(given).init(KEY, KERNELS)


def test_learners_must_be_learners():
    for given in ({"*": 0.1}, [learners.signed()]):
        with pytest.raises(UserError, match="dictionary of learners by pattern"):
            by_layer(given)  # type: ignore[arg-type]
    assert isinstance(by_layer({"*": learners.binary()}), Learner)
