"""The log of all requests."""

from __future__ import annotations

from dataclasses import dataclass

SHORT = 500
MOST_ENTRIES = 50_000


@dataclass(slots=True)
class Logged:
    """One request. `applied`: a write that GitHub carried out, whatever the client was told."""

    n: int
    time: str
    method: str
    path: str  # as it was asked for
    canonical: str  # /repos/OWNER/NAME/... whichever way it was addressed
    query: str
    who: str
    body: str
    by_id: bool = False
    status: int | str = "open"  # a status, "drop", or "hang" while it hangs
    applied: bool = False
    fault: str | None = None
    answer: str = ""

    def json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


class RequestLog:
    def __init__(self) -> None:
        self.entries: list[Logged] = []
        self._last = 0

    def open(
        self,
        *,
        time: str,
        method: str,
        path: str,
        canonical: str,
        query: str,
        who: str,
        body: bytes,
        by_id: bool,
    ) -> Logged:
        self._last += 1
        entry = Logged(
            n=self._last,
            time=time,
            method=method,
            path=path,
            canonical=canonical,
            query=query,
            who=who,
            body=shorten(body),
            by_id=by_id,
        )
        self.entries.append(entry)
        if len(self.entries) > MOST_ENTRIES:
            del self.entries[: MOST_ENTRIES // 10]
        return entry

    def clear(self) -> None:
        self.entries.clear()


def shorten(body: bytes) -> str:
    text = body[: SHORT + 1].decode("utf-8", "replace")
    return text if len(text) <= SHORT else text[:SHORT] + "…"
