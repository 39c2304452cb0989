"""Measures what the program costs, on real servers and processes: ``script/bench``.

Each part is a module with ``measure(options) -> dict[str, object]``, imported when it is asked for.
A figure is an output. Nothing here passes or fails by the wall clock.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """How a part is measured. ``quick``: small counts, to see that it works, not how fast."""

    quick: bool = False


class UnmeasuredError(Exception):
    """A part cannot be measured here; the text says what is missing."""
