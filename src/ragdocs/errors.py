"""The exception tree: every error says what happened, and `hint` says what to do next.

A hint names a verb by its title in angle brackets, such as <read a memory>; the rims put the name
of the tool or of the command there.
"""


class RagdocsError(Exception):
    """Any failure that ragdocs expects and explains."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        if self.hint:
            return f"{self.message}. {self.hint}"
        return self.message


class ConfigError(RagdocsError):
    """The configuration cannot be used as written."""


class NotFoundError(RagdocsError):
    """What was asked for does not exist."""


class AlreadyExistsError(RagdocsError):
    """What was to be created is there already."""


class ConflictError(RagdocsError):
    """The text changed since the caller read it.

    `base` is the text that both sides started from. `merged` is a proposal with both changes, in
    which `overlaps` places are marked for the caller to decide.
    """

    base: str = ""
    merged: str = ""
    overlaps: int = 0
    # What to do with the proposal, and which verb shows the whole of the text there now.
    again: str = "send it with <replace a memory> and this version"
    reader: str = "<read a memory>"

    def __init__(
        self, message: str, hint: str = "", *, theirs: str = "", yours: str = "", version: str = ""
    ) -> None:
        super().__init__(message, hint)
        self.theirs = theirs
        self.yours = yours
        self.version = version


class ReadOnlyError(RagdocsError):
    """The file or folder cannot be written to."""


class LockAcquisitionError(RagdocsError):
    """Somebody else held the lock for too long."""


class ParseError(RagdocsError):
    """A file is malformed and stays untouched."""


class ValidationError(RagdocsError):
    """An argument is not acceptable."""


class UnavailableError(RagdocsError):
    """Something needed (a model, a directory, a lane) cannot be had now."""


class DisconnectedError(UnavailableError):
    """A connection was lost; what was asked for last may have been done or not."""


class ForbiddenError(UnavailableError):
    """The caller's role does not allow it."""


class TooSlowError(UnavailableError):
    """Something that exists did not answer in time, so its state is not known."""


class StorageError(RagdocsError):
    """Reading or writing failed in the file system."""


class RenameError(StorageError):
    """A finished temporary file could not be moved into place."""
