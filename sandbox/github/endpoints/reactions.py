"""Reactions on issues and comments: giving one twice is giving it once."""

from __future__ import annotations

from sandbox.github import deeds
from sandbox.github.call import Call
from sandbox.github.routing import Route
from sandbox.github.shapes import issues as shape
from sandbox.github.state import Comment, Issue, Role
from sandbox.github.wire import Respond, invalid, not_found, respond_json


def list_of_issue(call: Call) -> Respond:
    return _listed(call, call.issue()[0])


def add_to_issue(call: Call) -> Respond:
    return _added(call, call.issue()[0])


def delete_from_issue(call: Call) -> Respond:
    return _deleted(call, call.issue()[0])


def list_of_comment(call: Call) -> Respond:
    return _listed(call, call.comment()[0])


def add_to_comment(call: Call) -> Respond:
    return _added(call, call.comment()[0])


def delete_from_comment(call: Call) -> Respond:
    return _deleted(call, call.comment()[0])


def _listed(call: Call, subject: Issue | Comment) -> Respond:
    content = call.query.get("content")
    found = [each for each in subject.reactions if content in (None, "", each.content)]
    return call.page(found, lambda each: shape.reaction(each, call.base))


def _added(call: Call, subject: Issue | Comment) -> Respond:
    content = call.json().get("content")
    if not isinstance(content, str) or content not in shape.REACTIONS:
        raise invalid("Reaction", "content", "invalid")
    reaction, is_new = deeds.react(call.world, call.doer, subject, content)
    return respond_json(201 if is_new else 200, shape.reaction(reaction, call.base))


def _deleted(call: Call, subject: Issue | Comment) -> Respond:
    wished = call.number("reaction")
    reaction = next((each for each in subject.reactions if each.id == wished), None)
    if reaction is None:
        raise not_found()
    if reaction.user is not call.caller.account:
        call.require_role(Role.WRITE)
    subject.reactions.remove(reaction)
    return Respond(204)


_COMMENT, _ISSUE = "issues/comments/{id}/reactions", "issues/{number}/reactions"
ROUTES = [
    Route("GET", _COMMENT, list_of_comment, "issues", in_repository=True),
    Route("POST", _COMMENT, add_to_comment, "issues", in_repository=True),
    Route("DELETE", _COMMENT + "/{reaction}", delete_from_comment, "issues", in_repository=True),
    Route("GET", _ISSUE, list_of_issue, "issues", in_repository=True),
    Route("POST", _ISSUE, add_to_issue, "issues", in_repository=True),
    Route("DELETE", _ISSUE + "/{reaction}", delete_from_issue, "issues", in_repository=True),
]
