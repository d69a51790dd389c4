"""The exception tree: every error says what happened, and `hint` says what to do next."""


class RagdocsError(Exception):
    """Any failure that ragdocs foresaw."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message


class ConfigError(RagdocsError):
    """The configuration cannot be used as written."""


class NotFoundError(RagdocsError):
    """What was asked for does not exist."""


class AlreadyExistsError(RagdocsError):
    """What was to be created is there already."""


class ConflictError(RagdocsError):
    """The text changed since the caller read it.

    `base` is what both sides started from, `merged` how they go together but for the marked
    `overlaps`, if known.
    """

    base: str = ""
    merged: str = ""
    overlaps: int = 0
    # What to do with the proposal, and what shows the whole of the text there now.
    again: str = "send it with update_memory and this version"
    reader: str = "read_memory"

    def __init__(
        self, message: str, hint: str = "", *, theirs: str = "", yours: str = "", version: str = ""
    ) -> None:
        super().__init__(message, hint)
        self.theirs = theirs
        self.yours = yours
        self.version = version


class ReadOnlyError(RagdocsError):
    """The place cannot be written to."""


class LockAcquisitionError(RagdocsError):
    """Somebody else held the lock for too long."""


class ParseError(RagdocsError):
    """A file is malformed and stays untouched."""


class ValidationError(RagdocsError):
    """An argument is not acceptable."""


class UnavailableError(RagdocsError):
    """Something needed (a model, a directory, a lane) cannot be had now."""


class TooSlowError(UnavailableError):
    """Something that is there did not answer in time, so nothing is known about it."""


class StorageError(RagdocsError):
    """Reading or writing failed in the file system."""


class RenameError(StorageError):
    """A finished temporary file could not be moved into place."""
