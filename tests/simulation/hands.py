"""Workers that can be stopped, cut off and killed at any call of a port.

A hand is one worker process: it does one job at a time, as a task of the loop. Between two deeds of
a schedule every hand stands at some call or has nothing to do, so that whatever happens next falls
between two of its calls.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ledger.errors import FrozenRunError, LedgerCorruptError
from ledger.records import Unclaimed
from tests.simulation.points import Faults, Killed
from worker.ports import LeaseLost, LedgerUnavailableError, Ports, ReadFailed
from worker.stages.settling import RunReport

LEDGER_PARTS = frozenset("leases runs effects due budgets repositories epochs".split())

Work = Callable[[Ports], Awaitable[RunReport | None]]


class Sees(Protocol):
    """Who keeps the books: every call of every hand passes by."""

    @property
    def losses(self) -> list[float]:
        """When the ledger lost something, in seconds."""

    def before(self, hand: "Hand", call: str, args: Any) -> None:
        """The call happens now."""

    def after(self, hand: "Hand", call: str, args: Any, result: object) -> None:
        """It has happened."""


@dataclass
class Cut:
    """Out of reach of the ledger for so many calls. ``lost``: they happen, and the reply never
    comes."""

    calls: int
    lost: bool


@dataclass(frozen=True)
class Where:
    """How far a hand goes: so many points, or to the next one of that name; and what then."""

    calls: int | None = None
    point: str = ""
    dies: bool = False


ONWARDS = Where()
"""To the end of its job."""


@dataclass
class Hand(Faults):
    """One worker process. ``frozen``: where it stands, its heartbeat stands too.

    ``left``: how many points it passes until it stops, None: it does not; ``until``: it stops at
    the next point of that name as well; ``dies``: it does not stop there but dies. ``began``: when
    its job did, in seconds; ``calls``: points passed in it.
    """

    name: str = ""
    sees: Sees | None = None
    job: str = ""
    began: float = 0.0
    left: int | None = None
    until: str = ""
    dies: bool = False
    frozen: bool = True
    cut: Cut | None = None
    point: str = ""
    calls: int = 0
    dead: bool = False
    died: bool = False
    error: BaseException | None = None
    task: "asyncio.Task[None] | None" = None
    reports: list[RunReport] = field(default_factory=list)
    _gate: asyncio.Event = field(default_factory=asyncio.Event)
    _rest: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def idle(self) -> bool:
        """It has no job."""
        return self.task is None

    @property
    def stopped(self) -> bool:
        """It stands at a call."""
        return self.task is not None and not self._gate.is_set()

    def take(self, job: str, work: Work, ports: Ports) -> None:
        """Have it do a job, as far as the next step lets it."""
        assert self.idle
        self.job, self.began, self.calls, self.error = job, ports.clock.monotonic(), 0, None
        self.dead = self.died = False
        self.point = "start"
        self._gate.clear()
        self.task = asyncio.get_running_loop().create_task(self._do(work, ports))

    async def go(self, where: "Where" = ONWARDS) -> None:
        """Let it pass so many points, or go on to the end; gives when it stands or has ended.

        Raises what its job must not raise.
        """
        self.let_go(where)
        await self.rest()

    def let_go(self, where: "Where" = ONWARDS) -> None:
        """The same, not waiting for it."""
        self.left, self.until, self.dies = where.calls, where.point, where.dies
        self._rest.clear()
        self._gate.set()

    async def rest(self) -> None:
        """Wait until it stands or has ended. Raises what its job must not raise."""
        if self.task is not None:
            await self._rest.wait()
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    async def kill(self) -> None:
        """It dies where it stands: no call of it happens any more."""
        self.dead = True
        self._rest.clear()
        self._gate.set()
        await self.rest()

    async def dismiss(self) -> None:
        """It ends here, whatever it was at: the schedule is over."""
        if self.task is not None:
            self.dead = True
            self._gate.set()
            await asyncio.wait({self.task})

    async def _do(self, work: Work, ports: Ports) -> None:
        try:
            await self._gate.wait()
            report = await work(ports)
            self.reports += [report] if report is not None else []
        except (LeaseLost, LedgerUnavailableError, ReadFailed, FrozenRunError) as error:
            ports.log("JOB-FAILED", reason=f"{type(error).__name__}: {error}")
        except LedgerCorruptError as error:
            # A job that fails aloud, and comes again: part of a record stands after a loss.
            if self.sees is None or not self.sees.losses:
                self.error = error
            ports.log("JOB-CRASHED", reason=type(error).__name__)
        except Killed:
            self.died = True
        except BaseException as error:  # noqa: BLE001 - whoever drives the hand hears of it
            self.error = error
        finally:
            self.task, self.cut = None, None
            self._gate.set()
            self._rest.set()

    async def meet(self, point: str, args: Any) -> object:
        """A point is passed, or it stops, dies, or is cut off there."""
        when, _, call = point.partition(" ")
        mine = asyncio.current_task() is self.task
        if mine:
            self.calls += 1
            self.point = point
            if self.left is not None:
                self.left -= 1
            if self.left == 0 or point == self.until:
                await self._stop()
        elif self.frozen:
            await self._gate.wait()
        if self.dead:
            raise Killed(self.name)
        given = self._cut_off(when, call)
        if given is None and when == "before" and self.sees is not None:
            self.sees.before(self, call, args)
        return given

    def saw(self, call: str, args: Any, result: object) -> None:
        """The call happened."""
        if self.sees is not None:
            self.sees.after(self, call, args, result)

    async def _stop(self) -> None:
        self.left, self.until = None, ""
        if self.dies:
            self.dead = True
            return
        self._gate.clear()
        self._rest.set()
        await self._gate.wait()

    def _cut_off(self, when: str, call: str) -> Unclaimed | None:
        """The ledger is out of reach of this hand alone."""
        if self.cut is None or call.partition(".")[0] not in LEDGER_PARTS:
            return None
        if self.cut.lost is (when == "before"):
            return None
        self.cut.calls -= 1
        if self.cut.calls <= 0:
            self.cut = None
        if call == "effects.claim":
            return Unclaimed.UNSURE
        raise LedgerUnavailableError(f"{self.name} does not reach the ledger")
