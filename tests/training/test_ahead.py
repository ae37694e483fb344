"""Programs that are compiled before they are needed are those that training then uses."""

import threading
from contextlib import contextmanager
from functools import partial

import jax
import pytest

from ssm.recipes import build
from ssm.training import loop
from ssm.training.ahead import Meanwhile, device_bytes, lowered_epoch
from ssm.training.epoch import make_program
from tests.support.dying import dying_config, dying_trainer
from tests.support.groups import members_of, one_device, same, train

SEEDS = [3]
SIZES = [(("Dense_0", 64), ("Dense_1", 30)), (("Dense_0", 48), ("Dense_1", 30)), ()]
"""What it trains, by dying.TRAINED."""


@contextmanager
def compilations():
    """Collect the names of the programs that JAX compiles."""
    found = []

    def listen(event, *args, **more):
        if event.endswith("backend_compile_duration"):
            found.append(more["fun_name"])

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


@pytest.mark.slow
def test_training_finds_what_was_compiled_meanwhile(digits):
    results, counts = [], []
    for ahead in (False, True):
        trainer = dying_trainer(digits)
        members = members_of(dying_config(digits), SEEDS)
        if ahead:
            state = jax.eval_shape(lambda made: made, loop.started(trainer, members))
            meanwhile = Meanwhile(partial(loop.compile_epoch, trainer, state))
            for sizes in SIZES:
                meanwhile.begin(sizes)
            for sizes in SIZES:
                meanwhile.finish(sizes)
        with compilations() as found:
            results.append(train(trainer, members))
        counts.append(found.count("jit(device_epoch)"))
    assert counts == [len(SIZES), 0]
    for seed in SEEDS:
        same(results[0], results[1], seed)


def test_a_guess_is_compiled_once_and_what_goes_wrong_is_no_harm():
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
    for sizes in (SIZES[0], SIZES[0], ()):
        meanwhile.finish(sizes)
    assert compiled == [SIZES[0], ()]


@pytest.mark.slow
def test_an_epoch_is_compiled_without_training_anything(digits):
    config = dying_config(digits)
    data = dict(zip(("train", "test", "order"), build.parts(config, digits), strict=True))
    task = build.task_of(config, digits)
    program = make_program(task, loop="map", devices=one_device())
    few, many = (device_bytes(lowered_epoch(task, program, seeds, **data).compile()) for seeds in (1, 10))
    weights = 784 * 90 + 90 * 30 + 30 * 4
    assert many - few > 8 * 2 * 4 * weights  # scores and momentum, of one seed and its neighbour to ten
