"""A GitHub over loopback with a private repository, and checkouts from it by the real git."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbox.github import GitHub, new_private_key
from sandbox.github.server import GitHubServer
from tests.worker.test_github_world import HastyClock
from worker.checkout.adapter import GitCheckouts
from worker.checkout.bounds import Bounds
from worker.github.auth import AppCredentials, Authority
from worker.github.connection import Connection
from worker.ports import Checkout, CheckoutFailed, Place, Timing
from worker.wiring import _InstallationTokens

REPOSITORY = "acme/api"
REPOSITORY_ID = 1296269
PRIVATE_KEY = new_private_key()
PACKS = f"POST /{REPOSITORY}.git/git-upload-pack"


@dataclass
class World:
    """One private repository, the App on it, and the checkout folder."""

    github: GitHub
    url: str
    folder: Path
    installation: str
    authority: Authority

    @property
    def place(self) -> Place:
        return Place(REPOSITORY_ID, REPOSITORY, self.installation)

    @property
    def head(self) -> str:
        return self.github.repository(REPOSITORY_ID).commits[-1].sha

    @property
    def shelf(self) -> Path:
        return self.folder / f"R{REPOSITORY_ID}"

    def checkouts(self, **bounds: float) -> GitCheckouts:
        """Another worker's, on the same folder."""
        limits = Bounds(**bounds)  # type: ignore[arg-type]
        tokens = _InstallationTokens(self.authority)
        return GitCheckouts(self.folder, tokens, api_url=self.url, bounds=limits)

    def fetches(self) -> int:
        """How many packs were asked for."""
        return len(self.github.requests("POST", f"/{REPOSITORY}.git/git-upload-pack"))

    def tokens(self) -> list[str]:
        """Every token that the sandbox has given."""
        return list(self.github.tokens)

    async def taken(self, commit: str | None = None, **bounds: float) -> Checkout:
        """A checkout that nobody uses any more."""
        async with self.checkouts(**bounds).at(self.place, commit or self.head) as checkout:
            return checkout

    async def failure(self, commit: str | None = None, **bounds: float) -> CheckoutFailed:
        """How it fails. Nothing half-made is left, and no token is told."""
        with pytest.raises(CheckoutFailed) as failure:
            await self.taken(commit, **bounds)
        assert not self.left_over()
        assert "\n" not in str(failure.value)
        assert not any(token in str(failure.value) for token in self.tokens())
        return failure.value

    def left_over(self) -> list[Path]:
        """What is being made, or was left by a worker that died."""
        return list(self.shelf.glob("new-*"))


@asynccontextmanager
async def world(folder: Path, *, private: bool = True) -> AsyncIterator[World]:
    """A world whose checkouts are under ``folder``."""
    github = GitHub()
    github.add_organization("acme")
    github.add_repository(REPOSITORY, id=REPOSITORY_ID, private=private)
    github.add_app("retriage", 42, private_key=PRIVATE_KEY)
    installation = str(github.install("retriage", "acme"))
    clock = HastyClock()
    with GitHubServer(github) as server:
        async with Connection(clock=clock, timing=Timing(), api_url=server.url) as connection:
            authority = Authority(AppCredentials("42", PRIVATE_KEY), connection, clock)
            yield World(github, server.url, folder / "checkouts", installation, authority)


def content(root: Path) -> dict[str, bytes]:
    """Every file under a folder by its path; links are not followed."""
    found = {}
    for path, _, names in os.walk(root):
        for name in names:
            file = Path(path, name)
            found[str(file.relative_to(root))] = b"" if file.is_symlink() else file.read_bytes()
    return found


def slow_git(folder: Path, command: str, real: str, deed: str = "sleep 60") -> str:
    """A PATH with a git that, asked by a checkout, does something before one of its commands."""
    folder.mkdir()
    script = folder / "git"
    script.write_text(f"""#!/bin/sh
case "$1 $PWD" in "{command} "*/checkouts/*) {deed};; esac
exec {real} "$@"
""")
    script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def processes(word: str) -> list[int]:
    """The processes that have a word in their arguments, or work in such a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            where = (entry / "cwd").readlink()
            arguments = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if word in str(where) or word.encode() in arguments:
            found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


def descendants(of: int) -> list[int]:
    """The processes that a process has started, and that they have."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(entry.name)] = int(
                (entry / "stat").read_text().rpartition(")")[2].split()[1]
            )
    found = [of]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def git_is_at(here: World, step: str) -> bool:
    """Whether a git of a checkout runs this command."""
    wanted = f"/git\0{step}\0".encode()
    return any(wanted in arguments_of(pid) for pid in processes(str(here.folder)))


def arguments_of(pid: int) -> bytes:
    """Nothing, where it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


async def until(true: Callable[[], object], seconds: float = 20) -> None:
    """Wait for something, and fail if it does not come."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come"
        await asyncio.sleep(0.01)
