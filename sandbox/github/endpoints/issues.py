"""Issues: listing, reading, opening, changing, locking."""

from __future__ import annotations

from sandbox.github import deeds
from sandbox.github.call import Call
from sandbox.github.endpoints.labels import check_count, checked_name
from sandbox.github.routing import Route
from sandbox.github.shapes import issues as shape
from sandbox.github.state import Issue, IssueState, Role
from sandbox.github.views import View
from sandbox.github.wire import ApiError, Json, Respond, invalid, respond_json

LONGEST_TITLE = 256
Seen = tuple[Issue, IssueState]


def list_issues(call: Call) -> Respond:
    """`state`, `labels`, `creator`, `since`, `sort`, `direction`. Pull requests are among them."""
    call_has_issues(call)
    found = [
        (issue, state)
        for issue in call.repository.issues.values()
        if (state := call.sight.see(issue.history)) is not None and _wanted(call, issue, state)
    ]
    since = call.since()
    if since is not None:
        found = [seen for seen in found if seen[1].updated_at >= since]
    key = _SORTS.get(call.query.get("sort", "created"), _SORTS["created"])
    found.sort(key=key, reverse=call.query.get("direction", "desc") != "asc")
    return call.page(found, lambda seen: shape.issue(*seen, call.base))


def _wanted(call: Call, issue: Issue, state: IssueState) -> bool:
    query = call.query
    wished_state = query.get("state", "open")
    if wished_state not in ("all", state.state):
        return False
    creator = query.get("creator")
    if creator and issue.author.login.lower() != creator.lower():
        return False
    labels = query.get("labels")
    if labels:
        on_issue = {each.name.lower() for each in state.labels}
        return all(name.strip().lower() in on_issue for name in labels.split(","))
    return True


def _by_created(seen: Seen) -> tuple[str, int]:
    return seen[0].created_at, seen[0].number


def _by_updated(seen: Seen) -> tuple[str, int]:
    return seen[1].updated_at, seen[0].number


def _by_comments(seen: Seen) -> tuple[int, int]:
    return seen[1].comments, seen[0].number


_SORTS = {"created": _by_created, "updated": _by_updated, "comments": _by_comments}


def get_issue(call: Call) -> Respond:
    issue, state = call.seen_issue()
    return respond_json(200, shape.issue(issue, state, call.base))


def create_issue(call: Call) -> Respond:
    """Labels by someone without the right to triage are dropped silently, as at GitHub."""
    call_has_issues(call)
    content = call.json()
    title = _title(content, required=True)
    body = _body(content)
    labels = _labels(content)
    check_count(labels)
    issue = deeds.create_issue(
        call.world,
        call.doer,
        call.repository,
        title or "",
        body,
        labels=labels if call.has_role(Role.TRIAGE) else (),
    )
    answer = shape.issue(issue, deeds.current(issue), call.base)
    return respond_json(201, answer, {"location": str(answer["url"])})


def update_issue(call: Call) -> Respond:
    issue, state = call.issue()
    content = call.json()
    if issue.author is not call.caller.account:
        call.require_role(Role.TRIAGE)
    title, body = _title(content, required=False), _body(content)
    wished_state, labels = content.get("state"), _labels(content)
    if wished_state not in (None, "open", "closed"):
        raise invalid("Issue", "state", "invalid")
    reason = content.get("state_reason")
    if reason not in (None, "completed", "not_planned", "duplicate", "reopened"):
        raise invalid("Issue", "state_reason", "invalid")
    check_count(labels)
    world, doer = call.world, call.doer
    deeds.edit_issue(world, doer, issue, title=title, body=body)
    if wished_state == "closed":
        deeds.close_issue(world, doer, issue, str(reason or state.state_reason or "completed"))
    elif wished_state == "open":
        deeds.reopen_issue(world, doer, issue)
    if "labels" in content and call.has_role(Role.TRIAGE):
        deeds.set_labels(world, doer, issue, labels)
    return respond_json(200, shape.issue(issue, deeds.current(issue), call.base))


def lock_issue(call: Call) -> Respond:
    issue, _ = call.issue()
    call.require_role(Role.WRITE)
    reason = call.json().get("lock_reason")
    if reason not in (None, "off-topic", "too heated", "resolved", "spam"):
        raise invalid("Issue", "lock_reason", "invalid")
    deeds.lock_issue(call.world, call.doer, issue, None if reason is None else str(reason))
    return Respond(204)


def unlock_issue(call: Call) -> Respond:
    issue, _ = call.issue()
    call.require_role(Role.WRITE)
    deeds.unlock_issue(call.world, call.doer, issue)
    return Respond(204)


def call_has_issues(call: Call) -> None:
    if not call.repository.has_issues:
        raise ApiError(410, "Issues has been disabled in this repository.")


def _title(content: Json, *, required: bool) -> str | None:
    title = content.get("title")
    if title is None and not required:
        return None
    if not isinstance(title, (str, int)) or not str(title).strip():
        raise invalid("Issue", "title", "missing_field")
    if len(str(title)) > LONGEST_TITLE:
        raise invalid("Issue", "title", "custom", "title is too long (maximum is 256 characters)")
    return str(title)


def _body(content: Json) -> str | None:
    body = content.get("body")
    if body is None:
        return None
    if not isinstance(body, str):
        raise invalid("Issue", "body", "invalid")
    if len(body) > deeds.LONGEST_BODY:
        raise invalid("Issue", "body", "custom", "body is too long (maximum is 65536 characters)")
    return body


def _labels(content: Json) -> list[str]:
    labels = content.get("labels") or []
    if not isinstance(labels, list):
        raise invalid("Issue", "labels", "invalid")
    return [checked_name(each) for each in labels]


ROUTES = [
    Route("GET", "issues", list_issues, "issues", View.ISSUES, in_repository=True),
    Route("POST", "issues", create_issue, "issues", in_repository=True),
    Route("GET", "issues/{number}", get_issue, "issues", View.ISSUE, in_repository=True),
    Route("PATCH", "issues/{number}", update_issue, "issues", in_repository=True),
    Route("PUT", "issues/{number}/lock", lock_issue, "issues", in_repository=True),
    Route("DELETE", "issues/{number}/lock", unlock_issue, "issues", in_repository=True),
]
