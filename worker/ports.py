"""What the pipeline needs from the outside, as Protocols. Adapters implement them; wiring binds.

Invariant: no adapter is imported here, in ``pipeline`` or in ``recovery``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from ledger.errors import LeaseLost as LeaseLost  # noqa: PLC0414 - given on to who uses the ports
from ledger.errors import LedgerUnavailableError as LedgerUnavailableError  # noqa: PLC0414
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
from triage.contract import RunEffect, RunInputs, RunRecord, Status
from triage.identifiers import JobKey
from triage.marker import MarkerKeys
from triage.plan import Cost, Plan
from triage.policy import PolicyDocument
from triage.snapshot import Issue, Snapshot


class Clock(Protocol):
    """Time and chance, so that tests can hold both."""

    def now(self) -> datetime:
        """The wall-clock time, aware, UTC."""

    def monotonic(self) -> float:
        """Seconds that never run backwards."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    def token(self) -> str:
        """A new unguessable word of 32 hex digits."""


# --- The ledger ---------------------------------------------------------------------------------


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

    async def save_plan(self, lease: Lease, plan: Plan) -> Plan:
        """Write it once; gives back the one that stands."""

    async def snapshot(self, dedupe_key: str) -> Snapshot | None:
        """The frozen input of a run."""

    async def plan(self, dedupe_key: str) -> Plan | None:
        """The frozen decisions of a run."""

    async def save_effects(self, lease: Lease, effects: Sequence[RunEffect]) -> None:
        """Write evidence into the run, and what follows from it into the shared records.

        In doubt (unsettled and open): the run holds it unsettled. Conflict: it holds it under
        review. Anything else, acknowledged (unsettled, not open) included: it holds it no longer.
        A GitHub id, number, address or digest that is given is kept in the shared record. Labels
        confirmed after a send join ``own_labels``; removed ones leave it. Skipped as
        ``human-removed``: a comment gets its tombstone, labels join ``removed_labels``.
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

    async def save_report(self, report: Report) -> None:
        """Keep an observe run's artifact."""

    async def report(self, path: str) -> Report | None:
        """The artifact of a window."""


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


# --- GitHub -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Where a repository is: its id addresses it, whatever it is called now."""

    id: int
    full_name: str
    installation: str


@dataclass(frozen=True, slots=True)
class RepositoryNow:
    """A repository as GitHub shows it now."""

    place: Place
    default_branch: str
    archived: bool
    has_issues: bool


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment as GitHub shows it. ``issue`` is the issue's number."""

    id: int
    issue: int
    author_id: int
    body: str
    url: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class IssueEvent:
    """An event of an issue: ``labeled``, ``unlabeled``, and others with an empty label."""

    event: str
    actor_id: int
    label: str
    at: datetime
    issue: int = 0


class Gone(StrEnum):
    """Why a thing is not there to be read or written."""

    NOT_FOUND = "not-found"  # 404
    DELETED = "deleted"  # 410
    TRANSFERRED = "transferred"  # 301
    LOCKED = "locked"
    ARCHIVED = "archived"


