"""Programs that are compiled before they are needed are those that training then uses."""

import threading
from contextlib import contextmanager

import jax
import pytest

from ssm.training import loop
from ssm.training.ahead import Meanwhile, device_bytes, lowered_epoch
from tests.support.dying import dying_config, dying_trainer
from tests.support.groups import members_of, same, train

SEEDS = [3, 5, 7]
SIZES = [(("Dense_0", 64), ("Dense_1", 30)), (("Dense_0", 48), ("Dense_1", 30)), ()]
"""What the three train, by dying.TRAINED."""


@contextmanager
def compilations():
    """Collect the names of JAX's events of compiling something."""
    found = []

    def listen(event, *args, **more):
        if event.endswith("backend_compile_duration"):
            found.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def test_training_finds_what_was_compiled_meanwhile(digits):
    results, counts = [], []
    for ahead in (False, True):
        trainer = dying_trainer(digits)
        if ahead:
            meanwhile = Meanwhile(lambda sizes: loop.compile_epoch(trainer, len(SEEDS), sizes))  # noqa: B023
            for sizes in SIZES:
                meanwhile.begin(sizes)
            for sizes in SIZES:
                meanwhile.finish(sizes)
        with compilations() as found:
            results.append(train(trainer, members_of(dying_config(digits), SEEDS)))
        counts.append(len(found))
    assert counts[0] - counts[1] == len(SIZES)
    for seed in SEEDS:
        same(results[0], results[1], seed)


def test_a_guess_is_compiled_once_and_its_error_is_raised_where_it_is_needed():
    compiled, release = [], threading.Event()

    def compile(sizes):
        assert threading.current_thread() is not threading.main_thread()
        release.wait(10)
        compiled.append(sizes)
        if sizes == ():
            raise RuntimeError("no memory")

    meanwhile = Meanwhile(compile)
    for sizes in (SIZES[0], SIZES[0], ()):
        meanwhile.begin(sizes)
    meanwhile.finish(SIZES[1])  # nobody began it: nothing to wait for
    assert not compiled
    release.set()
    meanwhile.finish(SIZES[0])
    meanwhile.finish(SIZES[0])
    with pytest.raises(RuntimeError, match="no memory"):
        meanwhile.finish(())
    assert compiled == [SIZES[0], ()]


def test_an_epoch_is_compiled_without_training_anything(digits):
    trainer = dying_trainer(digits)
    data = {"train": trainer.train, "test": trainer.test, "order": trainer.order}
    few, many = (
        device_bytes(lowered_epoch(trainer.task, trainer.program, seeds, **data).compile()) for seeds in (1, 10)
    )
    weights = 784 * 90 + 90 * 30 + 30 * 4
    assert many - few > 9 * 2 * 4 * weights  # scores and momentum
