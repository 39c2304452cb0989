"""One document, over real connections to the sandbox web on loopback."""

import asyncio
import hashlib
import json
from collections.abc import Iterator

import httpx
import pytest

from sandbox.web import (
    Answer,
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
)
from tests.worker.webs import NOW, QUICK, local, text, told
from worker.fetching import Bounds
from worker.ports import Fetched, NotFetched, Obstacle


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as server:
        yield server


async def test_a_document(web: WebServer) -> None:
    """What was asked for, where it was, when, and what was there."""
    feed = "<feed><title>Récent</title></feed>"
    web.put("/releases.atom?page=1", Page(feed, "application/atom+xml"))
    url = web.url + "/releases.atom?page=1"
    assert await local().fetch(url + "#top") == Fetched(
        url=url + "#top",
        address=url,
        observed_at=NOW,
        status=200,
        media_type="application/atom+xml",
        text=feed,
        digest=hashlib.sha256(feed.encode()).hexdigest(),
        bytes=len(feed.encode()),
    )


async def test_what_a_request_says(web: WebServer) -> None:
    """The product and nothing else: no cookie, no credential, no condition, no referrer."""
    web.put("/", Redirect("/next", 301))
    cookie = {"Set-Cookie": "seen=1; Path=/", "ETag": '"1"', "Last-Modified": "now"}
    web.put("/next", Page("x", headers=cookie))
    fetcher = local()
    await fetcher.fetch(web.url + "/")
    await fetcher.fetch(web.url + "/next")
    assert [each.target for each in web.asked()] == ["/robots.txt", "/", "/next", "/next"]
    for asked in web.asked():
        assert asked.method == "GET"
        assert set(asked.headers) == {
            "host", "user-agent", "accept", "accept-encoding", "connection",
        }  # fmt: skip
        assert asked.headers["host"] == web.url.removeprefix("http://")
        assert asked.headers["user-agent"].startswith("Retriage/")
        assert asked.headers["accept-encoding"] == "gzip"


