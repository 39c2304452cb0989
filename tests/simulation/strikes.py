"""How each fault is put at each boundary: exactly there, at its n-th passing, by nobody's patch.

The ledger's boundaries are calls of its ports; GitHub's are its requests, met by the sandbox.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from ledger.records import Unclaimed
from sandbox.github.faults import Armed
from tests.simulation.matrix import Cell
from tests.simulation.sight import LISTS
from tests.simulation.ways import TRIAGE, Way, always
from tests.simulation.world import Faults, Killed, World
from triage.plan import Cost
from worker.ports import AgentFailed, LeaseLost, LedgerUnavailableError, ReadFailed

LAG_SECONDS: Final = 300
"""How far views lag behind: a third of the absence window."""

DOWN_SECONDS: Final = 10
"""How long Redis is down: longer than anybody asks again."""

ALL_TRIES: Final = 4
"""Of one read."""

BACK_SECONDS: Final = 120
"""When GitHub asks to come back."""


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault at a boundary, at its n-th passing (from 1), in a world whose workers pass
    ``faults``."""

    cell: Cell
    world: World
    faults: Faults
    nth: int = 1
    way: Way = TRIAGE
    _met: list[str] = field(default_factory=list)
    _armed: list[Armed] = field(default_factory=list)
    _up: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def struck(self) -> bool:
        """Whether it happened."""
        return bool(self._met) or any(armed.struck for armed in self._armed)

    def arm(self) -> None:
        """Put it there."""
        self._up.set()
        arms = {
            "kill -9": self._kill,
            "timeout": self._time_out,
            "lost reply": self._lose_reply,
            "5xx, applied": self._applied_5xx,
            "5xx, not applied": self._refused_5xx,
            "403 / 429": self._limit,
            "lease lost": self._lose_lease,
            "Redis down": self._take_redis_down,
            "duplicate trigger": self._trigger_again,
            "stale read": self._lag,
        }
        arms[self.cell.fault]()

    def _at(self, deed: Callable[[], Awaitable[object]], point: str = "") -> None:
        where, when = self.way.points[self.cell.row]

        async def meet() -> object:
            self._met.append(point or where)
            return await deed()

        self.faults.at(point or where, meet, when if not point else always, nth=self.nth)

    def _raise(self, error: BaseException) -> None:
        async def fail() -> None:
            raise error

        self._at(fail)

    def _request(self, where: str, action: str, **options: Any) -> None:
        self._armed.append(self.world.github.fail(where, action, occurrence=self.nth, **options))

    def _kill(self) -> None:
        self._raise(Killed(str(self.cell)))

    def _time_out(self) -> None:
        if self.cell.row == 2:
            self._fail_model("deadline")
        else:
            self._answer("hang after applying", seconds=3600)

    def _lose_reply(self) -> None:
        row, requests = self.cell.row, self.way.requests
        if row in requests:
            self._request(requests[row], "apply then drop")
        elif row == 4:

            async def unsure() -> Unclaimed:
                return Unclaimed.UNSURE

            self._at(unsure)
        else:
            self._raise(LedgerUnavailableError("the reply was lost"))

    def _applied_5xx(self) -> None:
        self._request(self.way.requests[self.cell.row], "apply then 502")

    def _refused_5xx(self) -> None:
        if self.cell.row in (2, 3):
            self._fail_model("overloaded" if self.cell.row == 2 else "cut-stream")
        else:
            self._answer("502")

    def _limit(self) -> None:
        row = self.cell.row
        if row in (2, 3):
            self._fail_model("rate-limited")
        elif row == 4:
            self._at(self._spend_budget, "before budgets.spend")
        else:
            self._answer("403 secondary" if row % 2 else "429", retry_after=BACK_SECONDS)

    def _answer(self, action: str, **options: Any) -> None:
        """The request at the boundary, or the next one, is answered so; a read each time that it
        is tried again: a refused one is not."""
        row, github, requests = self.cell.row, self.world.github, self.way.requests
        where = requests.get(row) or self.way.following[row]
        again = where.startswith("GET") and "retry_after" not in options
        options["times"] = ALL_TRIES if again else 1
        if row in requests:
            self._request(where, action, **options)
            return

        async def arm() -> None:
            github.fail(where, action, **options)

        self._at(arm)

    async def _spend_budget(self) -> None:
        """Another worker was told to come back: nobody of the installation writes before."""
        until = self.world.clock.now() + timedelta(seconds=BACK_SECONDS)
        await self.world.ledger.budgets.block(self.world.installation, until)

    def _fail_model(self, reason: str) -> None:
        """Every try of one attempt fails."""
        failed = AgentFailed(reason, "no answer", retryable=True, cost=Cost())

        async def fail() -> None:
            self.world.agent.fails += [failed] * self.way.tries

        self._at(fail, self.way.model)

    def _lose_lease(self) -> None:
        """The process stands still, its heartbeat too, until the lease has lapsed. After a claim
        it is cut off from Redis as long: it cannot say either that it has not sent."""
        length = self.world.timing.lease + timedelta(seconds=1)
        if self.cell.row == 4:
            self._take_redis_down(length.total_seconds())
            return

        async def stand_still() -> None:
            await self.world.stand_still(length)

        self._at(stand_still)

    def _take_redis_down(self, seconds: float = DOWN_SECONDS) -> None:
        async def down() -> None:
            self.world.server.down = True
            self._up.clear()
            asyncio.get_running_loop().call_later(seconds, self._recover)

        self._at(down)

    def _recover(self) -> None:
        self.world.server.down = False
        self._up.set()

    async def over(self) -> None:
        """Wait until Redis is there again."""
        await self._up.wait()

    def _trigger_again(self) -> None:
        async def again() -> None:
            with suppress(LedgerUnavailableError, LeaseLost, ReadFailed):
                await self.world.run(owner="worker-2")

        self._at(again)

    def _lag(self) -> None:
        """From here on every list shows only what is older; what is asked for is not answered."""
        row, way = self.cell.row, self.way
        if row in (5, 7, 11):
            self._request(way.requests[row], "apply then drop")

        async def lag() -> None:
            for view in LISTS:
                self.world.github.fail("GET .", "stale", view=view, lag=LAG_SECONDS)

        self._at(lag, f"before {way.points[row][0].removeprefix('after ')}")
