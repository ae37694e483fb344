"""Small runs that were never trained: folders as train.py leaves them, for the tests of what is made from runs."""

import numpy as np

from ssm.recipes.config import resolve
from ssm.runs.folder import open_run

LAYERS = {
    "fcn": {"Dense_0": (784, 12), "Dense_1": (12, 8), "Dense_2": (8, 10)},
    "conv2": {
        "Conv_0": (3, 3, 3, 6),
        "Conv_1": (3, 3, 6, 6),
        "Dense_0": (96, 16),
        "Dense_1": (16, 8),
        "Dense_2": (8, 10),
    },
    "resnet20": {
        "Block_00/Conv_0": (1, 1, 4, 4),
        "Block_00/Conv_1": (3, 3, 4, 4),
        "Block_00/Conv_2": (3, 3, 4, 4),
        "Block_01/Conv_0": (3, 3, 4, 4),
        "Block_01/Conv_1": (3, 3, 4, 4),
        "Conv_0": (3, 3, 3, 4),
        "Dense_0": (4, 10),
    },
}
LAYERS |= {model: LAYERS["conv2"] for model in ("conv4", "conv6", "conv8")}


def make_run(root, *, seeds=2, epochs=3, model="fcn", method="signed", preset="paper", dataset="", layers=None, **over):
    """Write a run of made-up masks and figures, and return its folder."""
    dataset = dataset or ("mnist" if model == "fcn" else "cifar10")
    named = {"model": model, "method": method, "preset": preset, "dataset": dataset}
    config = resolve(**named, samples=50_000, overrides={"epochs": epochs, **over}).as_dict()
    shapes = layers or LAYERS[model]
    run = open_run(root, config=config, environment={"python": "3.11", "device": "cpu"}, source="made", weights=9_000)
    rows, finals, masks = [], [], {}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        masks[seed] = {layer: _mask(shape, method, rng) for layer, shape in shapes.items()}
        share = float(np.mean(np.concatenate([mask.ravel() for mask in masks[seed].values()]) != 0))
        for epoch in range(1, epochs + 1):
            rows.append(
                {
                    "seed": seed,
                    "epoch": epoch,
                    "train_loss": 1 / epoch,
                    "test_loss": 1.1 / epoch,
                    "test_accuracy": 0.9 - 0.3 / epoch + 0.004 * rng.random(),
                    "remaining_weights": share + (1 - share) * (1 - epoch / epochs),
                    "flips": 0.1 / epoch,
                    "seconds": 1.0,
                }
            )
        finals.append({"seed": seed, "test_accuracy": rows[-1]["test_accuracy"], "remaining_weights": share})
    run.add_seeds(history_rows=rows, finals=finals, masks=masks)
    return run.folder


def _mask(shape, method, rng):
    """Return a mask of which little remains, less of some rows than of others, as in a trained one."""
    if method == "baseline":
        return np.ones(shape, np.int8)
    density = 0.4 * np.linspace(0, 1, shape[-2])[:, None] ** 2
    signs = (1,) if method == "binary" else (-1, 1)
    return (rng.choice(signs, shape) * (rng.random(shape) < density)).astype(np.int8)
