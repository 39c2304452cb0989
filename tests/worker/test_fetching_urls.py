"""URLs that say something else to one reader than to another: refused before any name is asked."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worker.webs import PUBLIC, Detour, Stopped, told
from worker.fetching import HttpFetcher
from worker.fetching.addresses import is_address
from worker.fetching.bounds import FetchFailed
from worker.fetching.target import Target

NUMBER = "a host that is a number in disguise"
NO_NAME = "a host that is no name"
PLAIN = "white space, a control character or a backslash"
USER = "a user or password in it"
DIGITS = "digits that are not ASCII in the host"
HTTPS = "only https is fetched"
NO_URL = "no full URL"

HOSTILE = [
    ("http://example.com/", HTTPS),
    ("http://127.0.0.1/", HTTPS),
    ("ftp://example.com/", HTTPS),
    ("file://localhost/etc/passwd", HTTPS),
    ("gopher://example.com/", HTTPS),
    ("file:///etc/passwd", NO_URL),
    ("data:text/html,x", NO_URL),
    ("javascript:alert(1)", NO_URL),
    ("https:example.com", NO_URL),
    ("https:/example.com", NO_URL),
    ("https:///example.com", NO_URL),
    ("//example.com/", NO_URL),
    ("example.com", NO_URL),
    ("", NO_URL),
    ("https://", NO_URL),
    ("https://:443/", NO_NAME),
    # users: one reader takes what stands before the @ for the host
    ("https://user@example.com/", USER),
    ("https://user:pass@example.com/", USER),
    ("https://:@example.com/", USER),
    ("https://@example.com/", USER),
    ("https://example.com@127.0.0.1/", USER),
    ("https://example.com:443@127.0.0.1:443/", USER),
    ("https://example.com%40127.0.0.1/", NO_NAME),
    ("https://example.com%2f@127.0.0.1/", USER),
    # another port
    ("https://example.com:80/", "port 80: only 443 is asked"),
    ("https://example.com:22/", "port 22: only 443 is asked"),
    ("https://example.com:0/", "port 0: only 443 is asked"),
    ("https://example.com:99999/", "port 99999: only 443 is asked"),
    ("https://example.com:-443/", "port -443: only 443 is asked"),
    ("https://example.com:4a/", "malformed"),
    ("https://example.com:443:443/", "malformed"),
    # numbers in disguise
    ("https://127.1/", NUMBER),
    ("https://127.0.1/", NUMBER),
    ("https://0x7f.1/", NUMBER),
    ("https://0x7f.0.0.1/", NUMBER),
    ("https://0x7f000001/", NUMBER),
    ("https://0X7F000001/", NUMBER),
    ("https://0177.0.0.1/", "malformed"),
    ("https://017700000001/", NUMBER),
    ("https://2130706433/", NUMBER),
    ("https://0/", NUMBER),
    ("https://0x/", NUMBER),
    ("https://8.8.2056/", NUMBER),
    ("https://example.0x7f/", NUMBER),
    ("https://1.2.3.4.5/", NUMBER),
    ("https://256.1.1.1/", "malformed"),
    ("https://127.0.0.01/", "malformed"),
    # dots, escapes and letters in the host
    ("https://example.com./", NO_NAME),
    ("https://localhost./", NO_NAME),
    ("https://127.0.0.1./", NO_NAME),
    ("https://example..com/", NO_NAME),
    ("https://.example.com/", NO_NAME),
    ("https://-example.com/", NO_NAME),
    ("https://%31%32%37.0.0.1/", NO_NAME),
    ("https://exa%6dple.com/", NO_NAME),
    ("https://exam*ple.com/", NO_NAME),
    (f"https://{'a' * 64}.example/", NO_NAME),
    (f"https://{'a.' * 127}aa/", NO_NAME),
    ("https://[::1%25eth0]/", NO_NAME),
    ("https://[fe80::1%eth0]/", NO_NAME),
    ("https://[::1/", "malformed"),
    ("https://[v1.fe80]/", "malformed"),
    ("https://[127.0.0.1]/", "malformed"),
    # letters that become others
    ("https://１２７.０.０.１/", DIGITS),
    ("https://①②⑦.0.0.1/", DIGITS),
    ("https://١٢٧.0.0.1/", DIGITS),
    ("https://example.com:４４３/", DIGITS),
    ("https://ｅxample.com/", "malformed"),
    ("https://ⓔxample.com/", "malformed"),
    ("https://example.com／@127.0.0.1/", USER),
    ("https://example\u2024com/", "malformed"),
    ("https://ex\u00adample.com/", PLAIN),
    ("https://ex\u200bample.com/", PLAIN),
    ("https://\u202eexample.com/", PLAIN),
    # white space, control characters, backslashes
    (" https://example.com/", PLAIN),
    ("https://example.com/ ", PLAIN),
    ("https://exam\tple.com/", PLAIN),
    ("https://example.com/\r\nHost: 127.0.0.1", PLAIN),
    ("https://example.com/\x00", PLAIN),
    ("https://example.com/\x7f", PLAIN),
    ("https://example.com/\u2028", PLAIN),
    ("https://example.com\\@127.0.0.1/", PLAIN),
    ("https:\\\\example.com/", PLAIN),
    ("https://example.com/\\..\\", PLAIN),
    ("https://example.com/\ud800", PLAIN),
    ("https://example.com/" + "x" * 2000, "longer than 2000 characters"),
]


@pytest.mark.parametrize(("url", "detail"), HOSTILE)
async def test_a_hostile_url(url: str, detail: str) -> None:
    """Nothing is resolved and nothing is connected to."""
    network = Detour()
    refused = await HttpFetcher(Stopped(), network=network).fetch(url)
    assert told(refused) == f"url: {detail}"
    assert refused.address == url
    assert (network.resolved, network.connected) == ([], [])


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("https://example.com", "example.com"),
        ("HTTPS://EXAMPLE.com:443/", "example.com"),
        ("https://example.com:0443/", "example.com"),
        ("https://bücher.example/ü?q=ü", "xn--bcher-kva.example"),
        ("https://example。com/", "example.com"),
        ("https://xn--a/", "xn--a"),
        ("https://a_b.example/", "a_b.example"),
        ("https://3com.example/", "3com.example"),
        ("https://1.2.3.4a/", "1.2.3.4a"),
    ],
)
async def test_what_is_asked_for(url: str, asked: str) -> None:
    """The resolver gets the very name that was checked, in ASCII."""
    network = Detour(names={asked: [[PUBLIC]]})
    assert told(await HttpFetcher(Stopped(), network=network).fetch(url)).startswith("connect: ")
    assert network.resolved == [asked]
    assert network.connected == [(PUBLIC, 443)]


@pytest.mark.parametrize("url", ["https://127.0.0.1:8443/", "http://0x7f.1/", "http://127.1:80/"])
async def test_loopback_http_allows_no_odd_spelling(url: str) -> None:
    """The flag of the tests is for plain http, and for nothing else that is refused."""
    refused = await HttpFetcher(Stopped(), network=Detour(), allow_loopback_http=True).fetch(url)
    assert told(refused).startswith("url: ")


@given(st.text(max_size=60), st.sampled_from(["", "https://", "http://", "//", "https://a.b/"]))
def test_any_text_is_refused_or_plain(text: str, start: str) -> None:
    """No URL raises anything else, and what passes has a host of which there is one reading."""
    for parse in (
        lambda url: Target.parse(url, allow_http=False),
        Target.parse("https://a.example/x/y", allow_http=False).redirected,
    ):
        target = _parsed(parse, start + text)
        if target is not None:
            assert (target.scheme, target.port) == ("https", 443)
            assert target.host.isascii()
            assert is_address(target.host) or not target.host.rpartition(".")[2].isdigit()
            assert "@" not in target.origin


def _parsed(parse: Callable[[str], Target], url: str) -> Target | None:
    try:
        return parse(url)
    except FetchFailed:
        return None
