"""The ledger's own identity: the translation of ``ledger.epoch``."""

from ledger.codec import moment
from ledger.records import LEDGER, Due, DueKind, Epoch
from ledger.timing import LedgerTiming, milliseconds
from tests.simulation.memory.rows import EpochRow
from tests.simulation.memory.server import NO_IDENTITY, MemoryServer

_RECOVER = str(Due(DueKind.RECOVER, LEDGER))


class MemoryEpochs:
    """The ledger's own identity."""

    def __init__(self, server: MemoryServer, timing: LedgerTiming) -> None:
        self._server = server
        self._quiet = milliseconds(timing.absence_window + timing.lock_delay)

    async def ensure(self, *, first: bool) -> Epoch:
        """The epoch that stands. Missing, or the server's replication identity changed without
        being a mere restart: set a new one (``changed``), quiet unless ``first``."""
        server, state, now = self._server, self._server.state, self._server.millis
        stands = state.epoch
        seen = max(server.replicas, 0 if stands is None else stands.replicas_seen)
        if stands is None:
            made = self._begin(0 if first else now + self._quiet, seen, first=first)
            return _epoch(made, changed=True)
        state.epoch = stands = stands._replace(replicas_seen=seen)
        if stands.replid == server.replid:
            return _epoch(stands)
        restarted = server.durable and server.replid2 == NO_IDENTITY and seen == 0
        if not restarted:
            made = self._begin(now + self._quiet, seen, first=False)
            return _epoch(made, changed=True, replaces=True)
        state.epoch = stands._replace(replid=server.replid)
        return _epoch(state.epoch)

    def _begin(self, quiet_until: int, replicas_seen: int, *, first: bool) -> EpochRow:
        server, now = self._server, self._server.millis
        made = EpochRow(server.new_name(), server.replid, now, quiet_until, first, replicas_seen)
        server.state.epoch = made
        # Whatever becomes of the reply, GitHub is read back.
        if not first:
            server.state.due[_RECOVER] = now
        return made


def _epoch(row: EpochRow, *, changed: bool = False, replaces: bool = False) -> Epoch:
    return Epoch(
        id=row.id,
        began=moment(row.began),
        quiet_until=moment(row.quiet_until) if row.quiet_until else None,
        first=row.first,
        changed=changed,
        replaces=replaces,
    )
