"""Issues, comments, labels, reactions and events as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from sandbox.github.shapes.accounts import app, node_id, user
from sandbox.github.state import (
    Account,
    Comment,
    CommentState,
    Event,
    Issue,
    IssueState,
    Label,
    Reaction,
    Repository,
    Role,
)
from sandbox.github.wire import Json

REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")


def repository_url(repository: Repository, base: str) -> str:
    return f"{base}/repos/{repository.full_name}"


def label(subject: Label, repository: Repository, base: str) -> Json:
    return {
        "id": subject.id,
        "node_id": node_id("LA", subject.id),
        "url": f"{base}/repos/{repository.full_name}/labels/{quote(subject.name, safe='')}",
        "name": subject.name,
        "color": subject.color,
        "default": subject.default,
        "description": subject.description,
        "archived_at": None,
        "archived_by": None,
    }


def reactions(url: str, given: Sequence[Reaction]) -> Json:
    counts: Json = {"url": f"{url}/reactions", "total_count": len(given)}
    for content in REACTIONS:
        counts[content] = sum(1 for each in given if each.content == content) if given else 0
    return counts


def reaction(subject: Reaction, base: str) -> Json:
    return {
        "id": subject.id,
        "node_id": node_id("REA", subject.id),
        "user": user(subject.user, base),
        "content": subject.content,
        "created_at": subject.created_at,
    }


def association(author: Account, repository: Repository) -> str:
    if author is repository.owner:
        return "OWNER"
    login = author.login.lower()
    if login in repository.owner.members:
        return "MEMBER"
    if repository.collaborators.get(login, Role.NONE) > Role.NONE:
        return "COLLABORATOR"
    return "NONE"


def issue(subject: Issue, state: IssueState, base: str) -> Json:
    repository = subject.repository
    repo_url = f"{base}/repos/{repository.full_name}"
    url = f"{repo_url}/issues/{subject.number}"
    kind = "pull" if subject.is_pull_request else "issues"
    page = f"{base}/{repository.full_name}/{kind}/{subject.number}"
    content: Json = {
        "url": url,
        "repository_url": repo_url,
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "html_url": page,
        "id": subject.id,
        "node_id": node_id("PR" if subject.is_pull_request else "I", subject.id),
        "number": subject.number,
        "title": state.title,
        "user": user(subject.author, base),
        "labels": [label(each, repository, base) for each in state.labels],
        "state": state.state,
        "locked": state.locked,
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "comments": state.comments,
        "created_at": subject.created_at,
        "updated_at": state.updated_at,
        "closed_at": state.closed_at,
        "author_association": association(subject.author, repository),
        "type": None,
        "active_lock_reason": state.lock_reason,
        "sub_issues_summary": {"total": 0, "completed": 0, "percent_completed": 0},
        "issue_dependencies_summary": {
            "blocked_by": 0,
            "total_blocked_by": 0,
            "blocking": 0,
            "total_blocking": 0,
        },
        "body": state.body,
        "closed_by": None if state.closed_by is None else user(state.closed_by, base),
        "reactions": reactions(url, subject.reactions),
        "timeline_url": f"{url}/timeline",
        "performed_via_github_app": None if subject.app is None else app(subject.app, base),
        "state_reason": state.state_reason,
    }
    if subject.is_pull_request:
        content["draft"] = False
        content["pull_request"] = {
            "url": f"{repo_url}/pulls/{subject.number}",
            "html_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            "merged_at": None,
        }
    if subject.suggestions:
        content["suggestions"] = {"labels": [{"name": n} for n in subject.suggestions]}
    return content


def comment(subject: Comment, state: CommentState, base: str) -> Json:
    owner = subject.issue
    repo_url = f"{base}/repos/{owner.repository.full_name}"
    url = f"{repo_url}/issues/comments/{subject.id}"
    kind = "pull" if owner.is_pull_request else "issues"
    return {
        "url": url,
        "html_url": (
            f"{base}/{owner.repository.full_name}/{kind}/{owner.number}#issuecomment-{subject.id}"
        ),
        "issue_url": f"{repo_url}/issues/{owner.number}",
        "id": subject.id,
        "node_id": node_id("IC", subject.id),
        "user": user(subject.author, base),
        "created_at": subject.created_at,
        "updated_at": state.updated_at,
        "author_association": association(subject.author, owner.repository),
        "body": state.body,
        "reactions": reactions(url, subject.reactions),
        "performed_via_github_app": None if subject.app is None else app(subject.app, base),
    }


def event(subject: Event, base: str) -> Json:
    """As in an issue's own list (without the issue)."""
    repo_url = f"{base}/repos/{subject.issue.repository.full_name}"
    return {
        "id": subject.id,
        "node_id": node_id(_EVENT_NODES.get(subject.event, "EV"), subject.id),
        "url": f"{repo_url}/issues/events/{subject.id}",
        "actor": user(subject.actor, base),
        "event": subject.event,
        "commit_id": None,
        "commit_url": None,
        "created_at": subject.created_at,
        "performed_via_github_app": None if subject.app is None else app(subject.app, base),
        **subject.detail,
    }


_EVENT_NODES = {
    "labeled": "LE",
    "unlabeled": "UNLE",
    "closed": "CE",
    "reopened": "REE",
    "locked": "LOE",
    "unlocked": "UNLOE",
    "renamed": "RTE",
    "transferred": "TRE",
}


def timeline_comment(subject: Comment, state: CommentState, base: str) -> Json:
    return {
        **comment(subject, state, base),
        "event": "commented",
        "actor": user(subject.author, base),
    }
