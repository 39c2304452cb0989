"""Commits that were made to do harm, or to hide something from whoever reads the checkout."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from sandbox.github.git_objects import (
    EXECUTABLE,
    FILE,
    FOLDER,
    LINK,
    SUBMODULE,
    Entry,
    GitObject,
    tree_line,
)
from tests.worker.checkout_world import REPOSITORY, World, content, world
from worker.checkout.bounds import LeftOut
from worker.checkout.listing import Choice, Chosen
from worker.checkout.names import LONGEST_NAME_BYTES, LONGEST_PATH_BYTES, MOST_PARTS, unfit
from worker.checkout.writing import write_tree

SECRET = "the worker's own"
README = {"README.md": b"# api\n"}


def files(*paths: bytes | str) -> dict[bytes, Entry | None]:
    """Plain files at these paths."""
    encoded = [path.encode() if isinstance(path, str) else path for path in paths]
    return {path: Entry(b"x") for path in encoded}


async def test_links_are_not_made(tmp_path: Path) -> None:
    """Neither to a file outside, nor to a folder through which a file would be written."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text(SECRET)
    async with world(tmp_path) as here:
        here.github.put_entries(
            REPOSITORY,
            {
                b"file": Entry(str(outside / "secret").encode(), LINK),
                b"folder": Entry(str(outside).encode(), LINK),
                b"folder/written": Entry(b"x"),
                b"up": Entry(b"../../../..", LINK),
                b"self": Entry(b"self", LINK),
            },
        )
        checkout = await here.taken()
        assert checkout.left_out == {"link": 4}
        assert content(checkout.root) == {**README, "folder/written": b"x"}
        assert not any(path.is_symlink() for path in here.folder.rglob("*"))
        assert [path.name for path in outside.iterdir()] == ["secret"]


async def test_submodules_are_not_fetched(tmp_path: Path) -> None:
    """Their place stays empty, and nobody asks where .gitmodules says."""
    async with world(tmp_path) as here:
        modules = f'[submodule "sub"]\n\tpath = sub\n\turl = {here.url}/acme/sub.git\n'
        here.github.put_file(REPOSITORY, ".gitmodules", modules)
        here.github.put_entries(REPOSITORY, {b"sub": Entry(b"elsewhere", SUBMODULE)})
        checkout = await here.taken()
        assert checkout.left_out == {"submodule": 1}
        assert tuple(checkout.files) == (".gitmodules", "README.md")
        assert here.github.requests(path="acme/sub") == []


