"""Artefacts from a run's folder, or from the user's own masked module; needs JAX."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ssm.errors import UserError
from ssm.export.artifact import Artifact
from ssm.export.contents import Layer, digest
from ssm.export.flax_module import initial_frozen
from ssm.export.serialization import to_bytes
from ssm.files import plain
from ssm.models.graph import architecture, graph, kernel_shapes, value_shapes
from ssm.paths import name_path, path_name
from ssm.recipes import build
from ssm.recipes.config import Config
from ssm.recipes.literature import LITERATURE
from ssm.recipes.method_options import EXEMPT, parsed_options
from ssm.recipes.presets import OWN, kind, named_settings
from ssm.runs.example_file import example_path, load_examples
from ssm.runs.frozen import check_frozen
from ssm.runs.images import check_standardised, image_facts
from ssm.runs.initial import config_of
from ssm.runs.magnitudes import taken_apart
from ssm.runs.reader import FinishedRun, spans
from ssm.runs.value_file import load_values, value_path
from ssm.runs.weight_file import weight_path
from ssm.supermask import Supermask, check_single, module_collections
from ssm.trees import flatten

TOLERANCE = {"float32": 1e-3, "tf32x3": 1e-3, "tf32": 0.02, "bfloat16": 0.1}
"""How far a net's outputs may be from those that a run kept, over the largest of them.

Float32 in another order, as on another backend, is off by some 1e-6, bfloat16 against float32, as here, by some 1e-2,
another net by some 1 (docs/artefacts.md).  TF32 has 3 bits more than bfloat16; it was not measured.
"""
_ABOUT = ("method", "init", "preset", "dataset", "epochs")


def frozen_of_run(run: FinishedRun, seed: int) -> dict[str, np.ndarray]:
    """Return the frozen kernels of a run's seed by layer, drawn again; a warning says if the run keeps no hash of them.

    Of a method of the related work they are its final weights over the mask, 0 where that hides them.

    Raises:
        UserError: if they are not those that it was trained with.
    """
    if run.setting("method") in LITERATURE:
        masks = {layer: mask[0] for layer, mask in run.masks([seed]).items()}
        return {layer: weights * masks[layer] for layer, weights in kept_weights(run, seed, masks).items()}
    inputs, class_names = image_facts(run)
    frozen = initial_frozen(config_of(run), seed, inputs, len(class_names))
    check_frozen(run, seed, frozen)
    return frozen


def from_run(run: FinishedRun, seed: int) -> Artifact:
    """Return the net that a finished seed of a run ended with, checked by its outputs of some test samples.

    The run kept them as training ended.  A warning says if it is of an older version, which kept none.  Of a method of
    the related work it kept the weights, too; those of the paper's are made again from the seed.

    Raises:
        UserError: for a baseline, a seed that the run does not have, a net or inputs that the format does not know, a
            folder that lacks files, or a net that is not the one that was trained.
    """
    if not run.is_masked:
        raise UserError(f"{run.folder} is a baseline: it has no mask, and a run keeps no trained weights")
    if seed not in run.seeds:
        raise UserError(f"{run.folder} has no finished seed {seed}; it has {spans(run.seeds) or 'none'}")
    check_known(run)
    check_standardised(run)
    masks = {layer: mask[0] for layer, mask in run.masks([seed]).items()}
    inputs, class_names = image_facts(run)
    net = architecture(run.setting, inputs, len(class_names))
    if {name: mask.shape for name, mask in masks.items()} != kernel_shapes(graph(net), net.inputs):
        raise UserError(f"{run.folder}: the masks of seed {seed} do not fit the net that its configuration names")
    config = config_of(run)
    layers, recipe = (_kept if config.method in LITERATURE else _made_again)(run, seed, config, masks)
    remaining = sum(np.count_nonzero(mask) for mask in masks.values()) / sum(mask.size for mask in masks.values())
    said = run.summary["remaining_weights"]["values"][str(seed)]
    if not math.isclose(remaining, said, rel_tol=1e-6):
        raise UserError(f"{run.folder}: the masks of seed {seed} keep {remaining:.6f}, its summary says {said:.6f}")
    artifact = Artifact(
        layers=layers,
        values=_values(run, seed, value_shapes(net)),
        architecture=net,
        precision="bfloat16" if config.precision == "bfloat16" else "float32",  # which everything that runs it has
        class_names=class_names,
        about={
            "run": run.name,
            "seed": seed,
            **{name: run.setting(name) for name in _ABOUT},
            **_tested(config, run.summary["test_accuracy"]["values"][str(seed)]),
            "remaining_weights": said,
        },
        recipe=recipe,
    )
    if config.method in LITERATURE and not example_path(run.folder, seed).exists():
        warnings.warn(f"{run.folder} keeps no outputs of its nets: this one is not compared with them", stacklevel=2)
        return artifact
    if config.method not in LITERATURE and run.frozen_hash(seed) is None:
        return artifact
    return replace(
        artifact,
        about={**artifact.about, "checked_samples": _check_outputs(run, seed, artifact, TOLERANCE[config.precision])},
    )


def check_known(run: FinishedRun) -> None:
    """Raise UserError for a run whose nets the format of files does not know."""
    model, method, activation, norm = map(run.setting, ("model", "method", "activation", "batch_norm"))
    if kind(model) == OWN or method not in ("signed", "binary", *LITERATURE):
        raise UserError(
            f"{run.folder} is of a net or a learner of your own, of which a run keeps too little for a file: train "
            "it with ssm.train, and save what ssm.export.from_supermask makes of its variables"
        )
    if build.known_to_files(run.setting):
        return
    what = f"--model={model} --activation={activation} --batch-norm={norm}"
    kept = "its masks are in masks/"
    if exempt := parsed_options(run.setting("method_options")).get(EXEMPT):
        what += f" --{method}.exempt={exempt}"
    if method in LITERATURE:
        kept = "its weights are in weights/ (ssm.runs.reader.read_finished(RUN).weights(SEED)), the rest in values/"
    raise UserError(
        f"{run.folder} cannot be stored as a file: the format knows the FCN and the Conv nets with ELU and without "
        f"batch normalisation, and the ResNets with ELU, with a mask of every layer; this is {what}. Use the "
        f"run's folder itself ({kept}), or train a net that the format knows"
    )


def _tested(config: Config, accuracy: float) -> dict[str, Any]:
    """Return what a file says of the accuracy of its net; that of drawn weights is another one's."""
    learner = build.learner(config, build.threshold(config))
    return {"test_accuracy": accuracy} if learner.draw is None else {"test_accuracy_of_draws": accuracy}


