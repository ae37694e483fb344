"""The protocol of learners: methods of one's own, in the wrapper and in training."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from jax import lax

from ssm import learners, optim
from ssm.errors import UserError
from ssm.learners import Learner, layerwise
from ssm.runs import checkpoint
from ssm.supermask import Supermask
from ssm.training.batches import seed_key, step_key
from ssm.training.epoch import EpochInputs
from ssm.training.loop import train_members
from ssm.training.step import Params, State, StepInputs, training_step
from tests.support.groups import begun, same, train
from tests.support.quick import quick
from tests.support.tasks import LAYERS, TEST, TRAIN, make_task, masked, members, plain_loop, trainer_of

STEPS = 3  # of an epoch


def drawn(key, kernel):
    """Return scores, and the kernel as it is."""
    return jax.random.normal(key, kernel.shape), kernel


def through(scores, mask):
    """Return the mask, and hand its gradient on to the scores; exact, as x - x is 0."""
    return scores - lax.stop_gradient(scores) + mask


def largest_of_columns(keep=2):
    """Keep the largest scores of each column: what a weight's place in its kernel decides."""

    def mask(scores, kernel):
        ranks = jnp.argsort(jnp.argsort(-scores, axis=0), axis=0)
        return lax.stop_gradient(ranks < keep).astype(scores.dtype)

    return layerwise(drawn, lambda scores, kernel, key: kernel * through(scores, mask(scores, kernel)), mask)


def trained_ternary(threshold=0.3):
    """Train three things of each layer, a dictionary: weights, and the values that large and small ones have."""

    def init(key, kernel):
        return {"weights": kernel, "positive": jnp.float32(0.5), "negative": jnp.float32(0.7)}, ()

    def mask(params, state):
        return jnp.sign(params["weights"]) * (jnp.abs(params["weights"]) > threshold)

    def weight(params, state, key):
        values = jnp.where(params["weights"] > 0, params["positive"], params["negative"])
        return values * through(params["weights"], lax.stop_gradient(mask(params, state)))

    return layerwise(init, weight, mask)


def best_of_all(share=0.5):
    """Keep the best scores of all layers together: a rule that no layer can follow by itself."""

    def init(key, kernels):
        keys = dict(zip(sorted(kernels), jax.random.split(key, len(kernels)), strict=True))
        return {path: jax.random.normal(keys[path], kernel.shape) for path, kernel in kernels.items()}, kernels

    def masks(scores, kernels):
        bound = jnp.quantile(jnp.concatenate([leaf.ravel() for leaf in scores.values()]), 1 - share)
        return {path: (leaf > lax.stop_gradient(bound)).astype(leaf.dtype) for path, leaf in scores.items()}

    def weights(scores, kernels, key):
        return {path: kernels[path] * through(scores[path], mask) for path, mask in masks(scores, kernels).items()}

    return Learner(init, weights, masks)


def bernoulli(seen=None):
    """Draw the masks anew in each step; in evaluation they are the likeliest ones."""

    def mask(logits, kernel):
        return (logits > 0).astype(logits.dtype)

    def weight(logits, kernel, key):
        if seen is not None:
            seen.append(key)
        if key is None:
            return kernel * mask(logits, kernel)
        return kernel * through(logits, jax.random.bernoulli(key, jax.nn.sigmoid(logits)).astype(logits.dtype))

    return layerwise(lambda key, kernel: (jnp.zeros_like(kernel) + 0.1, kernel), weight, mask)


