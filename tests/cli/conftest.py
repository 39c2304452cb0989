"""Worlds for the command."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal, World, terminal, world


@pytest.fixture
def bare(tmp_path: Path) -> Terminal:
    """A terminal with a data folder and nothing else."""
    return terminal(tmp_path)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[World]:
    """A world of one's own."""
    with world(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One for commands that end before they change anything in it."""
    with world(tmp_path_factory.mktemp("shared")) as made:
        yield made