def _made_again(
    run: FinishedRun, seed: int, config: Config, masks: Mapping[str, np.ndarray]
) -> tuple[dict[str, Layer], dict[str, Any] | None]:
    """Return the layers of masks on frozen weights drawn from the seed, and the recipe of those that a file draws."""
    frozen = frozen_of_run(run, seed)
    layers = {name: ternary_layer(mask, frozen[name]) for name, mask in masks.items()}
    hashes = {name: digest(frozen[name]) for name, layer in layers.items() if layer.drawn}
    recipe = {"config": plain(named_settings(config.as_dict())), "seed": seed, "hashes": hashes}
    return layers, recipe if hashes else None


def _kept(
    run: FinishedRun, seed: int, config: Config, masks: Mapping[str, np.ndarray]
) -> tuple[dict[str, Layer], None]:
    """Return the layers of the weights that a run kept."""
    return {name: weight_layer(weights) for name, weights in kept_weights(run, seed, masks).items()}, None


def kept_weights(run: FinishedRun, seed: int, masks: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the weights that a run kept of a seed; raises UserError unless they fit its masks."""
    weights = run.weights(seed)
    shapes = {name: values.shape for name, values in weights.items()}
    if shapes != {name: mask.shape for name, mask in masks.items()} or any(
        weights[name][mask == 0].any() for name, mask in masks.items()
    ):
        raise UserError(
            f"{weight_path(run.folder, seed)} does not fit the masks of seed {seed}: one of both files is damaged or "
            "of another run: copy the run again, or train the seed again"
        )
    return {name: weights[name] for name in masks}


def _check_outputs(run: FinishedRun, seed: int, artifact: Artifact, tolerance: float) -> int:
    """Return the number of test samples whose outputs a run kept; raises UserError unless a net's are the same.

    They are computed without JAX and in float32, which takes milliseconds where JAX would compile for seconds.
    """
    inputs, outputs = load_examples(example_path(run.folder, seed))
    if inputs.dtype != np.uint8 or inputs.shape[1:] != artifact.known().inputs:
        raise UserError(
            f"{run.folder} was trained on inputs {inputs.dtype} {list(inputs.shape[1:])}: only nets of images, uint8 "
            "[height, width, channels], are exported"
        )
    found = artifact.full_runtime().logits(inputs)
    scale = float(np.abs(outputs).max())
    error = float(np.abs(found - outputs).max()) if found.shape == outputs.shape else math.inf
    if not error <= tolerance * scale:
        raise UserError(
            f"{run.folder}: the net made of seed {seed} is not the one that was trained: its outputs of {len(inputs)} "
            f"test samples are off by up to {error:.3g}, the largest being {scale:.3g}. A file of the run is damaged "
            "or of another run: copy the run again, or train the seed again"
        )
    return len(inputs)


def from_supermask(
    model: Supermask,
    variables: Mapping[str, Any],
    *,
    class_names: Sequence[str] = (),
    about: Mapping[str, Any] | None = None,
) -> Artifact:
    """Return the net of the user's own masked module; `ssm.load(path, module=...)` needs the plain module again.

    A warning names the layers whose weights do not share one magnitude, or one a sign: they are no smaller than dense.

    Raises:
        UserError: for the variables of stacked seeds, and parameters without a name that a file can hold.
    """
    check_single(
        variables, ", and a file holds one: take that of a seed, jax.tree.map(lambda leaf: leaf[0], variables)"
    )
    weights = flatten(model.weights(variables))
    layers: dict[str, Layer] = {}
    values: dict[str, np.ndarray] = {}
    masked = {name_path(name) for name in model.masks(variables)}
    for path, weight in weights.items():
        array = np.asarray(weight)
        if path not in masked:
            values[path_name(("params", *path))] = array
            continue
        if len(path) == 1:
            raise UserError(f"the masked parameter {path[0]} must be in a named submodule, as nn.Dense's is")
        name = path_name(path if path[-1] == "embedding" else path[:-1])
        if path[-1] not in ("kernel", "embedding"):
            raise UserError(f"a masked parameter must be named kernel or embedding, not {path[-1]}")
        try:
            layers[name] = weight_layer(array)
        except ValueError as error:
            raise UserError(f"{name}: {error}") from error
    for path, leaf in flatten(module_collections(variables)).items():
        values[path_name(path)] = np.asarray(leaf)
    if other := [name for name, value in values.items() if value.dtype != np.float32]:
        raise UserError(f"{', '.join(other)}: only float32 values are saved")
    artifact = Artifact(
        layers=layers, values=values, architecture=None, class_names=tuple(class_names), about=about or {}
    )
    if large := [name for name, layer in layers.items() if layer.own is not None]:
        warnings.warn(
            f"the weights of {', '.join(large)} do not share one magnitude, so that a file holds each: it has "
            f"{len(to_bytes(artifact)):,} bytes, where dense weights have {4 * artifact.weights:,}. Small are signed "
            "constants (kernel_init=ssm.initializers.signed_constant(...))",
            stacklevel=2,
        )
    return artifact


def weight_layer(weights: np.ndarray) -> Layer:
    """Return the layer of effective weights: of one constant, or two, or of values of their own.

    Raises:
        ValueError: for another dtype than float32, and weights that are not finite.
    """
    parts = taken_apart(weights)
    if parts.of_signs:
        minus, plus = map(float, parts.magnitudes)
        return Layer(parts.signs, (minus, plus))
    if parts.magnitudes.size < 2:
        return Layer(parts.signs, float(parts.magnitudes[0]) if parts.magnitudes.size else 0.0)
    return Layer(np.abs(parts.signs), None, weights[parts.signs != 0])


def ternary_layer(mask: np.ndarray, frozen: np.ndarray) -> Layer:
    """Return the layer of a mask on frozen weights: if these are +c or -c, their signs are multiplied into the matrix.

    Mask times weight is then c times a ternary matrix, whatever the signs were (docs/ledger.md).
    """
    magnitudes = np.abs(frozen)
    if not magnitudes.size:
        return Layer(mask.astype(np.int8), 0.0)
    constant = float(magnitudes.flat[0])
    if not (magnitudes == magnitudes.flat[0]).all():
        return Layer(mask.astype(np.int8), None)
    signs = np.sign(frozen).astype(np.int8) if frozen.shape == mask.shape else np.int8(1)
    return Layer((mask * signs).astype(np.int8), constant)


def _values(run: FinishedRun, seed: int, wanted: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    if not wanted:
        return {}
    found = load_values(value_path(run.folder, seed))
    if {name: value.shape for name, value in found.items()} != dict(wanted):
        raise UserError(f"{run.folder}: the batch normalisation of seed {seed} does not fit its net")
    return {name: found[name] for name in wanted}
