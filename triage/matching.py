"""Which finding of a review is which finding of the last one.

Models tell one fault in other words, under other ids, some lines away. Two findings are the same
when they are in the same file and their place, their words, or both say so; severity is no part of
it. The likest pairs find each other first; what is left over on one spot is one finding too, told
in words that have nothing in common. The id that the model echoes only adds to a likeness that is
there already: alone it proves nothing.

Invariant: the matching is one to one, and the same for the same findings whatever their order.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from triage.findings import Finding, Severity
from triage.identifiers import digest_of

NEAR_LINES: Final = 40
"""Lines that a finding may have moved before its place says nothing any more."""

LIKENESS: Final = 0.5
"""From here on two findings are one, 0 to 1; below it, those on one spot alone."""

SAME_WORDS: Final = 0.5
"""From here on two summaries say the same: the earlier one stands, and the page does not change."""

_OF_WORDS, _OF_PLACE, _OF_ECHO = 0.5, 0.4, 0.3
_LEAST_WORDS = 0.25
"""Below this, words say nothing: only the echoed id nearby does, or the same spot."""

_NEAR_AN_ECHO = 0.8
"""From here on of what the place says, up to eight lines away, it is a witness for the id."""

SPOT_LINES: Final = 2
"""Up to so many lines apart, two findings that nothing else matches are one."""

_MOST_WORDS = 60
_WORD = re.compile(r"\w+")
_EMPTY = frozenset(
    "a an and are as at be by can for from has in is it its not of on or so that the this to was "
    "which with".split()
)


@dataclass(frozen=True, slots=True)
class Told:
    """A finding as the model told it, after it passed the checks."""

    told_as: str
    file: str
    line: int
    severity: Severity
    summary: str


def matched(
    told: Sequence[Told],
    prior: Sequence[Finding],
    renames: Mapping[str, str],
    apart: Collection[int] = (),
) -> dict[int, int]:
    """Which of ``prior`` each of ``told`` is, by their places in the sequences.

    One fault that is told as often as before, in the same words, is paired in the order of its
    lines. Then the likest pairs are taken first; among equals the nearest, then in an order of
    their content.
    ``renames`` maps the old path of a file to its new one; those of ``prior`` that are ``apart``
    are not matched by their spot alone: the model called them resolved.
    """
    found = _repeated(told, prior, renames)
    taken = set(found.values())
    pairs = []
    for here, new in enumerate(told):
        for there, old in enumerate(prior):
            likeness = likeness_of(new, old, renames)
            far = abs(new.line - old.line)
            if likeness >= LIKENESS or (likeness and far <= SPOT_LINES and there not in apart):
                pairs.append((-likeness, far, old.id, new.summary, new.told_as, here, there))
    for *_, here, there in sorted(pairs):
        if here not in found and there not in taken:
            found[here] = there
            taken.add(there)
    return found


def _repeated(
    told: Sequence[Told], prior: Sequence[Finding], renames: Mapping[str, str]
) -> dict[int, int]:
    """Findings in the same words, equally many in both: lines put in above them shift all alike."""
    here: dict[tuple[str, str], list[int]] = {}
    there: dict[tuple[str, str], list[int]] = {}
    for n, new in enumerate(told):
        here.setdefault((new.file, new.summary), []).append(n)
    for n, old in enumerate(prior):
        there.setdefault((renames.get(old.file, old.file), old.summary), []).append(n)
    found: dict[int, int] = {}
    for words, numbers in here.items():
        others = there.get(words, [])
        if len(others) == len(numbers):
            numbers.sort(key=lambda n: (told[n].line, told[n].told_as))
            others.sort(key=lambda n: (prior[n].line, prior[n].id))
            found |= dict(zip(numbers, others, strict=True))
    return found


def likeness_of(new: Told, old: Finding, renames: Mapping[str, str]) -> float:
    """From 0 (another finding) to 1; 0 in another file."""
    if new.file != renames.get(old.file, old.file):
        return 0.0
    words = alike(new.summary, old.summary)
    near = max(0.0, 1 - abs(new.line - old.line) / NEAR_LINES)
    echoed = new.told_as in (old.told_as, old.id)
    if words < _LEAST_WORDS and not (echoed and near >= _NEAR_AN_ECHO):
        words, echoed = 0.0, False
    return min(1.0, _OF_WORDS * words + _OF_PLACE * near + _OF_ECHO * echoed)


def alike(one: str, other: str) -> float:
    """How far two sentences say the same, 0 to 1: the larger of how many of the shorter one's words
    are in the other, and how many of their groups of three letters they share."""
    words, others = _words(one), _words(other)
    if not words or not others:
        return 1.0 if one.split() == other.split() else 0.0
    few, many = sorted((frozenset(words), frozenset(others)), key=len)
    shared = len(few & many) / max(len(few), len(many) / 2)
    letters, more = _threes(words), _threes(others)
    return max(shared, 2 * len(letters & more) / (len(letters) + len(more)))


def _threes(words: Sequence[str]) -> frozenset[str]:
    text = f" {' '.join(words)} "
    return frozenset(text[n : n + 3] for n in range(len(text) - 2))


def new_id(told: Told, taken: Collection[str]) -> str:
    """An id for a finding that was not known: a digest of its file and words, not of its line,
    with a number behind it where that is taken."""
    base = "f-" + digest_of([told.file, sorted(set(_words(told.summary)))])[:8]
    count, name = 1, base
    while name in taken:
        count += 1
        name = f"{base}-{count}"
    return name


def _words(text: str) -> list[str]:
    """The words that mean something, in lower case; signs of a script without spaces one by one."""
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        found += [word] if word.isascii() else [*word]
    return [word for word in found if word not in _EMPTY][:_MOST_WORDS]
