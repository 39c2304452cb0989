"""What we read of GitHub's JSON: few fields, and no complaint about the rest.

GitHub adds fields and values, an older Enterprise Server lacks some: only what we cannot do
without is required.
"""

import base64
import binascii
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, model_validator

from triage.snapshot import Issue
from worker.ports import Comment, IssueEvent, Place, RepositoryNow


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _text(value: Any) -> Any:
    return "" if value is None else value


def _label_name(value: Any) -> Any:
    return value.get("name") if isinstance(value, dict) else value


Moment = Annotated[datetime, AfterValidator(_aware)]
Text = Annotated[str, BeforeValidator(_text)]
LabelName = Annotated[str, BeforeValidator(_label_name)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class UserShape(_Shape):
    """An account; GitHub shows a deleted one as null."""

    id: int = 0
    login: str = "ghost"


User = Annotated[UserShape, BeforeValidator(lambda value: {} if value is None else value)]


class LabelShape(_Shape):
    """A label of a repository."""

    name: str


class IssueShape(_Shape):
    """An issue or pull request."""

    id: int
    number: int
    title: Text = ""
    body: Text = ""
    user: User = UserShape()
    labels: tuple[LabelName, ...] = ()
    state: str = "open"
    locked: bool = False
    created_at: Moment
    updated_at: Moment
    html_url: str = ""
    pull_request: Any = None
    comments: int = 0

    def value(self) -> Issue:
        """As the program knows it."""
        return Issue(
            id=self.id,
            number=self.number,
            title=self.title,
            body=self.body,
            author=self.user.login,
            author_id=self.user.id,
            labels=self.labels,
            state=self.state,
            locked=self.locked,
            created_at=self.created_at,
            updated_at=self.updated_at,
            url=self.html_url,
            is_pull_request=self.pull_request is not None,
            comments=self.comments,
        )


class CommentShape(_Shape):
    """A comment on an issue."""

    id: int
    user: User = UserShape()
    body: Text = ""
    html_url: str = ""
    issue_url: str = ""
    created_at: Moment
    updated_at: Moment

    def value(self, issue: int = 0) -> Comment:
        """As the program knows it. ``issue`` where it is known; else the address says it."""
        number = self.issue_url.rpartition("/")[2]
        return Comment(
            id=self.id,
            issue=issue or (int(number) if number.isascii() and number.isdigit() else 0),
            author_id=self.user.id,
            body=self.body,
            url=self.html_url,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )


class EventShape(_Shape):
    """An event of an issue."""

    event: str = ""
    actor: User = UserShape()
    label: LabelShape | None = None
    created_at: Moment

    def value(self, issue: int) -> IssueEvent:
        """As the program knows it."""
        label = self.label.name if self.label else ""
        return IssueEvent(self.event, self.actor.id, label, self.created_at, issue)


class RepositoryShape(_Shape):
    """A repository."""

    id: int
    full_name: str
    default_branch: Text = ""
    archived: bool = False
    has_issues: bool = True

    def place(self, installation: str) -> Place:
        """Where it is."""
        return Place(self.id, self.full_name, installation)

    def now(self, installation: str) -> RepositoryNow:
        """As the program knows it."""
        return RepositoryNow(
            self.place(installation), self.default_branch, self.archived, self.has_issues
        )


class InstallationShape(_Shape):
    """An installation of the App."""

    id: int
    suspended_at: Any = None


class AccountShape(_Shape):
    """An account that was asked for."""

    id: int
    login: str


class AppShape(_Shape):
    """The App itself."""

    slug: str


class CommitShape(_Shape):
    """A commit."""

    sha: str


class BranchShape(_Shape):
    """A branch and its head."""

    commit: CommitShape


class PermissionShape(_Shape):
    """What an account may do. ``permission`` is the older, coarser word."""

    permission: Text = ""
    role_name: Text = ""


class FileShape(_Shape):
    """A file of the repository, base64 in ``content``. GitHub shows a folder as a list."""

    type: str = "file"
    size: int = 0
    encoding: Text = ""
    content: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _folder(cls, value: Any) -> Any:
        return {"type": "dir"} if isinstance(value, list) else value

    def data(self) -> bytes | None:
        """The bytes; None where GitHub did not send them (too large, no file)."""
        if self.type != "file" or self.encoding != "base64":
            return None
        try:
            return base64.b64decode(self.content)
        except binascii.Error:
            return None
