"""What a claim allows to be sent, and what a run's write scope does.

A violation is a bug of ours, never an outcome: it raises before anything is sent.
"""

from collections.abc import Sequence

from ledger.records import Claim
from triage.contract import RunInputs, write_scope
from triage.identifiers import (
    FAMILY,
    DedupeKey,
    EffectKind,
    Family,
    MalformedKeyError,
    Mode,
    effect_key,
)
from triage.marker import intended_digest
from triage.policy import ReviewPolicy, Summary, WatchPolicy
from worker.ports import Place


class OutOfScopeError(Exception):
    """A write that its claim or its run does not allow. Nothing was sent."""


def check_place(claim: Claim, place: Place) -> None:
    """The claimed effect is of this repository: its key is made of that."""
    _require(
        claim.effect.effect_key in _keys(claim, place),
        f"the claimed {claim.effect.kind} is not of repository {place.id}",
    )


def _keys(claim: Claim, place: Place) -> set[str]:
    """The keys that the claimed effect may have in this repository."""
    effect, family = claim.effect, Family.TRIAGE
    match effect.kind:
        case EffectKind.SUMMARY:
            run = _run(claim)
            own, windows = FAMILY[run.job], (run.window, None)
            return {effect_key(place.id, 0, own, effect.kind, each) for each in windows}
        case EffectKind.REMOVAL:
            return {effect_key(place.id, effect.github_id or 0, family, effect.kind)}
        case _:
            return {effect_key(place.id, effect.issue_id, family, effect.kind)}


def _run(claim: Claim) -> DedupeKey:
    try:
        return DedupeKey.parse(claim.lease.dedupe_key)
    except MalformedKeyError as error:
        raise OutOfScopeError("only a run keeps a summary") from error


def check_issue(claim: Claim, kind: EffectKind, number: int) -> None:
    """The claimed effect is of this kind and on this issue."""
    check_kind(claim, kind)
    effect = claim.effect
    _require(effect.issue == number, f"claimed on issue {effect.issue}, not {number}")


def check_kind(claim: Claim, kind: EffectKind) -> None:
    """The claimed effect is of this kind."""
    _require(claim.effect.kind is kind, f"claimed is a {claim.effect.kind}, not a {kind}")


def check_own(claim: Claim, github_id: int) -> None:
    """The request goes to the comment that is known as the effect's own."""
    known = claim.effect.github_id
    _require(known == github_id, f"the effect's own is {known}, not {github_id}")


def check_body(claim: Claim, body: str) -> None:
    """The body bears the marker of the claimed effect and of the intended digest."""
    effect = claim.effect
    try:
        digest = intended_digest(body)
    except ValueError as error:
        raise OutOfScopeError("the body bears no marker") from error
    named = f" effect={effect.effect_key} " in body.partition("\n")[0]
    _require(named, "the body's marker names another effect")
    _require(digest == effect.digest, "the body is not the one that was claimed")


def check_unmarked(body: str) -> None:
    """A duplicate loses its marker."""
    try:
        intended_digest(body)
    except ValueError:
        return
    raise OutOfScopeError("a duplicate must lose its marker")


def check_labels(claim: Claim, labels: Sequence[str]) -> None:
    """Only claimed labels, and none whose name would make another address of it."""
    strange = [name for name in labels if name not in claim.effect.labels]
    _require(bool(labels) and not strange, f"claimed are {claim.effect.labels}, not {labels}")
    # ``DELETE …/labels/.`` would be read as ``DELETE …/labels``: all of them.
    _require(not {"", ".", ".."}.intersection(labels), "a label's name is an address of its own")


def run_kind(inputs: RunInputs) -> str:
    """What keeps a run from writing, in a word: that it is a watch, or else its mode."""
    return "a watch" if isinstance(inputs.policy, WatchPolicy) else str(inputs.mode)


def check_reaction(inputs: RunInputs) -> None:
    """The run may react."""
    _require("reactions" in write_scope(inputs), f"{run_kind(inputs)} sets no reaction")


def check_run(inputs: RunInputs, claim: Claim, labels: Sequence[str] = ()) -> None:
    """The run's own write scope, as ``triage.contract.write_scope`` words it."""
    effect = claim.effect
    _require(bool(write_scope(inputs)), f"{run_kind(inputs)} writes nothing")
    if effect.kind is EffectKind.REMOVAL:
        return  # an own duplicate; its claim is not a run's
    _require(claim.lease.dedupe_key == inputs.dedupe_key, "the claim is another run's")
    if isinstance(inputs.policy, ReviewPolicy):
        _require(effect.kind is EffectKind.SUMMARY, "a review keeps one issue")
        return
    strange = [name for name in labels if name not in inputs.triage.labels]
    _require(not strange, f"the policy has no label {strange}")
    if effect.kind is EffectKind.SUMMARY:
        whole = inputs.target_issue is None and inputs.triage.summary is not Summary.OFF
        _require(whole, "the run keeps no summary")
        return
    if effect.kind is EffectKind.COMMENT:
        _require(inputs.mode is Mode.COMMENT, f"{inputs.mode} writes no comment")
    target = inputs.target_issue
    _require(target is None or target == effect.issue, f"the run is of issue {target}")


def _require(allowed: bool, otherwise: str) -> None:
    if not allowed:
        raise OutOfScopeError(otherwise)
