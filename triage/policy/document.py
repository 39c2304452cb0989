"""The policy file: what stands in it, and the line of each error.

A policy arrives as the plain data of a YAML document and a map from each key's path to its line;
reading the file is somebody else's work. The repository's settings win over the organisation's,
setting by setting: a setting is taken whole, never mixed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from triage.identifiers import JobKey
from triage.policy.jobs import JobPolicy, Reset, ReviewPolicy
from triage.policy.resources import Resource, WatchPolicy
from triage.policy.settings import Budget, Commands, ScheduleSetting, Strict, Turns

Path = tuple[str | int, ...]


AnyJobPolicy = JobPolicy | ReviewPolicy | WatchPolicy
"""The settings of one job. No two of them read each other's JSON as their own: each but the
review's requires a key that the others refuse, and the review's JSON names its ``reset``."""


def _not_null(schema: dict[str, Any]) -> None:
    """A job that is left out has no settings; one that is named has a map."""
    [settings, _null] = schema.pop("anyOf")
    del schema["default"]
    schema.update(settings)


class Jobs(Strict):
    """The jobs of a file, by their keys; at least one."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    triage: JobPolicy | None = Field(
        default=None, alias="daily-issue-triage", json_schema_extra=_not_null
    )
    review: ReviewPolicy | None = Field(
        default=None, alias="nightly-repo-review", json_schema_extra=_not_null
    )
    watch: WatchPolicy | None = Field(
        default=None, alias="resource-watch", json_schema_extra=_not_null
    )

    @field_validator("*", mode="before")
    @classmethod
    def _named_has_a_map(cls, settings: Any) -> Any:
        if settings is None:
            raise PydanticCustomError("dict_type", "must be a map")
        return settings

    @model_validator(mode="after")
    def _at_least_one(self) -> "Jobs":
        if not (self.triage or self.review or self.watch):
            raise PydanticCustomError("no_job", "at least one job is needed")
        return self


class Policy(Strict):
    """The whole file."""

    jobs: Jobs

    @property
    def triage(self) -> JobPolicy | None:
        """The settings of the triage family; a command uses those of the daily job. None where the
        file has no triage: then nothing is triaged, and a command is not answered."""
        return self.jobs.triage

    def of(self, job: JobKey) -> AnyJobPolicy | None:
        """The settings of a job; None where the file does not have it."""
        match job:
            case JobKey.DAILY | JobKey.RETRIAGE:
                return self.jobs.triage
            case JobKey.REVIEW:
                return self.jobs.review
            case JobKey.WATCH:
                return self.jobs.watch

    @property
    def scheduled(self) -> dict[JobKey, AnyJobPolicy]:
        """The jobs of the file that a clock starts, with their settings."""
        keys = (JobKey.DAILY, JobKey.REVIEW, JobKey.WATCH)
        return {key: settings for key in keys if (settings := self.of(key)) is not None}


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
        case "extra_forbidden" if path[:1] == ("jobs",) and len(path) == 2:
            return "unknown job" + _suggestion(str(path[-1]), [str(key) for key in _JOBS])
        case "extra_forbidden":
            return "unknown key" + _suggestion(str(path[-1]), _settings_beside(path))
        case "missing":
            return "is required"
        case "dict_type" | "model_type":
            return "must be a map"
        case "value_error":
            return str(item["ctx"]["error"])
        case _:
            message = str(item["msg"])
            return message[0].lower() + message[1:]


_JOBS: Mapping[str | int, type[BaseModel]] = {
    JobKey.DAILY.value: JobPolicy,
    JobKey.REVIEW.value: ReviewPolicy,
    JobKey.WATCH.value: WatchPolicy,
}
_GROUPS: Mapping[str | int, type[BaseModel]] = {
    "schedule": ScheduleSetting,
    "commands": Commands,
    "budget_usd": Budget,
    "max_turns": Turns,
    "reset": Reset,
    "resources": Resource,
}


def _settings_beside(path: Path) -> list[str]:
    """The settings that may stand where an unknown one stands."""
    if len(path) == 1:
        return [*Policy.model_fields]
    job = _JOBS[path[1]]
    group = next((_GROUPS[part] for part in path[2:-1] if part in _GROUPS), job)
    return [*group.model_fields]


def _suggestion(word: str, known: Sequence[str]) -> str:
    close = get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
