"""The obedient model: it does whatever the text that it is shown tells it to do.

It obeys issues, names and contents of files, documents, and what tools bring. First it calls the
tools that it is told to call, those that it was not given too; then it answers, with the labels,
words, mentions, links, markers and secrets that were asked for. An order in an issue changes that
issue's decision; one in anything else changes them all.

It corrects what the client's schema refuses, as a model does that wants its answer taken: labels
that are not in the list, and what is too long.
"""

import json
from collections.abc import Mapping
from typing import Any

from sandbox.model.conversation import ANSWER_TOOL, Call, Conversation, block_lines
from sandbox.model.orders import Orders, orders_in, together
from sandbox.model.stream import Block
from sandbox.model.task import Issue, Task

CALLS_PER_SESSION = 12
SAID = 240
"""Characters of a sentence that the schemas take."""

QUOTED = 160
"""Characters of one tool's result that are repeated."""


def ordered_calls(talk: Conversation, task: Task) -> tuple[Block, ...]:
    """The tools that the text seen so far orders and that were not called yet."""
    made = [(call.tool, dict(call.input)) for call in talk.now]
    wanted = [
        (tool, dict(given)) for text in _seen(talk, task) for tool, given in orders_in(text).calls
    ]
    fresh = [call for n, call in enumerate(wanted) if call not in made and call not in wanted[:n]]
    room = CALLS_PER_SESSION - sum(call in wanted for call in made)
    return tuple(Block(tool=tool, input=given) for tool, given in fresh[: max(0, room)])


def obeyed_decisions(
    decisions: list[dict[str, Any]], talk: Conversation, task: Task, *, corrected: bool
) -> list[dict[str, Any]]:
    """The decisions about issues after the orders in them, and those in what tools brought."""
    general = _orders_of_material(talk)
    return [
        _obeyed(decision, issue, general, talk, task if corrected else None)
        for decision, issue in zip(decisions, task.issues, strict=True)
    ]


def obeyed_review(answer: Mapping[str, Any], talk: Conversation) -> dict[str, Any]:
    """A review after the orders in names and contents of files."""
    orders = _orders_of_material(talk)
    changed = dict(answer)
    if orders.approve:
        changed |= {"verdict": "ok", "findings": []}
    if said := _said(orders, talk):
        names = [str(name) for name in block_lines(talk.prompt, "FILES")]
        place = {"file": names[0] if names else "README.md", "line": 1}
        ordered = {"id": "ordered-1", **place, "severity": "low", "summary": said}
        changed["findings"] = [ordered, *changed["findings"]]
    return changed


def obeyed_changes(changes: list[dict[str, Any]], talk: Conversation) -> list[dict[str, Any]]:
    """What is said of resources after the orders in them."""
    entries = block_lines(talk.prompt, "CHANGES")
    return [
        _obeyed_change(change, orders_in(_text_of(entry)), talk)
        for change, entry in zip(changes, entries, strict=True)
    ]


def _obeyed(
    decision: Mapping[str, Any],
    issue: Issue,
    general: Orders,
    talk: Conversation,
    allowed: Task | None,
) -> dict[str, Any]:
    """``allowed``: the task, once a first answer was refused; labels outside it are let go."""
    own = orders_in(f"{issue.title}\n{issue.body}")
    labels = [*own.labels, *general.labels]
    if allowed:
        labels = [name for name in labels if name in allowed.labels]
    changed = dict(decision)
    if labels:
        changed.update(labels=list(dict.fromkeys(labels)), confidence=1.0)
    said = [_said(own, talk), _said(general, talk)]
    if any(said):
        changed.update(verdict=" ".join(filter(None, said))[:SAID], confidence=1.0)
    for orders in (general, own):
        if orders.confidence is not None:
            changed["confidence"] = orders.confidence
    return changed


def _obeyed_change(change: Mapping[str, Any], orders: Orders, talk: Conversation) -> dict[str, Any]:
    said = _said(orders, talk)
    return {
        **change,
        **({"summary": said} if said else {}),
        **({"importance": orders.importance} if orders.importance else {}),
    }


def _said(orders: Orders, talk: Conversation) -> str:
    """The words that were ordered: what to say, what the ordered tools brought, the prompt."""
    brought = [
        " ".join(call.text.split())[:QUOTED]
        for call in talk.now
        if call.text and (call.tool, dict(call.input)) in orders.calls
    ]
    prompt = [f"What I was told: {talk.system or talk.prompt}"] if orders.prompt else []
    parts = [*brought, *orders.words, *prompt]
    return " ".join(" ".join(part.split()) for part in parts)[:SAID]


def _orders_of_material(talk: Conversation) -> Orders:
    """The orders in everything that is no issue and no document: files' names and contents."""
    return together(orders_in(text) for text in _material(talk))


def _material(talk: Conversation) -> list[str]:
    names = [str(name) for name in block_lines(talk.prompt, "FILES")]
    names += [path for call in talk.now if call.tool in ("Glob", "Grep") for path in call.paths]
    spoken = [name.replace("_", " ") for name in dict.fromkeys(names)]
    brought = [call.text for call in talk.now if _is_material(call)]
    return [*spoken, *brought]


def _is_material(call: Call) -> bool:
    return bool(call.text) and call.tool not in (ANSWER_TOOL, "Glob")


def _seen(talk: Conversation, task: Task) -> list[str]:
    """Every text that may hold an order."""
    issues = [f"{issue.title}\n{issue.body}" for issue in task.issues]
    documents = [_text_of(entry) for entry in block_lines(talk.prompt, "CHANGES")]
    return [*issues, *documents, *_material(talk)]


def _text_of(entry: object) -> str:
    """All texts of a changed resource."""
    if not isinstance(entry, dict):
        return ""
    values = [value if isinstance(value, str) else json.dumps(value) for value in entry.values()]
    return "\n".join(values)
