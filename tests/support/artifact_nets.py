"""Masked nets without training: what a run would end with after no step at all."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from ssm.export import Artifact, Layer
from ssm.models.graph import graph, kernel_shapes, value_shapes
from ssm.recipes.build import build
from ssm.recipes.config import resolve
from ssm.runs.folder import open_run
from ssm.runs.reader import read_finished
from ssm.training.batches import INIT, seed_key
from ssm.trees import flatten


def config(model="fcn", method="signed", dataset="mnist", **overrides):
    return resolve(model=model, method=method, preset="default", dataset=dataset, samples=1000, overrides=overrides)


def untrained(config, seed, inputs, classes):
    """Return the Supermask of a configuration and a seed's variables, as training begins."""
    net = build(config, classes=classes)
    key = jax.random.fold_in(seed_key(seed), INIT)
    return net, jax.jit(net.init)(key, jnp.zeros((1, *inputs)))


def made_up(net, *, density=0.05, seed=0):
    """Return an artefact of an architecture with random layers and values, about which no run knows."""
    rng = np.random.default_rng(seed)
    layers = {}
    for name, shape in kernel_shapes(graph(net), net.inputs).items():
        ternary = rng.choice(np.asarray([-1, 1], np.int8), shape) * (rng.random(shape) < density)
        layers[name] = Layer(ternary.astype(np.int8), float(np.float32(1 / np.sqrt(density * np.prod(shape[:-1])))))
    return Artifact(
        layers=layers,
        values={name: 0.5 + rng.random(shape, np.float32) for name, shape in value_shapes(net).items()},
        architecture=net,
        class_names=tuple(f"class {number}" for number in range(net.classes)),
        about={"run": "made-up", "seed": seed},
    )


def in_kinds(net, *, seed=0):
    """Return an artefact whose layers take turns: two constants, and values of their own."""
    rng = np.random.default_rng(seed)

    def of(number, layer):
        constant = layer.constant
        if number % 2 == 0:
            return Layer(layer.ternary, (constant, float(np.float32(constant / 3))))
        kept = np.count_nonzero(layer.ternary)
        own = (constant * (rng.random(kept) + 0.5) * rng.choice([-1, 1], kept)).astype(np.float32)
        return Layer(np.abs(layer.ternary), None, own)

    layers = {name: of(number, layer) for number, (name, layer) in enumerate(net.layers.items())}
    return dataclasses.replace(net, layers=layers)


def as_run(folder, config, net, variables, seed, inputs, classes, *, environment=None):
    """Write a run that ended with these variables, and return it."""
    masks = {name.removesuffix("/kernel"): np.asarray(mask, np.int8) for name, mask in net.masks(variables).items()}
    remaining = sum(np.count_nonzero(mask) for mask in masks.values()) / sum(mask.size for mask in masks.values())
    learned = {("params", *path): leaf for path, leaf in flatten(variables["params"]["net"]).items()}
    kept = {
        (name, *path): leaf for name, tree in variables.items() for path, leaf in flatten(tree.get("net", {})).items()
    }
    values = {
        "/".join(path): np.asarray(leaf)
        for path, leaf in (learned | kept).items()
        if path[-1] != "kernel" and path[0] != "frozen"
    }
    names = tuple(f"class {number}" for number in range(classes))
    about = {"image_shape": inputs, "class_names": names, "data": "0", **(environment or {})}
    run = open_run(folder, config=config.as_dict(), environment=about, source="made")
    row = {"seed": seed, "epoch": 1, "train_loss": 1.0, "test_loss": 1.0, "test_accuracy": 0.5, "flips": 0.0}
    run.add_seeds(
        history_rows=[{**row, "remaining_weights": remaining}],
        finals=[{"seed": seed, "test_accuracy": 0.5, "remaining_weights": remaining}],
        masks={seed: masks},
        values={seed: values},
    )
    return read_finished(run.folder)
