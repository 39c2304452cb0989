"""Asks git what is in a pack: ``index-pack``, ``ls-tree`` and ``cat-file``, in a repository that
is made for it and removed after it.

None of these writes a file of the tree, runs a hook or a filter, or reads an attribute; and there
is nothing that git could reach: no remote, no protocol, no setting from outside.
"""

import os
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, cast

from worker.checkout.bounds import Reason, Stopped

CHUNK_BYTES: Final = 65_536
LONGEST_ENTRY_BYTES: Final = 1024 * 1024
_SETTINGS: Final = """\
[core]
	repositoryformatversion = 0
	bare = true
	hooksPath = /dev/null
	fsmonitor = false
[gc]
	auto = 0
[pack]
	threads = 1
[protocol]
	allow = never
"""
_BY_SIGNAL: Final = {
    signal.SIGXFSZ: (Reason.TOO_LARGE, "what git writes is larger than a pack may be"),
    signal.SIGXCPU: (Reason.TIMEOUT, "git took more processor time than it may"),
}


class Objects:
    """The objects of one pack. ``folder`` is ours alone, and lasts as long as this."""

    def __init__(self, git: str, folder: Path) -> None:
        self._git = git
        self._folder = folder
        self._repository = folder / "git"

    def take(self, pack: Path) -> None:
        """Index the pack, which checks every object's id. Raises Stopped, as all of these do."""
        self._run("init", "--quiet", "--bare", "--template=", str(self._repository))
        (self._repository / "config").write_text(_SETTINGS)
        kept = self._repository / "objects" / "pack" / "pack-fetched.pack"
        kept.parent.mkdir(parents=True, exist_ok=True)
        pack.rename(kept)
        self._run("index-pack", str(kept))

    def entries(self, commit: str) -> Iterator[tuple[str, str, bytes]]:
        """(mode, id, path) of everything in the commit but its folders, in git's order. Whoever
        stops early ends git: a small pack can hold a tree without end."""
        with self._reading("ls-tree", "-r", "-z", "--full-tree", commit) as out:
            rest = b""
            while chunk := out.read(CHUNK_BYTES):
                *whole, rest = (rest + chunk).split(b"\0")
                if len(rest) > LONGEST_ENTRY_BYTES:
                    raise Stopped(Reason.TOO_LARGE, "the commit has a path of more than 1 MiB")
                for each in whole:
                    head, _, path = each.partition(b"\t")
                    mode, _, oid = head.decode("ascii").split(" ")
                    yield mode, oid, path

    def sizes(self, oids: Iterable[str]) -> dict[str, int]:
        """The bytes of those that are there."""
        asked = self._list("sizes", dict.fromkeys(oids))
        form = "--batch-check=%(objectname) %(objectsize)"
        found: dict[str, int] = {}
        with self._reading("cat-file", "--buffer", form, asked=asked) as out:
            for line in out:
                oid, _, size = line.decode("ascii").strip().partition(" ")
                if size.isdigit():
                    found[oid] = int(size)
        return found

    def contents(self, oids: Sequence[str]) -> Iterator[bytes]:
        """What these blobs hold, in this order."""
        asked = self._list("contents", oids)
        with self._reading("cat-file", "--buffer", "--batch", asked=asked) as out:
            for oid in oids:
                found, kind, size = out.readline().decode("ascii").split(" ")
                data = out.read(int(size) + 1)
                if (found, kind) != (oid, "blob") or len(data) != int(size) + 1:
                    raise Stopped(Reason.BROKEN, "git gave another object than it was asked for")
                yield data[:-1]

    def _list(self, name: str, oids: Iterable[str]) -> Path:
        path = self._folder / name
        path.write_text("".join(f"{oid}\n" for oid in oids))
        return path

    def _run(self, *arguments: str) -> None:
        with self._reading(*arguments) as out:
            out.read()

    @contextmanager
    def _reading(self, *arguments: str, asked: Path = Path(os.devnull)) -> Iterator[IO[bytes]]:
        """git's output. At the end of the block git is over, and was content, or is ended."""
        errors = self._folder / "errors"
        with asked.open("rb") as stdin, errors.open("wb") as stderr:
            git = subprocess.Popen(
                [self._git, *arguments],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=self._environment(),
                cwd=self._folder,
                close_fds=False,  # the lock of the repository: it is held while git lives
            )
        out = cast("IO[bytes]", git.stdout)
        try:
            yield out
        except BaseException:
            git.kill()
            raise
        finally:
            out.close()
            git.wait()
        if git.returncode != 0:
            raise _complaint(git.returncode, arguments[0], errors.read_bytes())

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C",
            "HOME": str(self._folder),
            "GIT_DIR": str(self._repository),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }


def _complaint(code: int, command: str, said: bytes) -> Stopped:
    """Git says in no other way that the disk is full."""
    if -code in _BY_SIGNAL:
        return Stopped(*_BY_SIGNAL[signal.Signals(-code)])
    words = one_line(said.decode(errors="replace"))
    if "No space left on device" in words or "Disk quota exceeded" in words:
        return Stopped(Reason.DISK_FULL, "the disk of the checkout folder is full")
    return Stopped(Reason.BROKEN, f"git {command} ended with {code}: {words}")


def one_line(text: str) -> str:
    """What somebody else said, fit for a log: at most 200 printable characters."""
    return "".join(each if each.isprintable() else " " for each in text).strip()[-200:]