def redrawn(every=2):
    """Redraw the weights that are hidden, every so many steps, and count the steps; its state is a dictionary.

    Masks are drawn, too, in training.
    """

    def init(key, kernel):
        scores, kernel = drawn(key, kernel)
        return scores, {"kernel": kernel, "steps": jnp.int32(0)}

    def mask(scores, state):
        return (scores > 0).astype(scores.dtype)

    def weight(scores, state, key):
        shown = mask(scores, state)
        if key is not None:
            shown = jax.random.bernoulli(key, jax.nn.sigmoid(scores)).astype(scores.dtype)
        return state["kernel"] * through(scores, shown)

    def update(key, step, now):
        state = {}
        for number, (path, own) in enumerate(now.state.items()):
            new = jax.random.normal(jax.random.fold_in(key, number), own["kernel"].shape)
            due = (step % every == 0) & (mask(now.params[path], own) == 0)
            state[path] = {"kernel": jnp.where(due, new, own["kernel"]), "steps": own["steps"] + 1}
        return now._replace(state=state)

    return layerwise(init, weight, mask, update=update)


def penalised():
    """Keep what is above 0, and draw all scores to 0."""

    def mask(scores, kernel):
        return (scores > 0).astype(scores.dtype)

    return layerwise(
        drawn,
        lambda scores, kernel, key: kernel * through(scores, mask(scores, kernel)),
        mask,
        penalty=lambda params, state: 0.2 * sum(jnp.sum(jnp.square(leaf)) for leaf in params.values()),
        elementwise=True,
    )


OWN = {
    "columns": largest_of_columns(),
    "a dictionary": trained_ternary(),
    "all layers": best_of_all(),
    "penalty": penalised(),
    "signed": learners.signed(),
    "binary": learners.binary(),
    "dense": learners.dense(),
}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.slow if name in ("columns", "penalty", "binary") else []) for name in OWN
    ],
)
def pair(request):
    """A net, what the trainer makes of it, and what a plain loop does."""
    net = masked(OWN[request.param])
    return net, train(trainer_of(net), members(3)), plain_loop(net, 3, optax.sgd(0.1))


def test_the_trainer_does_what_a_plain_loop_of_optax_does(pair):
    """To 1e-6, not bit for bit: the short last batch is padded in the one and short in the other."""
    _, result, (variables, losses) = pair
    chex.assert_trees_all_close(result.variables[3], variables, rtol=1e-6, atol=1e-6)
    assert [row["train_loss"] for row in result.history] == pytest.approx(losses, rel=1e-6)  # no penalty in it


def test_masks_and_weights_are_the_same_in_training_and_in_the_wrapper(pair):
    net, result, (variables, _) = pair
    wrapped = {path.removesuffix("/kernel"): mask for path, mask in net.masks(result.variables[3]).items()}
    chex.assert_trees_all_equal(dict(result.masks[3]), jax.tree.map(lambda mask: mask.astype(np.int8), wrapped))
    chex.assert_trees_all_equal(net.masks(result.variables[3]), net.masks(variables))
    logits = net.apply(result.variables[3], TEST[0])
    assert result.history[-1]["test_accuracy"] == pytest.approx(np.mean(logits.argmax(-1) == TEST[1]))


def test_training_moves_all_params_and_no_state(pair):
    net, result, _ = pair
    start = jax.device_get(begun(trainer_of(net), members(3)))
    chex.assert_trees_all_equal(
        result.variables[3]["frozen"]["layers"], jax.tree.map(lambda leaf: leaf[0], dict(start.learner))
    )
    paths = {path.split("/")[0] for path in LAYERS}
    for name in paths:
        kernel = result.params[3]["net"][name]["kernel"]
        before = jax.tree.map(lambda leaf: leaf[0], start.params.layers[f"{name}/kernel"])
        chex.assert_trees_all_equal_shapes_and_dtypes(kernel, before)
        for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(kernel), strict=True):
            assert not np.array_equal(old, new)


def test_a_rule_of_columns_keeps_so_many_of_each_column_everywhere():
    net = masked(largest_of_columns(2))
    result = train(trainer_of(net), members(3))
    for mask in [*result.masks[3].values(), *net.masks(result.variables[3]).values()]:
        assert (np.count_nonzero(mask, axis=0) == 2).all()
    for name in ("layers_0", "layers_2"):
        kernel = net.weights(result.variables[3])[name]["kernel"]
        assert (np.count_nonzero(kernel, axis=0) == 2).all()


