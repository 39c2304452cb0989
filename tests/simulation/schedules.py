"""Random schedules: seeded sequences of deeds on one world, with the invariants after each deed.

``python -m tests.simulation.schedules --seed S`` replays one and prints what was done;
``--count N --seed S --jobs J`` runs many and prints one JSON object.

Invariant: a schedule is the same for the same seed, whoever runs it, and beside which others.
"""

import argparse
import asyncio
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from random import Random

from tests.simulation import deeds, deeds_on_github
from tests.simulation.scene import Deed, Scene, bring_to_an_end, perform, scene
from tests.simulation.violation import Violation
from tests.simulation.virtual import VirtualLoop

FEWEST, MOST = 4, 10
"""Deeds of a schedule, besides how it begins and what follows at once."""

TRIES = 6
"""Deeds drawn for one place of a schedule, until one is possible."""

DEEDS: Mapping[str, tuple[Deed, int]] = {
    "tick": (deeds.tick, 16),
    "a window passes": (deeds.window_passes, 3),
    "cron": (deeds.cron, 4),
    "manual run": (deeds.manual, 4),
    "forced run": (deeds.forced, 2),
    "two at once": (deeds.two_at_once, 4),
    "step": (deeds.step, 6),
    "finish": (deeds.finish, 6),
    "kill": (deeds.kill, 4),
    "expire": (deeds.expire, 4),
    "wait": (deeds.wait, 5),
    "a day": (deeds.a_day, 2),
    "jump the clock": (deeds.jump, 1),
    "cut from the ledger": (deeds.cut, 4),
    "deliver": (deeds.deliver, 6),
    "redeliver": (deeds.redeliver, 2),
    "lose deliveries": (deeds.lose_deliveries, 1),
    "restart the ledger": (deeds.restart, 1),
    "ledger away": (deeds.down, 1),
    "wipe the ledger": (deeds.wipe, 1),
    "fail over": (deeds.fail_over, 4),
    "rotate the keys": (deeds.rotate_keys, 1),
    "open an issue": (deeds_on_github.open_issue, 2),
    "say /retriage": (deeds_on_github.say, 5),
    "retitle": (deeds_on_github.retitle, 2),
    "unlabel": (deeds_on_github.unlabel, 2),
    "label": (deeds_on_github.label, 1),
    "delete the comment": (deeds_on_github.delete_comment, 2),
    "edit the comment": (deeds_on_github.edit_comment, 2),
    "forge a marker": (deeds_on_github.forge, 2),
    "lock": (deeds_on_github.lock, 1),
    "close": (deeds_on_github.close, 1),
    "transfer": (deeds_on_github.transfer, 1),
    "rename": (deeds_on_github.rename, 1),
    "drop a label": (deeds_on_github.drop_label, 1),
    "change the policy": (deeds_on_github.change_policy, 3),
    "fault": (deeds_on_github.fault, 8),
    "lost reply": (deeds_on_github.lost_reply, 3),
    "GitHub away": (deeds_on_github.out_of_reach, 2),
    "limits": (deeds_on_github.limited, 2),
    "late request": (deeds_on_github.late, 3),
    "land": (deeds_on_github.land, 4),
    "lag": (deeds_on_github.lag, 4),
    "fresh views": (deeds_on_github.fresh, 1),
}
"""Every deed by its name, with how often it is drawn."""

OPENINGS: tuple[tuple[str, ...], ...] = (
    (),
    (),
    ("cron",),
    ("fault", "lag", "manual run"),
    ("lost reply", "lag", "manual run"),
    ("late request", "manual run", "a window passes", "land"),
    ("manual run", "say /retriage", "deliver"),
    ("manual run", "unlabel", "deliver", "say /retriage", "deliver"),
    ("manual run", "delete the comment", "say /retriage", "deliver"),
    ("manual run", "edit the comment", "say /retriage", "deliver"),
    ("manual run", "fault", "fail over", "finish"),
    ("drop a label", "manual run"),
)
"""How schedules begin: what is rare by the dice alone, and leads on to much."""

AFTER: Mapping[str, tuple[str, ...]] = {
    "open an issue": ("deliver",),
    "say /retriage": ("deliver", "two at once"),
    "retitle": ("say /retriage", "forced run"),
    "unlabel": ("deliver", "say /retriage"),
    "delete the comment": ("deliver", "say /retriage"),
    "edit the comment": ("say /retriage", "forced run"),
    "forge a marker": ("say /retriage",),
    "transfer": ("deliver", "finish"),
    "wipe the ledger": ("manual run", "finish", "step"),
    "fail over": ("manual run", "finish", "step"),
    "late request": ("manual run", "two at once"),
}
"""What often follows at once, one of these."""

_NAMES = list(DEEDS)
_WEIGHTS = [weight for _, weight in DEEDS.values()]


