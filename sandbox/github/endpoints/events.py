"""What happened to issues: events and timelines."""

from __future__ import annotations

from sandbox.github.call import Call
from sandbox.github.routing import Route
from sandbox.github.shapes import issues as shape
from sandbox.github.state import Event
from sandbox.github.views import View
from sandbox.github.wire import Json, Respond, not_found, respond_json


def list_of_issue(call: Call) -> Respond:
    """Oldest first."""
    issue, _ = call.issue()
    seen = [e for e in issue.repository.events_of[issue.number] if call.sight.sees(e.at)]
    return call.page(seen, lambda each: shape.event(each, call.base))


def list_of_repository(call: Call) -> Respond:
    """Newest first, each with its issue."""
    seen = [
        each
        for each in reversed(call.repository.events)
        if call.sight.sees(each.at) and each.issue.history.latest is not None
    ]
    return call.page(seen, lambda each: _with_issue(call, each))


def get_event(call: Call) -> Respond:
    wished = call.number("id")
    found = next((each for each in call.repository.events if each.id == wished), None)
    if found is None or not call.sight.sees(found.at):
        raise not_found()
    return respond_json(200, _with_issue(call, found))


def timeline(call: Call) -> Respond:
    """Events and comments together, oldest first."""
    issue, _ = call.issue()
    repository = issue.repository
    entries: list[tuple[str, int, Json]] = [
        (each.created_at, 0, shape.event(each, call.base))
        for each in repository.events_of[issue.number]
        if call.sight.sees(each.at)
    ]
    entries.extend(
        (comment.created_at, comment.id, shape.timeline_comment(comment, state, call.base))
        for comment in repository.comments_of[issue.number]
        if (state := call.sight.see(comment.history)) is not None
    )
    entries.sort(key=lambda each: each[:2])
    return call.page(entries, lambda each: each[2])


def _with_issue(call: Call, event: Event) -> Json:
    content = shape.event(event, call.base)
    state = event.issue.history.latest
    if state is not None:
        content["issue"] = shape.issue(event.issue, state, call.base)
    return content


ROUTES = [
    Route("GET", "issues/events", list_of_repository, "issues", View.EVENTS, in_repository=True),
    Route("GET", "issues/events/{id}", get_event, "issues", View.EVENTS, in_repository=True),
    Route(
        "GET", "issues/{number}/events", list_of_issue, "issues", View.EVENTS, in_repository=True
    ),
    Route("GET", "issues/{number}/timeline", timeline, "issues", View.EVENTS, in_repository=True),
]
