"""What the program itself looks for in a checkout: files that speak to their reviewer, and values
that the model must not repeat.

Invariant: what is read lies in the checkout and is bounded; between two files others have a turn.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from triage.instructions import FILE_CHARACTERS, instructs_reviewer
from triage.secret_words import values_in
from worker.ports import Checkout, Clock

FILES_LOOKED_AT: Final = 5_000
BYTES_LOOKED_AT: Final = 32 << 20
"""Of one checkout, in the order of its paths; FILE_CHARACTERS of each file."""

FILES_NAMED: Final = 100
"""Files that speak to their reviewer, until no more are looked for."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """``instructed``: the files that speak to their reviewer, ``values``: those of the words asked
    for that a file has as a value."""

    instructed: tuple[str, ...] = ()
    values: frozenset[str] = frozenset()


async def scan(
    checkout: Checkout, words: Collection[str], clock: Clock, *, reviewed: bool = True
) -> Scanned:
    """Look through the files of a checkout; not ``reviewed``: for the values alone."""
    instructed: list[str] = []
    values: set[str] = set()
    left = BYTES_LOOKED_AT
    for path in list(checkout.files)[:FILES_LOOKED_AT]:
        await clock.sleep(0)
        text = _text(checkout.root / path)
        left -= len(text)
        if left < 0:
            break
        values |= values_in(text, words)
        if reviewed and len(instructed) < FILES_NAMED and instructs_reviewer(path, text):
            instructed.append(path)
    return Scanned(tuple(instructed), frozenset(values))


def _text(path: Path) -> str:
    """The first characters of a file; empty where it is no text, or gone."""
    try:
        with path.open("rb") as file:
            content = file.read(FILE_CHARACTERS)
    except OSError:
        return ""
    return "" if b"\0" in content else content.decode(errors="replace")
