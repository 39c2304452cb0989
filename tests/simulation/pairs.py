"""Two faults in one run: at the same boundary, one passing after the other, or at adjacent ones.

A pair is told by the clock alone: the window falls due, workers die or are struck, and what is due
goes on until nothing is. The end is proved like every run's, and two more runs change nothing.
"""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tests.simulation.cells import stage, trigger
from tests.simulation.invariants import check, check_ended, nothing_more
from tests.simulation.matrix import BOUNDARIES, CELLS, Cell
from tests.simulation.strikes import Strike
from tests.simulation.ways import TRIAGE, Way
from tests.simulation.world import Faults, Killed, World
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


def pairs(
    cells: Collection[Cell] = CELLS.values(), order: Sequence[int] = range(len(BOUNDARIES))
) -> Iterator[Pair]:
    """Every ordered pair of possible faults at the same and at adjacent boundaries, which a run
    passes in this order."""
    at = {row: place for place, row in enumerate(order)}
    for first in cells:
        for second in cells:
            if at[second.row] - at[first.row] in (0, 1):
                yield Pair(first, second)


async def play_pair(pair: Pair, way: Way = TRIAGE) -> Told:
    """Tell the story of a pair. Raises AssertionError that names the invariant that does not
    hold."""
    async with stage(way, opened=timedelta(days=1)) as w:
        before = len(await w.runs())
        strikes, faults = _armed(pair, w, way)
        await _trigger(pair, w)
        await _clock(w, faults, strikes)
        run = await _ended(pair, w, before)
        told = Told(run.status, both=all(strike.struck for strike in strikes))
        w.github.faults.clear()
        faults.armed.clear()
        await nothing_more(w)
        return told


def _armed(pair: Pair, w: World, way: Way) -> tuple[list[Strike], Faults]:
    faults = Faults()
    again = int(pair.first.row == pair.second.row)
    strikes = [
        Strike(cell, w, faults, nth=way.passing(cell.row) + later, way=way)
        for cell, later in ((pair.first, 0), (pair.second, again))
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


async def _ended(pair: Pair, w: World, before: int) -> RunRecord:
    """The one run is over, or needs a person for a reason that a person can see."""
    runs = (await w.runs())[before:]
    assert len(runs) == 1, f"{pair}: {[run.inputs.dedupe_key for run in runs]}"
    await check_ended(w)
    return runs[0]
