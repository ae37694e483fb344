"""What a run trains: a task and its data, and how the run is named and described."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, get_args

import jax
import numpy as np

from ssm.data import Dataset
from ssm.data.dataset import ArrayDataset
from ssm.ops.convolution import Form
from ssm.recipes import build
from ssm.recipes.config import Config
from ssm.recipes.presets import OWN, kind
from ssm.recipes.published import TABLE_NETS
from ssm.runs.estimate import Memory, count_masked, memory_needed
from ssm.runs.names import member_key, run_folder
from ssm.training.ahead import epoch_arguments
from ssm.training.epoch import Begin, make_program
from ssm.training.loop import Member
from ssm.training.settings import pinned
from ssm.training.task import SeedLoop, Task


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """One point of a run or a sweep: everything that decides its seeds' results, and what is recorded of it.

    settings: the run's identity, plain JSON values.  folder: of the run, below that of all runs.  source: where the
    data comes from.
    about: what is recorded beside versions and devices; `data` is the data's fingerprint.
    make_task, make_data: the task, and (train, test, order) on the devices; the latter called only to train a seed.
    member: seed -> Member.
    memory: devices, loop -> a function from seeds at once to bytes; None where it is not known.
    advice: what to do if the first batch shows that nothing can be learned; None for outputs that are no logits.
    """

    settings: Mapping[str, Any]
    folder: Callable[[Path], Path]
    source: str
    about: Mapping[str, Any]
    make_task: Callable[[], Task]
    make_data: Callable[[], tuple[Any, Any, Any]]
    member: Callable[[int], Member]
    memory: Callable[..., Memory] | None = None
    advice: str | None = None

    @cached_property
    def task(self) -> Task:
        """The task, made once."""
        return self.make_task()

    def check(self) -> None:
        """Raise UserError if the net cannot be made, or has nothing to mask; the built-in nets always can."""
        if self.memory is None:
            count_masked(self.task.net(self.task.numbers), self.task.example)


def recipe_job(config: Config, dataset: Dataset, form: Form = "auto", *, live: bool = True) -> Job:
    """Return the job of a configuration on its data set; `form` and `live` as in `ssm.recipes.build.make_task`.

    Raises UserError for a precision that the device lacks, or inputs that the net can't take.
    """
    build.check_precision(config)
    build.check_inputs(config, dataset.train_images.shape[1:])
    dataset = dataset.held_out(config.validation).first(config.train_images)
    settings = config.as_dict()
    shape = dataset.train_images.shape[1:]
    make_task = cache(partial(build.task_of, config, dataset, form=form, live=live))
    make_data = partial(build.parts, config, dataset)
    data_bytes = dataset.train_images.nbytes + dataset.test_images.nbytes

    def member(seed: int) -> Member:
        return build.member(config, seed, key=member_key(settings, seed))

    about: dict[str, Any] = {
        "precision": config.precision,
        "convolutions": form,
        "live_units": "on" if live else "off",
        "data": dataset.fingerprint(),
        "image_shape": shape,
        "class_names": dataset.class_names,
    }
    if isinstance(dataset, ArrayDataset):
        about["inputs"] = f"{dataset.train_images.dtype}, not standardised"
    own = kind(config.model) == OWN
    fitted = not own and config.model not in TABLE_NETS
    if own or config.learner:  # a name does not say what the user's code computes
        make_data = cache(make_data)  # looked at now and trained on later
        about["program"] = program_hash(make_task(), make_data()[0])
    return Job(
        settings=settings,
        folder=lambda out: run_folder(out, settings),
        source=dataset.source,
        about=about,
        make_task=make_task,
        make_data=make_data,
        member=member,
        # The factors of the estimate were fitted to the built-in nets.
        memory=None if not fitted else lambda **where: memory_needed(make_task(), data_bytes, **where),
        advice=build.smaller_scale(config),
    )


def recorded_job(config: Config, dataset: Dataset, environment: Mapping[str, Any]) -> tuple[Job, SeedLoop | None]:
    """Return the job of a configuration, and how a device runs its seeds, the way that a run's environment says.

    environment: what a run recorded of the program that trained it; older versions recorded less.
    """
    loop, named = environment.get("seed_loop"), environment.get("convolutions", "auto")
    form: Any = {"columns": "im2col"}.get(named, named)  # as earlier versions called it
    live = environment.get("live_units", "off") == "on"  # earlier versions trained all units to the end
    job = recipe_job(config, dataset, form if form in get_args(Form) else "auto", live=live)
    return job, loop if loop in get_args(SeedLoop) else None


@pinned()
def program_hash(task: Task, data: Any) -> str:
    """Return 16 hex digits that tell a task's computation from another's under one version of JAX.

    They are those of one epoch's start and step as JAX traces them: net, learner, loss and optimiser, constants
    included, whatever they are called.
    """
    program = make_program(task, loop="map", devices=jax.local_devices()[:1])
    begin = Begin(np.zeros(1, np.uint32), {name: np.ones(1, np.float32) for name in task.numbers})
    text = str(jax.make_jaxpr(program.start)(begin))
    text += str(jax.make_jaxpr(program.epoch)(*epoch_arguments(task, program, 1, train=data, test=data)))
    return hashlib.sha256(re.sub(r"0x[0-9a-f]+", "", text).encode()).hexdigest()[:16]
