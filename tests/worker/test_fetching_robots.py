"""robots.txt by RFC 9309, as a table and over connections."""

import asyncio
from collections.abc import Iterator

import pytest

from sandbox.web import Answer, Bomb, Cut, Drip, Endless, Hang, Page, Redirect, WebServer
from tests.worker.webs import Detour, Stopped, local, text, told
from worker.fetching import Bounds, HttpFetcher
from worker.fetching.robots import Robots
from worker.ports import Obstacle


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as server:
        server.put("/page", Page("here"))
        yield server


def allowed(robots: str, path: str, product: str = "Retriage") -> bool:
    """What these lines say of this path."""
    return Robots.parse(robots, product).allows(path)


SIMPLE = """\
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""
"""RFC 9309, section 5.1."""


@pytest.mark.parametrize(
    ("product", "path", "expected"),
    [
        ("other", "/publications/", True),
        ("other", "/example/", False),
        ("other", "/a/b.gif", False),
        ("other", "/a/b.gif?x", True),
        ("other", "/", True),
        ("foobot", "/example/page.html", True),
        ("foobot", "/example/allowed.gif", True),
        ("foobot", "/", False),
        ("foobot", "/publications/", False),
        ("FooBot", "/publications/", False),
        ("barbot", "/example/page.html", False),
        ("barbot", "/example/", True),
        ("bazbot", "/example/page.html", False),
        ("quxbot", "/example/page.html", True),
        ("quxbot", "/a.gif", True),
    ],
)
def test_the_simple_example(product: str, path: str, expected: bool) -> None:
    assert allowed(SIMPLE, path, product) is expected


LONGEST = """\
User-Agent: foobot
Allow: /example/page/
Disallow: /example/page/disallowed.gif
"""
"""RFC 9309, section 5.2."""


def test_the_longest_match() -> None:
    assert allowed(LONGEST, "/example/page/index.html", "foobot")
    assert not allowed(LONGEST, "/example/page/disallowed.gif", "foobot")


COMBINED = """\
user-agent: ExampleBot
disallow: /foo
disallow: /bar

user-agent: OtherBot
disallow: /other

