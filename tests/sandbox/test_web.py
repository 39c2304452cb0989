"""The sandbox web: its answers on the wire, its control addresses, its log."""

import gzip
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import pytest

from sandbox.web import (
    Bomb,
    Cut,
    Drip,
    Endless,
    Hang,
    Headless,
    Page,
    Redirect,
    WebServer,
    WrongLength,
    certificate,
)


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as server:
        yield server


@pytest.fixture
def client(web: WebServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=web.url, trust_env=False, timeout=5) as made:
        yield made


def test_pages_and_the_log(web: WebServer, client: httpx.Client) -> None:
    web.put("/a?x=1", Page("hé", "text/plain", headers={"X-More": "1"}))
    web.put("/gone", Page("was here", status=410))
    web.put("/zipped", Page("abc" * 99, zipped=True))
    assert client.get("/a?x=1", headers={"x-who": "me"}).text == "hé"
    assert client.get("/a").status_code == 404
    assert client.get("/gone").status_code == 410
    assert client.get("/zipped").text == "abc" * 99
    moved = client.get("/a?x=1")
    assert (moved.headers["x-more"], moved.headers["content-type"]) == ("1", "text/plain")
    assert [each.target for each in web.asked()] == ["/a?x=1", "/a", "/gone", "/zipped", "/a?x=1"]
    assert [each.headers.get("x-who") for each in web.asked("/a?x=1")] == ["me", None]
    web.remove("/gone")
    web.forget()
    assert client.get("/gone").status_code == 404
    assert [each.n for each in web.asked()] == [1]


def test_control_over_http(web: WebServer, client: httpx.Client) -> None:
    """Content that another process changes."""
    page = {"target": "/feed", "body": "<feed/>", "media_type": "application/atom+xml"}
    assert client.request("PUT", "/_sandbox/pages", json=page).status_code == 200
    got = client.get("/feed")
    assert (got.text, got.headers["content-type"]) == ("<feed/>", "application/atom+xml")
    client.request("PUT", "/_sandbox/pages", json={**page, "body": "<feed>2</feed>"})
    assert client.get("/feed").text == "<feed>2</feed>"
    assert [each["target"] for each in client.get("/_sandbox/requests").json()] == ["/feed"] * 2
    assert client.request("DELETE", "/_sandbox/pages", json={"target": "/feed"}).is_success
    assert client.get("/feed").status_code == 404
    client.delete("/_sandbox/requests")
    assert client.get("/_sandbox/requests").json() == []
    for wrong in ({}, {"target": 1}, {"target": "/", "colour": 1}, 7):
        assert client.request("PUT", "/_sandbox/pages", json=wrong).status_code == 422
    assert client.get("/_sandbox/nothing").status_code == 404


def test_redirects(web: WebServer, client: httpx.Client) -> None:
    web.put("/a", Redirect("/b", 308))
    web.put("/none", Redirect(None))
    assert client.get("/a").headers["location"] == "/b"
    assert "location" not in client.get("/none").headers


def test_a_bomb_is_small_on_the_wire(web: WebServer, client: httpx.Client) -> None:
    web.put("/", Bomb(inflated_bytes=1 << 24))
    with client.stream("GET", "/") as answer:
        raw = b"".join(answer.iter_raw())
    assert len(raw) < 20_000
    assert gzip.decompress(raw) == bytes(1 << 24)
    web.put("/", Bomb(inflated_bytes=1 << 24, layers=2))
    with client.stream("GET", "/") as answer:
        twice = b"".join(answer.iter_raw())
    assert len(twice) < 1000
    assert len(gzip.decompress(gzip.decompress(twice))) == 1 << 24


def test_lengths_and_cuts(web: WebServer, client: httpx.Client) -> None:
    web.put("/long", WrongLength(3))
    web.put("/short", WrongLength(-3, "abcdef"))
    web.put("/cut", Cut("part"))
    web.put("/mute", Headless())
    web.put("/junk", Headless(b"junk\r\n"))
    assert client.get("/short").text == "abc"
    for path in ("/long", "/cut", "/mute", "/junk"):
        with pytest.raises(httpx.RemoteProtocolError):
            client.get(path)
    web.put("/half", Cut("part" * 99, zipped=True))
    with client.stream("GET", "/half") as answer, pytest.raises(EOFError):
        gzip.decompress(b"".join(answer.iter_raw()))


def test_slow_and_endless(web: WebServer, client: httpx.Client) -> None:
    """They go on until the client leaves, and keep nobody else waiting."""
    web.put("/hang", Hang())
    web.put("/drip", Drip())
    web.put("/endless", Endless())
    web.put("/", Page("quick"))
    with pytest.raises(httpx.ReadTimeout):
        client.get("/hang", timeout=0.1)
    with client.stream("GET", "/drip") as drip, client.stream("GET", "/endless") as endless:
        letters = drip.iter_raw()
        assert [next(letters) for _ in range(3)] == [b"."] * 3
        assert set(next(endless.iter_raw())) == set(b"x")
        assert client.get("/").text == "quick"
    web.put("/head", Endless("head"))
    web.put("/drops", Drip(head=True))
    with pytest.raises(httpx.RemoteProtocolError, match="too long"):
        client.get("/head")
    with pytest.raises(httpx.ReadTimeout):
        client.get("/drops", timeout=httpx.Timeout(5, read=0.005))


def test_what_is_no_request(web: WebServer, client: httpx.Client) -> None:
    """It is hung up on; the next one is served."""
    for nonsense in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", web.port), timeout=5) as connection:
            connection.sendall(nonsense)
            assert connection.recv(100) == b""
    web.put("/", Page("fine"))
    assert client.get("/").text == "fine"


def test_tls(web: WebServer) -> None:
    own = certificate("localhost", "127.0.0.1", now=datetime.now(UTC))
    trusting = ssl.create_default_context(cadata=own.public)
    with WebServer(tls=own.context()) as server:
        server.put("/", Page("secret"))
        assert server.url.startswith("https://127.0.0.1:")
        assert httpx.get(server.url, verify=trusting, trust_env=False).text == "secret"
        with pytest.raises(httpx.ConnectError, match="self-signed"):
            httpx.get(server.url, trust_env=False)


def test_stopping_lets_go_of_all() -> None:
    """Requests that hang do not keep the server."""
    with WebServer() as server:
        server.put("/hang", Hang())
        server.put("/endless", Endless())
        held = [socket.create_connection(("127.0.0.1", server.port), timeout=5) for _ in "ab"]
        for connection, path in zip(held, (b"/hang", b"/endless"), strict=True):
            connection.sendall(b"GET " + path + b" HTTP/1.1\r\n\r\n")
        assert held[1].recv(1) == b"H"
    for connection in held:
        connection.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=5)
