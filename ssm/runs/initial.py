"""The masks that training begins with: they come again from the configuration and the seed."""

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import Int8

from ssm.recipes import build
from ssm.recipes.config import Config
from ssm.training.epoch import make_program
from ssm.errors import UserError
from ssm.runs.frozen import check_frozen
from ssm.runs.images import image_facts
from ssm.runs.names import understood
from ssm.runs.reader import FinishedRun
from ssm.training.frozen import state_kernels
from ssm.training.loop import beginning


def initial_masks(run: FinishedRun, seeds: Sequence[int] | None = None) -> dict[str, Int8[np.ndarray, "seeds ..."]]:
    """Return a run's masks before the first step by layer, made again, of each of these seeds (default: `mask_seeds`).

    Raises:
        UserError: for a baseline, whose masks are all ones and no masks, no seeds, or a seed that gives other frozen
            weights here than it was trained with.
    """
    seeds = run.mask_seeds if seeds is None else seeds
    if not run.is_masked:
        raise UserError("a baseline has no masks")
    if not seeds:
        raise UserError("no seeds were named whose masks to make")
    inputs, class_names = image_facts(run)
    config = config_of(run)
    task = build.make_task(config, image_shape=inputs, classes=len(class_names))
    # The trainer's own program, so that thresholds are rounded as they were; a seed at a time, to save memory.
    program = make_program(task, loop="map", devices=jax.local_devices()[:1])

    def masks_of(seed: int) -> dict[str, np.ndarray]:
        state = program.start(program.place(beginning([build.member(config, seed)])))
        check_frozen(run, seed, state_kernels(task, state, 0))
        return jax.device_get(program.masks(state))

    by_seed = [masks_of(seed) for seed in seeds]
    return {layer: np.concatenate([one[layer] for one in by_seed]) for layer in by_seed[0]}


def config_of(run: FinishedRun) -> Config:
    """Return a finished run's configuration, with the neutral values of options that it is older than.

    Raises:
        UserError: if it is not one that can be run.
    """
    known = {field.name for field in dataclasses.fields(Config)}
    if strange := sorted(set(understood(run.config, known, run.name)) - known):
        raise UserError(
            f"{run.folder / 'config.json'} has options that this version does not know: {', '.join(strange)}; use the "
            "version that made the run"
        )
    try:
        return Config(**{name: run.setting(name) for name in known})
    except (TypeError, ValueError) as error:
        raise UserError(f"{run.folder / 'config.json'} is damaged: not the configuration of a run ({error})") from error
