"""I1 to I7, checked on what stands on GitHub and in the ledger."""

import re

from sandbox.github.requests import Logged
from tests.simulation.reviews import check_reviews
from tests.simulation.world import BOT, REPOSITORY, World
from triage.contract import Evidence, RunRecord, Status
from triage.identifiers import EffectKind, JobKey

_WRITES = ("POST", "PATCH", "PUT", "DELETE")
_ISSUES = re.compile(r"/repos/[^/]+/[^/]+/issues")


async def check(
    world: World, *, incidents: int = 0, undone: bool = False, forgotten: bool = False
) -> None:
    """Every invariant that can be seen from outside, at any moment between attempts.

    ``undone``: people took something away after a run had confirmed it, which stays its evidence.
    ``forgotten``: the ledger was lost, and with it the claims of earlier writes.
    """
    runs = await world.runs()
    markers = world.live_markers()
    assert len(markers) == len(set(markers)), "I1: two live markers of one effect"
    for issue in world.github.issues(REPOSITORY):
        assert len(world.bot_comments(issue.number)) <= 1, f"I1: two comments on {issue.number}"
    if not forgotten:
        _claimed_before_written(world, runs)
    for run in runs:
        if run.status is Status.COMPLETED:
            _all_seen(world, run, still_there=not undone)
        if run.status is Status.FAILED_BEFORE_WRITE:
            own = {m.effect_key for m in world.markers() if m.run == run.inputs.dedupe_key}
            assert not own, "I4: before-write, and something is on GitHub"
    _in_scope(world)
    if world.job is JobKey.REVIEW:
        await check_reviews(world, incidents=incidents, forgotten=forgotten)
    counted = (await world.ledger.counters.snapshot()).incidents
    assert sum(counted.values()) == incidents, counted


async def check_ended(world: World) -> None:
    """I7: every run has ended, or waits for a person."""
    for run in await world.runs():
        ended = run.status.final or run.status is Status.NEEDS_REVIEW
        assert ended, f"I7: {run.inputs.dedupe_key} is {run.status}"


async def nothing_more(
    world: World, *, incidents: int = 0, undone: bool = False, forgotten: bool = False
) -> None:
    """The invariants hold; the clock, and a person who asks for the window again, change nothing on
    GitHub."""
    before = world.github.state()["repositories"]
    for again in (world.window, world.run, world.settle):
        await check(world, incidents=incidents, undone=undone, forgotten=forgotten)
        await again()
        assert world.github.state()["repositories"] == before


def writes(world: World) -> list[Logged]:
    """The bot's writes that GitHub applied, reactions apart."""
    return [
        request
        for request in world.github.requests(applied=True)
        if request.method in _WRITES
        and request.who == BOT
        and not request.canonical.endswith("/reactions")
    ]


def _claimed_before_written(world: World, runs: list[RunRecord]) -> None:
    """I2: the ledger counts at least as many sends as GitHub applied writes."""
    sends = sum(effect.sends for run in runs for effect in run.effects)
    assert len(writes(world)) <= sends, "I2: a write without a claim"


def _all_seen(world: World, run: RunRecord, *, still_there: bool) -> None:
    """I3: completed means that every effect is there, or was skipped with a reason."""
    for effect in run.effects:
        if effect.evidence is Evidence.SKIPPED:
            assert effect.reason, "I3: skipped without a reason"
            continue
        assert effect.evidence is Evidence.CONFIRMED, f"I3: {effect}"
        if not still_there:
            continue
        if effect.kind is EffectKind.LABELS:
            assert set(effect.labels) <= set(world.github.labels(REPOSITORY, effect.issue)), "I3"
        elif effect.kind in (EffectKind.COMMENT, EffectKind.SUMMARY):
            assert effect.effect_key in world.live_markers(), "I3: confirmed, and not there"


def _in_scope(world: World) -> None:
    """I5: comments, labels of the allow-list, and the summary: nothing else was ever written."""
    for request in writes(world):
        tail = _ISSUES.sub("", request.canonical, count=1)
        parts = [part for part in tail.split("/") if part]
        own = (
            not parts
            or (len(parts) == 1 and request.method == "PATCH")
            or parts[-1] in ("comments", "labels")
            or parts[0] == "comments"
            or (len(parts) == 3 and parts[1] == "labels" and request.method == "DELETE")
        )
        assert own, f"I5: {request.method} {request.canonical}"