@pytest.mark.slow
def test_only_a_learner_of_single_weights_may_be_held_transposed():
    kept = [train(trainer_of(masked(learners.signed()), transposed=turned), members(3)) for turned in (False, True)]
    chex.assert_trees_all_close(kept[0].variables[3], kept[1].variables[3], rtol=1e-6, atol=1e-6)
    chex.assert_trees_all_equal(kept[0].masks[3], kept[1].masks[3])
    with pytest.raises(UserError, match="elementwise"):
        trainer_of(masked(largest_of_columns()), transposed=True)


def test_the_best_of_all_layers_are_not_as_many_in_each():
    masks = train(trainer_of(masked(best_of_all(0.5))), members(3)).masks[3]
    kept, total = (sum(count(mask) for mask in masks.values()) for count in (np.count_nonzero, np.size))
    assert kept == pytest.approx(total / 2, abs=1)


def test_layers_are_drawn_with_keys_of_their_own_that_names_order():
    kernels = {"b/kernel": jnp.ones((4, 4)), "a/kernel": jnp.ones((4, 4))}
    params, _ = layerwise(drawn, lambda *_: None, lambda *_: None).init(jax.random.key(0), kernels)
    for number, path in enumerate(("a/kernel", "b/kernel")):
        own = jax.random.fold_in(jax.random.key(0), number)
        np.testing.assert_array_equal(params[path], jax.random.normal(own, (4, 4)))


def test_another_learner_needs_no_change_to_the_wrapper():
    def keep_best_half(scores, kernel):
        return (jnp.abs(scores) >= jnp.median(jnp.abs(scores))).astype(scores.dtype)

    learner = layerwise(drawn, lambda scores, kernel, key: kernel * keep_best_half(scores, kernel), keep_best_half)
    net = Supermask(nn.Dense(8, use_bias=False), learner=learner)
    variables = net.init(jax.random.key(0), jnp.ones((1, 4)))
    assert int(net.masks(variables)["kernel"].sum()) == 16
    assert int((net.weights(variables)["kernel"] != 0).sum()) == 16


# Keys


