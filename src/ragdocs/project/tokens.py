"""Bearer tokens: who may ask over HTTP, in which role, of which project, and until when."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast, get_args

from ragdocs.caller import Role
from ragdocs.errors import NotFoundError, ParseError, ValidationError
from ragdocs.project import folders
from ragdocs.system import files
from ragdocs.system.locks import lock

FILE_NAME = "tokens.json"
VERSION = 1
LARGEST = 1_000_000
MOST_TOKENS = 1_000
LONGEST_NAME = 100
MOST_DAYS = 3_650
# How every token begins, so that people and secret scanners recognise one.
PREFIX = "ragdocs"
# Of a token that is for all projects of the user.
EVERY_PROJECT = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What is known about a token; the token itself is shown once and never stored."""

    id: str
    name: str
    role: Role
    # The project's folder, or "*".
    project: str
    created_at: str
    expires_at: str
    digest: str

    def is_valid(self, now: datetime) -> bool:
        """Tell whether it has not expired."""
        return now < datetime.fromisoformat(self.expires_at)

    def covers(self, root: Path) -> bool:
        """Tell whether it is for this project."""
        return self.project in (EVERY_PROJECT, str(root))

    def public(self) -> dict[str, str]:
        """Return what a list of tokens shows."""
        fields = asdict(self)
        del fields["digest"]
        return fields


class Tokens:
    """The tokens of this user, in a file that nobody else can read."""

    def __init__(self, directory: Path | None = None) -> None:
        self.path = (directory or folders.state_dir()) / FILE_NAME
        # What the file said last, and by which signs it would be seen to have changed.
        self._read: tuple[object, tuple[Token, ...]] = (None, ())

    def create(
        self, name: str, role: str, project: str, days: int, now: datetime
    ) -> tuple[Token, str]:
        """Make a token and return it with its secret text, which nobody can see again."""
        if role not in get_args(Role):
            raise ValidationError(f"{role[:40]!r} is not a role", "Use reader, writer or admin")
        if not name.strip() or len(name) > LONGEST_NAME:
            hint = f"Give one of 1 to {LONGEST_NAME} characters, such as the name of the client"
            raise ValidationError("a token needs a name", hint)
        if not 1 <= days <= MOST_DAYS:
            raise ValidationError(f"{days} days is out of range", f"Use 1 to {MOST_DAYS}")
        number = secrets.token_hex(4)
        text = f"{PREFIX}_{number}_{secrets.token_urlsafe(32)}"
        token = Token(
            id=number,
            name=name.strip(),
            role=cast("Role", role),
            project=project,
            created_at=_written(now),
            expires_at=_written(now + timedelta(days=days)),
            digest=_digest(text),
        )
        files.make_directories(self.path.parent, 0o700)
        with lock(self.path.parent):
            tokens = [*self.all(), token]
            if len(tokens) > MOST_TOKENS:
                raise ValidationError(
                    f"there are {MOST_TOKENS} tokens already", "Revoke some that nobody uses"
                )
            self._write(tokens)
        return token, text

    def revoke(self, name: str) -> list[Token]:
        """Remove the tokens with this id or name, which are refused from then on."""
        files.make_directories(self.path.parent, 0o700)
        with lock(self.path.parent):
            tokens = self.all()
            revoked = [token for token in tokens if name in (token.id, token.name)]
            if not revoked:
                raise NotFoundError(
                    f"there is no token {name[:40]!r}", "`ragdocs token list` shows all"
                )
            self._write([token for token in tokens if token not in revoked])
        return revoked

    def all(self) -> tuple[Token, ...]:
        """Return all tokens, the oldest first."""
        before, tokens = self._read
        signs = self._signs()
        if signs is None:
            return ()
        if signs != before:
            try:
                text = files.read_bytes(self.path, LARGEST)
            except NotFoundError:
                return ()
            tokens = tuple(_parsed(text, self.path))
            self._read = (signs, tokens)
        return tokens

    def _signs(self) -> object:
        """Return what changes when the file is replaced, as every write does, or nothing."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise files.explain(error, "read", self.path) from error
        return status.st_ino, status.st_mtime_ns, status.st_size

    def find(self, text: str, now: datetime) -> Token | None:
        """Return the token that a text is, if it is one and has not expired."""
        digest = _digest(text)
        match = None
        for token in self.all():
            # All are compared, so that the time tells nothing about any.
            if hmac.compare_digest(token.digest, digest):
                match = token
        if match is None or not match.is_valid(now):
            return None
        return match

    def _write(self, tokens: Iterable[Token]) -> None:
        table = {"version": VERSION, "tokens": [asdict(token) for token in tokens]}
        text = json.dumps(table, indent=2, ensure_ascii=False)
        files.write_atomic(self.path, f"{text}\n".encode(), mode=0o600)


def _digest(text: str) -> str:
    # The text has 256 random bits, so that a slow digest would protect nothing.
    return hashlib.sha256(text.encode()).hexdigest()


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def _parsed(text: bytes, path: Path) -> Iterable[Token]:
    try:
        table = json.loads(text)
        for fields in table["tokens"]:
            yield _token(fields)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "Repair it, or remove it and make new tokens"
        raise ParseError(f"{path} is not a list of tokens", hint) from error


def _token(fields: dict[str, Any]) -> Token:
    token = Token(**fields)
    if token.role not in get_args(Role):
        raise ValueError(token.role)
    # A date that cannot be read would make every check fail.
    expires_at = datetime.fromisoformat(token.expires_at)
    if expires_at.tzinfo is None:
        token = replace(token, expires_at=_written(expires_at.replace(tzinfo=UTC)))
    return token
