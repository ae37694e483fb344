"""Summaries and folders of runs that were never made."""

import json

from ssm.runs.folder import mask_path
from ssm.runs.history import write_history
from ssm.runs.mask_file import save_masks


def summary(**other):
    values = {
        "model": "fcn",
        "method": "signed",
        "init": "elus",
        "preset": "default",
        "dataset": "mnist",
        "source": "IDX",
        "epochs": 100,
        "runs": 50,
        "weights": 266200,
        "test_accuracy": {"mean": 0.9758, "q05": 0.974, "q95": 0.9775, "std": 0.001, "values": {"0": 0.9758}},
        "remaining_weights": {
            "mean": 0.0356,
            "q05": 0.035,
            "q95": 0.0363,
            "std": 0.0004,
            "values": {"0": 0.0356},
        },
        "seconds_per_epoch_and_seed": {"mean": 0.5, "median": 0.4125},
        "failed": [],
    }
    return values | other


def put(folder, *, config=None, machine=None, losses=None, masks=None, **other):
    """Write a run's folder: its summary, and what else is given.

    machine: entries of the environment.  losses: of each seed, epoch by epoch.  masks: of each seed, by layer.
    """
    folder.mkdir(parents=True)
    if losses is not None:
        values = dict.fromkeys(map(str, losses), 0.9758)
        other["test_accuracy"] = summary()["test_accuracy"] | {"values": values}
        rows = [
            {"seed": seed, "epoch": epoch, "test_loss": loss, "test_accuracy": 0.9}
            for seed, course in losses.items()
            for epoch, loss in enumerate(course, 1)
        ]
        write_history(folder / "history.csv", rows)
    for seed, layers in (masks or {}).items():
        save_masks(mask_path(folder, seed), layers)
    (folder / "summary.json").write_text(json.dumps(summary(**other)))
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    if machine is not None:
        entries = [{"environment": machine, "seeds": [0]}] if isinstance(machine, dict) else machine
        (folder / "environment.json").write_text(json.dumps(entries))
    return folder
