"""Git's objects, made without git: so that commits have the ids that git gives them, at no cost.

Nothing here asks whether git, or a file system, would like a name: hostile trees are wanted too.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

FILE, EXECUTABLE, LINK, SUBMODULE, FOLDER = "100644", "100755", "120000", "160000", "40000"
_PACK_KINDS = {"commit": 1, "tree": 2, "blob": 3}


@dataclass(frozen=True, slots=True)
class GitObject:
    """``kind`` is blob, tree or commit."""

    kind: str
    data: bytes

    @property
    def oid(self) -> str:
        """What git calls it: 40 hex digits."""
        return hashlib.sha1(
            b"%s %d\x00" % (self.kind.encode(), len(self.data)) + self.data
        ).hexdigest()


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands at a path: a file, a link (its target is the content), a submodule (its content
    is anything), or with FOLDER a tree as git stores it, whose own objects are ``beside``.
    """

    content: bytes
    mode: str = FILE
    beside: tuple[GitObject, ...] = ()

    @property
    def object(self) -> GitObject:
        """The object of its id; a submodule's is in another repository."""
        return GitObject("tree" if self.mode == FOLDER else "blob", self.content)


def tree_line(mode: str, name: bytes, oid: str) -> bytes:
    """One entry of a tree, as git stores it."""
    return b"%s %s\x00" % (mode.encode(), name) + bytes.fromhex(oid)


class Tree:
    """The objects of a whole tree, from its paths: ``objects`` in the end holds all of them."""

    def __init__(self, entries: Mapping[bytes, Entry]) -> None:
        self.objects: list[GitObject] = []
        self.oid = self._folder(entries)

    def _folder(self, entries: Mapping[bytes, Entry]) -> str:
        lines: list[tuple[bytes, bytes]] = []
        folders: dict[bytes, dict[bytes, Entry]] = {}
        for path, entry in entries.items():
            name, slash, rest = path.partition(b"/")
            if slash:
                folders.setdefault(name, {})[rest] = entry
                continue
            lines.append((self._order(name, entry.mode), self._line(name, entry)))
        for name, inside in folders.items():
            line = tree_line(FOLDER, name, self._folder(inside))
            lines.append((self._order(name, FOLDER), line))
        return self._keep(GitObject("tree", b"".join(line for _, line in sorted(lines))))

    def _line(self, name: bytes, entry: Entry) -> bytes:
        self.objects.extend(entry.beside)
        oid = entry.object.oid if entry.mode == SUBMODULE else self._keep(entry.object)
        return tree_line(entry.mode, name, oid)

    def _order(self, name: bytes, mode: str) -> bytes:
        return name + b"/" if mode == FOLDER else name

    def _keep(self, new: GitObject) -> str:
        self.objects.append(new)
        return new.oid


@dataclass(frozen=True, slots=True)
class Signature:
    """Who made a commit, and when."""

    name: str
    email: str
    at: datetime

    def line(self, role: str) -> str:
        name = self.name.translate(str.maketrans("", "", "<>\n\0")).strip() or "somebody"
        return f"{role} {name} <{self.email}> {int(self.at.timestamp())} +0000"


def commit_object(
    tree: str, parents: Iterable[str], signature: Signature, message: str
) -> GitObject:
    """The commit as git stores it."""
    lines = [
        f"tree {tree}",
        *(f"parent {each}" for each in parents),
        signature.line("author"),
        signature.line("committer"),
        "",
        message,
    ]
    return GitObject("commit", "\n".join(lines).encode(errors="surrogatepass"))


def pack(objects: Iterable[GitObject]) -> bytes:
    """A pack file with these objects, each once, none as a delta."""
    unique = {each.oid: each for each in objects}
    parts = [b"PACK" + struct.pack(">II", 2, len(unique))]
    parts += [_pack_head(each) + zlib.compress(each.data, 1) for each in unique.values()]
    body = b"".join(parts)
    return body + hashlib.sha1(body).digest()


def _pack_head(each: GitObject) -> bytes:
    size = len(each.data)
    first, size = _PACK_KINDS[each.kind] << 4 | size & 0x0F, size >> 4
    head = bytearray()
    while size:
        head.append(first | 0x80)
        first, size = size & 0x7F, size >> 7
    head.append(first)
    return bytes(head)
