"""From an answer's body to text: bounded, of text media types only, never raising over letters."""

import codecs
import re
import zlib

from worker.fetching.bounds import FetchFailed
from worker.fetching.wire import Reply
from worker.ports import Obstacle

_TEXT = re.compile(r"text/[\w.+-]+|application/(?:[\w.-]+\+)?(?:xml|json)", re.ASCII)
_TYPE = re.compile(r"[\w.+-]{1,40}/[\w.+-]{1,80}", re.ASCII)
_CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([\w.:-]{1,40})""", re.ASCII | re.IGNORECASE)
"""Read by us: ``email.message`` fails on what RFC 2231 lets a parameter be spelled like."""
_ZIPPED = frozenset({"gzip", "x-gzip"})
_GZIP_WINDOW = 31  # zlib's word for: gzip, of any window
_SPELLED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?([A-Za-z0-9._:-]{1,40})""")
_HEAD_BYTES = 1024
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_AS_BROWSERS_READ = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
"""By the standard "Encoding" of the WHATWG: a name means the larger set."""
_CHARSETS = re.compile(
    r"ascii|utf-(?:8|16|16-le|16-be)|iso8859-\d+|cp125\d|cp932|cp949|koi8-[ru]|mac-roman"
    r"|gb2312|gbk|gb18030|big5|big5hkscs|shift_jis|euc_jp|iso2022_jp|euc_kr"
)
"""Python's names of those that pages are written in: it also calls ``punycode`` one."""


def media_type(reply: Reply) -> tuple[str, str]:
    """The media type and its charset, both lower case, ``""`` where none is given.

    Raises FetchFailed for one that is not text.
    """
    field = reply.headers.get("content-type", "")
    given = field.partition(";")[0].strip().lower()
    if not _TEXT.fullmatch(given):
        shown = given if _TYPE.fullmatch(given) else "no media type"
        raise FetchFailed(Obstacle.MEDIA_TYPE, f"not a text: {shown}")
    charset = _CHARSET.search(field)
    return given, (charset[1].lower() if charset else "")


async def read_body(reply: Reply, most_bytes: int) -> bytes:
    """The whole body, decompressed. Raises FetchFailed past ``most_bytes``, or where it is broken.

    At no time is more than one byte past the bound held, whatever it would inflate to.
    """
    zipped = _is_zipped(reply)
    unzip = zlib.decompressobj(wbits=_GZIP_WINDOW)
    content = bytearray()
    async for chunk in reply.chunks:
        left = most_bytes - len(content)
        content += _unzipped(unzip, chunk, left + 1) if zipped else chunk[: left + 1]
        if len(content) > most_bytes:
            raise FetchFailed(Obstacle.SIZE, f"more than {most_bytes} bytes of content")
    if zipped and not unzip.eof:
        raise FetchFailed(Obstacle.CUT, "the compressed content ends early", retryable=True)
    return bytes(content)


async def read_start(reply: Reply, most_bytes: int) -> bytes:
    """The first ``most_bytes`` of a body; the rest is left. Raises FetchFailed where broken."""
    zipped = _is_zipped(reply)
    unzip = zlib.decompressobj(wbits=_GZIP_WINDOW)
    content = bytearray()
    async for chunk in reply.chunks:
        left = most_bytes - len(content)
        content += _unzipped(unzip, chunk, left) if zipped else chunk[:left]
        if len(content) >= most_bytes:
            break
    return bytes(content)


def decoded(content: bytes, charset: str) -> str:
    """Text: by its byte order mark, else the charset, else what its head says, else UTF-8.

    What does not fit becomes U+FFFD.
    """
    for mark, name in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(name, errors="replace")
    spelled = _SPELLED.search(content[:_HEAD_BYTES])
    inside = spelled[1].decode("ascii") if spelled else ""
    known = _codec(charset) or _codec(inside) or "utf-8"
    return content.decode(known, errors="replace")


def _codec(name: str) -> str | None:
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    return _AS_BROWSERS_READ.get(found, found) if _CHARSETS.fullmatch(found) else None


def _is_zipped(reply: Reply) -> bool:
    given = reply.headers.get("content-encoding", "identity").strip().lower()
    if given in _ZIPPED:
        return True
    if given not in ("", "identity"):
        raise FetchFailed(Obstacle.ENCODING, "not the gzip that was asked for")
    return False


def _unzipped(unzip: "zlib._Decompress", chunk: bytes, most_bytes: int) -> bytes:
    try:
        content = unzip.decompress(chunk, most_bytes)
    except zlib.error as error:
        raise FetchFailed(Obstacle.ENCODING, "broken gzip") from error
    if unzip.unused_data:
        raise FetchFailed(Obstacle.ENCODING, "something after the end of the gzip")
    return content
