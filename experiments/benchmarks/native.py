"""A net as C, compiled by gcc and called from Python, for inference.py."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
from jaxtyping import Float32, UInt8

from ssm.errors import UserError

DRIVER = """\
#include "net.c"

void many(const uint8_t *images, long count, float *logits, float *work, long times)
{
    for (; times > 0; times--)
        for (long k = 0; k < count; k++)
            net_logits(images + k * VALUES, logits + k * CLASSES, work);
}

long work_size(void)
{
    return WORK;
}
"""


class Native:
    """A net's compiled function; a call takes a batch of raw images, as `Runtime.logits` does.

    source: of a net in C (`ssm.export.c_source`).  folder: for what gcc makes of it.
    Raises UserError if gcc cannot compile it.
    """

    def __init__(self, source: str, folder: Path, options: tuple[str, ...], *, classes: int) -> None:
        (folder / "net.c").write_text(source)
        (folder / "many.c").write_text(DRIVER)
        gcc(folder, *options, "-c", "net.c", "-o", "net.o")
        gcc(folder, *options, "-shared", "-fPIC", "many.c", "-o", "many.so", "-lm")
        self.object_bytes = (folder / "net.o").stat().st_size
        library = ctypes.CDLL(str(folder / "many.so"))
        self._many = library.many
        self._many.restype = None
        self._work = np.empty(library.work_size(), np.float32)
        self._classes = classes

    def __call__(self, images: UInt8[np.ndarray, "n h w c"], times: int = 1) -> Float32[np.ndarray, "n classes"]:
        """Return the logits; `times` as often, in a loop of C."""
        logits = np.empty((len(images), self._classes), np.float32)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (images, logits, self._work)]
        self._many(pointers[0], ctypes.c_long(len(images)), *pointers[1:], ctypes.c_long(times))
        return logits


def gcc(folder: Path, *arguments: str) -> None:
    """Run gcc in a folder.

    Raises:
        UserError: if it fails.
    """
    done = subprocess.run(["gcc", "-std=c99", *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"gcc cannot compile the net: {done.stderr[:1000]}")