@dataclass
class Schedules:
    """What many schedules came to. ``seconds`` are on the wall, ``cpu_seconds`` of all processes;
    ``incidents`` by kind, ``statuses`` how often a run reached each."""

    schedules: int = 0
    deeds: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    incidents: dict[str, int] = field(default_factory=dict)
    violations: list[dict[str, object]] = field(default_factory=list)
    seconds: float = 0.0
    cpu_seconds: float = 0.0


def run_schedules(
    count: int, seed: int, *, jobs: int = 2, stop_at_first: bool = False
) -> Schedules:
    """Run so many schedules in so many processes. The seeds follow from ``seed`` alone."""
    began = time.monotonic()
    seeds = range(seed, seed + count)
    if jobs <= 1:
        parts = [run_seeds(seeds, stop_at_first=stop_at_first)]
    else:
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, mp_context=spawn) as pool:
            share = partial(run_seeds, stop_at_first=stop_at_first)
            parts = list(pool.map(share, [seeds[part::jobs] for part in range(jobs)]))
    whole = _together(parts)
    whole.seconds = round(time.monotonic() - began, 3)
    return whole


def run_seeds(seeds: Iterable[int], *, stop_at_first: bool = False) -> Schedules:
    """Run these, one after another, in this process."""
    began = time.process_time()
    done, statuses = Counter[str](), Counter[str]()
    incidents, whole = Counter[str](), Schedules()
    for seed in seeds:
        on, violation = run_schedule(seed)
        whole.schedules += 1
        done.update(on.counts)
        statuses.update(on.books.statuses)
        incidents.update(incidents_of(on))
        if violation is not None:
            found = {"seed": seed, "invariant": violation.invariant, "text": str(violation)}
            whole.violations.append(found)
            if stop_at_first:
                break
    whole.deeds, whole.statuses, whole.incidents = dict(done), dict(statuses), dict(incidents)
    whole.cpu_seconds = round(time.process_time() - began, 3)
    return whole


def incidents_of(on: Scene) -> Counter[str]:
    """The incidents that were told of, by kind."""
    told = [line.split() for line in on.w.lines if line.startswith("INCIDENT kind=")]
    return Counter(words[1].removeprefix("kind=") for words in told)


def _together(parts: Iterable[Schedules]) -> Schedules:
    whole = Schedules()
    tallies = {name: Counter[str]() for name in ("deeds", "statuses", "incidents")}
    for part in parts:
        whole.schedules += part.schedules
        whole.violations += part.violations
        whole.cpu_seconds = round(whole.cpu_seconds + part.cpu_seconds, 3)
        for name, tally in tallies.items():
            tally.update(getattr(part, name))
    for name, tally in tallies.items():
        setattr(whole, name, {key: tally[key] for key in sorted(tally)})
    whole.violations.sort(key=lambda found: str(found["seed"]).zfill(20))
    return whole


def run_schedule(seed: int) -> tuple[Scene, Violation | None]:
    """One schedule, to its end or to its first violation."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(_run(seed))


async def _run(seed: int) -> tuple[Scene, Violation | None]:
    dice = Random(seed)
    async with scene(dice) as on:
        try:
            for name in dice.choice(OPENINGS):
                await perform(on, name, DEEDS[name][0], dice)
            for _ in range(dice.randrange(FEWEST, MOST + 1)):
                await draw(on, dice)
            await bring_to_an_end(on)
        except Violation as violation:
            violation.seed = seed
            return on, violation
        return on, None


async def draw(on: Scene, dice: Random) -> None:
    """One deed by the dice: the first drawn that is possible now."""
    for name in dice.choices(_NAMES, _WEIGHTS, k=TRIES):
        if await perform(on, name, DEEDS[name][0], dice):
            await follow(on, name, dice)
            return


async def follow(on: Scene, name: str, dice: Random) -> None:
    """Often what is likely after that deed."""
    while name in AFTER and dice.random() < 0.6:
        name = dice.choice(AFTER[name])
        if not await perform(on, name, DEEDS[name][0], dice):
            return


def main(arguments: list[str] | None = None) -> int:
    """Replay one schedule, or run many. 1 where an invariant does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.schedules")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=0, help="0 replays the one of that seed")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args(arguments)
    if asked.count:
        found = run_schedules(asked.count, asked.seed, jobs=asked.jobs)
        sys.stdout.write(json.dumps(asdict(found), indent=1) + "\n")
        return 1 if found.violations else 0
    on, violation = run_schedule(asked.seed)
    told = [str(violation)] if violation else [f"seed {asked.seed}", *on.deeds, "all holds"]
    runs = [f"{key} {status}" for key, status in on.books.runs.items()]
    sys.stdout.write("\n".join([*told, *runs, *on.w.lines]) + "\n")
    return 1 if violation else 0


if __name__ == "__main__":
    raise SystemExit(main())
