"""What one kind of job does where the way of a run leaves room: its input, its question, its words.

The way itself, with all that makes it safe to go twice, is the same for every kind (``pipeline``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ledger.memory import Promotion
from ledger.records import Report
from triage.contract import Status
from triage.plan import Plan
from triage.snapshot import Snapshot
from worker.ports import RepositoryNow
from worker.stages.attempt import Attempt


@dataclass(frozen=True, slots=True)
class Asked:
    """A plan, and what the next run needs of this one: kept in one step with it, or not at all."""

    plan: Plan
    promotion: Promotion | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """An issue as it should stand: one for each ``window``, or one for good where that is None."""

    title: str
    body: str
    window: str | None


@dataclass(frozen=True, slots=True)
class Artifact:
    """The text of a report. ``is_news``: a run that wrote instead would have had something to
    write, or the report says what none said before."""

    text: str
    is_news: bool


def of_another(before: Report | None, attempt: Attempt) -> str | None:
    """The text of the artifact, where another run left it."""
    other = before is not None and before.dedupe_key != attempt.run.inputs.dedupe_key
    return before.text if before is not None and other else None


class Craft(Protocol):
    """One kind of job."""

    async def take(self, attempt: Attempt, repository: RepositoryNow) -> Snapshot:
        """The input as it is now. Raises ReadFailed."""

    async def ask(self, attempt: Attempt, snapshot: Snapshot) -> Asked:
        """The model's answer, checked. Raises AgentFailed."""

    def told(self, attempt: Attempt, plan: Plan) -> Mapping[str, object]:
        """Say what the log should know of a plan that stands; gives what the record should."""

    async def page(
        self, attempt: Attempt, plan: Plan, snapshot: Snapshot, status: Status
    ) -> Page | None:
        """The issue that tells of the run, whose status is about to be this; None for none."""

    async def report(
        self, attempt: Attempt, plan: Plan, snapshot: Snapshot, before: Report | None
    ) -> Artifact:
        """The artifact of a run that writes nothing else. ``before``: the window's artifact as it
        stands, of this run or another one, which it takes the place of."""
