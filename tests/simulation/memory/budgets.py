"""One write budget per installation: the translation of ``ledger.budget``."""

from datetime import datetime, timedelta

from ledger.budget import _LONGER, A_MINUTE, AN_HOUR
from ledger.codec import stamp
from ledger.records import Granted, Wait
from ledger.timing import LedgerTiming
from tests.simulation.memory.server import MemoryServer


class MemoryBudgets:
    """One write budget per installation, shared by all workers.

    Unlike on a server, any number of grants may have the same time: it passes only when it is told.
    """

    def __init__(self, server: MemoryServer, timing: LedgerTiming) -> None:
        self._server = server
        self._interval = round(timing.write_interval / timedelta(microseconds=1))
        self._minute, self._hour = (
            round(seconds * 1_000_000 * _LONGER / timing.pacing_scale) for seconds in (60, 3600)
        )

    async def spend(self, installation: str) -> Granted | Wait:
        """Take room for one write, or say how long there is none."""
        state, now = self._server.state, self._server.micros
        grants = state.grants.get(installation, ())
        bounds = ((1, self._interval), (A_MINUTE, self._minute), (AN_HOUR, self._hour))
        free = [grants[-nth] + length for nth, length in bounds if nth <= len(grants)]
        free_at = max([*free, state.blocked.get(installation, 0) * 1000])
        if free_at > now:
            return Wait(timedelta(microseconds=free_at - now))
        kept = tuple(grant for grant in grants[-AN_HOUR:] if grant >= now - self._hour)
        state.grants[installation] = (*kept, now)
        return Granted(now, now / 1_000_000)

    async def answered(self, installation: str, granted: Granted) -> None:
        """The request of a grant is over: one that took long counts as younger."""
        late = round(self._minute - self._minute / _LONGER)
        arrived = self._server.micros - late
        grants = list(self._server.state.grants.get(installation, ()))
        if granted.at in grants and arrived > granted.at:
            grants[grants.index(granted.at)] = arrived
            self._server.state.grants[installation] = tuple(sorted(grants))

    async def block(self, installation: str, until: datetime) -> None:
        """GitHub asked to come back at ``until``: nobody writes before. The latest time counts."""
        if until.timestamp() > 0:
            blocked = self._server.state.blocked
            blocked[installation] = max(blocked.get(installation, 0), stamp(until))
