"""Stories told outside pytest: each on a loop of its own, many at once in several processes."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any, TypeVar

from tests.simulation.cells import play
from tests.simulation.matrix import CELLS
from tests.simulation.pairs import pairs, play_pair
from tests.simulation.virtual import VirtualLoop

T = TypeVar("T")

JOBS = os.cpu_count() or 1
"""Processes at once."""

_CHUNK = 16


@dataclass(frozen=True, slots=True)
class Violation:
    """What did not hold, and in which story."""

    where: str
    what: str


@dataclass
class Told:
    """How many stories, how they ended, and what did not hold in them."""

    stories: int = 0
    endings: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)


def alone(story: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Tell one story in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(story())


def tell_cells(jobs: int = JOBS) -> Told:
    """Every cell of the matrix; an ending is a status, empty where the run goes on."""
    return _gathered(_cell, len(CELLS), jobs)


def tell_pairs(jobs: int = JOBS) -> Told:
    """Every pair of faults; an ending says whether both of them struck, too."""
    return _gathered(_pair, sum(1 for _ in pairs()), jobs)


def _cell(index: int) -> tuple[str, Violation | None]:
    cell = list(CELLS.values())[index]
    return _held(str(cell), lambda: play(cell), lambda _: cell.status or "C")


def _pair(index: int) -> tuple[str, Violation | None]:
    pair = list(pairs())[index]
    return _held(
        str(pair),
        lambda: play_pair(pair),
        lambda told: f"{told.status}{'' if told.both else ', the second never struck'}",
    )


def _held(
    where: str, story: Callable[[], Coroutine[Any, Any, T]], ending: Callable[[T], str]
) -> tuple[str, Violation | None]:
    try:
        return ending(alone(story)), None
    except Exception as error:  # noqa: BLE001 - whatever breaks a story is what it tells
        first = str(error).strip().splitlines()
        return "violated", Violation(where, first[0] if first else type(error).__name__)


def _gathered(tell: Callable[[int], tuple[str, Violation | None]], count: int, jobs: int) -> Told:
    told = Told()
    for ending, violation in spread(tell, range(count), jobs):
        told.stories += 1
        told.endings[ending] += 1
        if violation is not None:
            told.violations.append(violation)
    return told


def spread(do: Callable[[int], T], numbers: Sequence[int], jobs: int) -> list[T]:
    """``do`` each of the numbers, in several processes at once, in their order."""
    if jobs == 1:
        return [do(number) for number in numbers]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return list(pool.map(do, numbers, chunksize=_CHUNK))
