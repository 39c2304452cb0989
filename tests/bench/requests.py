"""Requests to GitHub for one window, per issue: by how many issues it has.

The floor is what such a bot cannot do without: two writes an issue, and reads by the hundred. All
requests count, those for tokens too. The first window of a ledger that was made with its App;
comment mode, so each issue gets a comment and a label; GitHub over HTTP, sessions of the real SDK
with the scripted model. The write budget is so fast that nothing waits for it: a run that it keeps
waiting reads GitHub's present state again each minute, and once more at each return.
"""

import time
from collections import Counter
from typing import Final

import anyio

from tests.bench import Options
from tests.bench.stage import (
    LARGE_POLICY,
    OWNER,
    add_repository,
    install,
    made_up_issues,
    quiet,
    window,
    wiring,
)
from tests.processes.fleet import Fleet, fleet
from worker.ports import Place

FLOOR: Final = {1: 6.0, 10: 2.4, 100: 2.04, 1000: 2.03}


def measure(options: Options) -> dict[str, object]:
    """Windows of 1, 10, 100 and 1,000 issues."""
    return {str(count): _window(count) for count in FLOOR if count <= 10 or not options.quick}


def _window(issues: int) -> dict[str, object]:
    with fleet([]) as run, quiet():
        id_ = add_repository(run, "large", made_up_issues(issues), LARGE_POLICY)
        place = Place(id_, f"{OWNER}/large", install(run, ["large"]))
        began = time.monotonic()
        anyio.run(_run, run, place)
        seconds = time.monotonic() - began
        sent = Counter(request.method for request in run.github.requests())
        per_issue = sent.total() / issues
        return {
            "requests": sent.total(),
            "by_method": dict(sent),
            "per_issue": round(per_issue, 3),
            "floor": FLOOR[issues],
            "over_floor": round(per_issue / FLOOR[issues], 3),
            "sessions": run.model.counts["sessions"],
            "seconds": round(seconds, 1),
        }


async def _run(run: Fleet, place: Place) -> None:
    made = wiring(run)
    async with made.ledger() as ledger, made.ports(ledger) as ports:
        await window(place, ports)
