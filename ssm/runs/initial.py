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
from ssm.runs.names import understood
from ssm.runs.reader import FinishedRun
from ssm.training.loop import beginning


def initial_masks(
    config: Config, seeds: Sequence[int], input_shape: Sequence[int], classes: int
) -> dict[str, Int8[np.ndarray, "seeds ..."]]:
    """Return the masks before the first step by layer, as training makes them, of each seed.

    input_shape: of one image, (height, width, channels).  classes: the net's outputs.

    Raises:
        UserError: for a baseline, whose masks are all ones and no masks, or no seeds.
    """
    if not seeds:
        raise UserError("no seeds were named whose masks to make")
    task = build.make_task(config, image_shape=tuple(input_shape), classes=classes)
    if not task.net(task.numbers).learner.has_masks:
        raise UserError("a baseline has no masks")
    # The trainer's own program, so that thresholds are rounded as they were; a seed at a time, to save memory.
    program = make_program(task, loop="map", devices=jax.local_devices()[:1])
    by_seed = [
        jax.device_get(program.masks(program.start(program.place(beginning([build.member(config, seed)])))))
        for seed in seeds
    ]
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
