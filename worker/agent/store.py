"""The SDK's ``SessionStore`` over an attempt's copy of a session in the ledger.

What was measured (SDK 0.2.189, CLI 2.1.332):

- The CLI writes its transcript below its own config folder; the SDK passes the same lines on to
  ``append``. It does so at each result and once more as the CLI leaves (its last prompt, mode and
  cost), earlier only from 500 lines or 1 MiB on. What was said before a session was cut off is
  passed on too: so a copy may hold the lines of a failed attempt, and is promoted only with a plan.
- An ``append`` that raises is tried three times within a second, and then left out: the session
  goes on and ends as a success. A transcript is a chain, from its last line backwards: with a line
  missing in between, all before it is lost without a word. So the first refusal is the last word
  of this store, and ``problem`` tells of it.
- On resume the SDK calls ``load`` once, and ``list_subkeys``, writes what it gets into a config
  folder of its own below the system's for temporary files (``claude-resume-…``, instead of ours),
  and removes that afterwards; a killed worker leaves it. So ``transcript`` lays it out instead, and
  the SDK's ``load`` finds nothing. The session keeps its id. ``load`` that
  raises is a RuntimeError; ``None`` leaves the CLI to its own config folder: with no transcript
  there it says "No conversation found" (``error_during_execution``), as it does of one without a
  message. One that was cut off after a message is resumed as if nothing more had been said.
- Lines come from the CLI in frames (one holds the prompt, twice), and a frame above the SDK's
  ``max_buffer_size`` (1 MiB unless it is said otherwise) ends the session as an error.
- Keys hold the working folder (``project_key``): with another one, the SDK asks for another key. A
  session is the same wherever it was begun, so the lines that are resumed are shown under any
  project; the model is told of the new folder. What is added keeps its project.
- ``--no-session-persistence`` leaves nothing to pass on.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from claude_agent_sdk import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
    fold_session_summary,
)

from ledger.errors import LedgerCorruptError
from ledger.memory import StagedSession, TranscriptLine
from worker.ports import Sessions, StateNotSavedError

UNANSWERED: Final = "the ledger did not say whether it has a line of the session"


class LedgerSessionStore(SessionStore):
    """One attempt's store, for one session of the agent."""

    def __init__(self, sessions: Sessions, staged: StagedSession) -> None:
        self._sessions = sessions
        self._staged = staged
        self._added = 0
        self._pending: list[TranscriptLine] = []
        self._refusal: str | None = None

    @property
    def problem(self) -> str | None:
        """Why the session was not kept or could not be read, after its end; None where all is well.
        Whatever its result says, one with a problem has no state to save."""
        return self._refusal or (UNANSWERED if self._pending else None)

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add lines to the copy. Raises StateNotSavedError, and from then on always."""
        await self._add([_line(key, json.dumps(entry)) for entry in entries])

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """The lines of a session, or of a part of it; None where there are none."""
        try:
            lines = await self._read(key)
        except LedgerCorruptError as error:
            self._refusal = str(error)
            return None
        part = key.get("subpath", "")
        return [json.loads(line.json) for line in lines if line.subpath == part] or None

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The parts of a session besides the conversation itself."""
        parts = [line.subpath for line in await self._read(key) if line.subpath]
        return list(dict.fromkeys(parts))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project, with the time of their last line in milliseconds."""
        whole = await self._sessions.read(self._staged) or []
        found: list[SessionStoreListEntry] = []
        for session_id in dict.fromkeys(line.session_id for line in whole):
            seen = self._visible(whole, {"project_key": project_key, "session_id": session_id})
            times = [line.at.timestamp() for line in seen if not line.subpath and line.at]
            if times:
                found.append({"session_id": session_id, "mtime": round(max(times) * 1000)})
        return found

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """The same with what the SDK says of each."""
        found: list[SessionSummaryEntry] = []
        for session in await self.list_sessions(project_key):
            key: SessionKey = {"project_key": project_key, "session_id": session["session_id"]}
            summary = fold_session_summary(None, key, await self.load(key) or [])
            found.append({**summary, "mtime": session["mtime"]})
        return found

    async def delete(self, key: SessionKey) -> None:
        """Forget a session, or a part of it, for this attempt."""
        await self._add([_line(key, "")])

    async def _add(self, lines: list[TranscriptLine]) -> None:
        """After a lost reply only the same lines may follow: with others there would be a gap."""
        if self._refusal is None and self._pending not in ([], lines):
            self._refusal = UNANSWERED
        if self._refusal is not None:
            raise StateNotSavedError(self._refusal)
        self._pending = lines
        try:
            await self._sessions.append(self._staged, lines, after=self._added)
        except StateNotSavedError as error:
            self._refusal = str(error)
            raise
        self._pending = []
        self._added += len(lines)

    async def _read(self, key: Mapping[str, Any]) -> list[TranscriptLine]:
        return self._visible(await self._sessions.read(self._staged) or [], key)

    def _visible(
        self, whole: Iterable[TranscriptLine], key: Mapping[str, Any]
    ) -> list[TranscriptLine]:
        """The lines of a session that were not deleted."""
        seen: list[TranscriptLine] = []
        for at, line in enumerate(whole):
            resumed = at < self._staged.length
            if line.session_id != key["session_id"]:
                continue
            if not resumed and line.project != key["project_key"]:
                continue
            if line.json:
                seen.append(line)
            else:
                seen = [old for old in seen if line.subpath and old.subpath != line.subpath]
        return seen


def _line(key: SessionKey, line: str) -> TranscriptLine:
    return TranscriptLine(key["project_key"], key["session_id"], key.get("subpath", ""), line)
