"""Plans: what the model decided, checked again by us, frozen before the first effect.

Invariant: nothing that the model wrote reaches GitHub unless it passed here. A decision that fails
is *held* with its reason; the others go on.
Invariant: of an issue whose text gives instructions, only what stands without them goes on.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from triage.documents import Watch
from triage.findings import Review
from triage.policy import JobPolicy
from triage.snapshot import Snapshot, SnapshotIssue
from triage.wording import REPEATS_A_VALUE, field_problem, text_problem

VERDICT_LIMIT = 240
QUOTE_LIMIT = 200
EVIDENCE_LIMIT = 5
CONSIDERED_LIMIT = 3
COMPONENT_LIMIT = 80
FILES_LIMIT = 5


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Evidence(_Frozen):
    """Why a label fits: words of the issue."""

    label: str
    quote: str = Field(max_length=QUOTE_LIMIT)


class Considered(_Frozen):
    """A label that was weighed and not applied."""

    label: str
    reason: str = Field(max_length=QUOTE_LIMIT)


class Answer(_Frozen):
    """One decision as the model gives it; ``component`` and ``files`` where it may read code."""

    number: int
    labels: tuple[str, ...]
    confidence: float = Field(ge=0, le=1)
    verdict: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=VERDICT_LIMIT)
    ]
    evidence: tuple[Evidence, ...] = Field(default=(), max_length=EVIDENCE_LIMIT)
    considered: tuple[Considered, ...] = Field(default=(), max_length=CONSIDERED_LIMIT)
    language: str = Field(default="en", pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")
    component: str = Field(default="", max_length=COMPONENT_LIMIT)
    files: tuple[str, ...] = Field(default=(), max_length=FILES_LIMIT)


class Decision(_Frozen):
    """One decision that may have effects. ``component`` and ``files`` say where to look; every file
    is in the checkout."""

    issue_id: int
    number: int
    labels: tuple[str, ...]
    confidence: float
    verdict: str
    evidence: tuple[Evidence, ...]
    considered: tuple[Considered, ...]
    language: str
    component: str = ""
    files: tuple[str, ...] = ()


class HeldFor(StrEnum):
    """Why a decision has no effect."""

    CONFIDENCE = "confidence"
    VALIDATION = "validation"
    NO_LABEL = "no-label"
    UNANSWERED = "unanswered"
    INSTRUCTIONS = "instructions"

    @property
    def settles(self) -> bool:
        """True where asking again about the same text would only cost money."""
        return self is not HeldFor.UNANSWERED


class AskedAgain(_Frozen):
    """What the model answered about issues without the text in them that gives instructions.

    ``asks``: for each such issue, by its number, for what that text asks; ``missing``: why there
    is not an answer about every one of them.
    """

    asks: Mapping[int, tuple[str, ...]] = {}
    answers: tuple[Mapping[str, Any], ...] = ()
    missing: str = ""


NEVER_AGAIN: Final = AskedAgain()


class Held(_Frozen):
    """A decision without effect, listed in the summary."""

    issue_id: int
    number: int
    why: HeldFor
    reason: str


class Cost(_Frozen):
    """What the model cost; dollars are the SDK's estimate."""

    estimated_usd: float = 0.0
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    sessions: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            estimated_usd=self.estimated_usd + other.estimated_usd,
            turns=self.turns + other.turns,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            sessions=self.sessions + other.sessions,
        )


NOTHING_SPENT: Final = Cost()


class Plan(_Frozen):
    """The frozen decisions of a snapshot; those of a review or a watch are its own part alone."""

    decisions: tuple[Decision, ...] = ()
    held: tuple[Held, ...] = ()
    cost: Cost = NOTHING_SPENT
    review: Review | None = None
    watch: Watch | None = None


def make_plan(
    answers: Iterable[Mapping[str, Any]],
    snapshot: Snapshot,
    policy: JobPolicy,
    cost: Cost,
    files: Collection[str] = (),
    *,
    secrets: Collection[str] = (),
    again: AskedAgain = NEVER_AGAIN,
) -> Plan:
    """Check every answer against the snapshot and the policy. Never raises for what a model said.

    ``files`` are those of the checkout: of the files that an answer names, no others are kept;
    ``secrets`` are words in it that must not be said. Of two answers about one issue neither is
    used: there is no telling which was meant. Of an issue that was asked about ``again`` the second
    answer counts, if it decides the same as the first.
    """
    rules = _Rules(policy, files, secrets)
    answered, anew = _by_number(answers), _by_number(again.answers)
    decisions: list[Decision] = []
    held: list[Held] = []
    for issue in snapshot.issues:
        own = answered.get(issue.number, [])
        if issue.number in again.asks:
            outcome = _judge_again(own, anew.get(issue.number, []), issue, rules, again)
        else:
            outcome = _judge(own, issue, rules)
        if isinstance(outcome, Decision):
            decisions.append(outcome)
        else:
            held.append(outcome)
    return Plan(decisions=tuple(decisions), held=tuple(held), cost=cost)


@dataclass(frozen=True, slots=True)
class _Rules:
    policy: JobPolicy
    files: Collection[str]
    secrets: Collection[str]


