"""The settings that jobs share, and the words that they are made of."""

from datetime import time
from enum import StrEnum
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from triage.window import WEEKDAYS, Every, Schedule

Language = Annotated[str, StringConstraints(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]
"""A BCP 47 tag, like zh-TW."""

Memory = Literal["fresh", "findings", "resume"]
"""What a session knows of the one before: nothing, its answer, or all of it."""


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


class Strict(BaseModel):
    """A map of the policy file: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ScheduleSetting(Strict):
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


class Commands(Strict):
    """Who may say ``/retriage``."""

    retriage: Permission = Permission.TRIAGE


class Budget(Strict):
    """Dollars that one attempt of a run may cost, by the SDK's estimate."""

    cold: float = Field(default=2.00, gt=0, le=100)
    resumed: float = Field(default=0.50, gt=0, le=100)


class Turns(Strict):
    """Answers of the model that one session may take."""

    cold: int = Field(default=40, ge=1, le=500)
    resumed: int = Field(default=20, ge=1, le=500)
