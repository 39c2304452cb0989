"""The commits of the world as repositories on disk, made when git is first asked for them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import weakref
from pathlib import Path

from sandbox.github.clock import parse_stamp
from sandbox.github.git_objects import Entry, GitObject, Signature, Tree, commit_object, pack
from sandbox.github.state import Account, Commit, Repository

GIT_SECONDS = 60
SETTINGS = {
    "uploadpack.allowFilter": "true",
    "uploadpack.allowAnySHA1InWant": "true",
    "safe.directory": "*",
    "gc.auto": "0",
}


class GitStore:
    """The repositories on disk, as far as git was asked for them; gone with their world.

    ``settings`` are those of the server's git; without ``newest_protocol`` it is an old one.
    """

    def __init__(self) -> None:
        self.settings = dict(SETTINGS)
        self.newest_protocol = True
        self._root: Path | None = None
        self._stored: dict[int, int] = {}  # repository id -> how many of its commits

    def folder(self, repository: Repository) -> Path:
        """A bare repository with every commit of this one."""
        folder = self._made_root() / f"{repository.id}.git"
        known = self._stored.get(repository.id, 0)
        if not known:
            self.run("init", "--quiet", "--bare", "--template=", str(folder))
        if known < len(repository.commits):
            new = [each for commit in repository.commits[known:] for each in objects_of(commit)]
            self.run("-C", str(folder), "index-pack", "--stdin", send=pack(new))
            self._stored[repository.id] = len(repository.commits)
        branch = folder / "refs" / "heads" / repository.default_branch
        branch.parent.mkdir(parents=True, exist_ok=True)
        branch.write_text(f"{repository.commits[-1].sha}\n")
        (folder / "HEAD").write_text(f"ref: refs/heads/{repository.default_branch}\n")
        return folder

    def serve(self, *command: str, send: bytes = b"", protocol: str = "") -> bytes:
        """What ``git upload-pack`` answers."""
        return self.run(*command, send=send, protocol=protocol if self.newest_protocol else "")

    def run(self, *arguments: str, send: bytes = b"", protocol: str = "") -> bytes:
        """What git says; raises CalledProcessError, with what it complained of."""
        done = subprocess.run(
            ["git", *arguments],  # noqa: S607 - whichever git there is
            input=send,
            capture_output=True,
            env={**_environment(self.settings), "GIT_PROTOCOL": protocol},
            timeout=GIT_SECONDS,
            check=False,
        )
        # upload-pack says itself, in its answer, what it refuses: GitHub's answer is 200 then too
        if done.returncode != 0 and not done.stdout:
            raise subprocess.CalledProcessError(
                done.returncode, arguments, done.stdout, done.stderr
            )
        return done.stdout

    def _made_root(self) -> Path:
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="sandbox-git-"))
            weakref.finalize(self, shutil.rmtree, self._root, ignore_errors=True)
        return self._root


def entries_of(files: dict[str, str], odd: dict[bytes, Entry]) -> dict[bytes, Entry]:
    """What a commit holds by path: its texts, and whatever else was put there."""
    texts = {
        path.encode(errors="surrogatepass"): Entry(text.encode(errors="surrogatepass"))
        for path, text in files.items()
    }
    return {**texts, **odd}


def objects_of(commit: Commit) -> list[GitObject]:
    """The commit, its trees and its blobs."""
    tree = Tree(entries_of(commit.files, commit.odd))
    made = commit_object(
        tree.oid, commit.parents, signature(commit.author, commit.at), commit.message
    )
    return [*tree.objects, made]


def signature(author: Account, at: str) -> Signature:
    """Who made a commit, as GitHub writes it."""
    email = f"{author.id}+{author.login}@users.noreply.sandbox.invalid"
    return Signature(author.name, email, parse_stamp(at))


def _environment(settings: dict[str, str]) -> dict[str, str]:
    named = {
        name: text
        for at, (key, value) in enumerate(settings.items())
        for name, text in ((f"GIT_CONFIG_KEY_{at}", key), (f"GIT_CONFIG_VALUE_{at}", value))
    }
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_COUNT": str(len(settings)),
        **named,
    }
