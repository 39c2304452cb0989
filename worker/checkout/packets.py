"""Git's protocol, version 2, as far as one commit is asked for: no sockets here.

Source: ``gitprotocol-v2`` and ``gitprotocol-common`` of git's manual. A packet is four hex digits
of length, themselves counted, and the content; lengths below four are marks without content.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

SERVICE: Final = "git-upload-pack"
HEADERS: Final = {
    "Git-Protocol": "version=2",
    "Accept-Encoding": "identity",
    "User-Agent": "git/2 (retriage)",  # some servers tell git from a browser by its name
}
_LENGTH: Final = re.compile(rb"[0-9a-fA-F]{4}")
_DATA, _ERROR = 1, 3  # side bands; 2 is progress


class Garbled(Exception):  # noqa: N818 - an outcome
    """What came is not the protocol."""


class RefusedBySide(Exception):  # noqa: N818 - an outcome
    """The other side says, in the protocol, that it will not."""


class Mark(Enum):
    """A packet without content."""

    FLUSH = 0
    DELIMITER = 1
    END = 2


Packet = bytes | Mark


@dataclass
class Packets:
    """Cuts what arrives into packets."""

    _rest: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> Iterator[Packet]:
        """The packets that are whole now. Raises Garbled."""
        self._rest += data
        at = 0
        while len(self._rest) >= at + 4:
            length = _length(self._rest[at : at + 4])
            if length < 4:
                yield Mark(length)
                at += 4
            elif len(self._rest) < at + length:
                break
            else:
                yield bytes(self._rest[at + 4 : at + length])
                at += length
        del self._rest[:at]


def _length(digits: bytes | bytearray) -> int:
    if not _LENGTH.fullmatch(digits):
        raise Garbled("a packet without a length")
    length = int(digits, 16)
    if length == 3:
        raise Garbled("a packet of an unknown kind")
    return length


def can_filter(advertised: bytes) -> bool:
    """Whether the server leaves blobs out by size when asked. Raises Garbled where it does not
    speak version 2, or names objects in another way than by SHA-1."""
    lines = [each for each in Packets().feed(advertised) if isinstance(each, bytes)]
    words = [each.decode(errors="replace").strip() for each in lines]
    if "version 2" not in words:
        raise Garbled("the server does not speak git's protocol version 2")
    features = dict(word.partition("=")[::2] for word in words)
    if features.get("object-format", "sha1") != "sha1":
        raise Garbled("the repository's objects are not named by SHA-1")
    if "shallow" not in features.get("fetch", "").split():
        raise Garbled("the server gives no single commit")
    return "filter" in features["fetch"].split()


def ask_for(commit: str, *, blob_bytes: int | None) -> bytes:
    """The request: this commit without its past, and without blobs of more than ``blob_bytes``."""
    lines = ["no-progress", "ofs-delta", f"want {commit}", "deepen 1"]
    if blob_bytes is not None:
        lines.append(f"filter blob:limit={blob_bytes + 1}")
    head = _packet("command=fetch") + _packet("object-format=sha1")
    return head + b"0001" + b"".join(_packet(each) for each in [*lines, "done"]) + b"0000"


def _packet(line: str) -> bytes:
    return b"%04x%s\n" % (len(line) + 5, line.encode("ascii"))


class PackReader:
    """Takes the answer to ``ask_for`` apart. ``done``: the whole pack has come."""

    def __init__(self) -> None:
        self.done = False
        self._packets = Packets()
        self._in_pack = False

    def feed(self, data: bytes) -> bytes:
        """What of the pack is in this. Raises Garbled and RefusedBySide."""
        return b"".join(self._of_pack(each) for each in self._packets.feed(data))

    def _of_pack(self, packet: Packet) -> bytes:
        if isinstance(packet, Mark):
            self.done = self.done or (self._in_pack and packet is Mark.FLUSH)
            return b""
        if packet.startswith(b"ERR "):
            raise RefusedBySide(packet[4:].decode(errors="replace"))
        if not self._in_pack:
            self._in_pack = packet.strip() == b"packfile"
            return b""
        if packet[:1] == bytes([_ERROR]):
            raise RefusedBySide(packet[1:].decode(errors="replace"))
        return packet[1:] if packet[:1] == bytes([_DATA]) else b""
