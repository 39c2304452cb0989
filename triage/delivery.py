"""What a webhook asks for. A webhook is a hint: what it says is re-read before anything is done.

Reading is tolerant: a field that is missing or of another shape makes the delivery *ignored* with
the field's name, and no JSON whatever makes ``interpret`` raise.

Invariants: what the bot itself did starts nothing, it is at most recorded as seen; who the bot is,
is known by user ids, never by a login; a bot gives no commands.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from triage.asks import (
    Ask,
    Command,
    DeletedComment,
    Installed,
    Opened,
    Removed,
    RemovedLabel,
    Repository,
    RepositoryChanged,
    SeenEffect,
)
from triage.identifiers import digest_of
from triage.marker import Marker, MarkerKeys, Signature, read

MOST_ARGUMENTS: Final = 40
"""Words of a command that are kept, each cut at ARGUMENT_LIMIT characters."""
ARGUMENT_LIMIT: Final = 100
MOST_REPOSITORIES: Final = 10_000
"""Repositories that one delivery may name; the worker lists the rest itself."""
_TEXT_LIMIT = 500
_LARGEST_ID = 2**63 - 1
_COMMAND = re.compile(r"/retriage(?![^ \t\r\n])([^\r\n]*)")
_FULL_NAME = re.compile(r"[\w.-]{1,100}/[\w.-]{1,100}")


@dataclass(frozen=True, slots=True)
class Ignored:
    """Nothing is to be done, and why."""

    reason: str


def interpret(
    event: str, payload: Mapping[str, Any], *, bot_ids: frozenset[int], keys: MarkerKeys
) -> tuple[Ask, ...] | Ignored:
    """What a delivery asks for. ``bot_ids`` are the user ids that are or were the bot's."""
    action = text_at(payload, "action")
    reader = _READERS.get((event, action))
    if reader is None:
        return Ignored(_why_ignored(event, action))
    try:
        return reader(_Delivery(payload, bot_ids, keys))
    except _LackingError as lacking:
        return Ignored(f"the payload lacks {lacking}")


def meaning(event: str, payload: Mapping[str, Any]) -> str | None:
    """A digest of what is asked: the same under any delivery id. None: only the id tells."""
    action = text_at(payload, "action")
    paths = _MEANING.get((event, action))
    if paths is None:
        return None
    values = [_at(payload, *path.split(".")) for path in paths]
    if not all(isinstance(value, (str, int)) for value in values):
        return None
    return digest_of([event, action, values])


# --- One reader for each event that counts ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Delivery:
    payload: Mapping[str, Any]
    bot_ids: frozenset[int]
    keys: MarkerKeys

    def id(self, *path: str) -> int:
        value = _at(self.payload, *path)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _LARGEST_ID:
            raise _LackingError(".".join(path))
        return value

    def text(self, *path: str) -> str:
        value = text_at(self.payload, *path)
        if not value:
            raise _LackingError(".".join(path))
        return value[:_TEXT_LIMIT]

    def by_bot(self) -> bool:
        return self.id("sender", "id") in self.bot_ids

    def marker(self, thing: str) -> Marker | None:
        reading = read(text_at(self.payload, thing, "body"), self.keys)
        return reading.marker if reading.signature is Signature.VALID else None

    def url(self, thing: str) -> str:
        value = text_at(self.payload, thing, "html_url")[:_TEXT_LIMIT]
        return value if value.startswith(("https://", "http://")) else ""

    def on_issue(self) -> dict[str, Any]:
        issue = {"issue": self.id("issue", "number"), "issue_id": self.id("issue", "id")}
        return {**self.in_repository(), **issue}

    def in_repository(self) -> dict[str, Any]:
        full_name = self.text("repository", "full_name")
        if not _FULL_NAME.fullmatch(full_name):
            raise _LackingError("repository.full_name")
        return {
            "repository_id": self.id("repository", "id"),
            "repository": full_name,
            "installation": self.installation(),
        }

    def installation(self) -> str:
        value = _at(self.payload, "installation", "id")
        known = isinstance(value, int) and not isinstance(value, bool) and value > 0
        return str(value)[:20] if known else ""

    def repositories(self, name: str) -> tuple[Repository, ...]:
        listed = _at(self.payload, name)
        if not isinstance(listed, list):
            return ()
        read_ones = (_repository(item) for item in listed[:MOST_REPOSITORIES])
        return tuple(item for item in read_ones if item is not None)


def _comment_created(delivery: _Delivery) -> tuple[Ask, ...] | Ignored:
    if delivery.by_bot():
        return _seen(delivery, "comment")
    found = _COMMAND.match(text_at(delivery.payload, "comment", "body"))
    if found is None:
        return Ignored("a comment without a command")
    if _at(delivery.payload, "issue", "pull_request") is not None:
        return Ignored("a command on a pull request")
    if text_at(delivery.payload, "sender", "type") != "User":
        return Ignored("a command by a bot")
    words = found[1].split()[:MOST_ARGUMENTS]
    command = Command(
        **delivery.on_issue(),
        comment_id=delivery.id("comment", "id"),
        login=delivery.text("sender", "login"),
        user_id=delivery.id("sender", "id"),
        is_author=_at(delivery.payload, "issue", "user", "id") == delivery.id("sender", "id"),
        arguments=tuple(word[:ARGUMENT_LIMIT] for word in words),
    )
    return (command,)


