"""From bytes to text."""

import gzip
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest

from worker.fetching.bounds import FetchFailed
from worker.fetching.content import decoded, media_type, read_body, read_start
from worker.fetching.wire import Reply
from worker.ports import Obstacle

CHINESE = "繁體中文的公告"


@pytest.mark.parametrize(
    ("content", "charset", "expected"),
    [
        ("é".encode(), "utf-8", "é"),
        ("é".encode(), "", "é"),
        ("é".encode("latin-1"), "iso-8859-1", "é"),
        (b"\x93quoted\x94 \x80", "iso-8859-1", "“quoted” €"),
        (b"\x93quoted\x94", "us-ascii", "“quoted”"),
        (CHINESE.encode("big5"), "Big5", CHINESE),
        ("简体".encode("gbk"), "gb2312", "简体"),
        ("日本".encode("shift_jis"), "Shift_JIS", "日本"),
        ("日本".encode("euc-jp"), "EUC-JP", "日本"),
        ("한국".encode("euc-kr"), "euc-kr", "한국"),
        ("Привет".encode("koi8-r"), "koi8-r", "Привет"),
        # a byte order mark wins over all
        (b"\xef\xbb\xbf" + "é".encode(), "iso-8859-1", "é"),
        (b"\xff\xfe" + "é".encode("utf-16-le"), "utf-8", "é"),
        (b"\xfe\xff" + "é".encode("utf-16-be"), "", "é"),
        # then what the head says
        (f'<meta charset="big5">{CHINESE}'.encode("big5"), "", f'<meta charset="big5">{CHINESE}'),
        ("<meta charset=big5>é".encode(), "utf-8", "<meta charset=big5>é"),
        (
            "<?xml version='1.0' encoding='ISO-8859-1'?>é".encode("latin-1"),
            "",
            "<?xml version='1.0' encoding='ISO-8859-1'?>é",
        ),
        # what does not fit is replaced
        (b"a\xffb", "utf-8", "a\ufffdb"),
        (b"\xed\xa0\x80", "utf-8", "\ufffd\ufffd\ufffd"),
        (b"\xff\xfe\x00\xd8", "", "\ufffd"),
        # what Python knows and no page is written in is UTF-8
        (b"a-b", "punycode", "a-b"),
        (b"+AGE-", "utf-7", "+AGE-"),
        (b"xn--a", "idna", "xn--a"),
        (b"\\u0041", "unicode_escape", "\\u0041"),
        (b"616263", "hex", "616263"),
        (b"x", "undefined", "x"),
        (b"x", "mbcs", "x"),
        (b"x", "no such thing", "x"),
        (b"x", "a\x00b", "x"),
        (b"", "", ""),
    ],
)
def test_text(content: bytes, charset: str, expected: str) -> None:
    assert decoded(content, charset) == expected


@pytest.mark.parametrize(
    ("given", "charset"),
    [
        ("Text/HTML", ""),
        ("text/html; Charset=UTF-8", "utf-8"),
        ("text/html; a=b;charset = 'Latin1' ; c=d", "latin1"),
        ('text/html; charset="utf-8"', "utf-8"),
        ("text/html; charset=", ""),
        ("text/html; charset*=a; charset*1=b", ""),
        ("text/html; charset*=%00''x", ""),
        (f"text/html; charset*{'1' * 5000}=x", ""),
    ],
)
def test_a_media_type_however_it_is_spelled(given: str, charset: str) -> None:
    """What RFC 2231 allows of a parameter has no say, and ends nothing."""

    async def nothing() -> AsyncIterator[bytes]:
        yield b""

    reply = Reply(200, httpx.Headers({"content-type": given}), nothing())
    assert media_type(reply) == ("text/html", charset)


def zipped(*chunks: bytes) -> Reply:
    """An answer that says that these are gzip."""

    async def come() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return Reply(200, httpx.Headers({"content-encoding": "gzip"}), come())


@pytest.mark.parametrize("read", [read_body, read_start])
async def test_a_bomb_in_one_piece_takes_no_memory(
    read: Callable[[Reply, int], Awaitable[bytes]],
) -> None:
    """It is inflated up to the bound, not first and counted then."""
    bomb = gzip.compress(bytes(1 << 26))
    tracemalloc.start()
    try:
        if read is read_start:
            assert await read(zipped(bomb), 1000) == bytes(1000)
        else:
            with pytest.raises(FetchFailed) as failed:
                await read(zipped(bomb), 1000)
            assert failed.value.reason is Obstacle.SIZE
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


async def test_gzip_in_pieces_and_what_follows_it() -> None:
    """Piece by piece it is the same; something after its end would be lost, and is refused."""
    whole = gzip.compress(b"hello " * 100)
    pieces = [whole[at : at + 7] for at in range(0, len(whole), 7)]
    assert await read_body(zipped(*pieces), 1000) == b"hello " * 100
    for more in ([whole + whole], [whole, whole], [whole, b"x"]):
        with pytest.raises(FetchFailed) as failed:
            await read_body(zipped(*more), 10_000)
        assert failed.value.reason is Obstacle.ENCODING
