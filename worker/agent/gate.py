"""May the model's call of a tool go ahead? Decided on real paths, from the call alone.

The second layer behind the CLI's own rules, which were seen to be too wide (patterns, braces,
links). What is looked at: Read's ``file_path``, the ``path`` of Glob and Grep, and their patterns
for names of files. A regular expression is no path.

Invariant: what passes begins inside the root, links followed: a path as a whole, a pattern by its
components before the first wildcard. (A search follows no link that it meets on its way.)
Invariant: what is not known is denied, a tool and a field alike.
Invariant: the hook denies or has no opinion; it never allows.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from os.path import normpath
from pathlib import Path
from typing import Any, Final
from unicodedata import category

from claude_agent_sdk import HookContext, HookInput, HookJSONOutput, HookMatcher

from worker.ports import Denial

MOST_CHARACTERS: Final = 2_000
MOST_PIECES: Final = 1_000
MOST_STEPS: Final = 10_000
"""What one call may cost, in characters, in readings of its braces, and in steps of expanding them
and in folders looked at: a pattern must not hold up the worker."""

KEPT_OUT: Final = frozenset({".git", ".env"})
"""Names that may hold a secret, wherever they stand in a path."""

GATED: Final = "Read|Grep|Glob"
"""The hook's matcher. One for all tools would also meet the answer, and could lose it."""

UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Signs that no name of a checkout has. (Wide and narrow spaces some have.)"""

_INNERMOST: Final = re.compile(r"\{([^{}]*)\}")
_WILD: Final = re.compile(r"[*?\[{}]")
_BETWEEN: Final = re.compile(r"[\s,]+")
_PLAIN: Final = re.compile(r"[A-Za-z-][\w-]{0,39}", re.ASCII)

Check = Callable[[str, Path, Path], str | None]
"""Of a text, the folder that it is seen from, and the root: why it is denied, if it is."""


def judge(tool: str, fields: Mapping[str, object], root: Path) -> Denial | None:
    """Why a call is denied, if it is. ``root`` is a real path."""
    checks = _FIELDS.get(tool)
    if checks is None:
        return Denial(plain(tool), "", "no such tool")
    if unknown := sorted(fields.keys() - checks.keys()):
        return Denial(tool, plain(unknown[0]), "no such field")
    base = root
    for name, check in checks.items():
        if check is None or name not in fields:
            continue
        text = fields[name]
        reason = check(text, base, root) if isinstance(text, str) else "no text"
        if reason is not None:
            return Denial(tool, name, reason)
        if name == "path":
            base = root / str(text)
    return None


def plain(name: str) -> str:
    """A name that the model gave, if it is one; so that no other word of it is told."""
    return name if _PLAIN.fullmatch(name) else "unknown"


def gate(root: Path, denied: Callable[[str, Denial], None]) -> HookMatcher:
    """The hook over ``judge``. ``denied`` is told the id of the call and why."""

    async def decide(given: HookInput, call: str | None, _: HookContext) -> HookJSONOutput:
        asked: Mapping[str, Any] = {**given}
        found = judge(str(asked["tool_name"]), asked["tool_input"], root)
        if found is None:
            return {}
        denied(call or "", found)
        where = f"{found.tool}.{found.field}" if found.field else found.tool
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": f"{where}: {found.reason}",
            }
        }

    return HookMatcher(matcher=GATED, hooks=[decide], on_failure="block")


def _path(text: str, base: Path, root: Path) -> str | None:
    return _odd(text) or _outside(text, base, root)


def _pattern(text: str, base: Path, root: Path) -> str | None:
    if reason := _odd(text):
        return reason
    if "\\" in text:
        return "a backslash"
    pieces = expanded(text)
    if pieces is None or sum(piece.count("/") for piece in pieces) > MOST_STEPS:
        return "braces that do not close, or too many"
    return _first(_piece(piece, base, root) for piece in pieces)


def _patterns(text: str, base: Path, root: Path) -> str | None:
    """Grep's ``glob`` is split at spaces and, out of braces, at commas: every reading is checked"""
    whole = (_pattern(part, base, root) for part in (text, *text.split()))
    parts = (_piece(part, base, root) for part in _BETWEEN.split(text))
    return _first(whole) or _first(parts)


def _piece(piece: str, base: Path, root: Path) -> str | None:
    """A pattern without braces, or what a comma cut of one."""
    piece = piece.lstrip("!")
    parts = piece.split("/")
    if piece.startswith("~"):
        return "a home folder"
    if ".." in parts:
        return "a way up"
    if any(part.casefold() in KEPT_OUT for part in parts):
        return "a place that is kept out"
    literal = "/".join(takewhile(lambda part: not _WILD.search(part), parts))
    return _outside(literal or ("/" if piece.startswith("/") else ""), base, root)


def _odd(text: str) -> str | None:
    if len(text) > MOST_CHARACTERS:
        return "too long"
    if text != text.strip() or any(category(each) in UNSEEN for each in text):
        return "odd characters"
    return "a home folder" if text.startswith("~") else None


def _outside(text: str, base: Path, root: Path) -> str | None:
    """Both readings of ``..`` are checked: after a link it leads elsewhere than on paper."""
    asked = base / text
    for way in (asked, Path(normpath(asked))):
        try:
            real = way.resolve()
        except (OSError, RuntimeError, ValueError):
            return "no place that can be told"
        if not real.is_relative_to(root):
            return "outside the repository"
        if any(part.casefold() in KEPT_OUT for part in real.relative_to(root).parts):
            return "a place that is kept out"
    return None


def expanded(pattern: str) -> list[str] | None:
    """What a pattern's braces stand for, innermost first. None: unbalanced, or too many."""
    waiting, done = [pattern], list[str]()
    for _ in range(MOST_STEPS):
        if not waiting:
            return done
        text = waiting.pop()
        if match := _INNERMOST.search(text):
            head, tail = text[: match.start()], text[match.end() :]
            waiting += [head + choice + tail for choice in match[1].split(",")]
        elif "{" in text or "}" in text:
            return None
        else:
            done.append(text)
        if len(waiting) + len(done) > MOST_PIECES:
            return None
    return None


def _first(reasons: Iterator[str | None]) -> str | None:
    return next((reason for reason in reasons if reason), None)


_FIELDS: Final[Mapping[str, Mapping[str, Check | None]]] = {
    "Read": {"file_path": _path, **dict.fromkeys(("offset", "limit", "pages", "allow_large"))},
    "Glob": {"path": _path, "pattern": _pattern},
    "Grep": {
        "path": _path,
        "glob": _patterns,
        **dict.fromkeys(("pattern", "type", "output_mode", "-A", "-B", "-C", "context", "-n")),
        **dict.fromkeys(("-i", "-o", "head_limit", "offset", "multiline")),
    },
}
"""Each tool's fields, ``path`` first: None is a field that names no place."""
