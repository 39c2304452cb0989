"""A connection: deliveries take the lane, all else goes to the application; nobody can tell."""

import asyncio
import json
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from bot.connection import LANE_BODY_BYTES, Connection
from ledger.connection import connect_sync
from tests.bot.receiver import Receiver, command, headers, json_body, queued, receiving
from tests.bot.test_process import accepts, address, web

PATH = "POST /api/github/webhooks HTTP/1.1"
ACCEPTED = (202, {"outcome": "accepted"})


class Client:
    """A connection that is kept, on which a test says what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def say(self, sent: bytes) -> None:
        """Bytes, in a segment of their own."""
        self._writer.write(sent)
        await self._writer.drain()
        await asyncio.sleep(0.02)

    def write(self, sent: bytes) -> None:
        """The same, without waiting."""
        self._writer.write(sent)

    async def first_line(self) -> bytes:
        """Of what comes next; nothing where the connection is closed."""
        return await asyncio.wait_for(self._reader.readline(), 10)

    async def answer(self) -> tuple[int, dict[str, object]]:
        """Status and JSON of the next answer."""
        status, _, told = await self.whole()
        return status, told

    async def whole(self) -> tuple[int, dict[str, str], dict[str, object]]:
        """Status, headers and JSON of the next answer."""
        head = (await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), 10)).decode()
        first, *lines = head.split("\r\n")[:-2]
        told = dict(line.lower().split(": ", 1) for line in lines)
        body = await self._reader.readexactly(int(told["content-length"]))
        return int(first.split(" ")[1]), told, json.loads(body)


@asynccontextmanager
async def calling(receiver: Receiver) -> AsyncIterator[Client]:
    """A new connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", receiver.port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


