"""What Markdown makes of a text, by a parser that is not ours."""

from collections.abc import Iterator
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])

ZERO_WIDTH = "\u200b"
PLAIN = {"text", "text_special"}


def tokens(text: str) -> Iterator[Token]:
    """Every token of a document, those within lines too."""
    for token in _PARSER.parse(text):
        yield token
        yield from token.children or ()


def kinds(text: str) -> set[str]:
    """The kinds of tokens in a document."""
    return {token.type for token in tokens(text)}


def headings(text: str) -> list[str]:
    """The headings of a document."""
    every = list(tokens(text))
    return [after.content for token, after in pairwise(every) if token.type == "heading_open"]


def shown(text: str) -> str:
    """The words of a line as a reader sees them. It must be nothing but words."""
    inline = [token for token in _PARSER.parse(f"x{text}x") if token.type == "inline"]
    assert len(inline) == 1, text
    children = inline[0].children or []
    assert {child.type for child in children} <= PLAIN, text
    return "".join(child.content for child in children)[1:-1].replace(ZERO_WIDTH, "")
