"""What the pipeline needs of the ledger, part by part."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from ledger.memory import (
    Promotion,
    Recall,
    ReviewState,
    SessionSize,
    StagedSession,
    TranscriptLine,
)
from ledger.records import (
    Claim,
    Due,
    EffectRecord,
    Epoch,
    Granted,
    Lease,
    Look,
    Report,
    RepositoryRecord,
    Unclaimed,
    Wait,
)
from triage.contract import RunEffect, RunRecord, Status
from triage.identifiers import Family, JobKey
from triage.plan import Plan
from triage.snapshot import Snapshot


class Leases(Protocol):
    """One lease per run."""

    async def acquire(self, dedupe_key: str, owner: str, token: str) -> Lease | None:
        """Take the lease, or None while it is live, or within the lock delay of a claimed run.

        Idempotent by ``token``: after a lost reply, the same token finds its own lease again.
        """

    async def renew(self, lease: Lease) -> bool:
        """Make it last a whole lease from now. False where it lapsed or is another's."""

    async def release(self, lease: Lease) -> None:
        """Give it up cleanly. Nothing happens where it is another's."""

    async def view(self, dedupe_key: str) -> Look:
        """The run and its lease, in one read."""


class Runs(Protocol):
    """The record of runs. Whatever takes a lease checks it, and raises LeaseLost if it is gone."""

    async def save(self, lease: Lease, run: RunRecord) -> None:
        """Write the run without its effects: new or changed. Indexes follow the status."""

    async def save_snapshot(self, lease: Lease, snapshot: Snapshot) -> Snapshot:
        """Write it once; gives back the one that stands (an earlier one wins)."""

    async def save_plan(self, lease: Lease, plan: Plan, staged: Promotion | None = None) -> Plan:
        """Write it once, with what the next review needs of this one, all or nothing; gives back
        the plan that stands. Raises StateNotSavedError where the copy of the session is not whole.
        """

    async def snapshot(self, dedupe_key: str) -> Snapshot | None:
        """The frozen input of a run."""

    async def plan(self, dedupe_key: str) -> Plan | None:
        """The frozen decisions of a run."""

    async def save_effects(self, lease: Lease, effects: Sequence[RunEffect]) -> None:
        """Write evidence into the run, and what follows from it into the shared records.

        In doubt (unsettled and open): the run holds it unsettled. Conflict: it holds it under
        review. Anything else, acknowledged (unsettled, not open) included: it holds it no longer.
        A GitHub id, number, address or digest that is given is kept in the shared record. Labels
        confirmed after a send join ``own_labels``; removed ones leave it. What a person took away
        is noted apart: ``Effects.note_tombstone``, ``note_removed_label``.
        """

    async def settle(self, lease: Lease, run: RunRecord, due: Mapping[Due, datetime]) -> None:
        """The end of an attempt, in one step: status, frozen evidence, what falls due, the lease
        released. ``run.effects`` is not written: ``save_effects`` came before."""

    async def of_window(self, repository_id: int, job: JobKey, window: str) -> list[RunRecord]:
        """The runs of a window, oldest first."""

    async def listed(
        self, status: Status | None = None, repository: str | None = None, limit: int = 50
    ) -> list[RunRecord]:
        """Runs, newest first."""


class Effects(Protocol):
    """Effects as all runs share them."""

    async def get(self, keys: Sequence[str]) -> dict[str, EffectRecord]:
        """Those that are known, by key."""

    async def claim(
        self,
        lease: Lease,
        effect: RunEffect,
        *,
        snapshot_fence: int,
        resend: bool,
        operation: str,
    ) -> Claim | Unclaimed:
        """The one claim before each request, in one script: owner, fence and epoch; the remaining
        lease longer than the request timeout plus a margin; not held by another run; not
        superseded by a later snapshot's write; no tombstone unless the run is forced. It records
        the intent in the effect and in the run (unsettled, open, sent at, one send more).

        ``resend``: the last send was proved absent, so this run's own holding does not refuse.
        Its own lost reply is UNSURE: re-read before anything else.
        """

    async def acknowledge(self, claim: Claim, effect: RunEffect) -> None:
        """Record the outcome of a claimed request, with or without a live lease: evidence in the
        run; in the shared record what ``save_effects`` says, and the last writer where it landed
        (acknowledged or confirmed). In doubt stays held as unsettled; anything else closes it."""

    async def withdraw(self, claim: Claim) -> None:
        """Undo a claim whose request was certainly not sent."""

    async def add_sample(self, effect_key: str, at: datetime) -> tuple[datetime, ...]:
        """Add the time of an empty read; gives all of them since the last send."""

    async def note_hit(
        self, effect_key: str, github_id: int, url: str, digest: str, issue: int = 0
    ) -> None:
        """Somebody saw the effect on GitHub (a sample, or a webhook of the bot's own comment).
        ``issue`` is its issue's number."""

    async def note_removed_label(self, effect_key: str, label: str) -> None:
        """A person removed a label that the bot had added."""

    async def note_tombstone(self, effect_key: str) -> None:
        """A person deleted the bot's comment."""

    async def by_github_id(self, repository_id: int, github_id: int) -> EffectRecord | None:
        """The effect whose comment or issue has this id."""

    async def adopt(self, record: EffectRecord) -> None:
        """Write a record that was rebuilt from GitHub, where the ledger has none."""

    async def incident(self, kind: str, detail: str) -> None:
        """Count an incident, and keep its line."""


