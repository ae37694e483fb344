"""What can be wrong with data, one class each; every message names the file and what was expected."""

from ssm.errors import UserError


class DataError(UserError):
    """Any problem with a data set; the classes below say which."""


class MissingFilesError(DataError):
    """A folder lacks files; the message lists the names that were looked for."""


class WrongMagicError(DataError):
    """A file starts with other bytes than its format does."""


class TruncatedFileError(DataError):
    """A file ends before the data that it announces."""


class TrailingBytesError(DataError):
    """A file goes on after the data that it announces."""


class CorruptFileError(DataError):
    """A compressed file can't be unpacked."""


class WrongHashError(DataError):
    """A file has the published length but other contents, or a download isn't what was published."""


class LabelRangeError(DataError):
    """A label is negative or not below the number of classes."""


class DownloadError(DataError):
    """No mirror could be reached in time; the message lists each with the reason, `short` is a few words."""

    def __init__(self, message: str, *, short: str) -> None:
        super().__init__(message)
        self.short = short
