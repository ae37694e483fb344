import jax
import numpy as np
import pytest
from flax import linen as nn

import ssm
from ssm import initializers
from ssm.analysis import sizes, total
from ssm.data.dataset import ArrayDataset
from ssm.data.standardize import standardize, statistics
from ssm.errors import UserError
from ssm.export import Artifact, Layer
from ssm.export.conversion import from_run, from_supermask, ternary_layer, weight_layer
from ssm.models.graph import Architecture
from ssm.ops.matmul import PRECISION
from ssm.runs.reader import read_finished
from tests.support.artifact_nets import as_run, config, in_kinds, made_up, untrained
from tests.support.runs import run_config

pytestmark = pytest.mark.filterwarnings("ignore:.*is of an older version")  # made by hand: tests of it are beside

NETS = {
    "fcn": config(),
    "binary": config(method="binary"),
    "bfloat16": config(precision="bfloat16"),
    "uniform": config(weight_distribution="uniform", init="he"),
    "conv2": config("conv2", dataset="cifar10", width=0.25),
    "stem": config("resnet20", dataset="cifar10", width=0.25, stem_affine=True),
    "affine": config("resnet20", dataset="cifar10", width=0.25, batch_norm="affine"),
}


SLOW = ("conv2", "stem", "affine", "bfloat16")  # to compile


@pytest.fixture(scope="module", params=[pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in NETS])
def net(request, tmp_path_factory):
    """A net with values that are off their first ones, its artefact as loaded from a file, and images."""
    own = NETS[request.param]
    inputs = (28, 28, 1) if own.model == "fcn" else (12, 12, 3)
    model, variables = untrained(own, 3, inputs, 4)
    rng = np.random.default_rng(0)
    moved = jax.tree.map(lambda leaf: leaf + rng.random(leaf.shape, np.float32) if leaf.ndim == 1 else leaf, variables)
    folder = tmp_path_factory.mktemp("run")
    run = as_run(folder, own, model, moved, 3, inputs, 4)
    path = folder / "net.ssm"
    made = from_run(run, 3)
    size = made.save(path)
    assert size == path.stat().st_size
    images = rng.integers(0, 256, (7, *inputs), np.uint8)
    return request.param, model, moved, made, ssm.load(path), images, size


def test_the_same_logits_bit_for_bit(net):
    _, model, variables, _, loaded, images, _ = net
    with jax.default_matmul_precision(PRECISION):
        wanted = jax.jit(lambda x: model.apply(variables, standardize(x, *statistics(x))))(images)
    np.testing.assert_array_equal(loaded.logits(images), np.asarray(wanted))


def test_the_same_logits_without_jax(net):
    name, _, _, _, loaded, images, _ = net
    wanted = loaded.logits(images)
    tolerance = (2e-2 if name == "bfloat16" else 3e-6) * np.abs(wanted).max()  # NumPy has no bfloat16 products
    np.testing.assert_allclose(loaded.full_runtime().logits(images), wanted, atol=tolerance)
    np.testing.assert_allclose(loaded.runtime().logits(images), wanted, atol=tolerance)


def test_what_was_saved_is_loaded(net):
    _, _, _, made, loaded, _, _ = net
    assert (loaded.architecture, loaded.precision, loaded.class_names, dict(loaded.about), loaded.recipe) == (
        (made.architecture, made.precision, made.class_names, dict(made.about), made.recipe)
    )
    for name, layer in made.layers.items():
        np.testing.assert_array_equal(loaded.layers[name].ternary, layer.ternary)
        assert loaded.layers[name].constant == layer.constant
    assert list(loaded.values) == list(made.values)
    for name, value in made.values.items():
        np.testing.assert_array_equal(loaded.values[name], value)


def test_the_file_is_as_small_as_its_entropy_allows(net):
    _, _, _, made, _, _, size = net
    bound = total(map(sizes, made.to_numpy().values())).entropy
    assert size < 1.05 * bound + 2000 + 4 * sum(value.size for value in made.values.values())


def test_only_drawn_weights_need_a_recipe(net):
    name, model, variables, _, loaded, _, _ = net
    assert (loaded.recipe is not None) == (name == "uniform")
    for layer, kernel in loaded.to_dense().items():
        wanted = model.weights(variables)
        for part in (*layer.split("/"), "kernel"):
            wanted = wanted[part]
        np.testing.assert_array_equal(kernel, np.asarray(wanted))
        sparse = loaded.to_scipy()[layer]
        np.testing.assert_array_equal(sparse.toarray(), kernel.reshape(-1, kernel.shape[-1]))
        assert sparse.nnz == np.count_nonzero(kernel)


def test_ternary_layers_by_hand():
    mask, frozen = np.asarray([[1, -1], [0, 1]], np.int8), np.asarray([[2, -2], [2, -2]], np.float32)
    layer = ternary_layer(mask, frozen)
    assert layer.constant == 2
    np.testing.assert_array_equal(layer.ternary, [[1, 1], [0, -1]])
    layer = ternary_layer(mask, np.asarray([[2, -2], [2, 1]], np.float32))
    assert layer.constant is None
    np.testing.assert_array_equal(layer.ternary, mask)


