"""What a review and a watch may write: the one issue of the first, and nothing of the second."""

from datetime import UTC, datetime
from typing import Any

import pytest

from ledger.records import Claim, Lease
from triage.contract import RunEffect, RunInputs
from triage.identifiers import EffectKind, Family, Mode, effect_key
from triage.policy import AnyJobPolicy, Resource, ResourceKind, ReviewPolicy, WatchPolicy
from worker.github.scope import OutOfScopeError, check_place, check_reaction, check_run
from worker.ports import Place

REPOSITORY = 1296269
PLACE = Place(REPOSITORY, "acme/api", "5")
REVIEW = f"nightly-repo-review:R{REPOSITORY}:2026-09-16:p3f2a91c0"
WATCH = f"resource-watch:R{REPOSITORY}:2026-09-16:p3f2a91c0"
WATCHES = WatchPolicy(
    resources=(Resource(name="a", url="https://example.com/", kind=ResourceKind.PAGE),)
)


def inputs(key: str, policy: AnyJobPolicy, mode: Mode) -> RunInputs:
    """A run's inputs."""
    return RunInputs(
        dedupe_key=key,
        repository_id=REPOSITORY,
        repository="acme/api",
        installation="5",
        policy=policy,
        mode=mode,
        by="cron",
        due_at=datetime.now(UTC),
    )


def claim(kind: EffectKind, run: str, family: Family = Family.REVIEW, **changes: Any) -> Claim:
    """The right to send one effect."""
    key = effect_key(REPOSITORY, 0, family, kind, changes.pop("window", None))
    return Claim(
        lease=Lease(run, "worker-1", "t" * 32, 7, "epoch", datetime.now(UTC)),
        effect=RunEffect(effect_key=key, kind=kind, issue=0, issue_id=0, **changes),
        operation="op",
        deadline=0.0,
    )


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("kind", EffectKind)
def test_a_watch_writes_nothing_whatever_its_mode(mode: Mode, kind: EffectKind) -> None:
    """Neither by a claim nor a reaction: it is refused at the writer, not by good will."""
    run = inputs(WATCH, WATCHES, mode)
    with pytest.raises(OutOfScopeError, match="a watch writes nothing"):
        check_run(run, claim(kind, WATCH, Family.WATCH), ("bug",))
    with pytest.raises(OutOfScopeError, match="a watch sets no reaction"):
        check_reaction(run)


@pytest.mark.parametrize("kind", EffectKind)
def test_a_review_writes_its_issue_alone(kind: EffectKind) -> None:
    """And takes its own duplicates away; in observe mode neither."""
    allowed = kind in (EffectKind.SUMMARY, EffectKind.REMOVAL)
    writing, observing = (
        inputs(REVIEW, ReviewPolicy(), mode) for mode in (Mode.COMMENT, Mode.OBSERVE)
    )
    if allowed:
        check_run(writing, claim(kind, REVIEW))
    else:
        with pytest.raises(OutOfScopeError, match="a review keeps one issue"):
            check_run(writing, claim(kind, REVIEW))
    with pytest.raises(OutOfScopeError, match="observe writes nothing"):
        check_run(observing, claim(kind, REVIEW))
    for run in (writing, observing):
        with pytest.raises(OutOfScopeError, match="sets no reaction"):
            check_reaction(run)
    check_reaction(writing.model_copy(update={"command_comment": 5}))


def test_a_reviews_issue_is_none_of_the_triages_summaries() -> None:
    """A claim for one is no claim for the other, in one repository or another."""
    right = claim(EffectKind.SUMMARY, REVIEW)
    check_place(right, PLACE)
    with pytest.raises(OutOfScopeError):
        check_place(right, Place(REPOSITORY + 1, "acme/web", "5"))
    with pytest.raises(OutOfScopeError):
        check_place(claim(EffectKind.SUMMARY, REVIEW, Family.TRIAGE), PLACE)
    with pytest.raises(OutOfScopeError, match="the claim is another run's"):
        check_run(inputs(REVIEW, ReviewPolicy(), Mode.COMMENT), claim(EffectKind.SUMMARY, WATCH))
