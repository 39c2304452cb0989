"""Checkouts in a story: what git would give, from the sandbox's own commits, without git.

Virtual time waits for no thread and no process; the real ones are in ``tests/worker``.
"""

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.github import GitHub
from triage.identifiers import digest_of
from worker.ports import Checkout, CheckoutFailed, Place


@dataclass
class SandboxCheckouts:
    """``worker.ports.Checkouts``; counts what it was asked for. ``fails``: what the next ones
    raise."""

    github: GitHub
    asked: list[str] = field(default_factory=list)
    fails: list[CheckoutFailed | None] = field(default_factory=list)

    @asynccontextmanager
    async def at(self, place: Place, commit: str) -> AsyncIterator[Checkout]:
        """The texts of the commit, in a folder that lasts as long as the block."""
        self.asked.append(commit)
        failure = self.fails.pop(0) if self.fails else None
        if failure is not None:
            raise failure
        repository = self.github.repository(place.id)
        if repository.full_name != place.full_name:
            raise CheckoutFailed("moved", "the repository has another name now", retryable=True)
        commits = repository.commits
        files = next((each.files for each in commits if each.sha == commit), None)
        if files is None:
            raise CheckoutFailed("commit-gone", "there is no such commit", retryable=False)
        with tempfile.TemporaryDirectory() as folder:
            yield _written(Path(folder), commit, files)


def _written(folder: Path, commit: str, files: Mapping[str, str]) -> Checkout:
    root = folder.resolve()
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    size = sum(len(text.encode()) for text in files.values())
    ids = {path: digest_of(text) for path, text in sorted(files.items())}
    return Checkout(root, commit, ids, size, {})
