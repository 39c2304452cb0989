"""I1 to I7, checked on what stands on GitHub and in the ledger."""

from sandbox.github.requests import Logged
from tests.simulation.world import BOT, REPOSITORY, World
from triage.contract import Evidence, RunRecord, Status
from triage.identifiers import EffectKind

_WRITES = ("POST", "PATCH", "PUT", "DELETE")


async def check(world: World, *, incidents: int = 0) -> None:
    """Every invariant that can be seen from outside, at any moment between attempts."""
    runs = await world.runs()
    markers = world.live_markers()
    assert len(markers) == len(set(markers)), "I1: two live markers of one effect"
    _claimed_before_written(world, runs)
    for run in runs:
        if run.status is Status.COMPLETED:
            _all_seen(world, run)
        if run.status is Status.FAILED_BEFORE_WRITE:
            keys = {effect.effect_key for effect in run.effects}
            assert not keys & set(markers), "I4: before-write, and something is on GitHub"
    _in_scope(world)
    counted = (await world.ledger.counters.snapshot()).incidents
    assert sum(counted.values()) == incidents, counted


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


def _all_seen(world: World, run: RunRecord) -> None:
    """I3: completed means that every effect is there, or was skipped with a reason."""
    for effect in run.effects:
        if effect.evidence is Evidence.SKIPPED:
            assert effect.reason, "I3: skipped without a reason"
            continue
        assert effect.evidence is Evidence.CONFIRMED, f"I3: {effect}"
        if effect.kind is EffectKind.LABELS:
            assert set(effect.labels) <= set(world.github.labels(REPOSITORY, effect.issue)), "I3"
        elif effect.kind in (EffectKind.COMMENT, EffectKind.SUMMARY):
            assert effect.effect_key in world.live_markers(), "I3: confirmed, and not there"


def _in_scope(world: World) -> None:
    """I5: comments, labels of the allow-list, and the summary: nothing else was ever written."""
    for request in writes(world):
        tail = request.canonical.removeprefix(f"/repos/{REPOSITORY}/issues")
        parts = [part for part in tail.split("/") if part]
        own = (
            not parts
            or (len(parts) == 1 and request.method == "PATCH")
            or parts[-1] in ("comments", "labels")
            or parts[0] == "comments"
            or (len(parts) == 3 and parts[1] == "labels" and request.method == "DELETE")
        )
        assert own, f"I5: {request.method} {request.canonical}"
