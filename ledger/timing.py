"""The bounds that the ledger enforces."""

from dataclasses import dataclass
from datetime import timedelta


class UnsafeTimingError(ValueError):
    """A bound is too short for the promise to hold."""


@dataclass(frozen=True, slots=True)
class LedgerTiming:
    """How long things last. Raises UnsafeTimingError where a request could outlive its lease.

    ``request`` is the hard limit of one request to GitHub; ``margin`` the time within which a
    claimed request must have started. ``retention`` is how long finished runs, reports and
    decisions are kept. ``pacing_scale``: how much faster than GitHub's the minute and hour of the
    write budget run (tests and the demo); ``write_interval`` is not scaled.
    """

    lease: timedelta = timedelta(seconds=120)
    lock_delay: timedelta = timedelta(seconds=60)
    absence_window: timedelta = timedelta(minutes=15)
    request: timedelta = timedelta(seconds=20)
    margin: timedelta = timedelta(seconds=5)
    retention: timedelta = timedelta(days=90)
    write_interval: timedelta = timedelta(seconds=1)
    pacing_scale: float = 1.0

    def __post_init__(self) -> None:
        if self.margin <= timedelta(0) or self.request <= timedelta(0):
            raise UnsafeTimingError("the request time-out and its margin must be above zero")
        if self.lease <= self.request + self.margin:
            raise UnsafeTimingError("the lease must be longer than a request and its margin")
        if self.lock_delay <= self.request:
            raise UnsafeTimingError("the lock delay must be longer than a request")
        if self.pacing_scale <= 0:
            raise UnsafeTimingError("the pacing scale must be above zero")


def milliseconds(span: timedelta) -> int:
    """A span as Redis and the scripts count it."""
    return round(span / timedelta(milliseconds=1))
