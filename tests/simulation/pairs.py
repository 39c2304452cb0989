"""Two faults in one run: at the same boundary, one passing after the other, or at adjacent ones.

A pair is told by the clock alone: the window falls due, workers die or are struck, and what is due
goes on until nothing is. The end is proved like every run's, and two more runs change nothing.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from tests.simulation.cells import trigger
from tests.simulation.invariants import check, check_ended, nothing_more
from tests.simulation.matrix import CELLS, Cell
from tests.simulation.strikes import Strike
from tests.simulation.world import Faults, Killed, World, policy_file, world
from triage.contract import RunRecord, Status
from worker.ports import LedgerUnavailableError


@dataclass(frozen=True, slots=True)
class Pair:
    """The first fault, and the second."""

    first: Cell
    second: Cell

    def __str__(self) -> str:
        return f"{self.first}, then {self.second}"


@dataclass(frozen=True, slots=True)
class Told:
    """How a pair ended, and whether both faults struck: after some firsts there is no second."""

    status: Status
    both: bool


def pairs() -> Iterator[Pair]:
    """Every ordered pair of possible faults at the same and at adjacent boundaries."""
    for first in CELLS.values():
        for second in CELLS.values():
            if second.row in (first.row, first.row + 1):
                yield Pair(first, second)


async def play_pair(pair: Pair) -> Told:
    """Tell the story of a pair. Raises AssertionError that names the invariant that does not
    hold."""
    async with world(["Bug: a"], policy=policy_file(), opened=timedelta(days=1)) as w:
        strikes, faults = _armed(pair, w)
        await _trigger(pair, w)
        await _clock(w, faults, strikes)
        run = await _ended(pair, w)
        told = Told(run.status, both=all(strike.struck for strike in strikes))
        w.github.faults.clear()
        faults.armed.clear()
        await nothing_more(w)
        return told


def _armed(pair: Pair, w: World) -> tuple[list[Strike], Faults]:
    faults = Faults()
    nth = 2 if pair.first.row == pair.second.row else 1
    strikes = [
        Strike(cell, w, faults, nth=place)
        for cell, place in ((pair.first, 1), (pair.second, nth))
        if cell.row
    ]
    for strike in strikes:
        strike.arm()
    return strikes, faults


async def _trigger(pair: Pair, w: World) -> None:
    """The faults of row 0 befall the trigger; else the App is installed, and its window due."""
    befalls = [cell for cell in (pair.first, pair.second) if cell.row == 0]
    if not befalls:
        await w.install()
    for cell in befalls:
        await trigger(cell, w)


async def _clock(w: World, faults: Faults, strikes: list[Strike]) -> None:
    """The clock goes on, with workers whose calls are met, until nothing is due. Fails where that
    does not end (I7)."""
    end = w.clock.monotonic() + 60 * w.timing.absence_window.total_seconds()
    await _tick(w, faults)
    while True:
        for strike in strikes:
            await strike.over()
        await check(w)
        pause = await w.next_due()
        if pause is None:
            return
        assert w.clock.monotonic() < end, f"I7: due: {await w.ledger.due.upcoming()}"
        await asyncio.sleep(pause)
        await _tick(w, faults)


async def _tick(w: World, faults: Faults) -> None:
    try:
        await w.work(faults=faults)
        await w.tick(faults=faults)
    except (Killed, LedgerUnavailableError):
        return


async def _ended(pair: Pair, w: World) -> RunRecord:
    """The one run is over, or needs a person for a reason that a person can see."""
    runs = await w.runs()
    assert len(runs) == 1, f"{pair}: {[run.inputs.dedupe_key for run in runs]}"
    await check_ended(w)
    return runs[0]
