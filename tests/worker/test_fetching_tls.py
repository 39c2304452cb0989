"""TLS: the server proves that it is who the name says, and both sides keep the name."""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sandbox.web import Certificate, Endless, Page, Redirect, WebServer, certificate
from tests.worker.webs import PUBLIC, QUICK, Detour, Stopped, text, told
from worker.fetching import HttpFetcher

TODAY = datetime.now(UTC)
OWN = certificate("a.example", "b.example", now=TODAY)


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer(tls=OWN.context()) as server:
        server.put("/", Page("proved"))
        yield server


def fetcher(
    port: int, trusted: Certificate | None = None, seconds: float = QUICK.connect_seconds
) -> tuple[HttpFetcher, Detour]:
    """One whose names lead, by a public address, to a web on loopback."""
    names = {name: [[PUBLIC]] for name in ("a.example", "b.example", "c.example")}
    network = Detour(names=names, webs={PUBLIC: port})
    authorities = trusted.public if trusted else None
    bounds = replace(QUICK, connect_seconds=seconds)
    made = HttpFetcher(Stopped(), network=network, bounds=bounds, authorities=authorities)
    return made, network


async def test_a_certificate_that_signs_itself_is_refused(web: WebServer) -> None:
    """By the public authorities, as in production: nothing is asked of such a server."""
    refused = await fetcher(web.port)[0].fetch("https://a.example/")
    assert told(refused) == "tls: certificate refused: self-signed certificate"
    assert web.asked() == []


async def test_a_proved_name(web: WebServer) -> None:
    """The connection goes to the address, TLS and Host keep the name."""
    made, network = fetcher(web.port, OWN)
    assert text(await made.fetch("https://a.example/")) == "proved"
    assert network.connected == [(PUBLIC, 443)] * 2
    assert {each.headers["host"] for each in web.asked()} == {"a.example"}


async def test_what_is_decrypted_is_bounded_too(web: WebServer) -> None:
    web.put("/", Endless("hints"))
    refused = await fetcher(web.port, OWN)[0].fetch("https://a.example/")
    assert told(refused) == f"size: more than {QUICK.wire_bytes} bytes"


async def test_a_certificate_of_another_name(web: WebServer) -> None:
    refused = await fetcher(web.port, OWN)[0].fetch("https://c.example/")
    assert told(refused).startswith("tls: certificate refused: Hostname mismatch")
    assert web.asked() == []


async def test_a_certificate_that_has_ended() -> None:
    old = certificate("a.example", now=TODAY - timedelta(days=30))
    with WebServer(tls=old.context()) as web:
        refused = await fetcher(web.port, old)[0].fetch("https://a.example/")
    assert told(refused) == "tls: certificate refused: certificate has expired"


async def test_a_server_without_tls() -> None:
    """Nothing is said to it in the clear, whether it waits for that or speaks first."""
    with WebServer() as web:
        refused = await fetcher(web.port, seconds=0.5)[0].fetch("https://a.example/")
        assert told(refused) == "connect: no connection in time"
        assert web.asked() == []

    async def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        refused = await fetcher(port)[0].fetch("https://a.example/")
        assert told(refused) == "tls: no TLS: WRONG_VERSION_NUMBER"


async def test_tls_that_breaks_on_the_way() -> None:
    """The resource is not fetched; nothing is raised that would end the whole run."""

    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        if b"robots.txt" in asked:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nabc")
        await writer.drain()
        os.write(writer.get_extra_info("socket").fileno(), b"no record of TLS")
        await reader.read()
        writer.transport.abort()

    tls = OWN.context()
    async with await asyncio.start_server(break_off, "127.0.0.1", 0, ssl=tls) as server:
        port = server.sockets[0].getsockname()[1]
        refused = await fetcher(port, OWN)[0].fetch("https://a.example/")
    assert told(refused) == "cut: the answer ended early or is not HTTP"


async def test_from_https_to_https(web: WebServer) -> None:
    web.put("/old", Redirect("https://b.example/"))
    found = await fetcher(web.port, OWN)[0].fetch("https://a.example/old")
    assert text(found) == "proved"
    assert found.address == "https://b.example/"


@pytest.mark.parametrize("to", ["http://a.example/", "http://127.0.0.1:1/", "http://b.example:443"])
async def test_from_https_to_http(web: WebServer, to: str) -> None:
    """Refused, also where the flag of the tests allows http."""
    web.put("/old", Redirect(to))
    network = Detour(names={"a.example": [[PUBLIC]]}, webs={PUBLIC: web.port})
    for flag in (False, True):
        made = HttpFetcher(
            Stopped(), network=network, authorities=OWN.public, allow_loopback_http=flag
        )
        refused = await made.fetch("https://a.example/old")
        assert told(refused) == "redirect: a redirect from https to http"
        assert refused.address == "https://a.example/old"
