"""How commands look: examples first, plain text, as wide as the terminal is."""

import inspect
from difflib import get_close_matches
from shutil import get_terminal_size
from typing import Any

from typer.core import TyperCommand, TyperGroup

_WIDEST = 100

CONTEXT = {
    "help_option_names": ["-h", "--help"],
    "terminal_width": min(get_terminal_size().columns, _WIDEST),
}


class Command(TyperCommand):
    """A command whose ``epilog``, its examples, opens its help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Examples, usage, text, options."""
        _examples(self.epilog, formatter)
        super().format_help(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """It stands at the top."""


class Group(TyperGroup):
    """The program itself, the same way."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Examples, usage, text, options, commands."""
        _examples(self.epilog, formatter)
        super().format_help(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """It stands at the top."""


def _examples(text: str | None, formatter: Any) -> None:
    """Written as they stand: a wrapped command line cannot be copied."""
    if text:
        lines = inspect.cleandoc(text).splitlines()
        formatter.write("Examples:\n" + "".join(f"  {line}".rstrip() + "\n" for line in lines))
        formatter.write("\n")


def did_you_mean(word: str, known: list[str], *, most: int = 1) -> str:
    """``; did you mean …?``, or nothing where nothing is close."""
    close = get_close_matches(word, known, n=most, cutoff=0.5)
    return f"; did you mean {' or '.join(close)}?" if close else ""