async def test_no_proxy_of_the_environment(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy would resolve the name itself, and no check of ours would hold."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    web.put("/", Page("here"))
    assert text(await local().fetch(web.url + "/")) == "here"


async def test_a_page_that_changes(web: WebServer) -> None:
    """Each fetch observes for itself; the digest tells."""
    fetcher = local()
    web.put("/", Page("one"))
    first = await fetcher.fetch(web.url + "/")
    body = {"target": "/", "body": "two"}
    async with httpx.AsyncClient(trust_env=False) as person:
        await person.put(web.url + "/_sandbox/pages", content=json.dumps(body))
    second = await fetcher.fetch(web.url + "/")
    assert (text(first), text(second)) == ("one", "two")
    assert isinstance(first, Fetched)
    assert isinstance(second, Fetched)
    assert first.digest != second.digest


async def test_compressed(web: WebServer) -> None:
    """The digest is of the content, however it was sent."""
    fetcher = local()
    web.put("/plain", Page("hello " * 1000))
    web.put("/zipped", Page("hello " * 1000, zipped=True))
    plain, zipped = [await fetcher.fetch(web.url + path) for path in ("/plain", "/zipped")]
    assert isinstance(plain, Fetched)
    assert isinstance(zipped, Fetched)
    assert (zipped.digest, zipped.bytes, zipped.text) == (plain.digest, 6000, plain.text)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect(web: WebServer, status: int) -> None:
    web.put("/old", Redirect("deep/../new?q=1", status))
    web.put("/new?q=1", Page("moved"))
    found = await local().fetch(web.url + "/old")
    assert text(found) == "moved"
    assert (found.url, found.address) == (web.url + "/old", web.url + "/new?q=1")


async def test_five_redirects_and_no_more(web: WebServer) -> None:
    for number in range(6):
        web.put(f"/{number}", Redirect(f"/{number + 1}"))
    web.put("/6", Page("the end"))
    assert text(await local().fetch(web.url + "/1")) == "the end"
    assert told(await local().fetch(web.url + "/0")) == "redirect: more than 5 redirects"


async def test_a_loop_ends(web: WebServer) -> None:
    web.put("/a", Redirect("/b"))
    web.put("/b", Redirect("/a"))
    assert told(await local().fetch(web.url + "/a")) == "redirect: more than 5 redirects"
    assert len(web.asked()) == 1 + 6


async def test_a_redirect_to_another_web(web: WebServer) -> None:
    """Another origin has a robots.txt of its own."""
    with WebServer() as other:
        web.put("/", Redirect(other.url + "/there"))
        other.put("/there", Page("other"))
        assert text(await local().fetch(web.url + "/")) == "other"
        other.put("/robots.txt", Page("User-agent: *\nDisallow: /there", "text/plain"))
        refused = await local().fetch(web.url + "/")
        assert told(refused) == "robots: forbidden by robots.txt"
        assert refused.address == other.url + "/there"


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        (None, "redirect: a redirect to no address that can be read"),
        ("", "redirect: a redirect to no address that can be read"),
        ("/\\evil.example/", "redirect: a redirect to no address that can be read"),
        ("https:\\\\evil.example", "redirect: a redirect to no address that can be read"),
        ("/a b", "redirect: a redirect to no address that can be read"),
        ("/a\tb", "redirect: a redirect to no address that can be read"),
        ("/\xff\x85", "redirect: a redirect to no address that can be read"),
        ("https://[::1", "redirect: a redirect to: malformed"),
        ("//[::1", "redirect: a redirect to: malformed"),
        ("file:///etc/passwd", "redirect: a redirect to: no full URL"),
        ("file://x/etc/passwd", "redirect: a redirect to: only https is fetched"),
        ("ftp://127.0.0.1/", "redirect: a redirect to: only https is fetched"),
        ("data:text/html,hello", "redirect: a redirect to: no full URL"),
        ("javascript:alert(1)", "redirect: a redirect to: no full URL"),
        ("https://a:b@evil.example/", "redirect: a redirect to: a user or password in it"),
        ("//a:b@evil.example/", "redirect: a redirect to: a user or password in it"),
        ("https://evil.example:22/", "redirect: a redirect to: port 22: only 443 is asked"),
        ("https://0x7f.1/", "redirect: a redirect to: a host that is a number in disguise"),
        ("//2130706433/", "redirect: a redirect to: a host that is a number in disguise"),
        ("/" + "x" * 2000, "redirect: a redirect to: longer than 2000 characters"),
        ("https://127.0.0.1/", "address: 127.0.0.1: loopback"),
        ("https://169.254.169.254/latest/meta-data/", "address: 169.254.169.254: link-local"),
        ("http://169.254.169.254/", "address: 169.254.169.254: http, but not loopback"),
        ("http://93.184.215.14/", "address: 93.184.215.14: http, but not loopback"),
        ("https://[::ffff:10.0.0.1]/", "address: ::ffff:10.0.0.1: an embedded IPv4 address"),
    ],
)
async def test_a_redirect_that_leads_astray(web: WebServer, to: str | None, expected: str) -> None:
    """Each target is checked like the first, whatever came before it."""
    web.put("/", Redirect("/more"))
    web.put("/more", Redirect(to))
    refused = await local().fetch(web.url + "/")
    assert told(refused) == expected
    assert isinstance(refused, NotFetched)
    assert not refused.retryable
    assert [each.target for each in web.asked()] == ["/robots.txt", "/", "/more"]


@pytest.mark.parametrize(
    ("status", "retryable"),
    [(204, False), (206, False), (304, False), (401, False), (404, False), (410, False),
     (408, True), (429, True), (500, True), (503, True)],
)  # fmt: skip
async def test_any_status_but_200(web: WebServer, status: int, retryable: bool) -> None:
    web.put("/", Page("", status=status))
    refused = await local().fetch(web.url + "/")
    assert told(refused) == f"status: {status}"
    assert isinstance(refused, NotFetched)
    assert refused.retryable is retryable
    assert (refused.url, refused.address, refused.observed_at) == (
        web.url + "/", web.url + "/", NOW,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("media_type", "shown"),
    [
        ("image/png", "image/png"),
        ("application/octet-stream", "application/octet-stream"),
        ("application/pdf; charset=utf-8", "application/pdf"),
        ("application/x-xml", "application/x-xml"),
        ("IMAGE/SVG+XML", "image/svg+xml"),
        ("", "no media type"),
        ("text", "no media type"),
        ("text/", "no media type"),
        ("text/html, text/html", "no media type"),
        ("please follow these instructions/now", "no media type"),
    ],
)
async def test_what_is_no_text(web: WebServer, media_type: str, shown: str) -> None:
    web.put("/", Page("x", media_type))
    assert told(await local().fetch(web.url + "/")) == f"media-type: not a text: {shown}"


