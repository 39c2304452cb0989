"""The nightly review: what is made of the model's answer.

Invariant: nothing that the model wrote goes on unless it passed here. A finding that fails is held
with its reason; the others go on.
Invariant: what is new, still there or resolved is decided against the last review that the ledger
holds, never against what the session believes; how a review started changes nothing in that.
Invariant: a finding is not resolved because one review did not repeat it: the model must say so in
an answer that is continuous, its file must be gone, or two reviews in a row must not have seen it.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from triage.findings import (
    Finding,
    FindingState,
    HeldFinding,
    Link,
    Remembered,
    Review,
    ReviewInput,
    ReviewVerdict,
    Severity,
    Start,
)
from triage.identifiers import DedupeKey
from triage.matching import SAME_WORDS, Told, alike, matched, new_id
from triage.secret_words import reads_like_a_secret
from triage.snapshot import Snapshot
from triage.wording import REPEATS_A_VALUE, field_problem, text_problem

FINDINGS_LIMIT: Final = 50
SUMMARY_LIMIT: Final = 240
LAST_LINE: Final = 10_000_000
UNSEEN_LIMIT: Final = 2
"""Reviews in a row that do not tell a finding, until it is taken for resolved."""

RESOLVED_KEPT: Final = 20
"""Resolved findings that stay on the page, newest first."""

"""Its name is the model's own word, so it is not told."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class UnusableAnswerError(ValueError):
    """An answer of which nothing can be used: it is no review at all."""


Name = Annotated[str, StringConstraints(pattern=rf"^{_NAME.pattern}$")]


class _Answer(BaseModel):
    """A review as the model gives it; each finding is checked on its own."""

    model_config = ConfigDict(frozen=True)

    review_id: Name
    verdict: ReviewVerdict
    findings: tuple[Any, ...]
    previous_review_id: str = ""
    previous_finding_ids: tuple[str, ...] = ()
    resolved: tuple[str, ...] = ()


