"""The names of jobs, runs and effects, and how their keys are made.

Invariant: no secret, installation, attempt, worker, time or wording goes into an effect key, so a
rotated key, a new installation or a second answer of the model cannot make a second effect.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from enum import StrEnum


class JobKey(StrEnum):
    """A kind of recurring work."""

    DAILY = "daily-issue-triage"
    RETRIAGE = "issue-retriage"
    REVIEW = "nightly-repo-review"
    WATCH = "resource-watch"


class Family(StrEnum):
    """Jobs that share their effects: an issue has one triage comment, whichever job wrote it."""

    TRIAGE = "triage"
    REVIEW = "review"
    WATCH = "watch"


FAMILY: dict[JobKey, Family] = {
    JobKey.DAILY: Family.TRIAGE,
    JobKey.RETRIAGE: Family.TRIAGE,
    JobKey.REVIEW: Family.REVIEW,
    JobKey.WATCH: Family.WATCH,
}


SCHEDULED = (JobKey.DAILY, JobKey.REVIEW, JobKey.WATCH)
"""The jobs that have windows; the others are started by what happens on GitHub."""


class Mode(StrEnum):
    """How far a run may go, weakest first."""

    OBSERVE = "observe"
    LABEL = "label"
    COMMENT = "comment"

    @property
    def strength(self) -> int:
        """0 for observe, 1 for label, 2 for comment."""
        return list(Mode).index(self)


class EffectKind(StrEnum):
    """What one intended write does."""

    COMMENT = "comment"
    UNLABEL = "unlabel"
    LABELS = "labels"
    SUMMARY = "summary"
    REMOVAL = "removal"
    REPORT = "report"

    @property
    def creates(self) -> bool:
        """True where a second request would make a second thing: a comment, an issue."""
        return self in (EffectKind.COMMENT, EffectKind.SUMMARY)


_KEY = re.compile(
    r"(?P<job>[a-z-]+):R(?P<repository>[1-9][0-9]{0,18}):(?P<window>[^:\s]+):(?P<version>[^:\s]+)"
    r"(?::forced-(?P<forced>[^:\s]+))?"
)


class MalformedKeyError(ValueError):
    """A text that should be a dedupe key is none."""


@dataclass(frozen=True, slots=True)
class DedupeKey:
    """The identity of a run: ``job:R<repository id>:window:<input version>[:forced-<id>]``."""

    job: JobKey
    repository_id: int
    window: str
    input_version: str
    forced: str | None = None

    def __str__(self) -> str:
        key = f"{self.job}:R{self.repository_id}:{self.window}:{self.input_version}"
        return f"{key}:forced-{self.forced}" if self.forced else key

    @classmethod
    def parse(cls, text: str) -> "DedupeKey":
        """Read a key back. Raises MalformedKeyError, naming the text."""
        found = _KEY.fullmatch(text)
        if found is None or found["job"] not in set(JobKey):
            raise MalformedKeyError(
                f"{text!r} is no run key; one looks like "
                "daily-issue-triage:R1296269:2026-09-16:p3f2a91c0"
            )
        job, repository_id = JobKey(found["job"]), int(found["repository"])
        return cls(job, repository_id, found["window"], found["version"], found["forced"])


def effect_key(
    repository_id: int,
    issue_id: int,
    family: Family,
    kind: EffectKind,
    window: str | None = None,
) -> str:
    """The SHA-256, in hex, of what makes an effect the same effect.

    ``window`` belongs to the daily summary issue and to reports alone, whose ``issue_id`` is 0; the
    one issue of a review has none.
    """
    return digest_of([repository_id, issue_id, family, kind, window])


def input_version(policy: object, mode: Mode, prompt_version: str) -> str:
    """``p`` and eight hex digits over what decides the outcome besides the repository's content.

    ``policy`` is the JSON form of the job's policy.
    """
    return "p" + digest_of([policy, mode, prompt_version])[:8]


def digest_of(value: object) -> str:
    """The SHA-256, in hex, of the canonical JSON of a value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
