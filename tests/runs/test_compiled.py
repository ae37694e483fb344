import math

import jax
import pytest

from ssm.recipes.config import resolve
from ssm.runs import compiled, run
from ssm.runs.compiled import compiled_group, compiled_memory
from ssm.runs.job import recipe_job
from ssm.runs.run import RunOptions, fitting_plan


def job_of(digits):
    overrides = {"width": 0.1, "batch_size": 64}
    named = {"model": "fcn", "method": "signed", "preset": "default", "dataset": "mnist"}
    return recipe_job(resolve(**named, samples=len(digits.train_labels), overrides=overrides), digits)


def test_the_compiled_program_counts_each_seed_and_the_data_once(digits):
    job = job_of(digits)
    memory = compiled_memory(job, devices=1, loop="map")
    weights = 784 * 30 + 30 * 10 + 10 * 10
    more = memory(4) - memory(2)
    # Scores and momentum, which are donated, and bytes for the signs; a copy that this compiler makes, rates and the like.
    assert 2 * 9 * weights <= more < 2 * 16 * weights
    assert memory(2) > digits.train_images.nbytes


@pytest.mark.parametrize(
    ("available", "group", "asked"),
    [
        (1000.0, 50, [50]),
        (250.0, 15, [50, 20, 16, 15]),  # by the bytes over seeds, to which the fixed ones belong
        (110.0, 1, [50, 9, 5, 3, 2]),
        (0.0, 1, [50]),
    ],
)
def test_a_group_is_made_smaller_until_it_fits(available, group, asked):
    counts = []

    def memory(count):
        counts.append(count)
        return 100.0 + 10 * count

    assert compiled_group(memory, 50, available) == group and counts == asked


def test_what_cannot_even_be_compiled_is_halved():
    assert compiled_group(lambda count: math.inf if count > 6 else 6.0, 50, 7.0) == 6


def test_a_compiler_without_memory_says_infinity_and_other_errors_are_raised(monkeypatch, digits):
    groups = []

    class Lowered:
        def compile(self):
            raise RuntimeError(message)

    monkeypatch.setattr(compiled, "lowered_epoch", lambda task, program, group, **more: groups.append(group) or Lowered())
    memory = compiled_memory(job_of(digits), devices=4, loop="map")
    message = "RESOURCE_EXHAUSTED: Out of memory"
    assert memory(6) == math.inf and groups == [8]  # padded, as it is trained
    message = "INTERNAL: no"
    with pytest.raises(RuntimeError, match="INTERNAL"):
        memory(2)


def test_a_gpu_is_asked_what_its_program_takes(monkeypatch, digits):
    job = job_of(digits)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(run, "available_memory", lambda: 100 / run.MEMORY_SHARE)
    asked = []
    monkeypatch.setattr(run, "compiled_memory", lambda job, **where: asked.append(where) or (lambda count: 10.0 * count))
    assert fitting_plan(job, 50, RunOptions()) == (10, 8)
    assert fitting_plan(job, 50, RunOptions(group=30)) == (30, 8)  # the user knows better
    assert asked == [{"devices": 8, "loop": "vmap"}]
