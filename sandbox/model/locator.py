"""Where an issue belongs: the files that hold words of its title, found with Grep."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from sandbox.model.conversation import Conversation
from sandbox.model.stream import Block
from sandbox.model.task import Issue

WORDS_SOUGHT = 5
MOST_SEARCHES = 20
"""Searches of one turn; issues beyond them get no place."""

MOST_READS = 5
"""Files that are looked into, after the searches."""

FILES_NAMED = 3

_STOP = frozenset(
    "about after again also been before cannot could does doesn every fails from have into "
    "issue just more need only please should some such than that their them then there these "
    "this when where which while will with without work works would your".split()
)


def locates(schema: Mapping[str, Any]) -> bool:
    """Whether a decision in this form names a component."""
    node: Any = schema
    for key in ("properties", "decisions", "items", "properties", "component"):
        node = node.get(key) if isinstance(node, dict) else None
    return node is not None


def look(issues: Sequence[Issue], talk: Conversation) -> tuple[Block, ...]:
    """The next look into the checkout: all searches, then the files that fit best, then none."""
    wanted = list(dict.fromkeys(filter(None, map(_pattern, issues))))[:MOST_SEARCHES]
    made = {call.input.get("pattern") for call in talk.called("Grep")}
    if "Grep" in talk.offered and not made.issuperset(wanted):
        return tuple(Block(tool="Grep", input={"pattern": one, "-i": True}) for one in wanted)
    best = dict.fromkeys(file for issue in issues for file in _found(issue, talk)[:1])
    files = list(best)[:MOST_READS]
    read = {call.input.get("file_path") for call in talk.called("Read")}
    if "Read" in talk.offered and not read.issuperset(files):
        return tuple(Block(tool="Read", input={"file_path": file}) for file in files)
    return ()


def place(issue: Issue, talk: Conversation) -> dict[str, Any]:
    """The component and the files of an issue."""
    files = _found(issue, talk)[:FILES_NAMED]
    return {"component": _component(files), "files": files}


def _found(issue: Issue, talk: Conversation) -> list[str]:
    """The files with words of an issue's title; those whose path has them come first."""
    words = _words(issue)
    found = {
        path
        for call in talk.called("Grep")
        if words and call.input.get("pattern") == _pattern(issue)
        for path in call.paths
    }
    return sorted(found, key=lambda path: (-sum(word in path.lower() for word in words), path))


def _component(files: Sequence[str]) -> str:
    """The folder that most of the files are in; a file at the top is a component of its own."""
    paths = [PurePosixPath(file) for file in files]
    names = [path.parts[0] if len(path.parts) > 1 else path.stem for path in paths]
    return Counter(names).most_common(1)[0][0][:80] if names else ""


def _pattern(issue: Issue) -> str:
    return "|".join(re.escape(word) for word in _words(issue))


def _words(issue: Issue) -> list[str]:
    words = re.findall(r"[^\W\d_]{4,}", issue.title.lower())
    return [word for word in dict.fromkeys(words) if word not in _STOP][:WORDS_SOUGHT]