class ReadFailed(Exception):  # noqa: N818 - the outcome of a read, told apart by its attributes
    """A read that did not succeed after its retries. ``retry_at``: when GitHub asked to come back.

    ``permanent``: the app may not read this at all (401 after a fresh token, 403, suspended).
    """

    def __init__(
        self, detail: str, *, retry_at: datetime | None = None, permanent: bool = False
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.retry_at = retry_at
        self.permanent = permanent


class GitHubReader(Protocol):
    """Reads, uncached and retried. Raise ReadFailed; what is gone is a value."""

    async def bot_user_id(self) -> int:
        """The user id under which the bot writes."""

    async def bot_login(self) -> str:
        """The login under which the bot writes: GitHub's listings by creator take no id."""

    async def repository(self, full_name: str) -> RepositoryNow | Gone:
        """Look a repository up by name (redirects followed), with its installation."""

    async def repository_by_id(self, place: Place) -> RepositoryNow | Gone:
        """Look it up by id."""

    async def installations(self) -> list[str]:
        """The App's installations that are not suspended."""

    async def installation_repositories(self, installation: str) -> list[Place]:
        """The repositories of one installation."""

    async def policy(self, place: Place) -> tuple[PolicyDocument | None, PolicyDocument | None]:
        """The organisation's default and the repository's file. Raises PolicyError where a file
        is not YAML at all."""

    async def labels(self, place: Place) -> frozenset[str]:
        """The names of the labels that the repository has now."""

    async def head_commit(self, place: Place, branch: str) -> str:
        """The commit at the head of a branch; empty where the repository is empty."""

    async def issues(
        self,
        place: Place,
        *,
        state: str = "open",
        since: datetime | None = None,
        creator: str | None = None,
    ) -> list[Issue]:
        """The listing, oldest first, all pages; pull requests are marked as such."""

    async def issue(self, place: Place, number: int) -> Issue | Gone:
        """One issue."""

    async def comments(self, place: Place, since: datetime) -> list[Comment]:
        """The repository's comments updated since."""

    async def issue_comments(self, place: Place, number: int) -> list[Comment] | Gone:
        """One issue's comments, all of them."""

    async def comment(self, place: Place, comment_id: int) -> Comment | Gone:
        """One comment."""

    async def issue_events(self, place: Place, number: int) -> list[IssueEvent]:
        """One issue's events, oldest first."""

    async def role(self, place: Place, login: str) -> str:
        """A user's role name on the repository: none, read, triage, write, maintain, admin."""


@dataclass(frozen=True, slots=True)
class Landed:
    """GitHub acknowledged the write. ``labels`` are the issue's after a label write."""

    github_id: int | None = None
    issue: int = 0
    url: str = ""
    labels: tuple[str, ...] = ()


class Refusal(StrEnum):
    """Whose move is next after a refused write: it certainly did not happen."""

    GONE = "gone"  # permanent: skipped with its reason
    LIMITED = "limited"  # come back when told
    UNAUTHORISED = "unauthorised"  # a new token is needed: come back
    FORBIDDEN = "forbidden"  # told apart by re-reading issue and repository
    INVALID = "invalid"  # 422: a conflict


@dataclass(frozen=True, slots=True)
class Refused:
    """A 4xx, or a redirect that was not followed: proved absent at once."""

    refusal: Refusal
    detail: str
    gone: Gone | None = None
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """5xx, time-out, dropped connection: the write may have landed."""

    detail: str


@dataclass(frozen=True, slots=True)
class Late:
    """The claim's deadline had passed in the statement before sending: nothing was sent."""


Outcome = Landed | Refused | Unknown | Late


class GitHubWriter(Protocol):
    """Writes, each sent once, never redirected, refused outside the claim's run's write scope.

    Each takes the claim: a writer cannot be called without the lease behind it.
    """

    def within(self, inputs: RunInputs) -> "GitHubWriter":
        """A writer that refuses what is outside of this run's mode, policy and target."""

    async def create_comment(self, claim: Claim, place: Place, number: int, body: str) -> Outcome:
        """201 with an id."""

    async def edit_comment(self, claim: Claim, place: Place, comment: int, body: str) -> Outcome:
        """200 with the intended body."""

    async def delete_comment(self, claim: Claim, place: Place, comment: int) -> Outcome:
        """204. Only an own duplicate."""

    async def add_labels(
        self, claim: Claim, place: Place, number: int, labels: Sequence[str]
    ) -> Outcome:
        """200 with the labels in place; never replaces the set."""

    async def remove_label(self, claim: Claim, place: Place, number: int, label: str) -> Outcome:
        """200 with the label gone."""

    async def create_issue(self, claim: Claim, place: Place, title: str, body: str) -> Outcome:
        """201 with an id: the summary."""

    async def edit_issue(
        self, claim: Claim, place: Place, number: int, body: str, *, close: bool = False
    ) -> Outcome:
        """200 with the intended body; ``close`` for an own duplicate."""

    async def react(self, place: Place, comment_id: int, content: str) -> bool:
        """Add a reaction to a comment: idempotent at GitHub, no lease. False where refused."""


# --- The agent and the artifacts ----------------------------------------------------------------


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


class Artifacts(Protocol):
    """Where reports are exported for people, besides the ledger."""

    async def export(self, report: Report) -> str:
        """Write the file (0600) and give its path."""


class Log(Protocol):
    """The lines that alerts hang on."""

    def __call__(self, word: str, /, **pairs: object) -> None:
        """``WORD key=value …``"""


@dataclass(frozen=True, slots=True)
class Timing:
    """Bounds, checked at start: lease > request timeout + margin, lock delay > request timeout.

    ``refresh`` is how old the repository's labels and the changes of its issues may be when
    something is written (docs/decisions/0006-a-person-on-the-way.md).
    """

    lease: timedelta = timedelta(seconds=120)
    lock_delay: timedelta = timedelta(seconds=60)
    absence_window: timedelta = timedelta(minutes=15)
    request: timedelta = timedelta(seconds=20)
    margin: timedelta = timedelta(seconds=5)
    run: timedelta = timedelta(minutes=40)
    longest_pause: timedelta = timedelta(seconds=30)
    refresh: timedelta = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything that a run needs."""

    ledger: LedgerPorts
    reader: GitHubReader
    writer: GitHubWriter
    agent: Agent
    artifacts: Artifacts
    clock: Clock
    keys: MarkerKeys
    log: Log
    timing: Timing
    owner: str
