"""The policy: what a repository's maintainers allow, with the line of each error.

A policy arrives as the plain data of a YAML document and a map from each key's path to its line;
reading the file is somebody else's work. The repository's settings win over the organisation's,
setting by setting: a setting is taken whole, never mixed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import time
from difflib import get_close_matches
from enum import StrEnum
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from triage.identifiers import JobKey, Mode
from triage.window import WEEKDAYS, Every, Schedule

Path = tuple[str | int, ...]
LabelName = Annotated[str, StringConstraints(min_length=1, max_length=50)]


class Backlog(StrEnum):
    """What the first run does with the issues that are there already."""

    LABELS = "labels"
    FULL = "full"
    SKIP = "skip"


class Summary(StrEnum):
    """How the summary issue is kept."""

    DAILY = "daily"
    ROLLING = "rolling"
    OFF = "off"


class Permission(StrEnum):
    """What ``/retriage`` needs: a role on the repository, or to be the issue's author."""

    READ = "read"
    TRIAGE = "triage"
    WRITE = "write"
    AUTHOR = "author"


ROLES: tuple[str, ...] = ("none", "read", "triage", "write", "maintain", "admin")
"""GitHub's role names, weakest first."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScheduleSetting(_Strict):
    """``{every: daily, at: "09:00", timezone: Asia/Taipei}``."""

    every: Every = Every.DAILY
    at: str = Field(default="09:00", pattern=r"^([01]\d|2[0-3]):[0-5]\d$")
    timezone: str = "UTC"
    weekday: Literal[
        "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"
    ] = "monday"

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(f"{name!r} is no time zone; one looks like Asia/Taipei") from error
        return name

    def schedule(self) -> Schedule:
        """The schedule that the setting describes."""
        at = time.fromisoformat(self.at)
        return Schedule(self.every, at, ZoneInfo(self.timezone), WEEKDAYS.index(self.weekday))


class Commands(_Strict):
    """Who may say ``/retriage``."""

    retriage: Permission = Permission.TRIAGE


class Budget(_Strict):
    """Dollars that one attempt of a run may cost, by the SDK's estimate."""

    cold: float = Field(default=2.00, gt=0, le=100)
    resumed: float = Field(default=0.50, gt=0, le=100)


class Turns(_Strict):
    """Answers of the model that one session may take."""

    cold: int = Field(default=40, ge=1, le=500)
    resumed: int = Field(default=20, ge=1, le=500)


class JobPolicy(_Strict):
    """The settings of one job."""

    schedule: ScheduleSetting = ScheduleSetting()
    mode: Mode = Mode.OBSERVE
    labels: dict[LabelName, str] = Field(min_length=1, max_length=100)
    exclusive: tuple[tuple[LabelName, ...], ...] = ()
    min_confidence: float = Field(default=0.7, ge=0, le=1)
    max_issues: int = Field(default=50, ge=1, le=1000)
    backlog: Backlog = Backlog.LABELS
    language: str | None = Field(default=None, pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")
    summary: Summary = Summary.DAILY
    on_opened: StrictBool = False
    commands: Commands = Commands()
    memory: Literal["fresh", "findings", "resume"] = "fresh"
    budget_usd: Budget = Budget()
    max_turns: Turns = Turns()

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


class Policy(_Strict):
    """The whole file."""

    jobs: dict[Literal[JobKey.DAILY], JobPolicy] = Field(min_length=1)

    @property
    def triage(self) -> JobPolicy:
        """The settings of the triage family; a command uses those of the daily job."""
        return self.jobs[JobKey.DAILY]


@dataclass(frozen=True, slots=True)
class Problem:
    """One error of a policy file: where, and the way out."""

    line: int | None
    path: str
    message: str

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.path}: {self.message}" if self.path else f"{where}{self.message}"


class PolicyError(ValueError):
    """A policy that cannot be used, with every problem found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """A file's plain data, and the line (from 1) of each key by its path."""

    data: Any
    lines: Mapping[Path, int] = field(default_factory=dict)


def read_policy(document: PolicyDocument) -> Policy:
    """Check a document. Raises PolicyError with a line for each problem."""
    if not isinstance(document.data, dict):
        raise PolicyError([Problem(1, "", "a policy is a map that starts with 'jobs:'")])
    try:
        return Policy.model_validate(document.data)
    except ValidationError as error:
        raise PolicyError([_problem(item, document) for item in error.errors()]) from error


def merged(organisation: PolicyDocument | None, repository: PolicyDocument) -> PolicyDocument:
    """The repository's document over the organisation's, setting by setting within each job."""
    if organisation is None:
        return repository
    below, above = _jobs(organisation), _jobs(repository)
    if below is None or above is None:
        return repository
    jobs = dict(below)
    for job, settings in above.items():
        under = below.get(job)
        if isinstance(settings, dict) and isinstance(under, dict):
            jobs[job] = {**under, **settings}
        else:
            jobs[job] = settings
    rest = {key: value for key, value in repository.data.items() if key != "jobs"}
    return PolicyDocument({**rest, "jobs": jobs}, repository.lines)


def schema() -> dict[str, Any]:
    """The JSON Schema of the policy file, as published with the project."""
    described = Policy.model_json_schema(mode="validation")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Retriage policy (.github/retriage.yml)",
        **{key: value for key, value in described.items() if key != "title"},
    }


def _jobs(document: PolicyDocument) -> dict[str, Any] | None:
    jobs = document.data.get("jobs") if isinstance(document.data, dict) else None
    return jobs if isinstance(jobs, dict) else None


def _problem(item: Any, document: PolicyDocument) -> Problem:
    path: Path = tuple(part for part in item["loc"] if part != "[key]")
    line = next(
        (document.lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in document.lines),
        None,
    )
    return Problem(line, ".".join(str(part) for part in path), _message(item, path))


def _message(item: Any, path: Path) -> str:
    match item["type"]:
        case "extra_forbidden":
            return "unknown key" + _suggestion(str(path[-1]), _settings_beside(path))
        case "missing":
            return "is required"
        case "dict_type" | "model_type":
            return "must be a map"
        case "literal_error" if path[:1] == ("jobs",) and len(path) == 2:
            return "unknown job" + _suggestion(str(path[-1]), [JobKey.DAILY.value])
        case "value_error":
            return str(item["ctx"]["error"])
        case _:
            message = str(item["msg"])
            return message[0].lower() + message[1:]


_GROUPS: Mapping[str | int, type[BaseModel]] = {
    "schedule": ScheduleSetting,
    "commands": Commands,
    "budget_usd": Budget,
    "max_turns": Turns,
}


def _settings_beside(path: Path) -> list[str]:
    """The settings that may stand where an unknown one stands."""
    model = Policy if len(path) == 1 else _GROUPS.get(path[-2], JobPolicy)
    return [*model.model_fields]


def _suggestion(word: str, known: Sequence[str]) -> str:
    close = get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