@pytest.mark.slow
def test_there_is_a_key_in_training_and_none_in_evaluation():
    for loop in ("map", "vmap"):
        seen = []
        train(trainer_of(masked(bernoulli(seen)), loop=loop), members(3, 4))
        assert any(key is None for key in seen) and any(key is not None for key in seen)
    seen.clear()
    net = masked(bernoulli(seen))
    variables = net.init(jax.random.key(0), TRAIN[0])
    plain = net.apply(variables, TRAIN[0])
    assert all(key is None for key in seen)
    drawn_ones = [net.apply(variables, TRAIN[0], rngs={"mask": jax.random.key(seed)}) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(drawn_ones[0], drawn_ones[1])
    assert not np.array_equal(drawn_ones[0], drawn_ones[2]) and not np.array_equal(drawn_ones[0], plain)


def test_keys_differ_by_seed_and_step_and_come_again():
    """With equal nets, rates of 0 and all samples in each step nothing else differs."""
    equal = {"kernel_init": lambda key, shape, dtype: jnp.linspace(-1, 1, np.prod(shape), dtype=dtype).reshape(shape)}
    trainer = trainer_of(masked(bernoulli(), **equal), optax.sgd(0.0), batch_size=len(TRAIN[0]), order=np.arange(20))
    result = train(trainer, members(0, 1))
    assert len({row["train_loss"] for row in result.history}) == 6
    assert len({row["test_loss"] for row in result.history}) == 1
    again = train(trainer, members(1, 0))
    for seed in (0, 1):
        same(result, again, seed)


@pytest.mark.slow
def test_a_seeds_keys_depend_on_neither_group_place_devices_nor_epochs():
    net = masked(redrawn())
    alone = train(trainer_of(net), members(3))
    same(alone, train(trainer_of(net), members(0, 3, 5)), 3)
    same(alone, train(trainer_of(net, devices=jax.devices()), members(0, 3, 5)), 3)
    longer = train(trainer_of(net, epochs=1, passes=3), members(3))  # as many steps, in one epoch
    chex.assert_trees_all_equal(longer.variables[3], alone.variables[3])


def test_weights_module_and_update_have_keys_of_their_own():
    seen = []

    def update(key, step, now):
        seen.append(key)
        return now

    net = masked(bernoulli(seen)._replace(update=update))
    task = make_task(net)
    variables = net.init(jax.random.key(0), TRAIN[0])
    layers = {path: variables["params"]["net"][path.split("/")[0]]["kernel"] for path in LAYERS}
    others = {name: {"bias": tree["bias"]} for name, tree in variables["params"]["net"].items()}
    params = Params(layers, others)
    state = State(params, variables["frozen"]["layers"], task.optimizer(0.0, 0.0).init(params), {}, {})
    inputs = StepInputs(jnp.int32(0), *TRAIN, jnp.ones(20), step_key(seed_key(0), 0), jnp.float32(0), jnp.float32(0))
    seen.clear()
    training_step(task, net, state, inputs)
    assert len(seen) == len(LAYERS) + 1
    assert len({tuple(jax.random.key_data(key).tolist()) for key in seen}) == len(seen)


# Updates


def final_state(trainer, seeds=(3,)):
    """Return the variables that seeds end with, a list."""
    return [one.variables for one in train_members(trainer, members(*seeds), variables=True)]


def test_an_update_changes_the_state():
    net = masked(redrawn())
    trainer = trainer_of(net)
    start = jax.device_get(begun(trainer, members(3))).learner
    (end,) = final_state(trainer)
    for path, state in end["frozen"]["layers"].items():
        assert state["steps"] == trainer.task.epochs * STEPS
        kept = state["kernel"] == start[path]["kernel"][0]
        assert kept.any() and not kept.all()


def stopped(trainer, epoch, folder, seeds=(3, 5)):
    """Return what a checkpoint holds after an epoch in which training crashed."""
    kept = []

    def after_epoch(done, snapshot):
        if done == epoch:
            kept.append(checkpoint.load(checkpoint.save(folder, snapshot(), "data"))[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_members(trainer, members(*seeds), after_epoch=after_epoch)
    return kept[0]


@pytest.mark.parametrize("optimizer", quick([optax.sgd(0.1), optax.adam(0.01)]), ids=["sgd", "adam"])
@pytest.mark.parametrize("learner", [redrawn(), trained_ternary()], ids=["redrawn", "a dictionary"])
def test_a_crash_in_the_middle_changes_nothing(learner, optimizer, tmp_path):
    trainer = trainer_of(masked(learner), optimizer)
    whole = train_members(trainer, members(3, 5), variables=True)
    for epoch in (1, 2):
        begin = stopped(trainer, epoch, tmp_path)
        found = train_members(trainer, members(3, 5), begin=begin, variables=True)
        for one, other in zip(whole, found, strict=True):
            chex.assert_trees_all_equal((one.masks, one.variables), (other.masks, other.variables))
            assert [{**row, "seconds": 0} for row in one.history] == [{**row, "seconds": 0} for row in other.history]


def carried(trainer):
    """Return how many arrays the scan over an epoch's batches carries."""
    program, seeds = trainer.program, members(3)
    state = jax.eval_shape(lambda: begun(trainer, seeds))

    rates = jax.ShapeDtypeStruct((1, STEPS), jnp.float32)
    given = EpochInputs(jax.ShapeDtypeStruct((1,), jnp.uint32), rates, rates, jax.ShapeDtypeStruct((1,), bool))
    jaxpr = jax.make_jaxpr(program.epoch)(state, given, np.uint32(0), None, trainer.train, trainer.test)
    return state, max(_carries(jaxpr.jaxpr))


def _carries(jaxpr):
    for equation in jaxpr.eqns:
        if equation.primitive.name == "scan":
            yield equation.params["num_carry"]
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple) else (value,):
                if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                    yield from _carries(getattr(inner, "jaxpr", inner))


@pytest.mark.parametrize(
    ("learner", "changes"),
    quick([(redrawn(), True), (redrawn()._replace(update=None), False), (learners.signed(), False)]),
    ids=["update", "the same without", "signed"],
)
def test_state_is_carried_and_stored_only_where_it_is_updated(learner, changes, tmp_path):
    trainer = trainer_of(masked(learner), optax.sgd(0.1, momentum=0.9))
    state, carry = carried(trainer)
    changing = len(jax.tree.leaves((state.params, state.optimizer, state.rest)))
    sums = 1 + len(trainer.task.metrics)
    assert carry == changing + sums + (len(jax.tree.leaves(state.learner)) if changes else 0)
    begin = stopped(trainer, 1, tmp_path)
    assert len(begin.arrays) == changing + (len(jax.tree.leaves(state.learner)) if changes else 0)
    # What is not stored is hashed: kernels that another seed has, or a state that changed, are seen.
    assert (len(set(begin.frozen)) == 1) == changes


@pytest.mark.slow
def test_an_update_is_given_the_optimisers_state_by_layer():
    """A learner that forgets the momentum of its layers: they move as without one, the biases with it."""

    def update(key, step, now):
        assert set(now.opt[0].trace) == set(now.grads) == set(now.params) == set(now.state) == set(LAYERS)
        return now._replace(opt=optax.tree.zeros_like(now.opt))

    learner = layerwise(drawn, lambda scores, kernel, key: kernel * scores, lambda scores, kernel: jnp.sign(scores))
    result = train(trainer_of(masked(learner._replace(update=update)), optax.sgd(0.1, momentum=0.9)), members(3))
    parted = optax.partition(
        {"kernel": optax.sgd(0.1), "bias": optax.sgd(0.1, momentum=0.9)},
        lambda params: jax.tree_util.tree_map_with_path(lambda path, _: path[-1].key, params),
    )
    variables, _ = plain_loop(masked(learner), 3, parted)
    chex.assert_trees_all_close(result.params[3], variables["params"], rtol=1e-6, atol=1e-6)
    moved, _ = plain_loop(masked(learner), 3, optax.sgd(0.1, momentum=0.9))
    assert not np.allclose(
        moved["params"]["net"]["layers_0"]["kernel"], variables["params"]["net"]["layers_0"]["kernel"]
    )


@pytest.mark.parametrize("part", ["grads", "params"])
def test_an_update_may_change_gradients_and_params(part):
    def update(key, step, now):
        return now._replace(**{part: jax.tree.map(jnp.zeros_like, getattr(now, part))})

    learner = learners.dense()._replace(update=update)
    trainer = trainer_of(masked(learner), optax.sgd(0.1))
    start = jax.device_get(begun(trainer, members(3))).params
    (end,) = final_state(trainer)
    for path in LAYERS:
        kernel = end["params"]["net"][path.split("/")[0]]["kernel"]
        if part == "grads":
            np.testing.assert_array_equal(kernel, start.layers[path][0])
        else:  # the last step alone is left of them
            assert np.abs(kernel).max() < 0.1 * np.abs(start.layers[path]).max()
    assert np.any(end["params"]["net"]["layers_0"]["bias"])  # biases are not the learner's


def test_a_penalty_is_added_to_what_is_differentiated_alone():
    learner = penalised()
    drawn_to, losses = plain_loop(masked(learner), 3, optax.sgd(0.1))
    free, _ = plain_loop(masked(learner._replace(penalty=None)), 3, optax.sgd(0.1))
    sizes = [np.abs(one["params"]["net"]["layers_0"]["kernel"]).mean() for one in (drawn_to, free)]
    assert sizes[0] < 0.9 * sizes[1]
    result = train(trainer_of(masked(learner)), members(3))
    assert np.abs(result.params[3]["net"]["layers_0"]["kernel"]).mean() == pytest.approx(sizes[0], rel=1e-5)
    assert [row["train_loss"] for row in result.history] == pytest.approx(losses, rel=1e-6)


# What is no learner


@pytest.mark.parametrize(
    ("init", "said"),
    [
        (lambda key, kernels: (list(kernels.values()), {}), "its params are of type list"),
        (lambda key, kernels: ({"layers_0/kernel": 0.0}, kernels), "its params are layers_0/kernel"),
        (lambda key, kernels: (kernels, {}), "its state are "),
        (lambda key, kernels: (kernels, None), "its state are of type NoneType"),
    ],
)
def test_what_is_not_by_layer_is_one_message(init, said):
    net = masked(learners.signed()._replace(init=init))
    message = rf"entry for each layer \(layers_0/kernel, layers_2/kernel\); {said}"
    with pytest.raises(UserError, match=message):
        net.init(jax.random.key(0), TRAIN[0])
    with pytest.raises(UserError, match=message):
        trainer_of(net)


@pytest.mark.parametrize("wrong", [learners.signed, "signed", None], ids=["a factory", "a name", "nothing"])
def test_what_is_no_learner_is_one_message(wrong):
    with pytest.raises(UserError, match=r"learner must be made by a factory, ssm.learners.signed\(\) say; got "):
        masked(wrong).init(jax.random.key(0), TRAIN[0])
    with pytest.raises(UserError, match="learner must be made by a factory"):
        trainer_of(masked(wrong))


def test_a_rule_of_columns_sees_one_shape_of_an_attention_kernel_in_all_its_functions():
    shapes = {"init": set(), "weight": set(), "mask": set()}

    def seen(name, array):
        shapes[name].add(array.shape)
        return array

    rule = layerwise(
        lambda key, kernel: (seen("init", kernel), ()),
        lambda scores, state, key: seen("weight", scores),
        lambda scores, state: jnp.ones_like(seen("mask", scores)),
    )
    net = Supermask(nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=4), learner=rule)
    x = jnp.ones((1, 3, 6))
    variables = net.init(jax.random.key(0), x)
    net.masks(variables)
    assert shapes["init"] == shapes["weight"] == shapes["mask"] == {(6, 2, 2), (2, 2, 6)}


SETTLED = [learners.signed(), learners.signed(folded=True), learners.binary()]


@pytest.mark.parametrize("learner", quick(SETTLED), ids=["signed", "folded", "binary"])
def test_what_is_settled_stays_hidden_without_a_gradient(learner):
    """Of many scores and velocities, under decay or none; some of those that are not settled do come back."""
    key = jax.random.split(jax.random.key(0), 2)
    kernel = {"a": jnp.ones((200, 300))}
    params, state = learner.init(key[0], kernel)
    params = {"a": jnp.linspace(-0.0099, 0.0099, 200)[:, None] * jnp.ones(300)}
    velocity = {"a": 0.002 * jax.random.uniform(key[1], (200, 300), minval=-1.0)}
    rule = optim.sgdw(0.1, 0.001)
    rest = optax.tree_utils.tree_set(rule.init(params), trace=velocity)
    settled = learner.settled(params, state, optim.reach(rest, momentum=0.9, nesterov=True))["a"]

    def step(_, carry):
        params, rest, seen = carry
        updates, rest = rule.update(jax.tree.map(jnp.zeros_like, params), rest, params)
        params = optax.apply_updates(params, updates)
        return params, rest, seen | (learner.masks(params, state)["a"] != 0)

    hidden = learner.masks(params, state)["a"] == 0
    *_, seen = jax.lax.fori_loop(0, 200, step, (params, rest, jnp.zeros((200, 300), bool)))
    assert not (seen & settled).any()
    assert (seen & hidden & ~settled).any() and 0.1 < settled.mean() < 0.9


def test_learners_whose_masks_may_come_back_have_no_settled():
    assert learners.dense().settled is None and learners.by_layer({"*": learners.signed()}).settled is None
