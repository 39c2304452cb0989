"""Labels of a repository and on an issue."""

from __future__ import annotations

import re

from sandbox.github import deeds
from sandbox.github.call import Call
from sandbox.github.routing import Route
from sandbox.github.shapes import issues as shape
from sandbox.github.state import Issue, Label, Role
from sandbox.github.views import View
from sandbox.github.wire import ApiError, Respond, invalid, not_found, respond_json

LONGEST_NAME = 50


def list_labels(call: Call) -> Respond:
    repository = call.repository
    return call.page(
        sorted(repository.labels.values(), key=lambda each: each.name.lower()),
        lambda each: shape.label(each, repository, call.base),
    )


def get_label(call: Call) -> Respond:
    return respond_json(200, shape.label(_label(call), call.repository, call.base))


def create_label(call: Call) -> Respond:
    call.require_role(Role.WRITE)
    content = call.json()
    name = checked_name(content.get("name"))
    if name.lower() in call.repository.labels:
        raise invalid("Label", "name", "already_exists")
    description = content.get("description")
    made = deeds.create_label(
        call.world,
        call.doer,
        call.repository,
        name,
        _color(content.get("color")) or "ededed",
        description if isinstance(description, str) else None,
    )
    return respond_json(201, shape.label(made, call.repository, call.base))


def update_label(call: Call) -> Respond:
    call.require_role(Role.WRITE)
    label, content = _label(call), call.json()
    new_name, description = content.get("new_name"), content.get("description")
    deeds.edit_label(
        call.world,
        call.doer,
        call.repository,
        label,
        name=None if new_name is None else checked_name(new_name),
        color=_color(content.get("color")),
        description=description if isinstance(description, str) else None,
    )
    return respond_json(200, shape.label(label, call.repository, call.base))


def delete_label(call: Call) -> Respond:
    call.require_role(Role.WRITE)
    deeds.delete_label(call.world, call.doer, call.repository, _label(call))
    return Respond(204)


def list_on_issue(call: Call) -> Respond:
    issue, state = call.seen_issue()
    return call.page(state.labels, lambda each: shape.label(each, issue.repository, call.base))


def add_to_issue(call: Call) -> Respond:
    """Unknown labels are created. `suggest: true` records one without applying it."""
    issue, state = call.issue()
    call.require_role(Role.TRIAGE)
    applied, suggested = _wished(call)
    kept = dict.fromkeys([*issue.suggestions, *suggested])
    issue.suggestions = [each for each in kept if each not in applied]
    check_count([*(each.name for each in state.labels), *applied])
    deeds.add_labels(call.world, call.doer, issue, applied)
    return _labels_now(call, issue)


def replace_on_issue(call: Call) -> Respond:
    issue, _ = call.issue()
    call.require_role(Role.TRIAGE)
    wished, _ = _wished(call)
    check_count(wished)
    deeds.set_labels(call.world, call.doer, issue, wished)
    return _labels_now(call, issue)


def clear_issue(call: Call) -> Respond:
    issue, state = call.issue()
    call.require_role(Role.TRIAGE)
    deeds.remove_labels(call.world, call.doer, issue, state.labels)
    return Respond(204)


def remove_from_issue(call: Call) -> Respond:
    issue, state = call.issue()
    call.require_role(Role.TRIAGE)
    name = call.params["name"].lower()
    label = next((each for each in state.labels if each.name.lower() == name), None)
    if label is None:
        raise ApiError(404, "Label does not exist")
    deeds.remove_labels(call.world, call.doer, issue, [label])
    return _labels_now(call, issue)


def checked_name(name: object) -> str:
    """A label's name as GitHub would take it. Raises 422."""
    text = label_name(name)
    if text is None or not text.strip():
        raise invalid("Label", "name", "missing_field")
    if len(text) > LONGEST_NAME:
        raise invalid("Label", "name", "custom", "name is too long (maximum is 50 characters)")
    return text.strip()


def label_name(wish: object) -> str | None:
    """Labels are named by a string or by an object with a `name`."""
    if isinstance(wish, dict):
        wish = wish.get("name")
    return wish if isinstance(wish, str) else None


def _color(wish: object) -> str | None:
    """Six hexadecimal digits, or None if none are asked for. Raises 422."""
    if wish is None:
        return None
    if not isinstance(wish, str) or not re.fullmatch(r"[0-9a-fA-F]{6}", wish):
        raise invalid("Label", "color", "invalid")
    return wish.lower()


def check_count(names: list[str]) -> None:
    if len({name.lower() for name in names}) > deeds.MOST_LABELS:
        raise invalid(
            "Issue", "labels", "custom", f"An issue can have at most {deeds.MOST_LABELS} labels"
        )


def _wished(call: Call) -> tuple[list[str], list[str]]:
    """The labels to apply and those only to suggest."""
    content = call.any_json() if call.request.body else {}
    wishes = content.get("labels") if isinstance(content, dict) else content
    if not isinstance(wishes, list):
        raise invalid("Issue", "labels", "missing_field")
    applied: list[str] = []
    suggested: list[str] = []
    for wish in wishes:
        only_suggest = call.suggest_labels or (isinstance(wish, dict) and wish.get("suggest"))
        (suggested if only_suggest else applied).append(checked_name(wish))
    return applied, suggested


def _labels_now(call: Call, issue: Issue) -> Respond:
    labels = deeds.current(issue).labels
    return respond_json(200, [shape.label(each, issue.repository, call.base) for each in labels])


def _label(call: Call) -> Label:
    label = call.repository.labels.get(call.params["name"].lower())
    if label is None:
        raise not_found()
    return label


ROUTES = [
    Route("GET", "labels", list_labels, "issues", in_repository=True),
    Route("POST", "labels", create_label, "issues", in_repository=True),
    Route("GET", "labels/{name}", get_label, "issues", in_repository=True),
    Route("PATCH", "labels/{name}", update_label, "issues", in_repository=True),
    Route("DELETE", "labels/{name}", delete_label, "issues", in_repository=True),
    Route("GET", "issues/{number}/labels", list_on_issue, "issues", View.ISSUE, in_repository=True),
    Route("POST", "issues/{number}/labels", add_to_issue, "issues", in_repository=True),
    Route("PUT", "issues/{number}/labels", replace_on_issue, "issues", in_repository=True),
    Route("DELETE", "issues/{number}/labels", clear_issue, "issues", in_repository=True),
    Route(
        "DELETE", "issues/{number}/labels/{name}", remove_from_issue, "issues", in_repository=True
    ),
]
