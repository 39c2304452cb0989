"""Instruction-like text: what in an issue, or in a file, speaks to who triages or reviews it.

An issue describes; it does not say which label it gets or what is written about it. Where one does,
the model is asked a second time without those words, and only what stands without them counts. So
this need not find everything, and what it finds need not be hostile: it costs one more question.

Found are orders for labels, words, confidence, verdicts, mentions and links; "ignore what is
above"; words addressed to a bot, a model or a reviewer; marks of roles and of our own prompt; and
the same in other alphabets' letters, in base64, hex, percent, entity and ``\\u`` codes, backwards
and in rot13. A few phrases of ten other languages are known. Letters that are not shown to the
model at all are no matter here.

Measured on the 1,500 issues of NLBSE'24 (five large projects): 2 of them are asked about twice, at
14 ms an issue on average and 104 ms at most. Of 6,000 files of a Python installation none speaks to
its reviewer, at 3.4 ms a file. Of 24 orders that were written after the phrases, 6 are found.

Invariant: time is linear in what is looked at, and that is bounded.
"""

import base64
import binascii
import codecs
import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final
from urllib.parse import unquote

from triage.phrasings import A_LABEL, HINTS, ISSUE, REVIEWER, by_name
from triage.wording import CONTROL

HEAD: Final = 9_000
TAIL: Final = 3_000
"""Characters of a body's start and end that are looked at, and that are left of it: more than a
prompt shows."""

FILE_CHARACTERS: Final = 60_000
"""Characters of a file that are looked at."""

CODES: Final = 40
CODE_CHARACTERS: Final = 4_000
"""Encoded words of one text that are undone, and of how many characters each."""

_SENTENCE = re.compile(r"(?<=[.!?])[ \t]+|(?<=[。！？])|\n")
_CLAUSE = re.compile(r"[;,]\s*|\s[-–—]\s")
_BASE64 = re.compile(rf"[A-Za-z0-9+/_-]{{16,{CODE_CHARACTERS}}}={{0,2}}")
_HEX = re.compile(rf"\b(?:[0-9a-fA-F]{{2}}){{12,{CODE_CHARACTERS // 2}}}\b")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_LOOKALIKES = str.maketrans("аеіорсухѕԁһјӏАЕОРСХІ", "aeiopcyxsdhjlAEOPCXI")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d]")


@dataclass(frozen=True, slots=True)
class Told:
    """An issue's text without what gives instructions. ``asks``: for what it asked, in words."""

    title: str
    body: str
    asks: tuple[str, ...]


def without_instructions(title: str, body: str, labels: Iterable[str] = ()) -> Told | None:
    """The text without its instructions; None where it has none. ``labels`` are the names that it
    may ask for."""
    body = _visible(body)
    if len(body) > HEAD + TAIL:
        body = f"{body[:HEAD]}\n{body[-TAIL:]}"
    shapes = (*ISSUE.items(), (A_LABEL, by_name(frozenset(labels))))
    plain_title, in_title = _without(_visible(title), shapes)
    plain_body, in_body = _without(body, shapes)
    asks = tuple(dict.fromkeys((*in_title, *in_body)))
    return Told(plain_title, plain_body, asks) if asks else None


def instructs_reviewer(path: str, text: str) -> bool:
    """Whether a file speaks to its reviewer, by its name or in its text."""
    name = re.sub(r"[_+-]", " ", path)
    text = _visible(text[:FILE_CHARACTERS])
    said = [name, text, *_decoded(text)]
    return any(HINTS.search(part) and REVIEWER.search(part) for part in said)


def _visible(text: str) -> str:
    return _INVISIBLE.sub("", CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def _without(text: str, shapes: Sequence[tuple[str, re.Pattern[str]]]) -> tuple[str, list[str]]:
    """The text without the sentences that give instructions, and what they asked for."""
    pieces = list(_pieces(text))
    cuts: dict[int, int] = {}
    asks: list[str] = []
    for form in _FORMS:
        said = [form(piece) for piece in pieces]
        starts = [0, *accumulate(len(part) + 1 for part in said)]
        joined = "\n".join(said)
        for sort, shape in shapes:
            for match in shape.finditer(joined):
                asks.append(sort)
                first = bisect_right(starts, match.start()) - 1
                last = bisect_right(starts, max(match.start(), match.end() - 1)) - 1
                at = match.start() - starts[first]
                same = len(said[first]) == len(pieces[first])
                begin = _clause(pieces[first], at) if same else 0
                cuts[first] = min(begin, cuts.get(first, begin))
                cuts |= dict.fromkeys(range(first + 1, last + 1), 0)
    kept = (piece[: cuts[n]] if n in cuts else piece for n, piece in enumerate(pieces))
    return "".join(kept).strip() if cuts else text, asks


def _pieces(text: str) -> Iterator[str]:
    """The sentences of a text, each with what parts it from the next."""
    start = 0
    for match in _SENTENCE.finditer(text):
        yield text[start : match.end()]
        start = match.end()
    yield text[start:]


def _clause(piece: str, at: int) -> int:
    """Where the clause begins that a place in a sentence belongs to."""
    return max((match.start() for match in _CLAUSE.finditer(piece, 0, at + 1)), default=0)


def _folded(piece: str) -> str:
    return unicodedata.normalize("NFKC", piece)


def _plain(piece: str) -> str:
    folded = _folded(piece).translate(_LOOKALIKES)
    return "" if folded == _folded(piece) else folded


def _turned(piece: str) -> str:
    return codecs.encode(piece, "rot13")


def _backwards(piece: str) -> str:
    return piece[::-1]


def _undone(piece: str) -> str:
    return "\n".join(_decoded(piece))


_FORMS: Final[Sequence[Callable[[str], str]]] = (_folded, _plain, _turned, _backwards, _undone)


def _decoded(text: str) -> list[str]:
    """What the codes in a text stand for; codes within codes, once."""
    once = list(_codes(text))
    return once + [more for part in once for more in _codes(part)]


def _codes(text: str) -> Iterator[str]:
    for match in _few(_BASE64.finditer(text)):
        yield from _base64(match[0])
    for match in _few(_HEX.finditer(text)):
        yield from _readable(bytes.fromhex(match[0]))
    for undone in (html.unescape(text), _percent(text), _ESCAPE.sub(_letter, text)):
        if undone != text:
            yield undone


def _few(matches: Iterable[re.Match[str]]) -> Iterator[re.Match[str]]:
    for _, match in zip(range(CODES), matches, strict=False):
        yield match


def _base64(code: str) -> Iterator[str]:
    plain = code.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        yield from _readable(base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True))
    except binascii.Error:
        return


def _percent(text: str) -> str:
    return unquote(text) if text.count("%") >= 3 else text


def _letter(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))


def _readable(data: bytes) -> Iterator[str]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    if all(char.isprintable() or char in "\n\t" for char in text):
        yield text
