"""The key that signs a user's indexes."""

from __future__ import annotations

import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from ragdocs.project.folders import state_dir
from ragdocs.project.signing import signing_key

posix_only = pytest.mark.skipif(os.name != "posix", reason="modes and links are those of POSIX")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    home = tmp_path.resolve() / "home"
    home.mkdir()
    return {"HOME": str(home), "USERPROFILE": str(home)}


def the_key_in(folder: str) -> bytes:
    return signing_key({"XDG_STATE_HOME": folder})


def test_the_signing_key_is_made_once_and_kept(environ: dict[str, str]) -> None:
    key = signing_key(environ)
    assert len(key) == 32
    assert signing_key(environ) == key
    assert [file.name for file in state_dir(environ).iterdir()] == ["index.key"]


@posix_only
def test_only_the_user_can_read_the_signing_key(environ: dict[str, str]) -> None:
    before = os.umask(0)
    try:
        signing_key(environ)
    finally:
        os.umask(before)
    folder = state_dir(environ)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "index.key").stat().st_mode) == 0o600


def test_two_users_have_two_keys(tmp_path: Path) -> None:
    assert the_key_in(str(tmp_path / "a")) != the_key_in(str(tmp_path / "b"))


@pytest.mark.parametrize("damaged", [b"", b"short", b"x" * 33])
def test_a_key_of_the_wrong_size_is_made_anew(environ: dict[str, str], damaged: bytes) -> None:
    file = state_dir(environ) / "index.key"
    file.parent.mkdir(parents=True)
    file.write_bytes(damaged)
    key = signing_key(environ)
    assert len(key) == 32
    assert signing_key(environ) == key


def test_processes_that_start_together_agree_on_the_key(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        keys = pool.map(
            the_key_in, [str(tmp_path / str(number % 10)) for number in range(40)], chunksize=1
        )
    assert all(len(set(keys[number::10])) == 1 for number in range(10))
    assert len(set(keys)) == 10


def test_without_a_place_for_it_the_key_lasts_as_long_as_the_process(
    environ: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    (Path(environ["HOME"]) / "file").touch()
    environ["XDG_STATE_HOME"] = str(Path(environ["HOME"]) / "file")
    assert len(signing_key(environ)) == 32
    assert "built anew at every start" in caplog.text
