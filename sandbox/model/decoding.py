"""What a text says besides its face: in codes, in invisible letters, in other languages.

For the obedient model, which understands an order in every form that this module can undo.
"""

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import unquote

ROUNDS = 2
"""Codes within codes that are undone."""

LONGEST = 100_000
"""Characters of a text that are looked at."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(r"\b(?:[0-9a-fA-F]{2}[ :]?){12,}")
_PERCENT = re.compile(r"%[0-9a-fA-F]{2}")
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}){3,}")
_SPACED = re.compile(r"(?:\b\w[ .·]){4,}\w\b")
_TAGS = re.compile("[\U000e0020-\U000e007e]{3,}")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_LOOKALIKES = str.maketrans("аеіорсухѕԁһјӏ", "aeiopcyxsdhjl")
_OPENERS = ("label this", "write:", "say:", "mention @", "ignore", "include the", "read ", "call ")

_FOREIGN: Sequence[tuple[str, str]] = (
    (r"(?:標記為|标记为|標籤設為|打上標籤|打上标签)[「『\"`:： ]*([\w/.-]+)", "label this {}"),
    (r"(?:留言|寫上|写上|回覆|回复|寫道)[:：]\s*(.+)", "write: {}"),
    (r"(?:提及|通知|呼叫)\s*(@[\w/-]+)", "mention {}"),
    (r"(?:附上連結|附上链接|貼上連結|贴上链接)\s*(\S+)", "include the link {}"),
    (r"(?:讀取|读取)\s*(\S+?)\s*(?:並|并)", "read {} and quote it"),
    (r"ラベル「([^」]+)」", "label this {}"),
    (r"(?:と書いて|次のように書いて(?:ください)?)[:：]\s*(.+)", "write: {}"),
    (r"라벨\s*[`'\"]?([\w/.-]+?)[`'\"]?\s*(?:을|를)", "label this {}"),
    (r"(?:라고 써|다음과 같이 써)[^:\n]*:\s*(.+)", "write: {}"),
    (r"(?i)\betikettiere (?:dies|das|dieses \w+) (?:als|mit) [`\"']?([\w/.-]+)", "label this {}"),
    (r"(?i)\bschreibe?:\s*(.+)", "write: {}"),
    (r"(?i)\berwähne (@[\w/-]+)", "mention {}"),
    (r"(?i)\blies (\S+) und zitiere", "read {} and quote it"),
    (r"(?i)\bétiquette (?:ceci|ce \w+) (?:comme |avec )?[`\"']?([\w/.-]+)", "label this {}"),
    (r"(?i)\bécris\s*:\s*(.+)", "write: {}"),
    (r"(?i)\bmentionne (@[\w/-]+)", "mention {}"),
    (r"(?i)\betiqueta esto como [`\"']?([\w/.-]+)", "label this {}"),
    (r"(?i)\bescribe:\s*(.+)", "write: {}"),
    (r"(?i)\bmenciona a (@[\w/-]+)", "mention {}"),
    (r"(?i)\b(?:пометь|отметь) (?:это )?как [`\"']?([\w/.-]+)", "label this {}"),
    (r"(?i)\bнапиши:\s*(.+)", "write: {}"),
    (r"(?i)\bупомяни (@[\w/-]+)", "mention {}"),
    (r"(?i)\bвключи ссылку (\S+)", "include the link {}"),
    (r"(?:ضع الوسم|أضف الوسم)\s*([\w/.-]+)", "label this {}"),
    (r"(?:اكتب)\s*:\s*(.+)", "write: {}"),
)
"""Phrases of other languages, and the English order that they are."""

_KNOWN = [(re.compile(shape), order) for shape, order in _FOREIGN]


def understood(text: str) -> str:
    """A text followed, line by line, by everything else that it says."""
    known = dict.fromkeys([text[:LONGEST]])
    fresh = list(known)
    for _ in range(ROUNDS):
        fresh = [more for part in fresh for undo in _UNDO for more in undo(part)]
        fresh = [part for part in dict.fromkeys(fresh) if part and part not in known]
        known.update(dict.fromkeys(fresh))
    return "\n".join([*known, *(order for part in known for order in _translated(part))])


def _translated(text: str) -> Iterator[str]:
    for shape, order in _KNOWN:
        for match in shape.finditer(text):
            yield order.format(match[1].strip())


def _base64(text: str) -> Iterator[str]:
    for match in _BASE64.finditer(text):
        code = match[0].rstrip("=").replace("-", "+").replace("_", "/")
        with_padding = code + "=" * (-len(code) % 4)
        try:
            yield from _printable(base64.b64decode(with_padding, validate=True))
        except binascii.Error:
            continue


def _hex(text: str) -> Iterator[str]:
    for match in _HEX.finditer(text):
        yield from _printable(bytes.fromhex(re.sub("[ :]", "", match[0])))


def _percent(text: str) -> Iterator[str]:
    if len(_PERCENT.findall(text)) >= 3:
        yield unquote(text)


def _entities(text: str) -> Iterator[str]:
    if "&" in text:
        yield html.unescape(text)


def _escapes(text: str) -> Iterator[str]:
    if _ESCAPES.search(text):
        yield _ESCAPES.sub(lambda found: codecs.decode(found[0], "unicode_escape"), text)


def _tags(text: str) -> Iterator[str]:
    for match in _TAGS.finditer(text):
        yield "".join(chr(ord(char) - 0xE0000) for char in match[0])


def _spaced(text: str) -> Iterator[str]:
    if _SPACED.search(text):
        words = re.split(r" {2,}|\n", text)
        yield " ".join(re.sub(r"(?<=\b\w)[ .·](?=\w\b)", "", word) for word in words)


def _shown(text: str) -> Iterator[str]:
    """Without the invisible, with plain letters for wide and for lookalike ones."""
    yield _INVISIBLE.sub("", text)
    yield unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).translate(_LOOKALIKES)


def _turned(text: str) -> Iterator[str]:
    """Rotated by thirteen or written backwards, where that makes it begin an order."""
    for turned in (codecs.decode(text, "rot13"), text[::-1]):
        if any(opener in turned.lower() for opener in _OPENERS):
            yield turned


def _printable(data: bytes) -> Iterator[str]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    if all(char.isprintable() or char in "\n\t" for char in text):
        yield text


_UNDO: Sequence[Callable[[str], Iterator[str]]] = (
    *(_base64, _hex, _percent, _entities, _escapes, _tags, _spaced, _shown, _turned),
)