async def test_no_attribute_has_a_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter is not run, whoever has set it up; nothing is hidden by export-ignore, expanded by
    ident or export-subst, or rewritten by eol; a pointer of LFS stays what it is."""
    home, mark = tmp_path / "home", tmp_path / "filtered"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f'[filter "lfs"]\n\tsmudge = touch {mark}\n\trequired = true\n[core]\n\tautocrlf = true\n'
        f"\thooksPath = {home}\n"
    )
    (home / "post-checkout").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (home / "post-checkout").chmod(0o755)
    for name, value in (("HOME", home), ("GIT_CONFIG_GLOBAL", home / ".gitconfig")):
        monkeypatch.setenv(name, str(value))
    attributes = (
        b"* filter=lfs ident text eol=crlf export-subst working-tree-encoding=UTF-16\n"
        b"hidden.py export-ignore\n"
    )
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 9\n"
    entries = {
        b".gitattributes": Entry(attributes),
        b"hidden.py": Entry(b"eval(input())\n"),
        b"id.txt": Entry(b"$Id$ $Format:%H$\n"),
        b"model.bin": Entry(pointer),
        b"dos.txt": Entry(b"a\r\nb\n"),
        b"bytes": Entry(bytes(range(256))),
    }
    async with world(tmp_path) as here:
        here.github.put_entries(REPOSITORY, entries)
        checkout = await here.taken()
        expected = {path.decode(): entry.content for path, entry in entries.items()}
        assert content(checkout.root) == {**README, **expected}
        assert checkout.left_out == {}
        assert not mark.exists()


ODD = [
    b"../up",
    b"a/../../up",
    b"./here",
    b".git/config",
    b".GIT/config",
    b"deep/.Git/hooks/post-checkout",
    b"git~1/config",
    b"GIT~1",
    b".git. /config",
    b".git.",
    ".g\u200cit/config".encode(),
    ".\ufeffgit".encode(),
    "\uff0egit".encode(),
    "over\u202eride.py".encode(),
    "line\u2028two".encode(),
    b"new\nline",
    b"esc\x1b[2J",
    b"tab\there",
    b"bell\x07",
    b"back\\slash",
    b" edge",
    b"edge ",
    b"folder /x",
    "wide\u3000".encode(),
    b"bytes\xff\xfe",
    b"\xed\xa0\x80",
    b"n" * (LONGEST_NAME_BYTES + 1),
    b"/".join([b"d"] * (MOST_PARTS + 1)),
    b"/".join([b"d" * 200] * 6),
]
FIT = [
    "src/[id]/{a,b}*.tsx",
    "-rf",
    "~",
    "$(id)",
    "man3/Foo::Bar.3pm",
    "`id`",
    "a'b\"c",
    "%2e%2e",
    "名前/ファイル.md",
    "emoji 🎉 name.txt",
    ".gitignore",
    ".github/workflows/ci.yml",
    "CLAUDE.md",
    ".claude/settings.json",
    ".environment",
    ".env.example",
    "git",
    "...",
    "n" * LONGEST_NAME_BYTES,
    "/".join(["d"] * MOST_PARTS),
]
ENV = [".env", "sub/.ENV", ".env.local", ".envrc", ".env/file", ".env.production.bak"]


@pytest.mark.parametrize("path", ODD)
def test_odd_names(path: bytes) -> None:
    """What means another thing to a file system, to a rule about paths, or to who reads it."""
    assert unfit(path) is LeftOut.ODD_NAME


@pytest.mark.parametrize("path", FIT)
def test_names_that_are_only_unusual(path: str) -> None:
    """A repository may call its files as it likes: nothing else is hidden by a rule."""
    assert unfit(path.encode()) is None
    assert len(path.encode()) <= LONGEST_PATH_BYTES


@pytest.mark.parametrize("path", ENV)
def test_env_files(path: str) -> None:
    """Where secrets stand by custom, examples apart."""
    assert unfit(path.encode()) is LeftOut.ENV_FILE


async def test_hostile_names_are_left_out_and_counted(tmp_path: Path) -> None:
    """All of them in one commit: nothing is written outside, the rest is there."""
    async with world(tmp_path) as here:
        here.github.put_entries(REPOSITORY, files(*ODD, *FIT, *ENV))
        checkout = await here.taken()
        assert checkout.left_out == {"odd-name": len(ODD), "env-file": len(ENV)}
        assert set(content(checkout.root)) == {*FIT, *README}
        assert set(checkout.files) == {*FIT, *README}
        assert here.left_over() == []
        assert set(content(tmp_path)) == {f"checkouts/{each}" for each in content(here.folder)}


async def test_names_that_differ_by_case(tmp_path: Path) -> None:
    """Each is written where the file system keeps them apart; nothing is written over."""
    entries: dict[bytes, Entry | None] = {
        b"Makefile": Entry(b"upper"),
        b"makefile": Entry(b"lower"),
        "caf\u00e9".encode(): Entry(b"one character"),
        "cafe\u0301".encode(): Entry(b"two characters"),
    }
    async with world(tmp_path) as here:
        here.github.put_entries(REPOSITORY, entries)
        checkout = await here.taken()
        seen = content(checkout.root)
        assert seen.pop("README.md") == b"# api\n"
        assert len(seen) + checkout.left_out.get("odd-name", 0) == 4
        assert all(entries[path.encode()] == Entry(text) for path, text in seen.items())
        assert set(checkout.files) == {*seen, "README.md"}


def test_a_name_that_the_file_system_cannot_hold(tmp_path: Path) -> None:
    """One file is left out, not the whole tree: here for a path that is too long with its root."""
    deep = tmp_path.joinpath(*["d" * 250] * 13)
    deep.mkdir(parents=True)
    oid, long = "0" * 40, "/".join(["p" * 200] * 5)
    choice = Choice([Chosen(oid, long, 1), Chosen(oid, "src/a.py", 1)], 2)
    write_tree(deep / "slot", "c" * 40, choice, [b"x", b"y"])
    assert (deep / "slot" / "tree" / "src" / "a.py").read_bytes() == b"y"
    assert choice.left_out == {LeftOut.ODD_NAME: 1}


async def test_a_name_that_is_file_and_folder(tmp_path: Path) -> None:
    """The first stands, the second is left out; in either order of git's."""
    entries = {b"a": Entry(b"1"), b"a/b": Entry(b"2"), b"a/c/d": Entry(b"3")}
    async with world(tmp_path) as here:
        here.github.put_entries(
            REPOSITORY, {**entries, b"b": Entry(b"/", LINK), b"b/c": Entry(b"4")}
        )
        checkout = await here.taken()
        assert content(checkout.root) == {**README, "a": b"1", "b/c": b"4"}
        assert checkout.left_out == {"link": 1, "odd-name": 2}
        assert checkout.bytes == 8


