"""What happens to issues."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from sandbox.github.clock import stamp
from sandbox.github.deeds.doer import Doer, change, current, named, record, tell
from sandbox.github.deeds.labels import find_or_make_label
from sandbox.github.history import History
from sandbox.github.state import Issue, IssueState, Repository
from sandbox.github.world import World


def create_issue(
    world: World,
    doer: Doer,
    repository: Repository,
    title: str,
    body: str | None = None,
    *,
    labels: Iterable[str] = (),
    created_at: str | None = None,
    is_pull_request: bool = False,
) -> Issue:
    at = world.clock.now()
    created = created_at or stamp(at)
    repository.last_number += 1
    issue = Issue(
        id=world.next_id("issue"),
        repository=repository,
        number=repository.last_number,
        author=doer.account,
        app=doer.app,
        created_at=created,
        is_pull_request=is_pull_request,
        history=History(at, IssueState(title=title, body=body, updated_at=created)),
    )
    repository.issues[issue.number] = issue
    repository.comments_of[issue.number] = []
    repository.events_of[issue.number] = []
    found = [find_or_make_label(world, doer, repository, name) for name in labels]
    if found:
        change(issue, at, labels=tuple(dict.fromkeys(found)))
    tell(world, doer, "opened", issue)
    for label in dict.fromkeys(found):
        record(world, doer, at, issue, "labeled", label=named(label))
        tell(world, doer, "labeled", issue, label=label)
    return issue


def edit_issue(
    world: World, doer: Doer, issue: Issue, *, title: str | None = None, body: str | None = None
) -> None:
    """None leaves a field as it is."""
    state = current(issue)
    changes: dict[str, object] = {}
    if title is not None and title != state.title:
        changes["title"] = {"from": state.title}
    if body is not None and body != state.body:
        changes["body"] = {"from": state.body or ""}
    if not changes:
        return
    at = world.clock.now()
    change(
        issue,
        at,
        title=state.title if title is None else title,
        body=state.body if body is None else body,
    )
    if "title" in changes:
        rename = {"from": state.title, "to": title}
        record(world, doer, at, issue, "renamed", rename=rename)
    tell(world, doer, "edited", issue, changes=changes)


def close_issue(world: World, doer: Doer, issue: Issue, reason: str = "completed") -> None:
    state = current(issue)
    if state.state == "closed" and state.state_reason == reason:
        return
    at = world.clock.now()
    change(
        issue,
        at,
        state="closed",
        state_reason=reason,
        closed_at=stamp(at),
        closed_by=doer.account,
    )
    if state.state != "closed":
        record(world, doer, at, issue, "closed", state_reason=reason)
        tell(world, doer, "closed", issue)


def reopen_issue(world: World, doer: Doer, issue: Issue) -> None:
    if current(issue).state == "open":
        return
    at = world.clock.now()
    change(issue, at, state="open", state_reason="reopened", closed_at=None, closed_by=None)
    record(world, doer, at, issue, "reopened", state_reason=None)
    tell(world, doer, "reopened", issue)


def lock_issue(world: World, doer: Doer, issue: Issue, reason: str | None = None) -> None:
    if current(issue).locked:
        return
    at = world.clock.now()
    change(issue, at, locked=True, lock_reason=reason)
    record(world, doer, at, issue, "locked", lock_reason=reason)
    tell(world, doer, "locked", issue)


def unlock_issue(world: World, doer: Doer, issue: Issue) -> None:
    if not current(issue).locked:
        return
    at = world.clock.now()
    change(issue, at, locked=False, lock_reason=None)
    record(world, doer, at, issue, "unlocked", lock_reason=None)
    tell(world, doer, "unlocked", issue)


def delete_issue(world: World, doer: Doer, issue: Issue) -> None:
    """From here on it answers 410, and its comments are gone with it."""
    current(issue)
    tell(world, doer, "deleted", issue)
    at = world.clock.now()
    issue.history.put(at, None)
    for comment in issue.repository.comments_of[issue.number]:
        if comment.history.latest is not None:
            comment.history.put(at, None)


def transfer_issue(world: World, doer: Doer, issue: Issue, to: Repository) -> Issue:
    """A new issue there, with the comments (they keep their ids); here it answers 301.

    Labels go along where the other repository has one of that name, as at GitHub.
    """
    state = current(issue)
    at = world.clock.now()
    to.last_number += 1
    labels = tuple(to.labels[k.name.lower()] for k in state.labels if k.name.lower() in to.labels)
    moved = Issue(
        id=world.next_id("issue"),
        repository=to,
        number=to.last_number,
        author=issue.author,
        app=issue.app,
        created_at=issue.created_at,
        is_pull_request=issue.is_pull_request,
        history=History(at, dataclasses.replace(state, labels=labels, updated_at=stamp(at))),
        reactions=issue.reactions,
    )
    to.issues[moved.number] = moved
    to.events_of[moved.number] = []
    tell(world, doer, "transferred", issue, moved_to=moved)
    comments = issue.repository.comments_of[issue.number]
    to.comments_of[moved.number] = comments
    issue.repository.comments_of[issue.number] = []
    for comment in comments:
        comment.issue = moved
        to.comments[comment.id] = issue.repository.comments.pop(comment.id)
    issue.history.put(at, None)
    issue.moved_to = moved
    record(world, doer, at, moved, "transferred")
    tell(world, doer, "opened", moved)
    return moved
