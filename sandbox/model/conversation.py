"""A request's messages as a conversation: what was asked now, which tools were called, what came.

A conversation has one or more turns of the user. A turn begins with a prompt that holds a block
with borders (``===== FILES <nonce> BEGIN =====``); whatever else the client puts in between, such
as a reminder to answer, belongs to the turn in which it stands.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.model.task import ANSWER_TOOL

__all__ = ["ANSWER_TOOL", "Call", "Conversation", "block_lines", "read_conversation", "texts"]

_BORDER = re.compile(r"(?m)^===== (?:ISSUES|FILES|CHANGES) \w+ BEGIN =====$")
_NUMBERED = re.compile(r"(?m)^ *\d+[\t→]")
_GLOB_NOTES = ("(", "No files found", "Found ")


@dataclass(frozen=True, slots=True)
class Call:
    """The call of a tool. ``result`` is None until the client has run it."""

    tool: str
    input: Mapping[str, Any]
    result: str | None
    failed: bool

    @property
    def text(self) -> str:
        """What it brought: the result of a success, without the numbers of lines."""
        if self.failed or self.result is None:
            return ""
        return _NUMBERED.sub("", self.result) if self.tool == "Read" else self.result

    @property
    def paths(self) -> list[str]:
        """The paths that a search brought, one a line."""
        lines = self.text.splitlines()
        return [line for line in lines if line and not line.startswith(_GLOB_NOTES)]


@dataclass(frozen=True, slots=True)
class Conversation:
    """``prompt`` is the newest; ``now`` are the calls since it, ``earlier`` those before it."""

    system: str
    prompt: str
    now: tuple[Call, ...]
    earlier: tuple[Call, ...]
    offered: frozenset[str]

    def called(self, tool: str) -> list[Call]:
        """The calls of a tool since the newest prompt."""
        return [call for call in self.now if call.tool == tool]


def read_conversation(body: Mapping[str, Any]) -> Conversation:
    """The conversation of a request to the Messages API."""
    messages = list(body.get("messages") or ())
    start = 0
    prompt = "\n".join(text for message in messages for text in texts(message))
    for index, message in enumerate(messages):
        text = "\n".join(texts(message))
        if _BORDER.search(text):
            start, prompt = index, text
    results = {
        str(block.get("tool_use_id")): block
        for message in messages
        for block in _blocks(message)
        if block.get("type") == "tool_result"
    }
    return Conversation(
        system="\n".join(_system(body)),
        prompt=prompt,
        now=tuple(_calls(messages[start:], results)),
        earlier=tuple(_calls(messages[:start], results)),
        offered=frozenset(str(tool.get("name")) for tool in body.get("tools") or ()),
    )


def texts(message: Mapping[str, Any]) -> Iterator[str]:
    """The texts that the user wrote in a message."""
    if message.get("role") == "user":
        for block in _blocks(message):
            if block.get("type") == "text":
                yield str(block["text"])


def block_lines(prompt: str, name: str) -> list[Any]:
    """What a block of the prompt holds, one JSON value a line; what is no JSON is left out."""
    begin = re.search(rf"(?m)^===== {name} (\w+) BEGIN =====$", prompt)
    if not begin:
        return []
    inside = prompt[begin.end() :].partition(f"\n===== {name} {begin[1]} END =====")[0]
    return [value for line in inside.split("\n") if (value := _json(line)) is not None]


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _calls(
    messages: Sequence[Mapping[str, Any]], results: Mapping[str, Mapping[str, Any]]
) -> Iterator[Call]:
    for message in messages:
        if message.get("role") != "assistant":
            continue
        for block in _blocks(message):
            if block.get("type") == "tool_use":
                result = results.get(str(block.get("id")))
                given = block.get("input")
                yield Call(
                    tool=str(block.get("name")),
                    input=given if isinstance(given, dict) else {},
                    result=None if result is None else _result_text(result.get("content")),
                    failed=bool(result and result.get("is_error")),
                )


def _result_text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def _blocks(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    return [block for block in content or () if isinstance(block, dict)]


def _system(body: Mapping[str, Any]) -> Iterator[str]:
    system = body.get("system")
    if isinstance(system, str):
        yield system
    for block in system if isinstance(system, list) else ():
        yield str(block.get("text", ""))