async def test_large_files_are_left_out_and_never_sent(tmp_path: Path) -> None:
    """The pack has none of them, so its bound counts what is read."""
    async with world(tmp_path) as here:
        large = os.urandom(3_000_000)
        here.github.put_entries(
            REPOSITORY,
            {
                b"large.bin": Entry(large),
                b"most": Entry(large[:1000]),
                b"more": Entry(large[:1001]),
            },
        )
        checkout = await here.taken(file_bytes=1000, pack_bytes=10_000)
        assert tuple(checkout.files) == ("README.md", "most")
        assert checkout.left_out == {"too-large": 2}


@pytest.mark.parametrize("without", ["filter", "shallow"])
async def test_a_server_that_cannot_do_all_of_it(tmp_path: Path, without: str) -> None:
    """Without filters large files come and are left out here; without shallow there is no tree."""
    async with world(tmp_path) as here:
        here.github.put_entries(REPOSITORY, {b"large.bin": Entry(b"0" * 2000)})
        if without == "filter":
            here.github.git.settings["uploadpack.allowFilter"] = "false"
            checkout = await here.taken(file_bytes=1000)
            assert (tuple(checkout.files), checkout.left_out) == (("README.md",), {"too-large": 1})
        else:
            here.github.git.newest_protocol = False
            failed = await here.failure()
            assert (failed.reason, failed.retryable) == ("broken", True)


async def test_a_pack_over_its_bound_fails(tmp_path: Path) -> None:
    """While it is received, whatever the server had said."""
    async with world(tmp_path) as here:
        here.github.put_entries(REPOSITORY, {b"large.bin": Entry(os.urandom(300_000))})
        failed = await here.failure(pack_bytes=100_000)
        assert (failed.reason, failed.retryable) == ("too-large", False)
        assert "100000 bytes" in failed.detail


async def test_files_over_a_bound_are_left_out(tmp_path: Path) -> None:
    """By number, by folders, by all their bytes; always the same ones."""
    async with world(tmp_path) as here:
        here.github.put_entries(REPOSITORY, files(*(f"f/{n:04}" for n in range(1500))))
        few = await here.taken(files=1000)
        assert (len(few.files), few.left_out) == (1000, {"over-limit": 501})
        assert tuple(few.files) == ("README.md", *(f"f/{n:04}" for n in range(999)))
        here.github.put_entries(REPOSITORY, files(*(f"g/{n:02}/{n}/x" for n in range(40))))
        folders = await here.taken(files=2000, tree_bytes=1510)
        assert (folders.bytes, folders.left_out) == (1510, {"over-limit": 36})
        here.github.put_entries(REPOSITORY, files("h/i/j/k/x"))
        assert (await here.taken(entries=1542)).left_out == {}
        here.github.put_entries(REPOSITORY, files("z"))
        failed = await here.failure(entries=1542)
        assert (failed.reason, failed.retryable) == ("too-large", False)