class DueSet(Protocol):
    """What falls due next."""

    async def add(self, due: Due, at: datetime) -> None:
        """Put it there, or move it."""

    async def when(self, due: Due) -> datetime | None:
        """When it falls due; None where it does not."""

    async def remove(self, due: Due, was: datetime | None = None) -> None:
        """It is done with. With ``was``, only where nobody moved it since."""

    async def take(self, now: datetime, limit: int, again_in: timedelta) -> list[Due]:
        """What is due, oldest first; each stays, moved by ``again_in``, until it is removed: a
        crash after this loses nothing."""


class Budgets(Protocol):
    """One write budget per installation, shared by all workers."""

    async def spend(self, installation: str) -> Granted | Wait:
        """Take room for one write, or say how long there is none."""

    async def answered(self, installation: str, granted: Granted) -> None:
        """The request of a grant is over, whatever came of it: GitHub may have counted it as late
        as that."""

    async def block(self, installation: str, until: datetime) -> None:
        """GitHub asked to come back at ``until``: nobody writes before."""


class Repositories(Protocol):
    """What the ledger knows of repositories and of the decisions made in them."""

    async def get(self, repository_id: int) -> RepositoryRecord | None:
        """The record, or None."""

    async def save(self, record: RepositoryRecord, was: RepositoryRecord | None = None) -> None:
        """Write what differs from ``was``, as it was read: what somebody else changed meanwhile
        stands."""

    async def of_installation(self, installation: str) -> list[int]:
        """The ids of an installation's repositories."""

    async def settled(
        self, repository_id: int, input_version: str, issue_ids: Sequence[int]
    ) -> dict[int, str]:
        """Issue id to the content digest that was decided under this input version."""

    async def settle(
        self, repository_id: int, input_version: str, digests: Mapping[int, str]
    ) -> None:
        """Remember decided contents, so that nobody pays for them every day."""

    async def bot_ids(self) -> frozenset[int]:
        """User ids that are or were the bot's."""

    async def add_bot_id(self, user_id: int) -> None:
        """Remember one."""

    async def save_report(self, report: Report, was: Report | None = None) -> bool:
        """Keep the artifact of a run that writes nothing else, in the place of ``was``. False where
        another stands there by now: then nothing happens."""

    async def report(self, path: str) -> Report | None:
        """The artifact of a window."""


class Sessions(Protocol):
    """Transcripts of sessions that are continued another night, on whatever machine."""

    async def append(
        self, staged: StagedSession, lines: Sequence[TranscriptLine], *, after: int
    ) -> None:
        """Add lines to an attempt's copy, in which ``after`` lines stand: all of them or none. The
        same call may be repeated after a lost reply. Raises StateNotSavedError."""

    async def read(self, staged: StagedSession) -> list[TranscriptLine] | None:
        """The session's first lines, then the copy's. None where the session is shorter than it
        was, or gone."""

    async def length(self, staged: StagedSession) -> int:
        """How many lines the session has for this attempt."""

    async def kept(self, repository_id: int, session_id: str) -> SessionSize:
        """How much of a session is kept; nothing, where it is gone."""

    async def discard(self, staged: StagedSession) -> None:
        """Give an attempt's copy up now, instead of when it expires."""


class Reviews(Protocol):
    """The last review of each repository, and how well resumed runs recalled the one before. It is
    written with the plan: ``Runs.save_plan``."""

    async def last(self, repository_id: int, family: Family = Family.REVIEW) -> ReviewState | None:
        """The last review, as the next one needs it. Without session where that was cleared."""

    async def recalls(self, repository_id: int, limit: int = 100) -> tuple[Recall, ...]:
        """The figures of the last runs that resumed, newest first."""

    async def clear_session(self, lease: Lease, staged: StagedSession, reason: str) -> bool:
        """Give the session up that an attempt resumed, so that the next window starts cold. False
        where it is not the last review's any more, or was continued by another run."""


class Epochs(Protocol):
    """The ledger's own identity."""

    async def ensure(self, *, first: bool) -> Epoch:
        """The epoch that stands. Missing, or the server's replication identity changed without
        being a mere restart: set a new one (``changed``), quiet unless ``first``."""


@dataclass(frozen=True, slots=True)
class LedgerPorts:
    """The ledger, by what each part owns."""

    leases: Leases
    runs: Runs
    effects: Effects
    due: DueSet
    budgets: Budgets
    repositories: Repositories
    epochs: Epochs
    sessions: Sessions
    reviews: Reviews
