"""The transcript of a session that is kept: laid out for the CLI before, copied off while it runs.

The SDK would lay it out itself, in a folder for temporary files that a killed worker leaves behind;
here it lies in the session's own folder. And the SDK names a transcript by the working folder; here
it has one name, so that a worker with other folders can go on with it.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from claude_agent_sdk import (
    SessionKey,
    SessionStore,
    SessionStoreEntry,
    project_key_for_directory,
)

PROJECT: Final = "retriage"


class Mirror:
    """The store that the SDK is given: it copies entries on, and lays nothing out."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Copy entries. What it raises, the SDK tells as a mirror error."""
        await self._store.append({**key, "project_key": PROJECT}, entries)

    async def load(self, _: SessionKey) -> list[SessionStoreEntry] | None:
        """Nothing: the transcript lies there already."""
        return None


async def lay_out(store: SessionStore, session_id: str, work: Path, config: Path) -> float:
    """Write a session's transcript where the CLI looks for it; nothing, if there is none.

    Gives the dollars that it has cost so far.
    """
    key: SessionKey = {"project_key": PROJECT, "session_id": session_id}
    entries = await store.load(key)
    if not entries:
        return 0.0
    folder = config / "projects" / project_key_for_directory(work)
    folder.mkdir(mode=0o700, parents=True)
    file = folder / f"{session_id}.jsonl"
    file.touch(mode=0o600)
    file.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries), encoding="utf-8")
    return spent(entries)


def spent(entries: Sequence[Mapping[str, Any]]) -> float:
    """Dollars up to a transcript's end: the CLI goes on counting from its last sum."""
    for entry in reversed(entries):
        match entry:
            case {"type": "cost-state", "totalCostUSD": float() | int() as total}:
                return float(total)
            case _:
                pass
    return 0.0
