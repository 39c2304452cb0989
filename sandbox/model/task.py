"""What a request asks for: the issues in its prompt and the form of its answer.

The prompt's form (documented where the product renders it)::

    Language: "<BCP 47 tag>" | the language of each issue
    Labels:
    {"label": <name>, "means": <description>}
    At most one of each:
    [<name>, <name>, …]
    ===== ISSUES <nonce> BEGIN =====
    {"number": …, "title": …, "author": …, "created_at": …, "labels": […], "body": …}
    ===== ISSUES <nonce> END =====
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ANSWER_TOOL = "StructuredOutput"
_BEGIN = re.compile(r"^===== ISSUES (\w+) BEGIN =====$")


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue as the prompt shows it."""

    number: int
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be decided: ``labels`` maps the names that the schema allows to their meaning."""

    issues: tuple[Issue, ...]
    labels: Mapping[str, str]
    exclusive: tuple[tuple[str, ...], ...]
    language: str | None
    prompt: str


def read_task(body: Mapping[str, Any]) -> Task | None:
    """The task of a request to the Messages API; None if it offers no tool to answer with."""
    schema = answer_schema(body)
    if schema is None:
        return None
    prompt = "\n".join(_texts(body))
    lines = prompt.split("\n")
    head, block = _split(lines)
    meanings = {
        str(entry["label"]): str(entry.get("means", ""))
        for entry in _json_lines(head)
        if isinstance(entry, dict) and "label" in entry
    }
    allowed = allowed_labels(schema) or tuple(meanings)
    return Task(
        issues=tuple(_issues(block)),
        labels={name: meanings.get(name, "") for name in allowed},
        exclusive=tuple(
            tuple(str(name) for name in entry)
            for entry in _json_lines(head)
            if isinstance(entry, list)
        ),
        language=_language(head),
        prompt=prompt,
    )


def answer_schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The input schema of the tool that takes the answer."""
    for tool in body.get("tools") or ():
        if tool.get("name") == ANSWER_TOOL:
            schema = tool.get("input_schema")
            return schema if isinstance(schema, dict) else None
    return None


def allowed_labels(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The enumeration of ``decisions[].labels[]``, through local references."""
    node: Any = schema
    for key in ("properties", "decisions", "items", "properties", "labels", "items"):
        node = _followed(node, schema).get(key)
        if not isinstance(node, dict):
            return ()
    return tuple(str(name) for name in _followed(node, schema).get("enum", ()))


def _followed(node: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = node.get("$ref")
    if not isinstance(reference, str):
        return node
    target: Any = root
    for part in reference.removeprefix("#/").split("/"):
        target = target[part]
    return _followed(target, root)


def _texts(body: Mapping[str, Any]) -> Iterator[str]:
    """Every text that the user's messages hold."""
    for message in body.get("messages") or ():
        content = message.get("content")
        if message.get("role") != "user":
            continue
        if isinstance(content, str):
            yield content
            continue
        for block in content or ():
            if block.get("type") == "text":
                yield str(block["text"])


def _split(lines: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The lines before the block of issues, and those within."""
    for start, line in enumerate(lines):
        if begin := _BEGIN.match(line):
            end = f"===== ISSUES {begin[1]} END ====="
            stop = lines.index(end, start) if end in lines[start:] else len(lines)
            return lines[:start], lines[start + 1 : stop]
    return lines, ()


def _json_lines(lines: Iterable[str]) -> Iterator[Any]:
    for line in lines:
        if line[:1] in ("{", "["):
            try:
                yield json.loads(line)
            except ValueError:
                continue


def _issues(lines: Iterable[str]) -> Iterator[Issue]:
    for entry in _json_lines(lines):
        if isinstance(entry, dict) and isinstance(entry.get("number"), int):
            yield Issue(entry["number"], str(entry.get("title", "")), str(entry.get("body", "")))


def _language(lines: Iterable[str]) -> str | None:
    for line in lines:
        if match := re.fullmatch(r'Language: "([^"]+)"', line):
            return match[1]
    return None
