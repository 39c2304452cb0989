"""Counts for Prometheus: the translation of ``ledger.counters``."""

from ledger.codec import moment
from ledger.counters import _KEPT_INCIDENTS, Counts, Incident
from tests.simulation.memory.server import MemoryServer
from triage.contract import Status


class MemoryCounters:
    """Counts that all processes share. Runs, effects and cost are counted where runs are saved."""

    def __init__(self, server: MemoryServer) -> None:
        self._server = server

    async def requests(self, kind: str, number: int = 1) -> None:
        """Count requests to GitHub."""
        self._add(f"requests:{kind}", number)

    async def incident(self, kind: str, detail: str) -> None:
        """Count an incident, and keep its line: the newest thousand stay."""
        state = self._server.state
        newest = Incident(kind, detail, moment(self._server.millis // 1000 * 1000))
        self._add(f"incidents:{kind}", 1)
        state.incidents = (newest, *state.incidents[: _KEPT_INCIDENTS - 1])

    def _add(self, name: str, number: int) -> None:
        counters = self._server.state.counters
        counters[name] = counters.get(name, 0) + number

    async def incidents(self, limit: int = 50) -> list[Incident]:
        """The newest ones, newest first."""
        return list(self._server.state.incidents[: limit or None])

    async def snapshot(self) -> Counts:
        """All counts, read together."""
        state = self._server.state
        return Counts(
            runs_now={status: len(state.indexes.get(f"runs::{status}", {})) for status in Status},
            attempts=self._whole("runs:"),
            effects=self._whole("effects:"),
            requests=self._whole("requests:"),
            incidents=self._whole("incidents:"),
            cost={name: float(value) for name, value in self._part("cost:").items()},
            completed={
                (repository, place.partition(" ")[2]): moment(at)
                for place, (at, repository) in state.completed.items()
            },
            due=len(state.due),
            recalled={
                (repository, place.partition(" ")[2]): share
                for place, (share, repository) in state.recalled.items()
            },
            broken_links=int(state.counters.get("links:broken", 0)),
            denials=int(state.counters.get("denials", 0)),
        )

    def _part(self, prefix: str) -> dict[str, float]:
        return {
            name.removeprefix(prefix): value
            for name, value in self._server.state.counters.items()
            if name.startswith(prefix)
        }

    def _whole(self, prefix: str) -> dict[str, int]:
        return {name: int(value) for name, value in self._part(prefix).items()}
