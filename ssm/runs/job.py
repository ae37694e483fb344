"""What a run trains: a task and its data, and how the run is named and described."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ssm.data import Dataset
from ssm.ops.convolution import Form
from ssm.recipes import build
from ssm.recipes.config import Config
from ssm.recipes.presets import OWN, kind
from ssm.runs.estimate import Memory, count_masked, memory_needed
from ssm.runs.names import member_key, run_folder
from ssm.training.loop import Member
from ssm.training.task import Task


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """One point of a run or a sweep: everything that decides its seeds' results, and what is recorded of it.

    settings: the run's identity, plain JSON values.  folder: of the run, below that of all runs.  source: where the
    data comes from.
    about: what is recorded beside versions and devices; `data` is the data's fingerprint.
    make_task, make_data: the task, and (train, test, order) on the devices; called only if a seed is to be trained.
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


def recipe_job(config: Config, dataset: Dataset, form: Form = "auto") -> Job:
    """Return the job of a configuration on its data set."""
    settings = config.as_dict()
    shape = dataset.train_images.shape[1:]
    make_task = partial(build.task_of, config, dataset, form=form)
    data_bytes = dataset.train_images.nbytes + dataset.test_images.nbytes

    def member(seed: int) -> Member:
        return build.member(config, seed, key=member_key(settings, seed))

    return Job(
        settings=settings,
        folder=lambda out: run_folder(out, settings),
        source=dataset.source,
        about={
            "precision": config.precision,
            "convolutions": form,
            "data": dataset.fingerprint(),
            "image_shape": shape,
            "class_names": dataset.class_names,
        },
        make_task=make_task,
        make_data=partial(build.parts, config, dataset),
        member=member,
        # The factors of the estimate were fitted to the built-in nets.
        memory=None if kind(config.model) == OWN else lambda **where: memory_needed(make_task(), data_bytes, **where),
        advice=build.smaller_scale(config),
    )
