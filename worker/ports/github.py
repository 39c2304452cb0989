"""What the pipeline needs of GitHub: what reads give, what writes come to, and who does both."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from ledger.records import Claim
from triage.contract import RunInputs
from triage.policy import PolicyDocument
from triage.snapshot import Issue


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
