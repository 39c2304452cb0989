"""As much of GitHub's Markdown as a person needs to read an issue. Safe by construction: the text
is escaped first, and only tags written here are put around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import groupby

from markupsafe import Markup, escape

_FENCE_OR_COMMENT = re.compile(r"(^```.*?(?:^```|\Z))|<!--.*?(?:-->|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_ITEM = re.compile(r"\s*(?:[-*+]|(\d+)[.)])\s+(?:\[(?P<box>[ xX])\]\s+)?(?P<text>.*)")
_RULE = re.compile(r"[|:\s-]*-[|:\s-]*")
_SUMMARY = re.compile(r"&lt;summary&gt;(.*)&lt;/summary&gt;")
_CODE = re.compile(r"`([^`]+)`")
_BOLD = re.compile(r"\*\*(.+?)\*\*")
_LINK = re.compile(r"\[([^\]]+)\]\((https?://[^\s)]+)\)")


def without_comments(text: str) -> str:
    """HTML comments are hidden, but for those in a block of code."""
    return _FENCE_OR_COMMENT.sub(lambda match: match[1] or "", text).strip()


def render(text: str | None) -> Markup:
    escaped = str(escape(without_comments(text or "")))
    return Markup("\n".join(_blocks(escaped.splitlines())))  # noqa: S704 (escaped just above)


def _blocks(lines: list[str]) -> Iterator[str]:
    folds = 0
    for kind, group in groupby(_classified(lines), key=lambda each: each[0]):
        block = [line for _, line in group]
        if kind == "open":
            folds += len(block)
            yield "<details>" * len(block)
        elif kind == "close":
            yield "</details>" * min(folds, len(block))
            folds = max(0, folds - len(block))
        else:
            yield _RENDERERS[kind](block)
    yield "</details>" * folds


def _classified(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Each line with the kind of its block; fences themselves are left out."""
    in_code = False
    for line in lines:
        if line.strip().startswith("```"):
            in_code = not in_code
            yield "empty", ""
        else:
            yield ("code" if in_code else _kind(line.strip())), line


def _kind(line: str) -> str:
    if not line:
        return "empty"
    if line == "&lt;details&gt;":
        return "open"
    if line == "&lt;/details&gt;":
        return "close"
    if _SUMMARY.fullmatch(line):
        return "summary"
    if _HEADING.fullmatch(line):
        return "heading"
    if _ITEM.fullmatch(line):
        return "list"
    return "table" if line.startswith("|") and line.endswith("|") else "text"


def _text(lines: list[str]) -> str:
    return f"<p>{'<br>'.join(_inline(line) for line in lines)}</p>"


def _code(lines: list[str]) -> str:
    return "<pre>" + "\n".join(lines) + "</pre>"


def _heading(lines: list[str]) -> str:
    texts = [match[2] for line in lines if (match := _HEADING.fullmatch(line.strip()))]
    return "".join(f"<h3>{_inline(text)}</h3>" for text in texts)


def _summary(lines: list[str]) -> str:
    texts = [match[1] for line in lines if (match := _SUMMARY.fullmatch(line.strip()))]
    return "".join(f"<summary>{_inline(text)}</summary>" for text in texts)


def _list(lines: list[str]) -> str:
    items = [match for line in lines if (match := _ITEM.fullmatch(line))]
    tag = "ol" if items and items[0][1] else "ul"
    return f"<{tag}>{''.join(_item(each['box'], each['text']) for each in items)}</{tag}>"


def _item(box: str | None, text: str) -> str:
    if box is None:
        return f"<li>{_inline(text)}</li>"
    ticked = "" if box == " " else " checked"
    label = f'<label><input type="checkbox" disabled{ticked}> {_inline(text)}</label>'
    return f'<li class="box">{label}</li>'


def _table(lines: list[str]) -> str:
    rows = [line.strip()[1:-1].split("|") for line in lines if not _RULE.fullmatch(line)]
    has_head = len(lines) > 1 and _RULE.fullmatch(lines[1]) is not None
    body = "".join(
        "<tr>" + "".join(_cell(cell, head=has_head and not number) for cell in row) + "</tr>"
        for number, row in enumerate(rows)
    )
    return f"<table>{body}</table>"


def _cell(text: str, *, head: bool) -> str:
    tag = "th" if head else "td"
    return f"<{tag}>{_inline(text.strip())}</{tag}>"


def _inline(text: str) -> str:
    """Code first: what is in it stays as it is."""
    pieces = _CODE.split(text)
    for index, piece in enumerate(pieces):
        if index % 2:
            pieces[index] = f"<code>{piece}</code>"
        else:
            linked = _LINK.sub(r'<a href="\2" rel="nofollow noreferrer">\1</a>', piece)
            pieces[index] = _BOLD.sub(r"<b>\1</b>", linked)
    return "".join(pieces)


_RENDERERS: dict[str, Callable[[list[str]], str]] = {
    "empty": lambda _: "",
    "text": _text,
    "code": _code,
    "heading": _heading,
    "summary": _summary,
    "list": _list,
    "table": _table,
}
