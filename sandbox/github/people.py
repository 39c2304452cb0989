"""People who act: what a test or a fault lets someone do, without asking for permission."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sandbox.github import deeds
from sandbox.github.deeds import Doer
from sandbox.github.faults import Struck
from sandbox.github.state import Comment, Issue, Repository

if TYPE_CHECKING:
    from sandbox.github.world import World

_TASK_BOX = re.compile(r"^(\s*[-*+]\s+\[)([ xX])(\].*)$", re.MULTILINE)


class Person:
    """`github.as_user("alice")`. Issues are named by repository and number, comments by id."""

    def __init__(self, world: World, doer: Doer) -> None:
        self._world = world
        self._doer = doer

    # Issues

    def open_issue(
        self,
        repo: str,
        title: str,
        body: str | None = None,
        *,
        labels: tuple[str, ...] = (),
        created_at: str | None = None,
        pull_request: bool = False,
    ) -> int:
        """Gives the number."""
        with self._world.lock:
            return deeds.create_issue(
                self._world,
                self._doer,
                self._world.repository(repo),
                title,
                body,
                labels=labels,
                created_at=created_at,
                is_pull_request=pull_request,
            ).number

    def edit_issue(
        self, repo: str, issue: int, *, title: str | None = None, body: str | None = None
    ) -> None:
        with self._world.lock:
            found = self._issue(repo, issue)
            deeds.edit_issue(self._world, self._doer, found, title=title, body=body)

    def close(self, repo: str, issue: int, reason: str = "completed") -> None:
        with self._world.lock:
            deeds.close_issue(self._world, self._doer, self._issue(repo, issue), reason)

    def reopen(self, repo: str, issue: int) -> None:
        with self._world.lock:
            deeds.reopen_issue(self._world, self._doer, self._issue(repo, issue))

    def lock(self, repo: str, issue: int, reason: str | None = None) -> None:
        with self._world.lock:
            deeds.lock_issue(self._world, self._doer, self._issue(repo, issue), reason)

    def unlock(self, repo: str, issue: int) -> None:
        with self._world.lock:
            deeds.unlock_issue(self._world, self._doer, self._issue(repo, issue))

    def delete_issue(self, repo: str, issue: int) -> None:
        with self._world.lock:
            deeds.delete_issue(self._world, self._doer, self._issue(repo, issue))

    def transfer(self, repo: str, issue: int, to: str) -> int:
        """Gives the number in the other repository."""
        with self._world.lock:
            target = self._world.repository(to)
            return deeds.transfer_issue(
                self._world, self._doer, self._issue(repo, issue), target
            ).number

    # Labels

    def label(self, repo: str, issue: int, *names: str) -> None:
        with self._world.lock:
            deeds.add_labels(self._world, self._doer, self._issue(repo, issue), names)

    def unlabel(self, repo: str, issue: int, *names: str) -> None:
        with self._world.lock:
            found = self._issue(repo, issue)
            labels = [found.repository.labels[name.lower()] for name in names]
            deeds.remove_labels(self._world, self._doer, found, labels)

    def create_label(self, repo: str, name: str, color: str = "ededed") -> None:
        with self._world.lock:
            deeds.create_label(self._world, self._doer, self._repository(repo), name, color)

    def edit_label(
        self,
        repo: str,
        name: str,
        *,
        new_name: str | None = None,
        color: str | None = None,
        description: str | None = None,
    ) -> None:
        with self._world.lock:
            repository = self._repository(repo)
            deeds.edit_label(
                self._world,
                self._doer,
                repository,
                repository.labels[name.lower()],
                name=new_name,
                color=color,
                description=description,
            )

    def delete_label(self, repo: str, name: str) -> None:
        """From the repository, and so from every issue."""
        with self._world.lock:
            repository = self._repository(repo)
            label = repository.labels[name.lower()]
            deeds.delete_label(self._world, self._doer, repository, label)

    # Comments

    def comment(self, repo: str, issue: int, body: str) -> int:
        """Gives the id."""
        with self._world.lock:
            return deeds.post_comment(self._world, self._doer, self._issue(repo, issue), body).id

    def edit_comment(self, repo: str, comment: int, body: str) -> None:
        with self._world.lock:
            deeds.edit_comment(self._world, self._doer, self._comment(repo, comment), body)

    def delete_comment(self, repo: str, comment: int) -> None:
        with self._world.lock:
            deeds.delete_comment(self._world, self._doer, self._comment(repo, comment))

    def tick_box(
        self,
        repo: str,
        issue: int | None = None,
        *,
        comment: int | None = None,
        box: int | str = 0,
        on: bool = True,
    ) -> None:
        """Ticks (or clears) a task box in the issue's text, or in the comment of that id: the
        `box`-th from 0, or the first whose line has that text.
        """
        with self._world.lock:
            if comment is not None:
                found = self._comment(repo, comment)
                body = ticked(self._body(found), box, on=on)
                deeds.edit_comment(self._world, self._doer, found, body)
            elif issue is not None:
                subject = self._issue(repo, issue)
                body = ticked(deeds.current(subject).body or "", box, on=on)
                deeds.edit_issue(self._world, self._doer, subject, body=body)
            else:
                raise ValueError("tick a box of which issue or comment?")

    def react(self, repo: str, issue: int, content: str, comment: int | None = None) -> None:
        """To the issue, or to the comment of that id."""
        with self._world.lock:
            subject = self._issue(repo, issue) if comment is None else self._comment(repo, comment)
            deeds.react(self._world, self._doer, subject, content)

    # Repositories

    def rename_repository(self, repo: str, name: str) -> None:
        """The former name goes on answering, with 301."""
        with self._world.lock:
            deeds.rename_repository(self._world, self._doer, self._repository(repo), name)

    def archive_repository(self, repo: str, *, on: bool = True) -> None:
        with self._world.lock:
            deeds.archive_repository(self._world, self._doer, self._repository(repo), on=on)

    def delete_repository(self, repo: str) -> None:
        with self._world.lock:
            deeds.delete_repository(self._world, self._doer, self._repository(repo))

    def make_private(self, repo: str, *, on: bool = True) -> None:
        with self._world.lock:
            deeds.make_private(self._world, self._doer, self._repository(repo), on=on)

    def _repository(self, repo: str) -> Repository:
        return self._world.repository(repo)

    def _issue(self, repo: str, number: int) -> Issue:
        return self._repository(repo).issues[number]

    def _comment(self, repo: str, id: int) -> Comment:
        return self._repository(repo).comments[id]

    def _body(self, comment: Comment) -> str:
        state = comment.history.latest
        if state is None:
            raise LookupError(f"comment {comment.id} is gone")
        return state.body


def ticked(body: str, box: int | str, *, on: bool) -> str:
    """The text with that box ticked or cleared. Raises LookupError."""
    boxes = list(_TASK_BOX.finditer(body))
    if isinstance(box, str):
        boxes, box = [each for each in boxes if box in each[3]], 0
    if not boxes:
        raise LookupError("no such box")
    place = boxes[box]
    return f"{body[: place.start(2)]}{'x' if on else ' '}{body[place.end(2) :]}"


ACTIONS = frozenset(
    name for name, _ in inspect.getmembers(Person, inspect.isfunction) if not name.startswith("_")
)


def person_acts(world: World, act: Mapping[str, object], struck: Struck | None = None) -> object:
    """`{"actor": "bob", "action": "lock", "repo": …, "issue": …}`.

    What a fault leaves out is taken from the request that it struck: repository, issue, and the
    comment, which may be the one that the request has just made. Raises ValueError.
    """
    content = dict(act)
    actor, action = content.pop("actor", None), content.pop("action", None)
    if not isinstance(actor, str) or not isinstance(action, str) or action not in ACTIONS:
        raise ValueError(f"who does what? actor and one of {', '.join(sorted(ACTIONS))}")
    person = Person(world, Doer(world.add_user(actor)))
    method = getattr(person, action)
    parameters = inspect.signature(method).parameters
    names = content.pop("names", content.pop("name", None)) if "names" in parameters else None
    if struck is not None:
        for key, value in _meant(struck).items():
            if key in parameters:
                content.setdefault(key, value)
    try:
        if names is None:
            return method(**content)
        listed = [names] if isinstance(names, str) else list(names)  # type: ignore[call-overload]
        return method(content.pop("repo"), content.pop("issue"), *listed, **content)
    except (TypeError, LookupError) as problem:
        raise ValueError(f"{action}: {problem}") from problem


def _meant(struck: Struck) -> dict[str, object]:
    """Repository, issue and comment of a request, from its path and its answer."""
    found: dict[str, object] = {}
    match = re.match(r"/repos/([^/]+/[^/]+)(?:/issues/(?:comments/(\d+)|(\d+)))?", struck.path)
    if match is None:
        return found
    found["repo"] = match[1]
    if match[2]:
        found["comment"] = int(match[2])
    if match[3]:
        found["issue"] = int(match[3])
    made = json.loads(struck.answer.body) if struck.answer and struck.answer.body else None
    if isinstance(made, dict):
        if "issue_url" in made and "id" in made:
            found["comment"] = made["id"]
            found["issue"] = int(str(made["issue_url"]).rsplit("/", 1)[-1])
        elif "number" in made:
            found["issue"] = made["number"]
    return found
