"""Runs that tests make: short ones, ones that crash in the middle, and what a run's folder holds."""

from contextlib import contextmanager

import numpy as np

from ssm.recipes.config import Config, resolve
from ssm.runs.folder import Run, mask_path
from ssm.runs.history import read_history
from ssm.runs.job import recipe_job
from ssm.runs.mask_file import load_masks
from ssm.runs.run import RunOptions, run_job
from ssm.runs.saving import Saving


def short(dataset, **overrides) -> Config:
    """Return the configuration of a narrow net and four epochs."""
    values = {"epochs": 4, "batch_size": 64, "width": 0.1, **overrides}
    named = {"model": "fcn", "method": "signed", "preset": "default", "dataset": "mnist"}
    return resolve(**named, samples=len(dataset.train_labels), overrides=values)


def literature(dataset, method, **overrides) -> Config:
    """Return the configuration of a method of the related work, of a very narrow net and two epochs."""
    values = {"epochs": 2, "batch_size": 64, "width": 0.05, **overrides}
    named = {"model": "fcn", "method": method, "preset": "protocol", "dataset": "mnist5k"}
    return resolve(**named, samples=len(dataset.train_labels), overrides=values)


def run_config(config, dataset, seeds, *, out, **options) -> Run:
    """Run a configuration; options are those of `RunOptions`."""
    return run_job(recipe_job(config, dataset), seeds, out=out, options=RunOptions(**options))


class Crash(Exception):
    pass


def after_epoch(do):
    """Return options of a run with a checkpoint an epoch, that does something after each."""

    @contextmanager
    def watchers(folder):
        yield do

    return {"saving": Saving(every=1), "watchers": watchers}


def crashing(epoch):
    """Return options of a run that fails after so many epochs of a group, as a killed program would."""

    def count(now):
        if now.epoch == epoch:
            raise Crash

    return after_epoch(count)


def content(run):
    """Return a run's history, masks and summary, without the seconds."""
    rows = [{**row, "seconds": 0} for row in read_history(run.folder / "history.csv")]
    masks = {seed: load_masks(mask_path(run.folder, seed)) for seed in run.finished_seeds()}
    summary = {**run.summary(), "seconds_per_epoch_and_seed": 0}
    return rows, masks, summary


def same_content(one, other):
    """Say that two `content`s are the same."""
    for left, right in zip(one, other, strict=True):
        np.testing.assert_equal(left, right)