user-agent: ExampleBot
disallow: /baz
"""
"""RFC 9309, section 2.2.1."""


def test_groups_of_one_product_are_one() -> None:
    for path in ("/foo", "/bar", "/baz"):
        assert not allowed(COMBINED, path, "examplebot")
    assert allowed(COMBINED, "/other", "ExampleBot")


@pytest.mark.parametrize(
    ("rule", "path", "expected"),
    [
        # RFC 9309, 2.2.2: one spelling for both
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz", False),
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https://foo.bar", False),
        ("/foo/bar/\u30c4", "/foo/bar/%E3%83%84", False),
        ("/foo/bar/%E3%83%84", "/foo/bar/%E3%83%84", False),
        ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84", False),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz", False),
        ("/foo/bar/baz", "/foo/bar/%62%61%7A", False),
        ("/a%2Fb", "/a/b", True),
        # RFC 9309, 2.2.3: special characters
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", False),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-b.html", True),
        ("/path/foo-%24", "/path/foo-$", False),
        ("/path/foo-%24", "/path/foo-", True),
        ("/this/*/exactly", "/this/path/exactly", False),
        ("/this/*/exactly", "/this/path/exactly/more", False),
        ("/this/*/exactly", "/this/exactly", True),
        ("/this/path/exactly$", "/this/path/exactly", False),
        ("/this/path/exactly$", "/this/path/exactly/not", True),
        # what follows from them
        ("/", "/anything", False),
        ("/x", "/X", True),
        ("/fish", "/fishheads/yummy.html", False),
        ("/fish", "/?id=fish", True),
        ("/fish/", "/fish", True),
        ("/*.php", "/folder/any.php.file.html", False),
        ("/*.php$", "/a.php", False),
        ("/*.php$", "/a.php?parameters", True),
        ("/*.php$", "/a.php.php", False),
        ("/a*a$", "/a", True),
        ("/a*a$", "/aa", False),
        ("*", "/anything", False),
        ("*$", "/anything", False),
        ("$", "/anything", True),
        ("/a$b", "/a$b", True),
        ("fish", "/fish", True),
        ("", "/anything", True),
        ("/" + "*a" * 5000 + "$", "/" + "a" * 1999, True),
    ],
)
def test_a_pattern(rule: str, path: str, expected: bool) -> None:
    assert allowed(f"User-agent: *\nDisallow: {rule}\n", path) is expected


@pytest.mark.parametrize(
    ("robots", "expected"),
    [
        ("", True),
        ("Disallow: /", True),
        ("User-agent: *\nDisallow: /a\nAllow: /a", True),
        ("User-agent: *\nAllow: /a\nDisallow: /a", True),
        ("User-agent: *\nDisallow: /a/b/*\nAllow: /a/b", False),
        ("User-agent: *\nAllow: /a\nDisallow: /a/b", False),
        ("User-agent: *\nDisallow: /\nAllow: /a", True),
        ("User-agent: retriage\nDisallow: /", False),
        ("USER-AGENT : RETRIAGE\nDISALLOW : /", False),
        ("User-agent: Retriage/2.0 (bot)\nDisallow: /", False),
        ("User-agent: Retriager\nDisallow: /", True),
        ("User-agent: re\nDisallow: /", True),
        ("User-agent: *\nDisallow: /\n\nUser-agent: Retriage\nAllow: /", True),
        ("User-agent: Retriage\nDisallow:\n\nUser-agent: *\nDisallow: /", True),
        ("User-agent: Retriage\n\nUser-agent: *\nDisallow: /", False),
        ("User-agent: a\nSitemap: https://a/s.xml\nUser-agent: Retriage\nDisallow: /", False),
        ("User-agent: Retriage\nCrawl-delay: 3\n\n# so\nDisallow: / # all", False),
        ("\ufeffUser-agent: *\rDisallow: /\r", False),
        ("User-agent: *\r\nDisallow: /\r\n", False),
        ("<html>User-agent: *</html>\nDisallow: /", True),
        ("User-agent *\nDisallow /", True),
    ],
)
def test_lines_and_groups(robots: str, expected: bool) -> None:
    """Of ``/a/b/c``, for us."""
    assert allowed(robots, "/a/b/c") is expected


def test_robots_txt_itself_is_always_allowed() -> None:
    assert allowed("User-agent: *\nDisallow: /", "/robots.txt")
    assert not allowed("User-agent: *\nDisallow: /", "/robots.txt.html")


FORBIDDEN = Page("User-agent: Retriage\nDisallow: /", "text/plain")
UNREAD = "robots: robots.txt could not be read: "


async def test_what_is_forbidden_is_not_asked_for(web: WebServer) -> None:
    web.put("/robots.txt", Page("User-agent: Retriage\nDisallow: /page?q", "text/plain"))
    web.put("/page?q=1", Page("hidden"))
    fetcher = local()
    assert text(await fetcher.fetch(web.url + "/page")) == "here"
    refused = await fetcher.fetch(web.url + "/page?q=1")
    assert told(refused) == "robots: forbidden by robots.txt"
    assert [each.target for each in web.asked()] == ["/robots.txt", "/page"]


async def test_one_question_for_an_origin_and_a_run(web: WebServer) -> None:
    """A fetcher keeps what it read, of each origin; the next run asks anew."""
    first = local()
    for _ in range(2):
        assert text(await first.fetch(web.url + "/page")) == "here"
    web.put("/robots.txt", FORBIDDEN)
    assert text(await first.fetch(web.url + "/page")) == "here"
    assert told(await local().fetch(web.url + "/page")) == "robots: forbidden by robots.txt"
    refused = await first.fetch(f"http://localhost:{web.port}/page")
    assert told(refused) == "robots: forbidden by robots.txt"
    assert len(web.asked("/robots.txt")) == 3


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Page("no", status=400), "here"),
        (Page("no", status=401), "here"),
        (Page("no", status=404), "here"),
        (Page("no", status=429), "here"),
        (Page("", status=204), UNREAD + "status, 204"),
        (Page("oh", status=500), UNREAD + "status, 500"),
        (Page("oh", status=503), UNREAD + "status, 503"),
        (Cut(), UNREAD + "cut, the answer ended early or is not HTTP"),
        (Hang(), UNREAD + "idle, nothing came for too long"),
        (Drip(head=True), UNREAD + "not done in 1 s"),
        (Redirect("/robots.txt"), UNREAD + "redirect, more than 5 redirects"),
        (Redirect("https://10.0.0.1/robots.txt"), UNREAD + "address, 10.0.0.1: private"),
        (Page("x", headers={"Content-Encoding": "br"}),
         UNREAD + "encoding, not the gzip that was asked for"),
        (Page(FORBIDDEN.body, "application/octet-stream"), "robots: forbidden by robots.txt"),
        (Page(FORBIDDEN.body, zipped=True), "robots: forbidden by robots.txt"),
        (Page(b"\xff\xfe\n" + str(FORBIDDEN.body).encode()), "robots: forbidden by robots.txt"),
        (Bomb(), "here"),
    ],
)  # fmt: skip
async def test_a_robots_txt_that_is_not_there(
    web: WebServer, answer: Answer, expected: str
) -> None:
    """A 4xx allows everything; whatever else keeps it from us forbids everything."""
    web.put("/robots.txt", answer)
    bounds = Bounds(total_seconds=8.0, robots_seconds=1.0, idle_seconds=0.5)
    found = await local(bounds).fetch(web.url + "/page")
    assert (text(found) if expected == "here" else told(found)) == expected
    assert len(web.asked("/page")) == (1 if expected == "here" else 0)


async def test_a_robots_txt_elsewhere(web: WebServer) -> None:
    """Redirects of a robots.txt are followed, to other hosts too."""
    with WebServer() as other:
        web.put("/robots.txt", Redirect(other.url + "/their-robots"))
        other.put("/their-robots", FORBIDDEN)
        refused = await local().fetch(web.url + "/page")
        assert told(refused) == "robots: forbidden by robots.txt"
        assert [each.target for each in other.asked()] == ["/their-robots"]


async def test_a_robots_txt_of_any_size(web: WebServer) -> None:
    """500 KiB are read; what stands beyond is not."""
    rules = "User-agent: *\nDisallow: /first\n"
    filler = "#" * (500 * 1024 - len(rules) - len("\nDisallow: /page\n")) + "\n"
    web.put("/robots.txt", Page(rules + filler + "Disallow: /page\n" + "#" * 100_000))
    assert told(await local(Bounds()).fetch(web.url + "/page")) == "robots: forbidden by robots.txt"
    web.put("/robots.txt", Page(rules + filler + "#" * 20 + "\nDisallow: /page\n"))
    fetcher = local(Bounds())
    assert text(await fetcher.fetch(web.url + "/page")) == "here"
    assert told(await fetcher.fetch(web.url + "/first")) == "robots: forbidden by robots.txt"
    web.put("/robots.txt", Endless())
    assert text(await local(Bounds()).fetch(web.url + "/page")) == "here"


async def test_a_question_that_is_broken_off_is_not_asked_again(web: WebServer) -> None:
    """The whole time ends it: the next resource of that origin does not wait once more."""
    web.put("/robots.txt", Hang())
    fetcher = local(Bounds(total_seconds=0.3))
    assert told(await fetcher.fetch(web.url + "/page")) == "time: not done in 0.3 s"
    assert told(await fetcher.fetch(web.url + "/page")) == UNREAD + "not done in time"
    assert len(web.asked("/robots.txt")) == 1


async def test_an_origin_out_of_reach_is_said_as_such() -> None:
    """Not as a fault of its robots.txt."""
    network = Detour(names={"a.example": [["10.0.0.1"]], "b.example": [["1.1.1.1"]]})
    fetcher = HttpFetcher(Stopped(), network=network)
    names = ("a.example", "b.example", "c.example")
    found = await asyncio.gather(*(fetcher.fetch(f"https://{name}/") for name in names))
    reasons = [told(each).partition(":")[0] for each in found]
    assert reasons == [Obstacle.ADDRESS, Obstacle.CONNECT, Obstacle.RESOLVE]
