"""The crash matrix, cell by cell, for kill -9, lost replies, 5xx and duplicate triggers."""

import asyncio

import pytest

from sandbox.github.faults import GET_COMMENT, POST_COMMENT, POST_ISSUE, POST_LABELS
from tests.simulation.invariants import check
from tests.simulation.matrix import (
    APPLIED_5XX,
    BOUNDARIES,
    KILLED,
    LOST,
    Boundary,
    boundary,
)
from tests.simulation.world import Faults, Killed, World, world
from triage.classification import Facts, classify
from triage.contract import RunRecord, Status
from worker.ports import LedgerUnavailableError
from worker.stages.settling import RunReport

pytestmark = pytest.mark.anyio

ROWS = [str(row) for row in BOUNDARIES]


def test_every_boundary_has_its_cells() -> None:
    """No row of the table is without a cell for a kill."""
    assert list(KILLED) == ROWS
    assert set(LOST) | {"3 model answered"} == set(ROWS)


@pytest.mark.parametrize("name", ROWS)
async def test_kill(name: str) -> None:
    """The worker dies at the boundary. Its successor waits for the lease, and for the lock delay
    where something was claimed; then it goes on from what was saved, and each effect is there
    once."""
    status, action = KILLED[name]
    row = boundary(name)
    async with world(["Bug: a"]) as w:
        faults = Faults()
        faults.kill_at(row.point, row.when)
        with pytest.raises(Killed):
            await w.run(faults=faults)
        runs = await w.runs()
        assert await _as_classified(w, runs) is status
        asked = len(w.agent.asked)
        await _early(w, action)
        await w.lapse()
        last = await _until_settled(w)
        assert last.status is Status.COMPLETED
        assert len(w.agent.asked) == asked + (1 if action.endswith((" n", " m")) else 0)
        await _and_two_more(w)


async def _as_classified(w: World, runs: list[RunRecord]) -> Status:
    """The status that the evidence left behind amounts to."""
    if not runs:
        return Status.FAILED_BEFORE_WRITE
    run = runs[0]
    if run.status.final:
        return run.status
    planned = await w.ledger.runs.plan(run.inputs.dedupe_key) is not None and bool(run.effects)
    facts = Facts(effects=run.effects, now=w.clock.now(), planned=planned)
    found = classify(facts)
    # Its effects are all settled, and yet it is not over: the summary is still to come.
    return Status.FAILED_AFTER_WRITE if found is Status.COMPLETED else found


async def _early(w: World, action: str) -> None:
    """While the lease lives, and during the lock delay, a second worker is refused."""
    if action == "z":
        return
    assert (await w.run(owner="worker-2")).outcome == "refused"
    if action.startswith("w"):
        await asyncio.sleep(w.timing.lease.total_seconds())
        refused = await w.run(owner="worker-2")
        assert (refused.outcome, refused.reason) == ("refused", "the lock delay is running")


async def _until_settled(w: World) -> RunReport:
    """Ask again as the clock would, until the run is over: a bounded number of times (I7)."""
    for _ in range(8):
        report = await w.run(owner="worker-2")
        if report.status is Status.COMPLETED:
            return report
        await check(w)
        await asyncio.sleep(w.timing.absence_window.total_seconds() / 4)
    return report


async def _and_two_more(w: World) -> None:
    """The invariants hold, and two more runs of the window change nothing."""
    await check(w)
    before = w.github.state()["repositories"]
    for _ in range(2):
        again = await w.run()
        assert (again.outcome, again.drift) == ("reused", ())
        await check(w)
    assert w.github.state()["repositories"] == before


@pytest.mark.parametrize("name", list(LOST))
async def test_lost_reply(name: str) -> None:
    """The boundary is passed and its reply never comes. The ledger is asked again, since asking
    twice is harmless; GitHub is not: what was sent is read back by the next run."""
    status, _ = LOST[name]
    row = boundary(name)
    async with world(["Bug: a"]) as w:
        report = await w.run(faults=_losing(row, w))
        assert report.status is status
        await check(w)
        if status is not Status.COMPLETED:
            assert (await w.run()).status is Status.COMPLETED
        await _and_two_more(w)


def _losing(row: Boundary, w: World) -> Faults:
    """The reply at a boundary is lost once: GitHub's by its connection, the ledger's at its
    port."""
    faults = Faults()
    at_github = {5: POST_COMMENT, 7: POST_LABELS, 9: GET_COMMENT, 11: POST_ISSUE}
    if row.number in at_github:
        w.github.fail(at_github[row.number], "apply then drop")
    elif row.point == "after effects.claim":
        faults.unsure_at(row.point, row.when)
    else:
        faults.lose_at(row.point, LedgerUnavailableError("the reply was lost"), row.when)
    return faults


@pytest.mark.parametrize("name", list(APPLIED_5XX))
async def test_applied_5xx(name: str) -> None:
    """GitHub applies the write and answers 502: nobody can tell that from a refusal, so the run is
    failed-after-write until a read shows it."""
    status, _ = APPLIED_5XX[name]
    where = {5: POST_COMMENT, 7: POST_LABELS, 11: POST_ISSUE}[boundary(name).number]
    async with world(["Bug: a"]) as w:
        w.github.fail(where, "apply then 502")
        assert (await w.run()).status is status
        await check(w)
        assert (await w.run()).status is Status.COMPLETED
        assert len([r for r in w.github.requests() if r.fault]) == 1
        await _and_two_more(w)


@pytest.mark.parametrize("name", ROWS)
async def test_duplicate_trigger(name: str) -> None:
    """At every boundary the same window is triggered again: the second worker is refused, or
    reuses what is done."""
    row = boundary(name)
    async with world(["Bug: a"]) as w:
        seconds: list[RunReport] = []

        async def again() -> None:
            seconds.append(await w.run(owner="worker-2"))

        faults = Faults()
        faults.at(row.point, again, row.when)
        first = await w.run(faults=faults)
        assert first.status is Status.COMPLETED
        assert [second.outcome for second in seconds] == [
            "reused" if row.number == 13 else "refused"
        ]
        await _and_two_more(w)
