"""What the model answers to one request: the rules' decisions, or what was ordered instead."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sandbox.model.behaviour import Misbehaviour, Order
from sandbox.model.classifier import decide
from sandbox.model.conversation import Conversation, read_conversation
from sandbox.model.locator import locates, look, place
from sandbox.model.misbehave import changed
from sandbox.model.obedient import obeyed_decisions, ordered_calls
from sandbox.model.reviewer import review, reviews
from sandbox.model.stream import Answer, Block
from sandbox.model.task import ANSWER_TOOL, Task, answer_schema
from sandbox.model.watcher import watch, watches

CHARACTERS_PER_TOKEN = 4
EXPENSIVE_TOKENS = 1_000_000


def answer_to(body: Mapping[str, Any], task: Task | None, order: Order | None) -> Answer:
    """The answer to a request; the same request and order always give the same one."""
    blocks = _blocks(body, task, order)
    text = json.dumps(body, ensure_ascii=False)
    written = sum(len(block.text) + len(json.dumps(block.input)) for block in blocks)
    dear = order is not None and order.kind is Misbehaviour.EXPENSIVE
    return Answer(
        id=f"msg_{hashlib.sha256(text.encode()).hexdigest()[:20]}",
        model=str(body.get("model", "unknown")),
        blocks=blocks,
        input_tokens=EXPENSIVE_TOKENS if dear else len(text) // CHARACTERS_PER_TOKEN,
        output_tokens=max(1, written // CHARACTERS_PER_TOKEN),
    )


def _blocks(body: Mapping[str, Any], task: Task | None, order: Order | None) -> tuple[Block, ...]:
    kind = order.kind if order else None
    if kind is Misbehaviour.NO_ANSWER:
        return (Block(text="I looked at the issues. They are all fine."),)
    if kind in (Misbehaviour.ENDLESS_TOOLS, Misbehaviour.EXPENSIVE):
        return (Block(tool="Read", input={"file_path": "/etc/hostname"}),)
    if task is None:
        return (Block(text=_without_tool(body)),)
    schema = answer_schema(body) or {}
    talk = read_conversation(body)
    if order and kind is Misbehaviour.USE and (call := _next_call(talk, order)):
        return (call,)
    if kind is Misbehaviour.OBEDIENT and (calls := ordered_calls(talk, task)):
        return calls
    if reviews(schema):
        return review(talk, schema, order)
    if watches(schema):
        return watch(talk, order)
    if locates(schema) and (looks := look(task.issues, talk)):
        return looks
    decisions = _decisions(body, talk, task, order)
    if locates(schema):
        decisions = [
            {**decision, **place(issue, talk)}
            for decision, issue in zip(decisions, task.issues, strict=False)
        ]
    return (Block(tool=ANSWER_TOOL, input={"decisions": decisions}),)


def _next_call(talk: Conversation, order: Order) -> Block | None:
    """The first call of the order that the session has not made since its newest prompt."""
    made = sum(call.tool != ANSWER_TOOL for call in talk.now)
    if made >= len(order.calls):
        return None
    tool, given = order.calls[made]
    return Block(tool=tool, input=dict(given))


def _decisions(
    body: Mapping[str, Any], talk: Conversation, task: Task, order: Order | None
) -> list[Any]:
    decisions = [decide(issue, task) for issue in task.issues]
    if order is None:
        return decisions
    if order.kind is Misbehaviour.MISSING_ISSUE:
        return decisions[:-1]
    if order.kind is Misbehaviour.OBEDIENT:
        refused = any("StructuredOutput" in text or "schema" in text for text in _results(body))
        obeyed = obeyed_decisions(decisions, talk, task, corrected=refused)
        return [
            after if order.touches(issue.number) else before
            for before, after, issue in zip(decisions, obeyed, task.issues, strict=True)
        ]
    return [
        changed(decision, issue, order)
        for decision, issue in zip(decisions, task.issues, strict=True)
    ]


def _results(body: Mapping[str, Any]) -> list[str]:
    """The texts of all tool results that were errors."""
    blocks = (
        block
        for message in body.get("messages") or ()
        if isinstance(message.get("content"), list)
        for block in message["content"]
    )
    return [
        json.dumps(block.get("content"))
        for block in blocks
        if block.get("type") == "tool_result" and block.get("is_error")
    ]


def _without_tool(body: Mapping[str, Any]) -> str:
    """Clients ask for a session's title on the side, in a form of their own."""
    form = (body.get("output_config") or {}).get("format") or {}
    wanted = (form.get("schema") or {}).get("properties") or {}
    return json.dumps({"title": "Issue triage"}) if "title" in wanted else "Nothing to decide."
