"""What all tests share: eight host devices, which must be asked for before JAX starts, and small made data.

Programs compiled in one test are used by the others, and by the processes that tests start: most are small, and
compiling them takes longer than running them.
"""

import atexit
import os
import shutil
import signal
import tempfile

import jax
import numpy as np
import pytest

from ssm.data import Dataset
from ssm.training.devices import use_host_devices

CACHE = "JAX_COMPILATION_CACHE_DIR"
LEAST = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"

for ignored in (signal.SIGHUP, signal.SIGINT):  # under nohup, or in a script's background: children would inherit it
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, lambda number, frame: None)
use_host_devices(8)
if CACHE not in os.environ:  # workers and subprocesses have it from the first process
    os.environ[CACHE] = tempfile.mkdtemp(prefix="ssm-tests-")
    os.chmod(os.environ[CACHE], 0o777)  # one test acts as another user
    os.environ[LEAST] = "0.1"
    atexit.register(shutil.rmtree, os.environ[CACHE], ignore_errors=True)
    jax.config.update(CACHE.lower(), os.environ[CACHE])
    jax.config.update(LEAST.lower(), float(os.environ[LEAST]))


def noisy_classes(shape: tuple[int, int, int], train: int, test: int) -> Dataset:
    """Return four classes of noisy images, each class about one image of its own."""
    rng = np.random.default_rng(0)
    centres = rng.integers(0, 256, (4, *shape))

    def draw(count):
        labels = (np.arange(count) % 4).astype(np.int32)
        images = np.clip(centres[labels] + rng.normal(0, 60, (count, *shape)), 0, 255).astype(np.uint8)
        return images, labels

    return Dataset("made", "made by the tests", *draw(train), *draw(test), classes=4, class_names=("a", "b", "c", "d"))


@pytest.fixture(scope="session")
def digits() -> Dataset:
    """28 x 28 images that a net learns in an epoch or two; 205 to train on, 60 to test."""
    return noisy_classes((28, 28, 1), 205, 60)


@pytest.fixture(scope="session")
def pictures() -> Dataset:
    """8 x 8 pictures for the nets that convolve; 20 to train on, 8 to test."""
    return noisy_classes((8, 8, 3), 20, 8)


@pytest.fixture(params=["jit", "eager"])
def compiled(request):
    """A pure function is the same compiled and not: `compiled(function)` is the one or the other.

    As `chex.variants`, which takes methods of absl's TestCase alone.
    """
    return jax.jit if request.param == "jit" else lambda function: function
