"""Transcripts: the translation of ``ledger.sessions``."""

from collections.abc import Sequence
from dataclasses import replace

from ledger.errors import StateNotSavedError
from ledger.memory import SessionSize, StagedSession, TranscriptLine
from ledger.sessions import COPY_KEPT, MOST_SESSION_BYTES, size_of
from ledger.timing import milliseconds
from tests.simulation.memory.rows import Kept, StoredLine
from tests.simulation.memory.server import MemoryServer

_Lines = tuple[StoredLine, ...]


class MemorySessions:
    """Transcripts of sessions that are continued another night, on whatever machine."""

    def __init__(self, server: MemoryServer) -> None:
        self._server = server

    async def append(
        self, staged: StagedSession, lines: Sequence[TranscriptLine], *, after: int
    ) -> None:
        """Add lines to an attempt's copy, in which ``after`` lines stand: all of them or none."""
        if not lines:
            return
        server = self._server
        sizes = [size_of(line) for line in lines]
        base = session(server, staged.repository_id, staged.session_id)
        copy = staged_copy(server, staged)
        if staged.length > len(base):
            raise StateNotSavedError("the session is shorter than the snapshot says, or gone")
        if len(copy) == after + len(lines) and _plain(copy[after:]) == list(lines):
            return
        if len(copy) != after:
            raise StateNotSavedError("the session's copy is not as its only writer left it")
        total = _bytes(copy) if copy else _bytes(base[: staged.length])
        if total + sum(sizes) > MOST_SESSION_BYTES:
            raise StateNotSavedError(f"the session is larger than {MOST_SESSION_BYTES} bytes")
        for line, size in zip(lines, sizes, strict=True):
            total += size
            copy += (StoredLine(total, replace(line, at=server.moment)),)
        expires = server.millis + milliseconds(COPY_KEPT)
        server.state.copies[staged.name] = Kept(copy, expires)

    async def read(self, staged: StagedSession) -> list[TranscriptLine] | None:
        """The session's first lines, then the copy's; None where the session is shorter."""
        base = session(self._server, staged.repository_id, staged.session_id)[: staged.length]
        if len(base) < staged.length:
            return None
        return _plain(base + staged_copy(self._server, staged))

    async def length(self, staged: StagedSession) -> int:
        """How many lines the session has for this attempt."""
        return staged.length + len(staged_copy(self._server, staged))

    async def kept(self, repository_id: int, session_id: str) -> SessionSize:
        """How much of a session is kept; nothing, where it is gone."""
        lines = session(self._server, repository_id, session_id)
        return SessionSize(len(lines), _bytes(lines))

    async def discard(self, staged: StagedSession) -> None:
        """Give an attempt's copy up now, instead of when it expires."""
        self._server.state.copies.pop(staged.name, None)


def session(server: MemoryServer, repository_id: int, session_id: str | None) -> _Lines:
    """The lines of a session that is kept; none, where there is none."""
    kept = server.state.sessions.get((repository_id, session_id or ""))
    return server.living(kept) or ()


def staged_copy(server: MemoryServer, staged: StagedSession) -> _Lines:
    """The lines of an attempt's copy."""
    return server.living(server.state.copies.get(staged.name)) or ()


def _plain(lines: _Lines) -> list[TranscriptLine]:
    return [stored.line for stored in lines]


def _bytes(lines: _Lines) -> int:
    return lines[-1].total if lines else 0
