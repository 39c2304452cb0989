"""Transcripts: ``session:R{repository}:{id}``, and the copies that attempts work on,
``session:staged:{name}``.

Each is a list. An item is the bytes of JSON up to and with it, when it was stored, and the line,
packed: so one look at an item says how large a session is up to there, however it is cut.

Invariant: only the script that saves a plan changes a session (``ledger.reviews``). Attempts append
to a copy of their own, and read the session's first lines, as many as their snapshot says, and
then the copy's. So an attempt that answered and died leaves nothing: the next one would take that
answer for the one of the night before.

Invariant: a line is never lost between two others. Whoever appends says how many lines stand, so a
repeated call finds its own lines, and one that comes too late is refused.
"""

import json
import zlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import redis.asyncio

from ledger.codec import moment
from ledger.connection import answered
from ledger.errors import LedgerCorruptError, StateNotSavedError
from ledger.memory import SessionSize, StagedSession, TranscriptLine
from ledger.scripts import Script
from ledger.timing import milliseconds

SESSION_KEPT: Final = timedelta(days=30)
"""After the last run that continued it."""

COPY_KEPT: Final = timedelta(hours=1)
"""After the last append of an attempt that did not come to its plan."""

MOST_LINE_BYTES: Final = 4 << 20
MOST_SESSION_BYTES: Final = 32 << 20
"""Of JSON. No model reads a tenth of it at once: a session is started anew long before."""

# KEYS: the session, the copy. ARGV: how many lines of the session count, how many stand in the copy
# for the caller, how long it is kept, the most bytes; then of each line its bytes and its item.
APPEND = """
local length, after, kept, most = unpack(ARGV, 1, 4)
length, after = tonumber(length), tonumber(after)
local first, many = 5, (#ARGV - 4) / 2

local function bytes_up_to(key, at)
  local item = redis.call('LINDEX', key, at)
  return item and tonumber(string.match(item, '^%d+')) or 0
end

local function are_there()
  for at = 0, many - 1 do
    local item, line = redis.call('LINDEX', KEYS[2], after + at), ARGV[first + at * 2 + 1]
    if not item or string.sub(item, -string.len(line)) ~= line then return false end
  end
  return true
end

if length > redis.call('LLEN', KEYS[1]) then return 'session-lost' end
local stand = redis.call('LLEN', KEYS[2])
if stand == after + many and are_there() then return 'ok' end
if stand ~= after then return 'not-alone' end
local total = stand > 0 and bytes_up_to(KEYS[2], -1) or 0
if stand == 0 and length > 0 then total = bytes_up_to(KEYS[1], length - 1) end
local items = {}
for at = first, #ARGV, 2 do
  total = total + ARGV[at]
  table.insert(items, string.format('%.0f %.0f ', total, now_ms()) .. ARGV[at + 1])
end
if total > tonumber(most) then return 'too-large' end
for _, item in ipairs(items) do redis.call('RPUSH', KEYS[2], item) end
redis.call('PEXPIRE', KEYS[2], kept)
return 'ok'
"""

_REFUSALS: Final = {
    b"session-lost": "the session is shorter than the snapshot says, or gone",
    b"not-alone": "the session's copy is not as its only writer left it",
    b"too-large": f"the session is larger than {MOST_SESSION_BYTES} bytes",
}


def session_key(repository_id: int, session_id: str | None) -> str:
    """Where a session is; of None, where none ever is."""
    return f"session:R{repository_id}:{session_id or ''}"


def copy_key(staged: StagedSession) -> str:
    """Where an attempt's copy is."""
    return f"session:staged:{staged.name}"


class Sessions:
    """Transcripts of sessions that are continued another night, on whatever machine."""

    def __init__(self, redis: redis.asyncio.Redis) -> None:
        self._redis = redis
        self._append = Script(redis, APPEND)

    async def append(
        self, staged: StagedSession, lines: Sequence[TranscriptLine], *, after: int
    ) -> None:
        """Add lines to an attempt's copy, in which ``after`` lines stand: all of them or none.

        The same call may be repeated after a lost reply. Raises StateNotSavedError.
        """
        if not lines:
            return
        arguments: list[str | bytes | float] = []
        for line in lines:
            size = size_of(line)
            arguments += [size, packed_line(line)]
        first = [staged.length, after, milliseconds(COPY_KEPT), MOST_SESSION_BYTES]
        word = await self._append(_keys(staged), [*first, *arguments])
        if word != b"ok":
            raise StateNotSavedError(_REFUSALS[word])

    async def read(self, staged: StagedSession) -> list[TranscriptLine] | None:
        """The session's first lines, then the copy's. None where the session is shorter than it
        was: cut off it would be resumed without a word, as if less had been said."""
        with answered():
            async with self._redis.pipeline(transaction=True) as reads:
                reads.lrange(_keys(staged)[0], 0, staged.length - 1)
                reads.lrange(_keys(staged)[1], 0, -1)
                base, copy = await reads.execute()
        if len(base) < staged.length:
            return None
        return [unpacked_line(item) for item in [*base, *copy]]

    async def length(self, staged: StagedSession) -> int:
        """How many lines the session has for this attempt."""
        with answered():
            added: Any = await self._redis.llen(copy_key(staged))
        return staged.length + int(added)

    async def kept(self, repository_id: int, session_id: str) -> SessionSize:
        """How much of a session is kept; nothing, where it is gone."""
        key = session_key(repository_id, session_id)
        with answered():
            async with self._redis.pipeline(transaction=True) as reads:
                reads.llen(key)
                reads.lindex(key, -1)
                lines, last = await reads.execute()
        return SessionSize(int(lines), 0 if last is None else int(last.partition(b" ")[0]))

    async def discard(self, staged: StagedSession) -> None:
        """Give an attempt's copy up now, instead of when it expires."""
        with answered():
            await self._redis.delete(copy_key(staged))


def size_of(line: TranscriptLine) -> int:
    """Bytes of its JSON. Raises StateNotSavedError where they are too many."""
    size = len(line.json.encode())
    if size > MOST_LINE_BYTES:
        raise StateNotSavedError(f"a line of the session is larger than {MOST_LINE_BYTES} bytes")
    return size


def packed_line(line: TranscriptLine) -> bytes:
    """A line as it is stored."""
    place = json.dumps([line.project, line.session_id, line.subpath])
    return zlib.compress(f"{place}\n{line.json}".encode())


def unpacked_line(item: bytes) -> TranscriptLine:
    """Read an item back. Raises LedgerCorruptError."""
    try:
        _, at, packed = item.split(b" ", 2)
        place, _, line = zlib.decompress(packed).decode().partition("\n")
        project, session_id, subpath = json.loads(place)
        return TranscriptLine(project, session_id, subpath, line, moment(at))
    except (zlib.error, ValueError, TypeError) as error:
        raise LedgerCorruptError("a stored line of a session cannot be read") from error


def _keys(staged: StagedSession) -> list[str]:
    return [session_key(staged.repository_id, staged.session_id), copy_key(staged)]
