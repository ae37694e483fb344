"""Output that cannot be written, as a pipe's reader or the terminal is gone or the disk full, never ends training.

Python's own streams raise there, once more as the interpreter ends; and SIGPIPE's default action would end a program
whose download is cut off, too (https://docs.python.org/3/library/signal.html#note-on-sigpipe).
"""

import io
import os
import sys
from contextlib import suppress
from typing import TextIO


class Unwritable(Exception):
    """Standard output cannot be written; `error` says why.  No OSError, which would be taken for that of a file."""

    def __init__(self, error: OSError):
        super().__init__(error.strerror or str(error))
        self.error = error


class _Descriptor(io.FileIO):
    """A file descriptor that drops what cannot be written to it; if it `raises`, the first time is an error."""

    def __init__(self, number: int, *, raises: bool):
        super().__init__(number, "w", closefd=False)
        self.raises = raises

    def write(self, data, /) -> int:
        try:
            written = super().write(data)
        except OSError as error:
            if self.raises:
                self.raises = False
                raise Unwritable(error) from error
            written = None
        return len(data) if written is None else written


def _over(stream: TextIO | None, number: int, *, raises: bool) -> TextIO:
    """Return a text stream over a descriptor that encodes and buffers as another one does."""
    raw = _Descriptor(number, raises=raises)
    if not isinstance(stream, io.TextIOWrapper):
        return io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace")
    with suppress(OSError):
        stream.flush()
    return io.TextIOWrapper(
        raw if isinstance(stream.buffer, io.RawIOBase) else io.BufferedWriter(raw),  # raw: python -u
        encoding=stream.encoding,
        # A name that the terminal's encoding lacks is no reason to end, either.
        errors="backslashreplace" if stream.errors == "strict" else stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _is_plain(stream: TextIO) -> bool:
    """Say whether a stream is a file of the operating system's, as Python opens it: not a notebook's or a test's."""
    return type(stream) is io.TextIOWrapper and type(getattr(stream.buffer, "raw", stream.buffer)) is io.FileIO


def lossy(stream: TextIO | None) -> TextIO:
    """Return a stream to where a standard one writes, which drops what cannot be written.

    A notebook's, a test's or one of one's own is returned as it is.
    """
    if stream is None:  # closed before Python began
        return open(os.devnull, "w", encoding="utf-8")
    return _over(stream, stream.fileno(), raises=False) if _is_plain(stream) else stream


def keep_standard_streams(*, lasting: bool) -> None:
    """Replace the standard streams of a program by such as drop what cannot be written.

    A program that is not `lasting` ends instead where its standard output cannot be written, by Unwritable.  What was
    closed before the program began is the null device, lest the next file that is opened gets messages written into it.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number
    for name, number, raises in (("stdout", 1, not lasting), ("stderr", 2, False)):
        stream = getattr(sys, name)
        if stream is None or _is_plain(stream):
            setattr(sys, name, _over(stream, number, raises=raises))
