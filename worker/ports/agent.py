"""What the pipeline needs of the model behind its SDK."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from ledger.memory import StagedSession
from triage.documents import Difference, WatchInput
from triage.findings import Remembered, Start
from triage.plan import Cost
from triage.policy import AnyJobPolicy


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """One session: ``tools`` of Read, Glob and Grep (none without ``root``), the checkout as
    ``root``.

    ``session`` is the copy that it reads and appends to; with None, nothing is kept of it.
    ``answer_tokens`` is what a long answer takes: the one by which a session may go over
    ``budget_usd`` without losing it.
    """

    system: str
    prompt: str
    schema: Mapping[str, object]
    max_turns: int
    budget_usd: float
    tools: tuple[str, ...] = ()
    root: Path | None = None
    session: StagedSession | None = None
    answer_tokens: int = 8_000


@dataclass(frozen=True, slots=True)
class Denial:
    """A call of a tool that was refused. ``field`` is empty where the whole call was; no word in it
    is the model's or the repository's but a plain name."""

    tool: str
    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class SessionAnswer:
    """What one session answered: data that its schema allows. ``session_id`` is what a later one
    resumes it by, if ``saved``: every entry of it is in the copy."""

    output: Mapping[str, object]
    cost: Cost
    denials: tuple[Denial, ...]
    session_id: str
    saved: bool = False


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """A batch of issues for one session of the model. With ``root`` it may read that checkout."""

    repository: str
    issues: tuple["IssueText", ...]
    labels: Mapping[str, str]
    exclusive: tuple[tuple[str, ...], ...]
    language: str | None
    max_turns: int
    budget_usd: float
    root: Path | None = None


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """A tree to review. ``files`` are its paths, ``left_out`` counts by reason what it lacks;
    ``prior`` is the last review, which the model is told of as ``start`` says."""

    repository: str
    commit: str
    files: tuple[str, ...]
    left_out: Mapping[str, int]
    language: str | None
    start: Start
    prior: Remembered | None
    max_turns: int
    budget_usd: float
    root: Path
    session: StagedSession | None


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What changed in the documents ``taken``, to be told in words."""

    taken: WatchInput
    changed: tuple[Difference, ...]
    language: str | None
    max_turns: int
    budget_usd: float


@dataclass(frozen=True, slots=True)
class IssueText:
    """What the model sees of an issue."""

    number: int
    title: str
    body: str
    author: str
    labels: tuple[str, ...]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """What sessions answered, raw: decisions, to be checked by ``triage.plan``, or what is said of
    changes, by ``triage.watch``."""

    decisions: tuple[Mapping[str, object], ...]
    cost: Cost
    denials: tuple[Denial, ...] = ()


class AgentFailed(Exception):  # noqa: N818 - the outcome of a session, told apart by its attributes
    """A session without an answer. ``reason`` is a short stable word; ``cost`` was spent.

    ``keeps_session``: what was to be resumed is sound, and may be resumed again.
    """

    def __init__(
        self,
        reason: str,
        detail: str,
        *,
        retryable: bool,
        cost: Cost,
        keeps_session: bool = True,
        denials: tuple[Denial, ...] = (),
    ) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.retryable = retryable
        self.cost = cost
        self.keeps_session = keeps_session
        self.denials = denials


class Agent(Protocol):
    """The model behind its SDK."""

    def prompt_version(self, policy: AnyJobPolicy) -> str:
        """What goes into the input version of a job with these settings."""

    def batches(self, issues: Sequence[IssueText]) -> list[tuple[IssueText, ...]]:
        """Split issues into sessions."""

    async def decide(self, request: AgentRequest) -> AgentAnswer:
        """One session about issues. Raises AgentFailed."""

    async def review(self, request: ReviewRequest) -> SessionAnswer:
        """One session about a tree. Raises AgentFailed."""

    async def watch(self, request: WatchRequest) -> AgentAnswer:
        """What the changes mean. Raises AgentFailed."""