@pytest.mark.parametrize(
    ("weights", "layer"),
    [
        ([0.5, 0, -0.5], ([1, 0, -1], 0.5, None)),
        ([0.5, 0, -0.25], ([1, 0, -1], (0.25, 0.5), None)),
        ([0.5, 0, 0.25], ([1, 0, 1], None, [0.5, 0.25])),
        ([0.5, -0.5, -0.25], ([1, 1, 1], None, [0.5, -0.5, -0.25])),
        ([-0.0, 0, 0], ([0, 0, 0], 0.0, None)),
    ],
)
def test_layers_of_weights_by_hand(weights, layer):
    weights = np.float32([weights])
    found = weight_layer(weights)
    ternary, constant, own = layer
    assert (found.ternary.tolist(), found.constant) == ([ternary], constant) and found.ternary.dtype == np.int8
    assert (None if found.own is None else found.own.tolist()) == own and not found.drawn
    np.testing.assert_array_equal(found.times(None), weights)


def test_frozen_weights_that_differ_on_this_machine_are_an_error(tmp_path):
    own = NETS["uniform"]
    made = from_run(as_run(tmp_path, own, *untrained(own, 3, (28, 28, 1), 4), 3, (28, 28, 1), 4), 3)
    other = {"config": made.recipe["config"], "seed": 4, "hashes": made.recipe["hashes"]}
    with pytest.raises(UserError, match="differ here from those"):
        Artifact(layers=made.layers, architecture=made.architecture, recipe=other).to_dense()


def test_a_recipe_never_has_code_imported(tmp_path):
    own = NETS["uniform"]
    made = from_run(as_run(tmp_path, own, *untrained(own, 3, (28, 28, 1), 4), 3, (28, 28, 1), 4), 3)
    (tmp_path / "hostile.py").write_text("raise SystemExit('imported')")
    for wrong in ({"method": "own", "learner": "hostile:learner"}, {"model": "hostile:Net"}):
        recipe = {**made.recipe, "config": {**made.recipe["config"], **wrong}}
        with pytest.MonkeyPatch.context() as patch, pytest.raises(UserError, match="it names code"):
            patch.chdir(tmp_path)
            Artifact(layers=made.layers, architecture=made.architecture, recipe=recipe).to_dense()