@pytest.mark.parametrize(
    "media_type",
    ["text/html", "Text/Plain; Charset=UTF-8", "text/markdown", "application/xml",
     "application/json", "application/rss+xml", "application/vnd.github+json; v=3"],
)  # fmt: skip
async def test_what_is_text(web: WebServer, media_type: str) -> None:
    web.put("/", Page("x", media_type))
    found = await local().fetch(web.url + "/")
    assert isinstance(found, Fetched)
    assert found.media_type == media_type.partition(";")[0].lower()


BROKEN: list[tuple[Answer, Obstacle]] = [
    (Endless(), Obstacle.SIZE),
    (Endless("hints"), Obstacle.SIZE),
    (Endless("head"), Obstacle.CUT),
    (Bomb(), Obstacle.SIZE),
    (Bomb(layers=2), Obstacle.ENCODING),
    (Page("x", headers={"Content-Encoding": "br"}), Obstacle.ENCODING),
    (Page("no gzip", headers={"Content-Encoding": "gzip"}), Obstacle.ENCODING),
    (WrongLength(5), Obstacle.CUT),
    (Cut(), Obstacle.CUT),
    (Cut("half of it"), Obstacle.CUT),
    (Cut("half of it " * 9, zipped=True), Obstacle.CUT),
    (Headless(), Obstacle.CUT),
    (Headless(b"SSH-2.0-OpenSSH_9.6\r\n"), Obstacle.CUT),
    (Headless(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx"), Obstacle.CUT),
    (
        Headless(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy"),
        Obstacle.CUT,
    ),
]


@pytest.mark.parametrize(("answer", "reason"), BROKEN)
async def test_what_is_too_much_or_broken(web: WebServer, answer: Answer, reason: Obstacle) -> None:
    """Each ends in its own word, long before the time is up, and costs one request."""
    web.put("/", answer)
    refused = await local(Bounds(wire_bytes=200_000, text_bytes=400_000)).fetch(web.url + "/")
    assert isinstance(refused, NotFetched)
    assert refused.reason is reason
    assert len(web.asked("/")) == 1


async def test_the_bounds_are_exact(web: WebServer) -> None:
    """On the wire the head counts too; what is inflated is bounded by itself."""
    bounds = Bounds(wire_bytes=2000, text_bytes=1000)
    web.put("/fits", Page("x" * 1000))
    web.put("/over", Page("x" * 1001))
    web.put("/zipped", Page("x" * 1000, zipped=True))
    web.put("/inflated", Page("x" * 1001, zipped=True))
    web.put("/wire", Page("x" * 2000))
    fetcher = local(bounds)
    assert len(text(await fetcher.fetch(web.url + "/fits"))) == 1000
    assert len(text(await fetcher.fetch(web.url + "/zipped"))) == 1000
    for path in ("/over", "/inflated"):
        refused = told(await fetcher.fetch(web.url + path))
        assert refused == "size: more than 1000 bytes of content"
    assert told(await fetcher.fetch(web.url + "/wire")) == "size: more than 2000 bytes"


async def test_a_shorter_length_is_believed(web: WebServer) -> None:
    """What follows the announced end belongs to no answer."""
    web.put("/", WrongLength(-5, "Hello world"))
    assert text(await local().fetch(web.url + "/")) == "Hello "


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(Hang(), Obstacle.IDLE), (Drip(), Obstacle.TIME), (Drip(head=True), Obstacle.TIME)],
)
async def test_what_is_too_slow(web: WebServer, answer: Answer, reason: Obstacle) -> None:
    """Silence ends by the idle time, a drip by the whole time; neither is asked again."""
    web.put("/", answer)
    bounds = Bounds(total_seconds=2.0, idle_seconds=0.5)
    refused = await local(bounds).fetch(web.url + "/")
    assert isinstance(refused, NotFetched)
    assert (refused.reason, refused.retryable) == (reason, True)
    assert len(web.asked("/")) == 1


async def test_nobody_there() -> None:
    with WebServer() as gone:
        url = gone.url
    refused = await local().fetch(url)
    assert told(refused) == "connect: no connection"
    assert isinstance(refused, NotFetched)
    assert refused.retryable


async def test_many_at_once(web: WebServer) -> None:
    """Fetches of one origin share its robots.txt, and nothing else."""
    for number in range(20):
        web.put(f"/{number}", Page(str(number)))
    fetcher = local(QUICK)
    found = await asyncio.gather(*(fetcher.fetch(f"{web.url}/{n}") for n in range(20)))
    assert [text(each) for each in found] == [str(number) for number in range(20)]
    assert len(web.asked("/robots.txt")) == 1
