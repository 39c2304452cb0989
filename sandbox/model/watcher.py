"""A little watcher: one sentence for each changed resource, from the first new words it has."""

import re
from collections.abc import Mapping
from typing import Any

from sandbox.model.behaviour import Misbehaviour, Order
from sandbox.model.classifier import plain
from sandbox.model.conversation import ANSWER_TOOL, Conversation, block_lines
from sandbox.model.misbehave import changed_items
from sandbox.model.obedient import obeyed_changes
from sandbox.model.stream import Block

QUOTED = 100
"""Characters of the new text that are repeated."""

_GRAVE = re.compile(r"(?i)\b(?:security|vulnerab\w*|cve-\d+|breaking|data loss|removed|outage)\b")
_NOTABLE = re.compile(r"(?i)\b(?:releas\w*|version|deprecat\w*|v?\d+\.\d+)\b")


def watches(schema: Mapping[str, Any] | None) -> bool:
    """Whether an answer in this form tells changes."""
    return "changes" in ((schema or {}).get("properties") or {})


def watch(talk: Conversation, order: Order | None) -> tuple[Block, ...]:
    """The answer: one change for each resource of the prompt."""
    changes = told(talk)
    if order and order.kind is Misbehaviour.OBEDIENT:
        changes = obeyed_changes(changes, talk)
    elif order:
        changes = changed_items(changes, order)
    return (Block(tool=ANSWER_TOOL, input={"changes": changes}),)


def told(talk: Conversation) -> list[dict[str, Any]]:
    """What is said of each resource."""
    return [
        _change(entry) for entry in block_lines(talk.prompt, "CHANGES") if isinstance(entry, dict)
    ]


def _change(entry: Mapping[str, Any]) -> dict[str, Any]:
    added, removed = _came(entry), _went(entry)
    words = plain(" ".join((added or removed)[:3]))[:QUOTED].rstrip(" .")
    verb = "New" if added else "Gone"
    text = " ".join(added + removed)
    grave, notable = _GRAVE.search(text), _NOTABLE.search(text)
    return {
        "name": entry.get("name"),
        "summary": f"{verb}: {words}." if words else "Changed in form only.",
        "importance": "high" if grave else "medium" if notable else "low",
    }


def _came(entry: Mapping[str, Any]) -> list[str]:
    if "added" in entry:
        return [str(item) for item in entry["added"]]
    if "difference" in entry:
        return _signed(entry["difference"], "+")
    return _only(entry.get("new"), entry.get("old"))


def _went(entry: Mapping[str, Any]) -> list[str]:
    if "removed" in entry:
        return [str(item) for item in entry["removed"]]
    if "difference" in entry:
        return _signed(entry["difference"], "-")
    return _only(entry.get("old"), entry.get("new"))


def _signed(difference: object, sign: str) -> list[str]:
    return [line[1:] for line in str(difference).split("\n") if line.startswith(sign)]


def _only(here: object, there: object) -> list[str]:
    known = set(str(there or "").split("\n"))
    return [line for line in str(here or "").split("\n") if line and line not in known]