@pytest.mark.parametrize(
    "trained",
    [
        # Constants are exported in test_export_cli.py and in the notebook.
        pytest.param(config(epochs=1, batch_size=64, learning_rate=0.02), marks=pytest.mark.slow),
        pytest.param(
            config(epochs=1, batch_size=64, learning_rate=0.02, weight_distribution="normal"), marks=pytest.mark.slow
        ),
        pytest.param(
            # Batch statistics, scales and offsets included, which no mask says.
            config("resnet20", dataset="cifar10", width=0.25, batch_norm="affine", epochs=1, batch_size=10),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["fcn", "drawn", "resnet"],
)
def test_a_trained_run_is_exported_with_its_accuracy(tmp_path, digits, pictures, trained):
    made = digits if trained.model == "fcn" else pictures
    run = run_config(trained, made, [0, 1], out=tmp_path)
    for seed in (0, 1):
        loaded = from_run(read_finished(run.folder), seed)
        hits = loaded.logits(made.test_images).argmax(1) == made.test_labels
        assert loaded.about["test_accuracy"] == pytest.approx(hits.mean())
        assert loaded.class_names == made.class_names


@pytest.mark.parametrize(
    ("seed", "overrides", "said"),
    [(7, {}, "no finished seed 7; it has 3"), (3, {"method": "baseline"}, "is a baseline")],
)
def test_what_a_run_has_not_is_said(tmp_path, seed, overrides, said):
    own = config(**overrides)
    run = as_run(tmp_path, own, *untrained(own, 3, (28, 28, 1), 4), 3, (28, 28, 1), 4)
    with pytest.raises(UserError, match=said):
        from_run(run, seed)


@pytest.mark.slow
def test_values_that_an_older_version_did_not_keep_are_said(tmp_path):
    own = NETS["stem"]
    run = as_run(tmp_path, own, *untrained(own, 3, (12, 12, 3), 4), 3, (12, 12, 3), 4)
    (run.folder / "values" / "seed-0003.npz").unlink()
    with pytest.raises(UserError, match="train the seed again"):
        from_run(run, 3)


class Own(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.BatchNorm(use_running_average=True)(nn.Dense(5)(x))
        return nn.Dense(2, use_bias=False)(nn.relu(x))


def test_a_module_of_ones_own(tmp_path):
    kernel = initializers.signed_constant(initializers.he())
    model = ssm.Supermask(Own(), kernel_init=kernel)
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    variables = model.init(jax.random.key(0), x)
    from_supermask(model, variables, class_names=("a", "b"), about={"note": "mine"}).save(tmp_path / "own.ssm")
    loaded = ssm.load(tmp_path / "own.ssm", module=Own())
    np.testing.assert_array_equal(loaded.module.apply(loaded.variables, x), model.apply(variables, x))
    assert loaded.about == {"note": "mine"}
    with pytest.raises(UserError, match="user's own"):
        loaded.runtime()
    with pytest.raises(UserError, match="module="):
        _ = ssm.load(tmp_path / "own.ssm").module


def test_weights_without_a_common_magnitude_are_stored_with_a_warning(tmp_path):
    model, x = ssm.Supermask(Own()), np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    variables = model.init(jax.random.key(0), x)
    with pytest.warns(
        UserWarning, match=r"Dense_0, Dense_1 do not share .* it has ([\d,]+) bytes, .* have 120\."
    ) as said:
        net = from_supermask(model, variables)
    size = net.save(tmp_path / "own.ssm")
    assert f"it has {size:,} bytes" in str(said[0].message) and net.own_values == net.remaining
    loaded = ssm.load(tmp_path / "own.ssm", module=Own())
    np.testing.assert_array_equal(loaded.module.apply(loaded.variables, x), model.apply(variables, x))


@pytest.mark.parametrize("model", ["fcn", "conv2", "resnet20"])
def test_other_kinds_of_weights_compute_the_same_with_and_without_jax(tmp_path, model):
    own = {"batch_norm": "affine"} if model == "resnet20" else {}
    inputs = (12, 12, 3)
    net = in_kinds(made_up(Architecture(model=model, inputs=inputs, classes=4, width=0.2, **own), density=0.2))
    net.save(tmp_path / "net.ssm")
    loaded = ssm.load(tmp_path / "net.ssm")
    for name, kernel in net.to_dense().items():
        assert kernel.tobytes() == loaded.to_dense()[name].tobytes()
        assert len(np.unique(kernel[kernel != 0])) == (2 if net.layers[name].own is None else net.layers[name].own.size)
        assert loaded.to_scipy()[name].nnz == np.count_nonzero(net.layers[name].ternary)
    images = np.random.default_rng(0).integers(0, 256, (5, *inputs), np.uint8)
    wanted = loaded.logits(images)
    for runtime in (loaded.full_runtime(), loaded.runtime()):
        np.testing.assert_allclose(runtime.logits(images), wanted, atol=3e-6 * np.abs(wanted).max())


def test_files_that_are_not_there_or_cannot_be_written(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        ssm.load(tmp_path / "none.ssm")
    with pytest.raises(UserError, match="cannot be read"):
        ssm.load(tmp_path)
    with pytest.raises(UserError, match="cannot be read: File name too long"):
        ssm.load(tmp_path / ("x" * 300))
    layer = Layer(np.ones((1, 1), np.int8), 1.0)
    made = Artifact(layers={"Dense_0": layer}, architecture=None)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be written"):
        made.save(tmp_path / "file" / "net.ssm")
    with pytest.raises(UserError, match="at most 0 are read"):
        made.save(tmp_path / "net.ssm")
        ssm.load(tmp_path / "net.ssm", most_weights=0)


def test_norms_by_hand():
    net = Architecture(model="resnet20", inputs=(8, 8, 3), classes=2, batch_norm="affine")
    values = {
        "params/BatchNorm_0/scale": np.full(16, 3, np.float32),
        "params/BatchNorm_0/bias": np.full(16, 1, np.float32),
        "batch_stats/BatchNorm_0/mean": np.full(16, 0.5, np.float32),
        "batch_stats/BatchNorm_0/var": np.full(16, 4 - 1e-3, np.float32),
    }
    norm = Artifact(layers={}, values=values, architecture=net).norms()["BatchNorm_0"]
    np.testing.assert_allclose(norm.factor, 1.5, rtol=1e-6)
    np.testing.assert_allclose(norm.offset, 1 - 0.75, rtol=1e-6)


@pytest.mark.parametrize(
    "setting", [{"model": "package.module:Net"}, {"method": "own", "learner": "package.module:rule"}]
)
def test_a_run_of_ones_own_net_or_learner_says_how_it_is_exported(tmp_path, setting):
    own = NETS["fcn"]
    run = as_run(tmp_path, own, *untrained(own, 3, (28, 28, 1), 4), 3, (28, 28, 1), 4)
    run.config.update(setting)
    with pytest.raises(UserError, match=r"a net or a learner of your own.*from_supermask"):
        from_run(run, 3)


@pytest.mark.slow
def test_a_net_of_inputs_that_are_not_standardised_is_no_file(tmp_path, digits):
    """Whoever used it would give it standardised images, without a word."""
    arrays = [array / np.float32(255) for array in (digits.train_images, digits.test_images)]
    floats = ArrayDataset(
        "npz:mine", "made", arrays[0], digits.train_labels, arrays[1], digits.test_labels, 4, tuple("abcd")
    )
    run = run_config(config(epochs=1, batch_size=64, dataset="npz:mine"), floats, [0], out=tmp_path)
    with pytest.raises(
        UserError, match="inputs that are float32, not standardised; a file is for a net of uint8 images"
    ):
        from_run(read_finished(run.folder), 0)
