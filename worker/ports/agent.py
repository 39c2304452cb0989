"""What the pipeline needs of the model behind its SDK."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from triage.plan import Cost


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """A batch of issues for one session of the model."""

    repository: str
    issues: tuple["IssueText", ...]
    labels: Mapping[str, str]
    exclusive: tuple[tuple[str, ...], ...]
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
    """What one session answered: raw decisions, to be checked by ``triage.plan``."""

    decisions: tuple[Mapping[str, object], ...]
    cost: Cost


class AgentFailed(Exception):  # noqa: N818 - the outcome of a session, told apart by its attributes
    """A session without an answer. ``reason`` is a short stable word; ``cost`` was spent."""

    def __init__(self, reason: str, detail: str, *, retryable: bool, cost: Cost) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.retryable = retryable
        self.cost = cost


class Agent(Protocol):
    """The model behind its SDK."""

    prompt_version: str

    def batches(self, issues: Sequence[IssueText]) -> list[tuple[IssueText, ...]]:
        """Split issues into sessions."""

    async def decide(self, request: AgentRequest) -> AgentAnswer:
        """One session. Raises AgentFailed."""
