"""The policy file: YAML with the line of each key, from GitHub or from disk."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from triage.policy import Path as KeyPath
from triage.policy import PolicyDocument, PolicyError, Problem

LARGEST_BYTES = 64 * 1024
MOST_NODES = 10_000
"""Counted with every alias followed, so that a small file cannot grow large in memory."""

DEEPEST = 20


def load_policy_file(path: Path) -> PolicyDocument:
    """Read a file from disk. Raises PolicyError, also where it cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise _error(None, f"cannot be read: {error.strerror or type(error).__name__}") from error
    return parse_policy(data)


def parse_policy(data: bytes) -> PolicyDocument:
    """Read YAML into plain data and the line of each key. Raises PolicyError.

    Only what JSON knows: no tags, no dates, and each key is text; a key twice is an error.
    """
    if len(data) > LARGEST_BYTES:
        raise _error(None, f"the file is larger than {LARGEST_BYTES // 1024} KiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _error(line, "the file is not UTF-8") from error
    try:
        root = yaml.compose(text, Loader=_PlainLoader)
    except yaml.MarkedYAMLError as error:
        raise _error(_line_of(error), f"not YAML: {_sentence(error)}") from error
    except yaml.YAMLError as error:
        raise _error(None, f"not YAML: {error}".split("\n", 1)[0]) from error
    except RecursionError as error:
        raise _error(None, f"nested deeper than {DEEPEST}") from error
    if root is None:
        return PolicyDocument(None)
    reading = _Reading()
    return PolicyDocument(reading.value(root, ()), reading.lines)


class _PlainLoader(yaml.SafeLoader):
    """YAML with the plain values of JSON: ``off`` and ``10:30`` are text, not ``false`` and 630."""


_PlainLoader.yaml_implicit_resolvers = {}  # its own, not the base's

_KINDS: Mapping[str, tuple[re.Pattern[str], Sequence[str], Callable[[str], Any]]] = {
    "tag:yaml.org,2002:null": (
        re.compile(r"(?:~|null|Null|NULL|)"),
        ("~", "n", "N", ""),
        lambda _: None,
    ),
    "tag:yaml.org,2002:bool": (
        re.compile(r"(?:true|True|TRUE|false|False|FALSE)"),
        "tTfF",
        lambda text: text.lower() == "true",
    ),
    "tag:yaml.org,2002:int": (re.compile(r"[-+]?[0-9]{1,18}"), "-+0123456789", int),
    "tag:yaml.org,2002:float": (
        re.compile(r"[-+]?(?:\.[0-9]{1,18}|[0-9]{1,18}\.[0-9]{0,18})(?:[eE][-+]?[0-9]{1,3})?"),
        "-+0123456789.",
        float,
    ),
    "tag:yaml.org,2002:str": (re.compile(r".*", re.DOTALL), "", str),
}
"""Tag to what it looks like, the characters that it starts with, and its value."""

for _tag, (_looks, _starts, _) in _KINDS.items():
    if _starts:
        _PlainLoader.add_implicit_resolver(_tag, re.compile(f"{_looks.pattern}$"), _starts)


@dataclass(slots=True)
class _Reading:
    """One walk over the nodes, with its bounds."""

    lines: dict[KeyPath, int] = field(default_factory=dict)
    nodes: int = 0

    def value(self, node: Node, path: KeyPath) -> Any:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise _error(_line(node), f"more than {MOST_NODES} values")
        if len(path) > DEEPEST:
            raise _error(_line(node), f"nested deeper than {DEEPEST}")
        match node:
            case MappingNode():
                return self._mapping(node, path)
            case SequenceNode():
                return self._sequence(node, path)
            case ScalarNode():
                return _scalar(node)
            case _:
                raise _error(_line(node), "neither a map, a list nor a value")

    def _mapping(self, node: MappingNode, path: KeyPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = _key(key_node)
            if key in found:
                raise _error(_line(key_node), f"{key!r} stands here twice")
            self.lines[(*path, key)] = _line(key_node)
            found[key] = self.value(value_node, (*path, key))
        return found

    def _sequence(self, node: SequenceNode, path: KeyPath) -> list[Any]:
        found: list[Any] = []
        for n, item in enumerate(node.value):
            self.lines[(*path, n)] = _line(item)
            found.append(self.value(item, (*path, n)))
        return found


def _key(node: Node) -> str:
    """A key as it is written: a label may be called 404 or no."""
    if not isinstance(node, ScalarNode):
        raise _error(_line(node), "a key must be text")
    if node.value == "<<" and node.style is None:
        raise _error(_line(node), "merging with '<<' is not supported; write the settings out")
    return str(node.value)


def _scalar(node: ScalarNode) -> Any:
    looks, _, convert = _KINDS.get(node.tag, (None, "", str))
    if looks is None:
        raise _error(_line(node), f"the tag {node.tag!r} is not supported")
    if not looks.fullmatch(node.value):
        raise _error(_line(node), f"{node.value[:50]!r} is no {node.tag.rpartition(':')[2]}")
    return convert(node.value)


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _line_of(error: yaml.MarkedYAMLError) -> int | None:
    mark = error.problem_mark or error.context_mark
    return None if mark is None else int(mark.line) + 1


def _sentence(error: yaml.MarkedYAMLError) -> str:
    words = " ".join(part for part in (error.problem, error.context) if part)
    return words.replace("\n", " ")[:200]


def _error(line: int | None, message: str) -> PolicyError:
    return PolicyError([Problem(line, "", message)])
