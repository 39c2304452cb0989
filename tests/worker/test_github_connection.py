"""One request on the wire: its headers, its end, and where a credential never goes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from tests.worker.test_github_world import HastyClock
from worker.github.connection import Answer, Connection, RequestKind
from worker.github.failures import NoAnswer, Verdict
from worker.ports import Timing


@pytest.fixture
def anyio_backend() -> str:
    """The program runs on asyncio alone."""
    return "asyncio"


@asynccontextmanager
async def wire(*answers: bytes, drip_seconds: float = 0) -> AsyncIterator[tuple[str, list[str]]]:
    """A server that gives these answers in turn; its address, and the heads of what it was sent."""
    heads: list[str] = []
    waiting = list(answers)
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())  # type: ignore[arg-type]
        with contextlib.suppress(OSError):
            heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
            for byte in waiting.pop(0):
                if reader.at_eof():
                    break
                writer.write(bytes([byte]))
                await asyncio.sleep(drip_seconds)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads
        await asyncio.gather(*serving)


def answer(status: str, *headers: str, body: str = "{}") -> bytes:
    """One HTTP answer."""
    lines = [f"HTTP/1.1 {status}", *headers, f"content-length: {len(body)}", "connection: close"]
    return "\r\n".join([*lines, "", body]).encode()


async def asked(url: str, *, method: str = "GET", seconds: float = 5) -> Answer:
    """One request to it."""
    timing = Timing(request=timedelta(seconds=seconds))
    async with Connection(clock=HastyClock(), timing=timing, api_url=url) as connection:
        return await connection.send_once(
            RequestKind.READ, method, "repositories/1/issues", authorization="token secret"
        )


async def test_a_request_says_who_asks_in_which_version_and_sets_no_condition() -> None:
    """A condition or a cache would show yesterday's list."""
    async with wire(answer("200 OK")) as (url, heads):
        assert (await asked(url)).reading.verdict is Verdict.DONE
    head = heads[0]
    assert head.startswith("get /repositories/1/issues http/1.1")
    assert "user-agent: retriage/" in head
    assert "x-github-api-version: 2022-11-28" in head
    assert "accept: application/vnd.github+json" in head
    assert "authorization: token secret" in head
    assert "if-none-match" not in head
    assert "if-modified-since" not in head


async def test_an_enterprise_address_keeps_its_path() -> None:
    """https://HOST/api/v3, and links that lead under it."""
    async with wire(answer("200 OK"), answer("200 OK")) as (url, heads):
        base = f"{url}/api/v3/"
        await asked(base)
        link = f'link: <{base}repositories/1/issues?after=x%3D&page=2>; rel="next"'
    assert heads[0].startswith("get /api/v3/repositories/1/issues http")
    async with wire(answer("200 OK", link)) as (other, _):
        assert (await asked(other)).next_page is None


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.2/repositories/1",
        "https://127.0.0.1/repositories/1",
        "//elsewhere.example/repositories/1",
        "http://127.0.0.1@elsewhere.example/x",
        "http://[",
    ],
)
async def test_a_credential_never_goes_to_another_address(target: str) -> None:
    """A redirect or a next page elsewhere is no path of ours."""
    headers = (f"location: {target}", f'link: <{target}>; rel="next"')
    async with wire(answer("301 Moved Permanently", *headers)) as (url, heads):
        moved = await asked(url)
        assert len(heads) == 1
    assert moved.reading.verdict is Verdict.MOVED
    assert (moved.location, moved.next_page) == (None, None)


async def test_a_path_under_the_address_is_kept_with_its_query() -> None:
    """As GitHub words it: by the repository's id, or with a cursor."""
    link = 'link: </repositories/1/issues?after=Y3Vyc29y%3D&page=2>; rel="next"'
    async with wire(answer("200 OK", link)) as (url, _):
        page = await asked(url)
    assert page.next_page == "repositories/1/issues?after=Y3Vyc29y%3D&page=2"


async def test_an_answer_that_drips_ends_with_the_total_time() -> None:
    """Each byte comes in time, the whole does not."""
    began = asyncio.get_running_loop().time()
    async with wire(answer("200 OK"), drip_seconds=0.05) as (url, _):
        with pytest.raises(NoAnswer, match="TimeoutError"):
            await asked(url, seconds=0.3)
    assert asyncio.get_running_loop().time() - began < 1


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"HTTP/1.1 200",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 201 Created\r\ncontent-length: 99\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}",
    ],
)
async def test_an_answer_that_breaks_off_is_none(broken: bytes) -> None:
    """A drop before, within and after the head; a body that cannot be unpacked."""
    async with wire(broken) as (url, heads):
        with pytest.raises(NoAnswer):
            await asked(url, method="POST")
        assert len(heads) == 1


@pytest.mark.parametrize("body", ["", "<html>", "\xff", "[" * 5, "[" * 5_000])
async def test_an_answer_that_is_no_json_has_no_content(body: str) -> None:
    """Its status still counts."""
    async with wire(answer("502 Bad Gateway", body=body)) as (url, _):
        broken = await asked(url)
    assert broken.content is None
    assert broken.reading.verdict is Verdict.BROKEN


@pytest.mark.parametrize("half", [rb"\ud83d", rb"\uDE00", b"\xed\xa0\xbd"])
async def test_half_a_surrogate_pair_is_replaced(half: bytes) -> None:
    """JSON can spell what UTF-8 cannot hold: it would stop every run that meets it."""
    body = b'[{"title": "%s", "labels": ["a%sb", "\\ud83d\\ude00"], "id": 7}]' % (half, half)
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body)
    async with wire(head + body) as (url, _):
        found = await asked(url)
    assert found.content == [{"title": "\ufffd", "labels": ["a\ufffdb", "😀"], "id": 7}]


async def test_a_cancelled_request_stops_at_once() -> None:
    """The run's own deadline, or a signal: the error is the canceller's, not ours."""
    async with wire(answer("200 OK"), drip_seconds=0.05) as (url, heads):
        task = asyncio.create_task(asked(url))
        await asyncio.sleep(0.2)
        assert len(heads) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