def _by_number(answers: Iterable[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    answered: dict[int, list[Mapping[str, Any]]] = {}
    for answer in answers:
        number = answer.get("number")
        if type(number) is int:
            answered.setdefault(number, []).append(answer)
    return answered


def _judge(
    answers: Sequence[Mapping[str, Any]], issue: SnapshotIssue, rules: "_Rules"
) -> Decision | Held:
    def hold(why: HeldFor, reason: str) -> Held:
        return Held(issue_id=issue.id, number=issue.number, why=why, reason=reason)

    policy = rules.policy
    answer = _read(answers)
    if not isinstance(answer, Answer):
        return hold(*answer)
    problem = _label_problem(answer.labels, policy) or _text_problem(answer, rules.secrets)
    named = {item.label for item in answer.evidence} | {item.label for item in answer.considered}
    if not problem and not named <= policy.labels.keys():
        problem = "the evidence names a label that the policy has not"
    if problem:
        return hold(HeldFor.VALIDATION, problem)
    if answer.confidence < policy.min_confidence:
        low = f"confidence {answer.confidence:.2f} is below {policy.min_confidence:.2f}"
        return hold(HeldFor.CONFIDENCE, low)
    if not answer.labels:
        return hold(HeldFor.NO_LABEL, "no label of the policy fits")
    return Decision(
        issue_id=issue.id,
        number=issue.number,
        labels=tuple(dict.fromkeys(answer.labels)),
        confidence=answer.confidence,
        verdict=answer.verdict,
        evidence=tuple(item for item in answer.evidence if _stands_in(item.quote, issue)),
        considered=answer.considered,
        language=policy.language or answer.language,
        component=answer.component if policy.code else "",
        files=tuple(name for name in dict.fromkeys(answer.files) if name in rules.files),
    )


def _judge_again(
    first: Sequence[Mapping[str, Any]],
    second: Sequence[Mapping[str, Any]],
    issue: SnapshotIssue,
    rules: "_Rules",
    again: AskedAgain,
) -> Decision | Held:
    """Of an issue whose text gives instructions: no word of the first answer goes on, and where the
    text changed what is decided, nothing does."""

    def hold(why: HeldFor, reason: str) -> Held:
        return Held(issue_id=issue.id, number=issue.number, why=why, reason=reason)

    before, after = _read(first), _read(second)
    asks = f"its text gives instructions ({', '.join(again.asks[issue.number])})"
    if not isinstance(before, Answer):
        return hold(*before)
    if not second:
        reason = f"{asks}, and it was not asked about without them"
        return hold(HeldFor.UNANSWERED, f"{reason}: {again.missing}" if again.missing else reason)
    if isinstance(after, Answer) and (change := _change(before, after, rules.policy)):
        return hold(HeldFor.INSTRUCTIONS, f"{asks} that change the decision: {change}")
    return _judge(second, issue, rules)


def _change(before: Answer, after: Answer, policy: JobPolicy) -> str | None:
    """What an answer would decide otherwise than the one after it, or None."""
    if set(before.labels) != set(after.labels):
        told = (
            ", ".join(name for name in policy.labels if name in answer.labels) or "none"
            for answer in (before, after)
        )
        return "labels {} with them, {} without".format(*told)
    if (before.confidence < policy.min_confidence) != (after.confidence < policy.min_confidence):
        return f"confidence {before.confidence:.2f} with them, {after.confidence:.2f} without"
    return None


def _read(answers: Sequence[Mapping[str, Any]]) -> Answer | tuple[HeldFor, str]:
    """The one answer about an issue, or why there is none that can be used."""
    if not answers:
        return HeldFor.UNANSWERED, "the model gave no decision"
    if len(answers) > 1:
        return HeldFor.VALIDATION, "the model decided twice"
    try:
        return Answer.model_validate(answers[0])
    except ValidationError as error:
        return HeldFor.VALIDATION, field_problem(error)


def _label_problem(labels: Sequence[str], policy: JobPolicy) -> str | None:
    """What is wrong with a choice of labels, or None."""
    if not set(labels) <= policy.labels.keys():
        return "it has a label that the policy does not allow"
    for group in policy.exclusive:
        both = [name for name in group if name in labels]
        if len(both) > 1:
            return f"labels {' and '.join(both)} exclude each other"
    return None


def _text_problem(answer: Answer, secrets: Collection[str]) -> str | None:
    """What is wrong with the model's own words. Quotes are the issue's words: they are escaped
    where they are shown, and held to no more than their length."""
    own = (answer.verdict, answer.component, *(item.reason for item in answer.considered))
    for text in own:
        if problem := text_problem(text):
            return problem
        if any(word in text for word in secrets):
            return REPEATS_A_VALUE
    if "\n" in answer.verdict + answer.component:
        return "the verdict is longer than one line"
    return None


def _stands_in(quote: str, issue: SnapshotIssue) -> bool:
    """Whether words are the issue's own, whatever their case and spacing."""
    return _bare(quote) in _bare(f"{issue.title}\n{issue.body}")


def _bare(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())
