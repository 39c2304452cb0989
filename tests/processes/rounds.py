"""Rounds with real processes: one fault in each, at a boundary of a run, and I1 to I7 after it.

    python -m tests.processes.rounds --count 200 --seed 1
    python -m tests.processes.rounds --seed 1 --round 17     # one of them again, and what was said

A round costs about two seconds of CPU, and waits for most of its time: a lease and a lock delay
must lapse, an absence be proved. So several are played at once, each with a server, a GitHub and a
model of its own, so that no fault of one reaches another. Workers are forked from a nursery that
has imported the program (``nursery``), which halves what a round costs; receiver and clock are
called in this process (``stage``). All else is as in production.
"""

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tests.processes.faults import Planned, plan
from tests.processes.nursery import Nursery
from tests.processes.round import Round, play

JOBS = 8
"""Rounds at once: more keep two cores busy, and each other waiting."""

TEST_TIMEOUT_SECONDS = 1800
"""Of a test that plays some: each thing that is waited for in a round has a bound of its own."""


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that did not hold: which round to play again, and what stood there."""

    seed: int
    number: int
    invariant: str
    stood: str
    said: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.stood}\n    {self.replay}\n{self.said}"

    @property
    def replay(self) -> str:
        """The command that plays it again."""
        return f"python -m tests.processes.rounds --seed {self.seed} --round {self.number}"


@dataclass(frozen=True, slots=True)
class Rounds:
    """What came of many. ``incidents`` were all allowed: others are violations. ``reviews``: runs
    that a person must decide. ``seconds`` of wall time."""

    rounds: tuple[Round, ...]
    seconds: float

    @property
    def count(self) -> int:
        """How many were played."""
        return len(self.rounds)

    @property
    def by_kind(self) -> dict[str, int]:
        """How many of each kind of fault."""
        return _counted(str(item.planned.kind) for item in self.rounds)

    @property
    def by_boundary(self) -> dict[str, int]:
        """How many at each boundary."""
        return _counted(item.planned.place for item in self.rounds)

    @property
    def violations(self) -> list[Violation]:
        """Every invariant that did not hold."""
        return [
            Violation(item.planned.seed, item.planned.number, *_split(what), item.said)
            for item in self.rounds
            for what in item.violations
        ]

    @property
    def incidents(self) -> int:
        """Duplicates that were counted and converged."""
        return sum(item.incidents for item in self.rounds)

    @property
    def orphans(self) -> int:
        """Processes that were left."""
        return sum(item.orphans for item in self.rounds)

    @property
    def reviews(self) -> int:
        """Runs that ended in needs-review."""
        return sum(item.reviews for item in self.rounds)


def run_rounds(count: int, seed: int, *, jobs: int = JOBS, first: int = 0) -> Rounds:
    """Play the rounds ``first`` to ``first + count - 1`` of a seed, ``jobs`` at once."""
    return run_planned([plan(seed, number) for number in range(first, first + count)], jobs=jobs)


def run_planned(rounds: Sequence[Planned], *, jobs: int = JOBS) -> Rounds:
    """Play these rounds, ``jobs`` at once."""
    return asyncio.run(_run(rounds, jobs))


async def _run(rounds: Sequence[Planned], jobs: int) -> Rounds:
    began, slots = time.monotonic(), asyncio.Semaphore(jobs)
    with Nursery() as nursery:

        async def one(planned: Planned) -> Round:
            async with slots:
                return await play(planned, nursery)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(planned)) for planned in rounds]
    return Rounds(tuple(task.result() for task in tasks), time.monotonic() - began)


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def _split(what: str) -> tuple[str, str]:
    """The name of the invariant, and what stood there."""
    name, _, stood = what.partition(": ")
    return (name, stood) if stood else ("process", what)


def main() -> int:
    """Play rounds, or one again. 0 where every invariant held."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--round", type=int, dest="number")
    given = parser.parse_args()
    if given.number is not None:
        return _replay(given.seed, given.number)
    done = run_rounds(given.count, given.seed, jobs=given.jobs)
    for item in done.rounds:
        _say(f"{item.seconds:6.1f} s  {item.attempts} attempts  {item.planned}")
    for kind in (done.by_kind, done.by_boundary):
        _say("".join(f"\n{number:5} {name}" for name, number in kind.items()))
    _say(
        f"\n{done.count} rounds, {done.incidents} incidents, {done.orphans} orphans, "
        f"{done.reviews} reviews, {len(done.violations)} violations, {done.seconds:.0f} s"
    )
    for violation in done.violations:
        _say(str(replace(violation, said="")))
    return 1 if done.violations else 0


def _replay(seed: int, number: int) -> int:
    planned = plan(seed, number)
    _say(str(planned))

    async def again() -> Round:
        with Nursery() as nursery:
            return await play(planned, nursery, keep_log=True)

    done = asyncio.run(again())
    _say(done.said)
    _say(f"{done.attempts} attempts, {done.incidents} incidents, {done.orphans} orphans")
    for what in done.violations:
        _say(f"VIOLATED {what}")
    return 1 if done.violations else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
