"""The faults that the reviewer knows: shapes of code, each with a severity and several wordings.

A shape is a regular expression over a file's text; the fault's line is where its match begins.
Rules look at code and configuration, not at prose.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

PROSE = frozenset({".md", ".rst", ".txt", ".adoc", ""})
UNREADABLE = frozenset(
    ".png .jpg .jpeg .gif .ico .pdf .zip .gz .woff .woff2 .so .pyc .lock .ipynb".split()
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A shape of fault. ``words`` are ways to say it; ``{}`` is where the code is quoted."""

    name: str
    severity: str
    shape: re.Pattern[str]
    words: Sequence[str]


@dataclass(frozen=True, slots=True)
class Fault:
    """A place in a file that has the shape of a rule."""

    rule: Rule
    file: str
    line: int


def _rule(name: str, severity: str, shape: str, *words: str) -> Rule:
    return Rule(name, severity, re.compile(shape, re.MULTILINE), words)


RULES: Sequence[Rule] = (
    _rule(
        "eval",
        "high",
        r"(?<![\w.])eval\((?!\))",
        "Input is evaluated as code",
        "Whatever input comes runs as code",
        "A call of eval executes its input as code",
    ),
    _rule(
        "sql",
        "high",
        r"""(?i)f["'](?:select|insert into|update|delete from)\b[^"'\n]*\{"""
        r"""|["'](?:select|insert into|update|delete from)\b[^"'\n]*(?:%s[^"'\n]*["']\s*%"""
        r"""|["']\s*\+)""",
        "The SQL statement is put together from text, so its values can change it",
        "Values are put into the text of an SQL statement instead of being bound",
        "Open to injection: the SQL statement is made from text and values",
    ),
    _rule(
        "password",
        "high",
        r"""(?i)\b(?:\w+_)?(?:password|passwd|secret|api_?key)\b["']?\s*[:=]\s*["'][^"'\s]{4,}["']""",
        "A credential stands in the code",
        "A credential is written into the code",
        "The code holds a credential, for everybody who can read it",
    ),
    _rule(
        "shell",
        "high",
        r"""os\.system\(\s*(?:f["']|["'][^"'\n]*["']\s*[+%])"""
        r"""|subprocess\.\w+\([^)\n]*shell\s*=\s*True""",
        "A shell command is built from text",
        "Text is passed to a shell command, which may run something else",
        "A command goes through the shell with text in it",
    ),
    _rule(
        "swallowed",
        "medium",
        r"^[ \t]*except(?:[ \t]+(?:Base)?Exception)?[ \t]*:[ \t]*(?:\n[ \t]*)?pass\b",
        "Every error is swallowed without a trace",
        "Any error is swallowed here, whatever it is",
        "A bare handler, by which every error is swallowed",
    ),
    _rule(
        "off-by-one",
        "medium",
        r"\brange\(\s*len\(\w+\)\s*\+\s*1\s*\)|<=\s*len\(\w+\)\s*:|<=\s*\w+\.length\b",
        "The loop runs one step past the end",
        "Off by one: the loop goes past the end",
        "The loop counts one element past the end",
    ),
    _rule(
        "default",
        "medium",
        r"^[ \t]*def \w+\([^)\n]*=\s*(?:\[\]|\{\})",
        "A mutable default is shared by all calls",
        "A mutable default is kept from one call to the next",
        "Calls share one mutable default object",
    ),
    _rule(
        "none",
        "low",
        r"[!=]=\s*None\b",
        "None is compared by value instead of identity",
        "A comparison with None should use identity",
        "None is compared by an operator that may be overloaded, not by identity",
    ),
    _rule(
        "todo",
        "low",
        r"(?i)\bTODO:? remove before release",
        "Something was to be removed before the release",
        "A note says that this must be removed before the release",
        "Left-over code that was to be removed before the release",
    ),
)
"""Graver rules first. The wordings of a rule share some words, as those of a model do."""


def faults_in(file: str, text: str) -> list[Fault]:
    """Every fault of a file, by line; one of each rule a line."""
    if PurePosixPath(file).suffix.lower() in PROSE:
        return []
    found = {
        (rule.name, text.count("\n", 0, match.start()) + 1): rule
        for rule in RULES
        for match in rule.shape.finditer(text)
    }
    return [Fault(rule, file, line) for (_, line), rule in sorted(found.items(), key=_by_line)]


def rule_said(summary: str) -> Rule | None:
    """The rule that a summary speaks of, by its words."""
    for rule in RULES:
        if any(summary.startswith(words) for words in rule.words):
            return rule
    return None


def readable(file: str) -> bool:
    """Whether a file may hold text."""
    return PurePosixPath(file).suffix.lower() not in UNREADABLE


def _by_line(item: tuple[tuple[str, int], Rule]) -> tuple[int, str]:
    (name, line), _ = item
    return line, name
