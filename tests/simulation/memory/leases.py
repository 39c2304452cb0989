"""Who may execute a run now: the translation of ``ledger.lease``."""

from ledger.codec import moment
from ledger.lease import _KEPT_DAYS
from ledger.records import Lease, LeaseView, Look
from ledger.timing import LedgerTiming, milliseconds
from tests.simulation.memory.evidence import let_go
from tests.simulation.memory.rows import LeaseRow
from tests.simulation.memory.runs import put_together
from tests.simulation.memory.server import MemoryServer


class MemoryLeases:
    """One lease per run. Times are the server's."""

    def __init__(self, server: MemoryServer, timing: LedgerTiming) -> None:
        self._server = server
        self._length = milliseconds(timing.lease)
        self._lock_delay = milliseconds(timing.lock_delay)
        self._kept = _KEPT_DAYS * 86_400_000 + self._length + self._lock_delay

    async def acquire(self, dedupe_key: str, owner: str, token: str) -> Lease | None:
        """Take the lease, or None while it is live, or within the lock delay of a claimed run."""
        server, state = self._server, self._server.state
        now, lease = server.millis, server.lease(dedupe_key)
        ends = 0 if lease is None else lease.until
        if lease is not None and now < ends:
            if lease.token != token:
                return None
            return Lease(dedupe_key, owner, token, lease.fence, lease.epoch, moment(ends))
        run = server.run(dedupe_key)
        claimed = 0 if run is None else run.claimed
        if claimed > 0 and now < ends + self._lock_delay:
            return None
        state.fence += 1
        taken = LeaseRow(
            owner, token, now + self._length, state.fence, server.epoch_id, now + self._kept
        )
        state.leases[dedupe_key] = taken
        return Lease(dedupe_key, owner, token, taken.fence, taken.epoch, moment(taken.until))

    async def renew(self, lease: Lease) -> bool:
        """Make it last a whole lease from now. False where it lapsed or is another's."""
        server = self._server
        now, row = server.millis, server.lease(lease.dedupe_key)
        if row is None or row.token != lease.token or now >= row.until:
            return False
        server.state.leases[lease.dedupe_key] = row._replace(
            until=now + self._length, expires=now + self._kept
        )
        return True

    async def release(self, lease: Lease) -> None:
        """Give it up cleanly. Nothing happens where it is another's."""
        row = self._server.lease(lease.dedupe_key)
        if row is None or row.token != lease.token:
            return
        let_go(self._server, lease.dedupe_key)

    async def view(self, dedupe_key: str) -> Look:
        """The run and its lease, in one read."""
        server = self._server
        row, run = server.lease(dedupe_key), server.run(dedupe_key)
        if row is None:
            view = LeaseView(now=server.moment)
        else:
            until = moment(row.until) if row.until else None
            view = LeaseView(now=server.moment, owner=row.owner, until=until, fence=row.fence)
        return Look(None if run is None else put_together(run), view)
