"""The settings of the triage and of the nightly review."""

from enum import StrEnum
from typing import Annotated

from pydantic import (
    Field,
    StrictBool,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

from triage.identifiers import Mode
from triage.policy.settings import (
    Backlog,
    Budget,
    Commands,
    Language,
    Memory,
    ScheduleSetting,
    Strict,
    Summary,
    Turns,
)

LabelName = Annotated[str, StringConstraints(min_length=1, max_length=50)]


TriageMemory = Annotated[Memory, WithJsonSchema({"enum": ["fresh"], "type": "string"})]


class JobPolicy(Strict):
    """The settings of the triage. ``code``: its agent may read the repository's files."""

    schedule: ScheduleSetting = ScheduleSetting()
    mode: Mode = Mode.OBSERVE
    labels: dict[LabelName, str] = Field(min_length=1, max_length=100)
    exclusive: tuple[tuple[LabelName, ...], ...] = ()
    min_confidence: float = Field(default=0.7, ge=0, le=1)
    max_issues: int = Field(default=50, ge=1, le=1000)
    backlog: Backlog = Backlog.LABELS
    language: Language | None = None
    summary: Summary = Summary.DAILY
    on_opened: StrictBool = False
    commands: Commands = Commands()
    memory: TriageMemory = "fresh"
    code: StrictBool = False
    budget_usd: Budget = Budget()
    max_turns: Turns = Turns()

    @field_validator("memory")
    @classmethod
    def _judges_each_on_its_own(cls, memory: Memory) -> Memory:
        if memory != "fresh":
            raise ValueError("triage judges each issue on its own: write 'fresh'")
        return memory

    @field_validator("exclusive")
    @classmethod
    def _known_and_distinct(
        cls, groups: tuple[tuple[str, ...], ...], info: ValidationInfo
    ) -> tuple[tuple[str, ...], ...]:
        labels = info.data.get("labels")
        for group in groups:
            for name in group:
                if labels is not None and name not in labels:
                    raise ValueError(f"{name!r} is not among the labels")
                if group.count(name) > 1:
                    raise ValueError(f"{name!r} stands in one group twice")
                if sum(name in other for other in groups) > 1:
                    raise ValueError(f"{name!r} stands in two groups: join them")
        return groups


class ResetEvery(StrEnum):
    """How old a session may become before a cold review replaces it."""

    NEVER = "never"
    WEEKLY = "weekly"
    MONTHLY = "monthly"


class Reset(Strict):
    """When a review that resumes starts cold again: by time, by the share of files that are new,
    gone or changed since the session began, or where it recalled less than this share."""

    every: ResetEvery = ResetEvery.WEEKLY
    changed: float = Field(default=0.5, gt=0, le=1)
    recall: float = Field(default=0.5, ge=0, le=1)


ReviewMode = Annotated[Mode, WithJsonSchema({"enum": ["observe", "comment"], "type": "string"})]


class ReviewPolicy(Strict):
    """The settings of the nightly review. It labels nothing: there is no mode ``label``."""

    schedule: ScheduleSetting = ScheduleSetting(at="02:00")
    mode: ReviewMode = Mode.OBSERVE
    memory: Memory = "resume"
    reset: Reset = Reset()
    language: Language | None = None
    budget_usd: Budget = Budget()
    max_turns: Turns = Turns()

    @field_validator("mode")
    @classmethod
    def _writes_no_labels(cls, mode: Mode) -> Mode:
        if mode is Mode.LABEL:
            raise ValueError("a review labels nothing: write 'observe' or 'comment'")
        return mode
