"""Places for servers and small trees."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.servers import Yard
from tests.faults.world import open_yard


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """Give a folder in memory where there is one: thousands of small trees are made in it."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(
        dir=memory if os.access(memory, os.W_OK) else tmp_path
    ) as folder:
        yield Path(folder)


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    """Give a place to start servers in."""
    return open_yard(tmp_path)