def request(number: int = 77, *more: str, first: str = PATH, body: bytes = b"") -> bytes:
    """A delivery of comment ``number``, with further header lines."""
    body = body or json_body(command(comment=number))
    lines = [first, "Host: x", f"Content-Length: {len(body)}", *more]
    lines += [f"{name}: {value}" for name, value in headers(body, guid=f"d-{number}").items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


UNUSUAL = {
    "a header twice": request(1, "X-Twice: 1", "X-Twice: 2"),
    "an empty header": request(1, "X-Empty:"),
    "text beyond ASCII": request(1, "X-Name: é"),
    "a query": request(1, first=PATH.replace("webhooks", "webhooks?x=1")),
    "a large body": request(1, body=json_body(command(comment=1)) + b" " * LANE_BODY_BYTES),
}


async def test_the_lane_answers_as_the_application_does(receiver: Receiver) -> None:
    """One connection for each: status, headers and words are the same."""
    async with calling(receiver) as lane, calling(receiver) as general:
        for number in (1, 1, 2):
            await lane.say(request(number))
            status, told, words = await lane.whole()
            await general.say(request(number + 10, "X-Twice: 1", "X-Twice: 2"))
            assert (status, sorted(told), words) == _without_values(await general.whole())
    assert len(receiver.lines("DELIVERY accepted")) == 4
    assert len(receiver.lines("DELIVERY duplicate")) == 2


def _without_values(
    answer: tuple[int, dict[str, str], dict[str, object]],
) -> tuple[int, list[str], dict[str, object]]:
    status, told, words = answer
    return status, sorted(told), words


@pytest.mark.parametrize("unusual", UNUSUAL.values(), ids=UNUSUAL.keys())
async def test_what_is_unusual_is_taken_too(receiver: Receiver, unusual: bytes) -> None:
    """After a usual one on the same connection, and before another."""
    async with calling(receiver) as client:
        for said in (request(3), unusual, request(2)):
            await client.say(said)
            assert await client.answer() == ACCEPTED


async def test_what_is_refused_in_the_lane(receiver: Receiver, redis_url: str) -> None:
    """A wrong signature, and a body that is no JSON; the connection goes on."""
    async with calling(receiver) as client:
        await client.say(request(1).replace(b"/retriage", b"/retraige"))
        assert (await client.answer())[0] == 401
        await client.say(request(1, body=b"{"))
        assert await client.answer() == (
            400,
            {"outcome": "refused", "reason": "the body is not JSON"},
        )
        await client.say(request(1))
        assert await client.answer() == ACCEPTED
    assert len(queued(redis_url)) == 1


@pytest.mark.parametrize("cuts", [(30,), (600,), (500, 600, 700), (-1,)])
async def test_a_request_in_pieces(receiver: Receiver, cuts: tuple[int, ...]) -> None:
    """Cut within its head, or within its body, once or more."""
    said = request(1)
    async with calling(receiver) as client:
        for start, end in zip((0, *cuts), (*cuts, len(said)), strict=True):
            await client.say(said[start:end])
        assert await client.answer() == ACCEPTED
        await client.say(request(2))
        assert await client.answer() == ACCEPTED


class Hasty(Connection):
    """Waits for no body that is slow."""

    body_seconds = 0.2


async def test_a_body_that_does_not_come_is_not_waited_for(redis_url: str) -> None:
    """Answered 408, with its line, and the connection is closed."""
    async with (
        receiving(redis_url, connection=Hasty) as receiver,
        calling(receiver) as client,
    ):
        await client.say(request(1)[:-5])
        reason = "the body did not arrive in time"
        assert await client.answer() == (408, {"outcome": "refused", "reason": reason})
        assert await client.first_line() == b""
    assert receiver.lines("DELIVERY refused")


async def test_a_fault_of_ours_is_answered(receiver: Receiver, redis_url: str) -> None:
    """500, in the lane as by the application; nothing is recorded, and the lane goes on."""
    failed = (500, {"outcome": "failed", "reason": "an error of the receiver"})
    async with calling(receiver) as client, calling(receiver) as general:
        receiver.now.at = "no moment"  # type: ignore[assignment] # a clock that is broken
        await general.say(request(1, "X-Twice: 1", "X-Twice: 2"))
        await client.say(request(1))
        assert await general.answer() == await client.answer() == failed
        receiver.now.at = None
        assert queued(redis_url) == []
        await client.say(request(1))
        assert await client.answer() == ACCEPTED


async def test_requests_that_do_not_wait_for_their_answers(
    receiver: Receiver, redis_url: str
) -> None:
    """The first is answered, and told that the connection ends: the rest is asked again on another
    one. No answer is for a request that it does not belong to."""
    async with calling(receiver) as client:
        await client.say(request(1) + request(2))
        status, told, words = await client.whole()
        assert (status, told["connection"], words) == (202, "close", ACCEPTED[1])
        assert await client.first_line() == b""
    assert len(queued(redis_url)) == 1


async def test_what_arrives_meanwhile_is_accepted_together(
    receiver: Receiver, redis_url: str
) -> None:
    """Far fewer round trips than deliveries, and one job for each."""
    await receiver.deliver(command(comment=1000))
    with connect_sync(redis_url) as client:
        client.config_resetstat()
        client.client_pause(500)
        answers = await asyncio.gather(
            *(receiver.deliver(command(comment=number)) for number in range(1, 61))
        )
        scripts = client.info("commandstats")["cmdstat_evalsha"]["calls"]
    assert {answer.status_code for answer in answers} == {202}
    assert len(queued(redis_url)) == 61
    assert scripts <= 30


async def test_one_who_goes_away_harms_no_other(receiver: Receiver, redis_url: str) -> None:
    """Closed before the answer, in the middle of a group."""
    async with calling(receiver) as other:
        for number in range(1, 8):
            async with calling(receiver) as client:
                client.write(request(number))
        await other.say(request(8))
        assert await other.answer() == ACCEPTED


def test_a_kept_connection_is_closed_at_the_end(redis_url: str) -> None:
    """SIGTERM while it is idle after a delivery: no client is waited for."""
    with web(redis_url) as process:
        port = int(address(process).rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(request(1))
            assert client.recv(1000).startswith(b"HTTP/1.1 202 ")
            process.send_signal(signal.SIGTERM)
            client.settimeout(5)
            assert client.recv(1000) == b""
        process.communicate(timeout=10)
        assert process.returncode == 0
    assert not accepts(port)


async def test_what_is_malformed_is_refused(receiver: Receiver) -> None:
    """Two lengths, or a length and a coding: refused, and the connection is closed."""
    for line in ("Content-Length: 5", "Transfer-Encoding: chunked, x"):
        async with calling(receiver) as client:
            await client.say(request(1, line))
            assert await client.first_line() == b"HTTP/1.1 400 Bad Request\r\n"
    assert receiver.lines("DELIVERY") == []


async def test_who_asks_for_it_is_answered_and_left(receiver: Receiver) -> None:
    """Connection: close."""
    async with calling(receiver) as client:
        await client.say(request(1, "Connection: close"))
        assert await client.answer() == ACCEPTED
        assert await client.first_line() == b""


async def test_a_body_that_is_cut_off_has_its_line(receiver: Receiver) -> None:
    """The client goes away within it: nothing is recorded, and that is said."""
    async with calling(receiver) as client:
        await client.say(request(1)[:-5])
    for _ in range(100):
        if receiver.lines("DELIVERY refused"):
            break
        await asyncio.sleep(0.02)
    assert "closed within the body" in receiver.lines("DELIVERY refused")[0]


async def test_an_early_answer_reaches_who_still_sends(receiver: Receiver) -> None:
    """A large delivery without a signature is refused before its body is there; the rest of the
    body is not taken for an endless head."""
    said = request(1, body=b" " * 2 * LANE_BODY_BYTES)
    said = said.replace(b"x-hub-signature-256", b"x-none")
    async with calling(receiver) as client:
        for start in range(0, len(said), 40_000):
            await client.say(said[start : start + 40_000])
        assert (await client.answer())[0] == 401


async def test_an_endless_head_is_cut_off(receiver: Receiver) -> None:
    """No end after 32 KiB: the connection is closed while the client still sends."""
    async with calling(receiver) as client:
        await client.say(b"GET /healthz HTTP/1.1\r\n")
        sent = 0
        with suppress(ConnectionError):
            while sent < 1000:
                await client.say(f"X-Line-{sent}: {'x' * 1000}\r\n".encode())
                sent += 1
        assert sent < 100


async def test_an_old_client_is_answered_and_left(receiver: Receiver) -> None:
    """HTTP/1.0 keeps no connection."""
    async with calling(receiver) as client:
        await client.say(request(1, first=PATH.replace("1.1", "1.0")))
        assert await client.answer() == ACCEPTED
        assert await client.first_line() == b""
