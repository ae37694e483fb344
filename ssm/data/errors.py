"""The errors of data sets, a class for each kind; every message names the file and what was expected."""

from ssm.errors import UserError


class DataError(UserError):
    """Any problem with a data set; the subclasses say which."""


class MissingFilesError(DataError):
    """A folder lacks files; the message lists the names that were searched for."""


class UnreadableError(DataError):
    """A file or folder may not be read, or the disk fails."""


class WrongMagicError(DataError):
    """A file does not start with its format's magic number."""


class TruncatedFileError(DataError):
    """A file ends before the data that its header announces."""


class TrailingBytesError(DataError):
    """A file continues after the data that its header announces."""


class CorruptFileError(DataError):
    """A compressed file cannot be unpacked."""


class WrongHashError(DataError):
    """A file has the published length but other contents, or a download is not the published file."""


class LabelRangeError(DataError):
    """A label is negative or not below the number of classes."""


class DownloadError(DataError):
    """No mirror could be reached in time; the message lists each with the reason, `short` is a few words."""

    def __init__(self, message: str, *, short: str) -> None:
        super().__init__(message)
        self.short = short
