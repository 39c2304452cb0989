"""The state as plain values: for asserts, and as JSON."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from sandbox.github.state import Account, App, Comment, Installation, Issue, IssueState, Repository
from sandbox.github.wire import Json
from sandbox.github.world import World


@dataclass(frozen=True, slots=True)
class SeenIssue:
    number: int
    id: int
    title: str
    body: str
    author: str
    state: str
    labels: tuple[str, ...]
    locked: bool
    comments: int
    created_at: str
    updated_at: str
    pull_request: bool


@dataclass(frozen=True, slots=True)
class SeenComment:
    id: int
    body: str
    author: str
    created_at: str
    updated_at: str
    reactions: tuple[str, ...]


def whole_state(world: World) -> Json:
    return {
        "now": world.now_stamp(),
        "accounts": [_plain_account(each) for each in world.accounts.values()],
        "apps": [_plain_app(each) for each in world.apps.values()],
        "installations": [_plain_installation(each) for each in world.installations.values()],
        "repositories": [_plain_repository(each) for each in world.repositories.values()],
    }


def _plain_repository(found: Repository) -> Json:
    return {
        "id": found.id,
        "full_name": found.full_name,
        "private": found.private,
        "archived": found.archived,
        "labels": [each.name for each in found.labels.values()],
        "collaborators": {login: role.name.lower() for login, role in found.collaborators.items()},
        "files": dict(found.files),
        "head": found.commits[-1].sha if found.commits else None,
        "issues": [
            {
                **dataclasses.asdict(seen_issue(issue, now)),
                "comments": [
                    dataclasses.asdict(seen_comment(comment))
                    for comment in found.comments_of[issue.number]
                    if comment.history.latest is not None
                ],
                "reactions": [f"{r.content} {r.user.login}" for r in issue.reactions],
                "events": [
                    {"event": e.event, "actor": e.actor.login, "at": e.created_at, **e.detail}
                    for e in found.events_of[issue.number]
                ],
            }
            for issue in found.issues.values()
            if (now := issue.history.latest) is not None
        ],
        "gone": [
            {"number": issue.number, "moved_to": _place(issue.moved_to)}
            for issue in found.issues.values()
            if issue.history.latest is None
        ],
    }


def _place(issue: Issue | None) -> str | None:
    return None if issue is None else f"{issue.repository.full_name}#{issue.number}"


def seen_issue(issue: Issue, state: IssueState) -> SeenIssue:
    return SeenIssue(
        number=issue.number,
        id=issue.id,
        title=state.title,
        body=state.body or "",
        author=issue.author.login,
        state=state.state,
        labels=tuple(each.name for each in state.labels),
        locked=state.locked,
        comments=state.comments,
        created_at=issue.created_at,
        updated_at=state.updated_at,
        pull_request=issue.is_pull_request,
    )


def seen_comment(comment: Comment) -> SeenComment:
    state = comment.history.latest
    if state is None:
        raise LookupError(f"comment {comment.id} is gone")
    return SeenComment(
        id=comment.id,
        body=state.body,
        author=comment.author.login,
        created_at=comment.created_at,
        updated_at=state.updated_at,
        reactions=tuple(f"{each.content} {each.user.login}" for each in comment.reactions),
    )


def _plain_account(account: Account) -> Json:
    return {"id": account.id, "login": account.login, "type": account.type}


def _plain_app(app: App) -> Json:
    return {
        "id": app.id,
        "slug": app.slug,
        "bot": app.bot.login,
        "bot_id": app.bot.id,
        "permissions": dict(app.permissions),
        "hook": None if app.hook is None else app.hook.url,
    }


def _plain_installation(installation: Installation) -> Json:
    ids = installation.repository_ids
    return {
        "id": installation.id,
        "app": installation.app.slug,
        "account": installation.account.login,
        "repository_ids": None if ids is None else sorted(ids),
        "permissions": dict(installation.permissions),
        "suspended_at": installation.suspended_at,
        "deleted": installation.deleted,
    }
