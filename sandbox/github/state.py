"""The nouns of the world. Identity is mutable; what views may show late lives in histories."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum

from sandbox.github.git_objects import Entry
from sandbox.github.history import History


class Role(IntEnum):
    """What someone may do in a repository, weakest first."""

    NONE = 0
    READ = 1
    TRIAGE = 2
    WRITE = 3
    MAINTAIN = 4
    ADMIN = 5


@dataclass(slots=True, eq=False)
class Account:
    id: int
    login: str
    type: str  # User, Organization or Bot
    name: str
    created_at: str
    members: set[str] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class Hook:
    """Where an App's webhooks go."""

    url: str
    secret: str
    events: tuple[str, ...] = ("*",)
    active: bool = True


@dataclass(slots=True, eq=False)
class App:
    id: int
    slug: str
    name: str
    client_id: str
    owner: Account
    bot: Account
    public_key: str
    permissions: dict[str, str]
    events: list[str]
    created_at: str
    hook: Hook | None = None


@dataclass(slots=True, eq=False)
class Installation:
    id: int
    app: App
    account: Account
    repository_ids: set[int] | None  # None: all of the account's
    permissions: dict[str, str]
    events: list[str]
    created_at: str
    updated_at: str
    suspended_at: str | None = None
    suspended_by: Account | None = None
    deleted: bool = False

    def covers(self, repository: Repository) -> bool:
        if repository.owner is not self.account:
            return False
        return self.repository_ids is None or repository.id in self.repository_ids


@dataclass(slots=True, eq=False)
class Token:
    """`ghs_…` of an installation, or `ghp_…` of a user."""

    value: str
    account: Account
    installation: Installation | None = None
    expires_at: datetime | None = None
    permissions: dict[str, str] = field(default_factory=dict)
    repository_ids: set[int] | None = None


@dataclass(slots=True, eq=False)
class Label:
    id: int
    name: str
    color: str
    description: str | None
    default: bool


@dataclass(slots=True, eq=False)
class Reaction:
    id: int
    user: Account
    content: str
    created_at: str


@dataclass(frozen=True, slots=True)
class IssueState:
    title: str
    body: str | None
    updated_at: str
    state: str = "open"
    state_reason: str | None = None
    labels: tuple[Label, ...] = ()
    locked: bool = False
    lock_reason: str | None = None
    comments: int = 0
    closed_at: str | None = None
    closed_by: Account | None = None


@dataclass(slots=True, eq=False)
class Issue:
    """An issue or a pull request of one repository. Its history ends in None when it is gone."""

    id: int
    repository: Repository
    number: int
    author: Account
    app: App | None
    created_at: str
    is_pull_request: bool
    history: History[IssueState]
    reactions: list[Reaction] = field(default_factory=list)
    suggestions: list[str] = field(default_factory=list)
    moved_to: Issue | None = None


@dataclass(frozen=True, slots=True)
class CommentState:
    body: str
    updated_at: str


@dataclass(slots=True, eq=False)
class Comment:
    id: int
    issue: Issue
    author: Account
    app: App | None
    created_at: str
    history: History[CommentState]
    reactions: list[Reaction] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One entry of an issue's history as GitHub tells it: labeled, closed, renamed, …"""

    id: int
    at: datetime
    event: str
    issue: Issue
    actor: Account
    app: App | None
    created_at: str
    detail: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Commit:
    sha: str
    message: str
    author: Account
    at: str
    parents: tuple[str, ...]
    changed: tuple[str, ...]
    tree: str
    files: dict[str, str]
    odd: dict[bytes, Entry] = field(default_factory=dict)  # what is no text, by path


@dataclass(slots=True, eq=False)
class Repository:
    id: int
    owner: Account
    name: str
    private: bool
    created_at: str
    default_branch: str = "main"
    description: str | None = None
    archived: bool = False
    has_issues: bool = True
    updated_at: str = ""
    pushed_at: str = ""
    labels: dict[str, Label] = field(default_factory=dict)  # by name in lower case
    issues: dict[int, Issue] = field(default_factory=dict)  # by number
    comments: dict[int, Comment] = field(default_factory=dict)  # by id
    comments_of: dict[int, list[Comment]] = field(default_factory=dict)  # by issue number
    events: list[Event] = field(default_factory=list)
    events_of: dict[int, list[Event]] = field(default_factory=dict)  # by issue number
    commits: list[Commit] = field(default_factory=list)  # of the default branch, oldest first
    collaborators: dict[str, Role] = field(default_factory=dict)  # by login in lower case
    last_number: int = 0

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    @property
    def files(self) -> dict[str, str]:
        return self.commits[-1].files if self.commits else {}