def _comment_deleted(delivery: _Delivery) -> tuple[Ask, ...] | Ignored:
    if delivery.id("comment", "user", "id") not in delivery.bot_ids:
        return Ignored("a comment that was not the bot's was deleted")
    if delivery.by_bot():
        return Ignored("the bot deleted its own comment")
    marker = delivery.marker("comment")
    deleted = DeletedComment(
        **delivery.on_issue(),
        comment_id=delivery.id("comment", "id"),
        effect_key=marker.effect_key if marker else "",
    )
    return (deleted,)


def _issue_opened(delivery: _Delivery) -> tuple[Ask, ...] | Ignored:
    if delivery.by_bot():
        return _seen(delivery, "issue")
    if text_at(delivery.payload, "sender", "type") != "User":
        return Ignored("an issue opened by a bot is left to the schedule")
    login, user_id = delivery.text("sender", "login"), delivery.id("sender", "id")
    return (Opened(**delivery.on_issue(), login=login, user_id=user_id),)


def _seen(delivery: _Delivery, thing: str) -> tuple[Ask, ...] | Ignored:
    if delivery.id(thing, "user", "id") not in delivery.bot_ids:
        return Ignored("the bot's own deed")
    marker = delivery.marker(thing)
    if marker is None:
        return Ignored("the bot's own, without a valid marker")
    seen = SeenEffect(
        **delivery.on_issue(),
        effect_key=marker.effect_key,
        run=marker.run,
        digest=marker.digest,
        github_id=delivery.id(thing, "id"),
        url=delivery.url(thing),
    )
    return (seen,)


def _label_removed(delivery: _Delivery) -> tuple[Ask, ...] | Ignored:
    if delivery.by_bot():
        return Ignored("the bot removed its own label")
    if _at(delivery.payload, "issue", "pull_request") is not None:
        return Ignored("a label of a pull request")
    return (RemovedLabel(**delivery.on_issue(), label=delivery.text("label", "name")),)


def _installed(delivery: _Delivery) -> tuple[Ask, ...]:
    installation = str(delivery.id("installation", "id"))
    named = delivery.repositories("repositories")
    return (Installed(installation=installation, repositories=named),)


def _uninstalled(delivery: _Delivery) -> tuple[Ask, ...]:
    installation = str(delivery.id("installation", "id"))
    named = delivery.repositories("repositories")
    return (Removed(installation=installation, whole=True, repositories=named),)


def _selection_changed(delivery: _Delivery) -> tuple[Ask, ...] | Ignored:
    installation = str(delivery.id("installation", "id"))
    added = delivery.repositories("repositories_added")
    removed = delivery.repositories("repositories_removed")
    asks: list[Ask] = []
    if removed:
        asks.append(Removed(installation=installation, whole=False, repositories=removed))
    if added:
        asks.append(Installed(installation=installation, repositories=added))
    return tuple(asks) or Ignored("no repository is named")


def _repository_changed(delivery: _Delivery) -> tuple[Ask, ...]:
    return (RepositoryChanged(**delivery.in_repository(), change=delivery.text("action")),)


_Reader = Callable[[_Delivery], tuple[Ask, ...] | Ignored]
_READERS: Mapping[tuple[str, str], _Reader] = {
    ("issue_comment", "created"): _comment_created,
    ("issue_comment", "deleted"): _comment_deleted,
    ("issues", "opened"): _issue_opened,
    ("issues", "unlabeled"): _label_removed,
    ("installation", "created"): _installed,
    ("installation", "unsuspend"): _installed,
    ("installation", "new_permissions_accepted"): _installed,
    ("installation", "deleted"): _uninstalled,
    ("installation", "suspend"): _uninstalled,
    ("installation_repositories", "added"): _selection_changed,
    ("installation_repositories", "removed"): _selection_changed,
    ("repository", "renamed"): _repository_changed,
    ("repository", "transferred"): _repository_changed,
    ("repository", "archived"): _repository_changed,
    ("repository", "unarchived"): _repository_changed,
    ("repository", "deleted"): _repository_changed,
}

_MEANING: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("issue_comment", "created"): ("comment.id", "comment.updated_at"),
    ("issue_comment", "deleted"): ("comment.id",),
    ("issues", "opened"): ("repository.id", "issue.id"),
    ("issues", "unlabeled"): ("issue.id", "label.name", "issue.updated_at"),
}

_IGNORED: Mapping[str, str] = {
    "issues": "issues are read again before each write",
    "issue_comment": "only new and deleted comments count",
    "installation": "nothing here depends on it",
    "installation_repositories": "nothing here depends on it",
    "repository": "nothing here depends on it",
    "label": "labels are read again before each write",
    "ping": "ping",
    "github_app_authorization": "nobody's sign-in is kept in the queue",
    "installation_target": "repositories are addressed by id, and names are read again",
}


def _why_ignored(event: str, action: str) -> str:
    reason = _IGNORED.get(event)
    if reason is None:
        return "an event that is not listened to"
    return f"{action[:40]}: {reason}" if action else reason


# --- Tolerant reading ---------------------------------------------------------------------------


class _LackingError(Exception):
    """A field that is needed is not there, or of another shape."""


def _at(value: Any, *path: str) -> Any:
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def text_at(value: Any, *path: str) -> str:
    """The text at a path, empty where there is none; half a surrogate pair becomes '?'."""
    found = _at(value, *path)
    if not isinstance(found, str):
        return ""
    return found if found.isascii() else found.encode("utf-8", "replace").decode()


def _repository(item: Any) -> Repository | None:
    identifier, full_name = _at(item, "id"), text_at(item, "full_name")
    known = isinstance(identifier, int) and not isinstance(identifier, bool)
    if not known or not 0 < identifier <= _LARGEST_ID or not _FULL_NAME.fullmatch(full_name):
        return None
    return Repository(id=identifier, full_name=full_name)
