"""Everything that a run needs, in one value: the ports, time, bounds, keys and the log."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from ledger.records import Report
from triage.marker import MarkerKeys
from worker.ports.agent import Agent
from worker.ports.checkout import Checkouts
from worker.ports.fetching import Fetcher
from worker.ports.github import GitHubReader, GitHubWriter
from worker.ports.ledger import LedgerPorts


class Clock(Protocol):
    """Time and chance, so that tests can hold both."""

    def now(self) -> datetime:
        """The wall-clock time, aware, UTC."""

    def monotonic(self) -> float:
        """Seconds that never run backwards."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    def token(self) -> str:
        """A new unguessable word of 32 hex digits."""


class Artifacts(Protocol):
    """Where reports are exported for people, besides the ledger."""

    async def export(self, report: Report) -> str:
        """Write the file (0600) and give its path."""

    async def standing(self, path: str) -> str | None:
        """The text of the file as it stands, for a ledger that has lost it; None where there is
        none that can be read."""


class Log(Protocol):
    """The lines that alerts hang on."""

    def __call__(self, word: str, /, **pairs: object) -> None:
        """``WORD key=value …``"""


@dataclass(frozen=True, slots=True)
class Timing:
    """Bounds, checked at start: lease > request timeout + margin, lock delay > request timeout.

    ``refresh`` is how old the repository's labels and the changes of its issues may be when
    something is written (docs/decisions/0006-a-person-on-the-way.md).
    """

    lease: timedelta = timedelta(seconds=120)
    lock_delay: timedelta = timedelta(seconds=60)
    absence_window: timedelta = timedelta(minutes=15)
    request: timedelta = timedelta(seconds=20)
    margin: timedelta = timedelta(seconds=5)
    run: timedelta = timedelta(minutes=40)
    longest_pause: timedelta = timedelta(seconds=30)
    refresh: timedelta = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything that a run needs."""

    ledger: LedgerPorts
    reader: GitHubReader
    writer: GitHubWriter
    agent: Agent
    checkouts: Checkouts
    artifacts: Artifacts
    fetcher: Fetcher
    clock: Clock
    keys: MarkerKeys
    log: Log
    timing: Timing
    owner: str