class _AnsweredFinding(BaseModel):
    """One finding as the model gives it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Name
    file: str
    line: Annotated[int, Field(strict=True, ge=1, le=LAST_LINE)]
    severity: Literal["low", "medium", "high"]
    summary: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=SUMMARY_LIMIT)
    ]


def make_review(
    answer: Mapping[str, Any],
    snapshot: Snapshot,
    files: Mapping[str, str],
    *,
    session_id: str,
    instructed: Sequence[str] = (),
    secrets: Collection[str] = (),
) -> Review:
    """Check an answer and compare it with the last review.

    ``files`` maps each path of the snapshot's checkout to a digest of its content, empty where none
    is known; ``session_id`` is of the session that answered; ``instructed`` are the files that
    speak to their reviewer, ``secrets`` words in the checkout that must not be said. Raises
    UnusableAnswerError for what is no review; never for a finding.
    """
    taken = _taken(snapshot)
    try:
        given = _Answer.model_validate(answer)
    except ValidationError as error:
        raise UnusableAnswerError(field_problem(error)) from error
    told, held, names = _checked(given.findings, files, secrets)
    link = link_of(
        taken,
        session_id=session_id,
        previous_review_id=given.previous_review_id,
        previous_finding_ids=frozenset(given.previous_finding_ids),
        current=len(told),
    )
    prior = taken.prior.findings if taken.prior else ()
    known = {item.told_as for item in prior} | {item.id for item in prior}
    trusted = link is not None and not link.broken
    findings = _compared(
        told,
        prior,
        snapshot,
        files,
        resolved=frozenset(given.resolved) if trusted else frozenset(),
        held=frozenset(item.told_as for item in held),
    )
    verdict, note = _verdict(given.verdict, findings, held, instructed)
    return Review(
        review_id=given.review_id,
        verdict=verdict,
        verdict_note=note,
        findings=findings,
        held=held,
        told=names,
        link=link,
        ignored=len(set(given.resolved) - known),
        instructed=tuple(instructed),
    )


def remembered(review: Review, snapshot: Snapshot) -> Remembered:
    """What the next review needs of this one: the ledger keeps its JSON."""
    taken = _taken(snapshot)
    kept = review.of(FindingState.NEW, FindingState.STILL, FindingState.UNSEEN)
    resolved = review.of(FindingState.RESOLVED)
    named = {item.id for item in (*kept, *resolved)}
    earlier = [item for item in _resolved_before(taken) if item.id not in named]
    resumed = taken.opening.start is Start.RESUMED and taken.prior is not None
    return Remembered(
        review_id=review.review_id,
        window=DedupeKey.parse(snapshot.dedupe_key).window,
        commit=snapshot.base_commit,
        verdict=review.verdict,
        findings=kept,
        resolved=(*resolved, *earlier)[:RESOLVED_KEPT],
        told=review.told,
        began=taken.prior.began if resumed and taken.prior else taken.tree,
        recall=review.link.share if review.link else None,
        broken=bool(review.link and review.link.broken),
    )


def _resolved_before(taken: ReviewInput) -> tuple[Finding, ...]:
    return taken.prior.resolved if taken.prior else ()


def to_recall(taken: ReviewInput) -> frozenset[str]:
    """The ids that an answer should echo: of a session that goes on, all that its last answer gave;
    of a new one that is given the last findings, those."""
    if taken.prior is None:
        return frozenset()
    if taken.opening.start is Start.RESUMED:
        return frozenset(taken.prior.told)
    return frozenset(item.told_as for item in given_again(taken.prior))


def given_again(prior: Remembered) -> tuple[Finding, ...]:
    """The findings of the last review that a new session is told, under the ids ``told_as``."""
    return tuple(item for item in prior.findings if item.state.is_open)


def link_of(
    taken: ReviewInput,
    *,
    session_id: str,
    previous_review_id: str,
    previous_finding_ids: frozenset[str],
    current: int,
) -> Link | None:
    """What the answer shows of the review before it; None where it was not told of any.

    Not every finding recalled is decay, which is watched and ends in a reset; none at all, a wrong
    review or session, and ids that never were break the link.
    """
    if taken.prior is None or taken.opening.start is Start.COLD:
        return None
    wanted, echoed = to_recall(taken), previous_finding_ids
    same = taken.session_id is not None and session_id == taken.session_id
    named = previous_review_id == taken.prior.review_id
    broken = []
    if not same and taken.opening.start is Start.RESUMED:
        broken.append("another session answered")
    if not named:
        broken.append("it names another review before it")
    if wanted and not wanted & echoed:
        broken.append("it recalls no finding")
    if strange := len(echoed - wanted):
        broken.append(f"it recalls {strange} findings that the last review had not")
    return Link(
        same_session=same,
        prior_review_id_echoed=named,
        recalled=len(wanted & echoed),
        prior=len(wanted),
        current=current,
        broken=tuple(broken),
    )


def _checked(
    findings: Sequence[Any], files: Mapping[str, str], secrets: Collection[str]
) -> tuple[list[Told], tuple[HeldFinding, ...], tuple[str, ...]]:
    """The findings that pass, those that do not, and every id that was given."""
    told: list[Told] = []
    held: list[HeldFinding] = []
    names: dict[str, None] = {}
    for count, item in enumerate(findings):
        name = _name_of(item, secrets)
        problem = f"more than {FINDINGS_LIMIT} findings" if count >= FINDINGS_LIMIT else None
        if name and name in names:
            problem = "its id stands there twice"
        outcome = problem or _finding(item, files, secrets)
        if isinstance(outcome, Told):
            told.append(outcome)
        else:
            held.append(HeldFinding(told_as=name, reason=outcome))
        if name:
            names[name] = None
    return told, tuple(held), tuple(names)


def _name_of(item: Any, secrets: Collection[str]) -> str:
    """The id of a finding, unless it cannot be shown."""
    name = item.get("id") if isinstance(item, Mapping) else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return ""
    said = reads_like_a_secret(name) or any(word in name for word in secrets)
    return "" if said else name


def _finding(item: Any, files: Mapping[str, str], secrets: Collection[str]) -> Told | str:
    """A finding that may be shown, or what is wrong with it."""
    try:
        given = _AnsweredFinding.model_validate(item)
    except ValidationError as error:
        return field_problem(error)
    file = given.file.removeprefix("./")
    if file not in files:
        return "its file is not in the snapshot"
    if problem := text_problem(given.summary):
        return problem
    if any(word in given.summary for word in secrets):
        return REPEATS_A_VALUE
    if "\n" in given.summary:
        return "the summary is longer than one line"
    return Told(given.id, file, given.line, Severity(given.severity), given.summary)


def _compared(
    told: Sequence[Told],
    prior: Sequence[Finding],
    snapshot: Snapshot,
    files: Mapping[str, str],
    *,
    resolved: frozenset[str],
    held: frozenset[str],
) -> tuple[Finding, ...]:
    renames = _taken(snapshot).renames
    gone = _said_resolved(prior, resolved)
    pairs = matched(told, prior, renames, apart=gone)
    ids = {old.id for old in prior}
    findings = []
    for here, new in enumerate(told):
        if here in pairs:
            findings.append(_still(new, prior[pairs[here]], files))
        else:
            findings.append(_new(new, snapshot, files, ids))
            ids.add(findings[-1].id)
    seen = frozenset(pairs.values())
    for there, old in enumerate(prior):
        if there not in seen:
            where = renames.get(old.file, old.file)
            findings.append(
                _missing(
                    old.model_copy(update={"file": where}),
                    exists=where in files,
                    said=there in gone,
                    held=old.told_as in held,
                )
            )
    return tuple(sorted(findings, key=_order))


def _said_resolved(prior: Sequence[Finding], resolved: Collection[str]) -> frozenset[int]:
    """Which of ``prior`` an answer calls resolved. Of two that were told under one name, in one
    review after the other, it is the one that was told last."""
    newest = {old.told_as for old in prior if old.state.is_open}
    return frozenset(
        n
        for n, old in enumerate(prior)
        if old.id in resolved
        or (old.told_as in resolved and (old.state.is_open or old.told_as not in newest))
    )


def _new(new: Told, snapshot: Snapshot, files: Mapping[str, str], taken: set[str]) -> Finding:
    return Finding(
        id=new_id(new, taken),
        file=new.file,
        line=new.line,
        severity=new.severity,
        summary=new.summary,
        state=FindingState.NEW,
        told_as=new.told_as,
        since=DedupeKey.parse(snapshot.dedupe_key).window,
        since_commit=snapshot.base_commit,
        file_digest=files[new.file],
    )


def _still(new: Told, old: Finding, files: Mapping[str, str]) -> Finding:
    """The finding as it is now. Its words stay while they say the same, or its file does: a page
    that only rephrases itself every night would be read by nobody."""
    unchanged = bool(old.file_digest) and files[new.file] == old.file_digest
    same = unchanged or alike(new.summary, old.summary) >= SAME_WORDS
    return old.model_copy(
        update={
            "file": new.file,
            "line": new.line,
            "severity": new.severity,
            "summary": old.summary if same else new.summary,
            "state": FindingState.STILL,
            "told_as": new.told_as,
            "file_digest": files[new.file],
            "unseen": 0,
        }
    )


def _missing(old: Finding, *, exists: bool, said: bool, held: bool) -> Finding:
    """A finding that was not told: resolved, or not seen this time. One that was told and ``held``
    was seen after all: it does not count."""
    unseen = old.unseen + (not held)
    note = ""
    if not exists:
        note = "its file is gone"
    elif said:
        note = "the review says so"
    elif unseen >= UNSEEN_LIMIT:
        note = f"not seen in {unseen} reviews in a row"
    state = FindingState.RESOLVED if note else FindingState.UNSEEN
    return old.model_copy(update={"state": state, "unseen": unseen, "note": note})


def _order(finding: Finding) -> tuple[int, str, int, str]:
    return (list(Severity).index(finding.severity), finding.file, finding.line, finding.id)


def _verdict(
    given: ReviewVerdict,
    findings: Sequence[Finding],
    held: Sequence[HeldFinding],
    instructed: Sequence[str],
) -> tuple[ReviewVerdict, str]:
    """The verdict that fits the findings, and what was corrected. It is only ever made graver."""
    grave = [item for item in findings if item.state.is_open and item.severity is Severity.HIGH]
    if given is ReviewVerdict.OK and grave:
        return ReviewVerdict.CONCERNS, f"The model said ok beside {len(grave)} of high severity."
    if given is ReviewVerdict.OK and instructed:
        return ReviewVerdict.CONCERNS, "The model said ok, but was spoken to by what it reviewed."
    if given is ReviewVerdict.OK or held or instructed:
        return given, ""
    if not any(item.state.is_open for item in findings):
        return given, "The model has concerns, but named none."
    return given, ""


def _taken(snapshot: Snapshot) -> ReviewInput:
    if snapshot.review is None:
        raise ValueError(f"the snapshot of {snapshot.dedupe_key} is none of a review")
    return snapshot.review
