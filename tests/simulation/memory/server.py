"""The server of a memory ledger: its state, its time, and what can befall it."""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from ledger.codec import moment
from ledger.errors import LedgerUnavailableError
from tests.simulation.memory.rows import EffectRow, EpochRow, Kept, LeaseRow, RunRow, State

Value = TypeVar("Value")

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
NO_IDENTITY = "0" * 40
"""``replid2`` of a server that was never promoted."""


class MemoryServer:
    """One server, or whichever one answers in its place.

    ``now`` is its clock. ``replid`` and ``replid2`` are its replication identity and the earlier
    one, ``replicas`` how many are connected, ``durable`` whether each write is on disk before it is
    acknowledged. While it is ``down``, every part raises LedgerUnavailableError.
    """

    def __init__(self, now: Callable[[], datetime], *, durable: bool = True) -> None:
        self._now = now
        self._names = itertools.count(1)
        self._state = State()
        self.durable = durable
        self.down = False
        self.replicas = 0
        self.replid = self.new_name()
        self.replid2 = NO_IDENTITY

    # What befalls it

    def copy(self) -> State:
        """The state as it is now: what a replica or a disk has of it."""
        return self._state.copy()

    def restore(self, state: State, *, replid: str = "", replid2: str = "") -> None:
        """A replica that has this state was promoted. It has a new identity, and the present one
        as its earlier one, unless it is said otherwise."""
        self.replid, self.replid2 = replid or self.new_name(), replid2 or self.replid
        self.replicas = 0
        self._state = state.copy()

    def wipe(self) -> None:
        """An empty server stands in its place."""
        self._begin_anew(State())

    def restart(self, *, durable: bool = True, as_of: State | None = None) -> None:
        """It starts again. With AOF ``always`` nothing is lost; without, it may have the state as
        of a copy. ``durable`` is how it is set from now on. Raises ValueError where a durable
        server would lose something."""
        if durable and as_of is not None:
            raise ValueError("a durable server loses nothing")
        self.durable = durable
        self._begin_anew(self._state if as_of is None else as_of.copy())

    def _begin_anew(self, state: State) -> None:
        self.replid, self.replid2 = self.new_name(), NO_IDENTITY
        self.replicas = 0
        self._state = state

    def attach_replica(self) -> None:
        """A replica arrives; with the first one a server's identity changes."""
        if self.replicas == 0:
            self.replid, self.replid2 = self.new_name(), NO_IDENTITY
        self.replicas += 1

    def forget_epoch(self) -> None:
        """Somebody deletes the key ``epoch``."""
        self._state.epoch = None

    @property
    def has_epoch(self) -> bool:
        """Whether an epoch stands."""
        return self._state.epoch is not None

    # What the parts of the ledger ask

    @property
    def state(self) -> State:
        """What the parts read and write. Raises LedgerUnavailableError while the server is down."""
        if self.down:
            raise LedgerUnavailableError("the server is down")
        return self._state

    def new_name(self) -> str:
        """Forty hex digits that were never given before, by this server or after it."""
        return f"{next(self._names):040x}"

    @property
    def micros(self) -> int:
        """Microseconds since 1970."""
        return (self._now() - _BEGINNING) // _MICROSECOND

    @property
    def millis(self) -> int:
        """Milliseconds since 1970."""
        return self.micros // 1000

    @property
    def moment(self) -> datetime:
        """Now, in whole milliseconds."""
        return moment(self.millis)

    @property
    def epoch(self) -> EpochRow | None:
        """The epoch that stands."""
        return self.state.epoch

    @property
    def epoch_id(self) -> str:
        """Its id; empty where there is none."""
        epoch = self.state.epoch
        return "" if epoch is None else epoch.id

    def lease(self, dedupe_key: str) -> LeaseRow | None:
        """A run's lease, unless it expired."""
        row = self.state.leases.get(dedupe_key)
        if row is not None and self.millis > row.expires:
            del self.state.leases[dedupe_key]
            return None
        return row

    def run(self, dedupe_key: str) -> RunRow | None:
        """A run, unless it expired."""
        row = self.state.runs.get(dedupe_key)
        if row is not None and row.expires is not None and self.millis > row.expires:
            del self.state.runs[dedupe_key]
            return None
        return row

    def effect(self, effect_key: str) -> EffectRow:
        """An effect's record; one without a field where it is not known."""
        return self.state.effects.get(effect_key, UNKNOWN)

    def living(self, kept: Kept[Value] | None) -> Value | None:
        """The value, unless it expired."""
        if kept is None or (kept.expires is not None and self.millis > kept.expires):
            return None
        return kept.value


UNKNOWN = EffectRow()