async def test_very_many_folders_are_bounded(tmp_path: Path) -> None:
    """A few files may stand very deep."""
    async with world(tmp_path) as here:
        deep = [f"{n}/" + "/".join("d" * 60) + "/x" for n in range(20)]
        here.github.put_entries(REPOSITORY, files(*deep))
        checkout = await here.taken(files=200)
        made = [path for path in checkout.root.rglob("*") if path.is_dir()]
        assert len(made) == 183
        assert checkout.left_out == {"over-limit": 17}


def bomb(levels: int, width: int) -> Entry:
    """A folder that holds the same folder ``width`` times, and so on: a few hundred bytes."""
    blob = GitObject("blob", b"x")
    objects = [blob]
    line = [(FILE, blob.oid)] * width
    for _ in range(levels):
        data = b"".join(tree_line(mode, b"%02d" % n, oid) for n, (mode, oid) in enumerate(line))
        tree = GitObject("tree", data)
        objects.append(tree)
        line = [(FOLDER, tree.oid)] * width
    return Entry(objects[-1].data, FOLDER, tuple(objects[:-1]))


async def test_a_tree_without_end_fails_soon(tmp_path: Path) -> None:
    """Ten thousand million files in a pack of a kilobyte: git is ended at the bound."""
    async with world(tmp_path) as here:
        here.github.put_entries(REPOSITORY, {b"bomb": bomb(10, 10)})
        began = time.monotonic()
        failed = await here.failure(entries=5000)
        assert (failed.reason, failed.retryable) == ("too-large", False)
        assert time.monotonic() - began < 60


async def test_a_tree_of_endless_depth(tmp_path: Path) -> None:
    """Its files have a path that nobody can write; git may fail over it, and we do not."""
    async with world(tmp_path) as here:
        here.github.put_entries(REPOSITORY, {b"deep": bomb(1500, 1)})
        checkout = await here.taken()
        assert (tuple(checkout.files), checkout.left_out) == (("README.md",), {"odd-name": 1})


async def test_objects_that_are_broken(tmp_path: Path) -> None:
    """A tree that is none, and one that names an object that nobody has."""
    async with world(tmp_path) as here:
        good = here.head
        here.github.put_entries(REPOSITORY, {b"bad": Entry(b"100644 no-end", FOLDER)})
        failed = await here.failure()
        assert (failed.reason, failed.retryable) == ("broken", True)
        assert tuple((await here.taken(good)).files) == ("README.md",)


async def test_programs_are_files_like_others(tmp_path: Path) -> None:
    """What is executable in the commit is not in the tree."""
    async with world(tmp_path) as here:
        here.github.put_entries(REPOSITORY, {b"run": Entry(b"#!/bin/sh\n", EXECUTABLE)})
        checkout = await here.taken()
        assert not os.access(checkout.root / "run", os.X_OK)
        assert not (checkout.root / "run").stat().st_mode & 0o111


async def test_it_agrees_with_git(tmp_path: Path) -> None:
    """What is written is, byte for byte, what the real git would check out."""
    async with world(tmp_path) as here:
        here.github.put_entries(REPOSITORY, files("a/b/c", "a/d", "e"))
        here.github.put_file(REPOSITORY, "a/é.txt", "text\n")
        checkout = await here.taken()
        assert content(checkout.root) == _of_git(here, tmp_path / "work")


def _of_git(here: World, work: Path) -> dict[str, bytes]:
    work.mkdir()
    repository = here.github.git.folder(here.github.repository(REPOSITORY))
    command = ["git", f"--git-dir={repository}", f"--work-tree={work}", "checkout", "-f", here.head]
    subprocess.run([*command, "--", "."], check=True, capture_output=True)
    return content(work)
