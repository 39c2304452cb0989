"""The gate as a property: nothing that passes leads out, on real files and links."""

import os
from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.worker.gate_disk import make_repo
from worker.agent.gate import judge


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repo(tmp_path_factory.mktemp("disk").resolve())


NAMES = st.sampled_from(
    [
        *("a.txt", "src", "main.py", "deep", "other", "d", "link", "x", "in", "in.txt", "up"),
        *("out", "out.txt", "absolute", "disk", "proc", "loop", "chain", "git", "dangling"),
        *(".", "..", "...", "~", "", " ", ".env", ".git", ".GIT", "config", "secret.txt"),
        *("out/..", "in/..", "d/link/..", "d/link/../x", "d/x", "up/repo", "src/deep/.."),
        *("repo", "repo-too", "outside", "etc", "passwd", "self", "root", "ROOT", "TOP", "\x00"),
    ]
)
STARTS = st.sampled_from(["", "", "", "/", "//", "ROOT/", "TOP/", "./", "../", "~/", "/proc/", "!"])
WILD = st.sampled_from(["*", "**", "*.py", "?", "[a-z]*", ".*"])


@st.composite
def paths(draw: st.DrawFn) -> str:
    """Start and components, good and bad."""
    return draw(STARTS) + "/".join(draw(st.lists(NAMES, min_size=1, max_size=6)))


@st.composite
def patterns(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A pattern with braces, and what its braces stand for, told by how it was built."""
    choice = st.lists(st.one_of(NAMES, WILD, st.just("../outside"), st.just("/etc")), max_size=3)
    parts = draw(st.lists(st.one_of(NAMES, WILD, choice), min_size=1, max_size=5))
    start = draw(STARTS)
    text = start + "/".join(
        part if isinstance(part, str) else "{" + ",".join(part) + "}" for part in parts
    )
    options = [[part] if isinstance(part, str) else part or [""] for part in parts]
    return text, [start + "/".join(chosen) for chosen in product(*options)]


def inodes(root: Path) -> set[tuple[int, int]]:
    """Every file and folder of the checkout that may be read, told apart as the disk does."""
    found = set()
    for folder, names, files in os.walk(root):
        if ".git" in names:
            names.remove(".git")
        kept = [name for name in files if name not in (".env", ".git")]
        found |= {(s.st_dev, s.st_ino) for s in map(os.lstat, [folder])}
        for name in kept:
            path = Path(folder, name)
            if not path.is_symlink():
                found.add((path.stat().st_dev, path.stat().st_ino))
    return found


def reached(path: str, base: Path) -> tuple[int, int] | None:
    """What the kernel opens there, if anything."""
    try:
        seen = (base / path).stat()
    except (OSError, ValueError):
        return None
    return seen.st_dev, seen.st_ino


def fill(text: str, root: Path) -> str:
    return text.replace("ROOT", str(root)).replace("TOP", str(root.parent))


PROPERTY = settings(max_examples=600, deadline=None, derandomize=True)


@PROPERTY
@given(path=paths())
@example(path="d/link/../x")
@example(path="out/../repo-too/secret.txt")
def test_no_path_that_passes_leads_out(repo: Path, path: str) -> None:
    """The kernel, and a program that takes ``..`` away on paper first, both stay inside."""
    path = fill(path, repo)
    if judge("Read", {"file_path": path}, repo) is not None:
        return
    for way in (path, os.path.normpath(repo / path)):
        there = reached(way, repo)
        assert there is None or there in inodes(repo)


@PROPERTY
@given(path=st.one_of(st.none(), paths()), pattern=patterns())
@example(path="d", pattern=("x/*", ["x/*"]))
def test_no_pattern_that_passes_begins_outside(
    repo: Path, path: str | None, pattern: tuple[str, list[str]]
) -> None:
    """Each reading of its braces begins with a folder inside, and never goes up."""
    text, readings = fill(pattern[0], repo), [fill(one, repo) for one in pattern[1]]
    fields = {"pattern": text} if path is None else {"pattern": text, "path": fill(path, repo)}
    if judge("Glob", fields, repo) is not None:
        return
    base = repo / fields.get("path", "")
    for reading in readings:
        parts = reading.removeprefix("!").split("/")
        assert ".." not in parts
        wild = next((at for at, part in enumerate(parts) if set(part) & set("*?[")), len(parts))
        there = reached("/".join(parts[:wild]) or ("/" if reading.startswith("/") else "."), base)
        assert there is None or there in inodes(repo)
