"""What deliveries ask for, as values that travel as JSON in the queue.

Invariant: an ask carries ids, names and addresses, never the text of an issue or comment: that is
re-read from GitHub before anything is done.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter


class Verb(StrEnum):
    """What a command wants."""

    AGAIN = "again"  # /retriage
    FORCE = "force"  # /retriage --force
    RESOLVE = "resolve"  # /retriage resolve KEY done|retry|abandon why
    UNKNOWN = "unknown"  # anything else: refused, visibly


class _Ask(BaseModel):
    """What a delivery asks for. Travels as JSON in the queue."""

    model_config = ConfigDict(frozen=True)


class _InRepository(_Ask):
    """``repository`` is the full name as the delivery has it; ``installation`` may be empty."""

    repository_id: int
    repository: str
    installation: str = ""


class _OnIssue(_InRepository):
    """``issue`` is the number, ``issue_id`` GitHub's global id."""

    issue: int
    issue_id: int


class Command(_OnIssue):
    """Somebody wrote ``/retriage`` at the start of a comment. Who may, the worker finds out."""

    kind: Literal["command"] = "command"
    comment_id: int
    login: str
    user_id: int
    is_author: bool
    arguments: tuple[str, ...] = ()

    @property
    def verb(self) -> Verb:
        """The meaning of the arguments."""
        if self.arguments[:1] == ("resolve",):
            return Verb.RESOLVE
        return {(): Verb.AGAIN, ("--force",): Verb.FORCE}.get(self.arguments, Verb.UNKNOWN)


class SeenEffect(_OnIssue):
    """The bot's own comment or issue, with a valid marker, was seen: a hit.

    ``github_id`` is the comment's id, or the issue's for a summary.
    """

    kind: Literal["seen-effect"] = "seen-effect"
    effect_key: str
    run: str
    digest: str
    github_id: int
    url: str


class DeletedComment(_OnIssue):
    """Somebody else deleted a comment of the bot. ``effect_key`` where its marker was valid."""

    kind: Literal["deleted-comment"] = "deleted-comment"
    comment_id: int
    effect_key: str = ""


class RemovedLabel(_OnIssue):
    """Somebody else took a label off an issue; the worker knows whether it was the bot's."""

    kind: Literal["removed-label"] = "removed-label"
    label: str


class Opened(_OnIssue):
    """A person opened an issue; whether that starts a run, the policy says."""

    kind: Literal["opened"] = "opened"
    login: str
    user_id: int


class Repository(_Ask):
    """A repository as deliveries name it."""

    id: int
    full_name: str


class Installed(_Ask):
    """The App may act here (again). No repositories named: the worker asks for the list."""

    kind: Literal["installed"] = "installed"
    installation: str
    repositories: tuple[Repository, ...] = ()


class Removed(_Ask):
    """The App may no longer act: ``whole`` says in the installation, else in these repositories."""

    kind: Literal["removed"] = "removed"
    installation: str
    whole: bool
    repositories: tuple[Repository, ...] = ()


class RepositoryChanged(_InRepository):
    """The repository was renamed, transferred, archived, unarchived or deleted."""

    kind: Literal["repository-changed"] = "repository-changed"
    change: str


Ask = (
    Command
    | SeenEffect
    | DeletedComment
    | RemovedLabel
    | Opened
    | Installed
    | Removed
    | RepositoryChanged
)
_ASK: TypeAdapter[Ask] = TypeAdapter(Annotated[Ask, Field(discriminator="kind")])


def parse_ask(data: object) -> Ask:
    """Read an ask back from its JSON form. Raises pydantic's ValidationError."""
    return _ASK.validate_python(data)
