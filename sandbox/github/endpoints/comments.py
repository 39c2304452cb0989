"""Comments: of an issue, of the whole repository, one by id."""

from __future__ import annotations

from sandbox.github import deeds
from sandbox.github.auth import Kind
from sandbox.github.call import Call
from sandbox.github.routing import Route
from sandbox.github.shapes import issues as shape
from sandbox.github.state import Comment, CommentState, Role
from sandbox.github.views import View
from sandbox.github.wire import ApiError, Respond, invalid, respond_json

LOCKED = "Unable to create comment because issue is locked."
LOCKED_DOCUMENTATION = "https://docs.github.com/articles/locking-conversations/"
Seen = tuple[Comment, CommentState]


def list_of_issue(call: Call) -> Respond:
    """Oldest first; `since` goes by `updated_at`."""
    issue, _ = call.issue()
    seen = _seen(call, issue.repository.comments_of[issue.number])
    return call.page(seen, lambda each: shape.comment(*each, call.base))


def list_of_repository(call: Call) -> Respond:
    """By ascending id; with `sort` (created or updated) by that, `direction` then counts."""
    seen = _seen(call, list(call.repository.comments.values()))
    sort = call.query.get("sort")
    if sort is None:
        seen.sort(key=lambda each: each[0].id)
    else:
        seen.sort(
            key=_by_updated if sort == "updated" else _by_created,
            reverse=call.query.get("direction", "desc") != "asc",
        )
    return call.page(seen, lambda each: shape.comment(*each, call.base))


def _seen(call: Call, comments: list[Comment]) -> list[Seen]:
    since = call.since()
    return [
        (comment, state)
        for comment in comments
        if (state := call.sight.see(comment.history)) is not None
        and (since is None or state.updated_at >= since)
    ]


def _by_created(seen: Seen) -> tuple[str, int]:
    return seen[0].created_at, seen[0].id


def _by_updated(seen: Seen) -> tuple[str, int]:
    return seen[1].updated_at, seen[0].id


def create_comment(call: Call) -> Respond:
    issue, state = call.issue()
    body = _body(call)
    if state.locked and (call.caller.kind is not Kind.USER or not call.has_role(Role.WRITE)):
        raise ApiError(403, LOCKED, documentation=LOCKED_DOCUMENTATION)
    comment = deeds.post_comment(call.world, call.doer, issue, body)
    answer = _shaped(call, comment)
    return respond_json(201, answer, {"location": str(answer["url"])})


def get_comment(call: Call) -> Respond:
    return respond_json(200, shape.comment(*call.comment(), call.base))


def update_comment(call: Call) -> Respond:
    comment, _ = call.comment()
    _require_own_or_write(call, comment)
    deeds.edit_comment(call.world, call.doer, comment, _body(call))
    return respond_json(200, _shaped(call, comment))


def delete_comment(call: Call) -> Respond:
    comment, _ = call.comment()
    _require_own_or_write(call, comment)
    deeds.delete_comment(call.world, call.doer, comment)
    return Respond(204)


def _require_own_or_write(call: Call, comment: Comment) -> None:
    if comment.author is not call.caller.account:
        call.require_role(Role.WRITE)


def _body(call: Call) -> str:
    body = call.json().get("body")
    if body is None:
        raise invalid("IssueComment", "body", "missing_field")
    if not isinstance(body, str):
        raise invalid("IssueComment", "body", "invalid")
    if not body.strip():
        raise invalid("IssueComment", "body", "missing", "body cannot be blank")
    if len(body) > deeds.LONGEST_BODY:
        raise invalid(
            "IssueComment",
            "body",
            "unprocessable",
            "Body is too long (maximum is 65536 characters)",
        )
    return body


def _shaped(call: Call, comment: Comment) -> dict[str, object]:
    state = comment.history.latest
    if state is None:
        raise ApiError(404, "Not Found")
    return shape.comment(comment, state, call.base)


ROUTES = [
    Route(
        "GET",
        "issues/comments",
        list_of_repository,
        "issues",
        View.REPOSITORY_COMMENTS,
        in_repository=True,
    ),
    Route("GET", "issues/comments/{id}", get_comment, "issues", View.COMMENT, in_repository=True),
    Route("PATCH", "issues/comments/{id}", update_comment, "issues", in_repository=True),
    Route("DELETE", "issues/comments/{id}", delete_comment, "issues", in_repository=True),
    Route(
        "GET",
        "issues/{number}/comments",
        list_of_issue,
        "issues",
        View.ISSUE_COMMENTS,
        in_repository=True,
    ),
    Route("POST", "issues/{number}/comments", create_comment, "issues", in_repository=True),
]
