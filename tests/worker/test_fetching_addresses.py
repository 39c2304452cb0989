"""Which addresses are connected to, whatever the resolver says."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandbox.web import Page, WebServer
from tests.worker.webs import PUBLIC, QUICK, Detour, Stopped, local, text, told
from worker.fetching import Bounds, HttpFetcher
from worker.fetching.addresses import is_address, special
from worker.ports import NotFetched

EMBEDDED = "an embedded IPv4 address"
SPECIAL = [
    ("0.0.0.0", "unspecified"),
    ("0.1.2.3", "unspecified"),
    ("10.0.0.0", "private"),
    ("10.255.255.255", "private"),
    ("100.64.0.0", "shared by a carrier"),
    ("100.100.100.200", "shared by a carrier"),
    ("100.127.255.255", "shared by a carrier"),
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("168.63.129.16", "a cloud's own"),
    ("169.254.169.254", "link-local"),
    ("172.16.0.0", "private"),
    ("172.31.255.255", "private"),
    ("192.0.0.1", "reserved"),
    ("192.0.0.192", "reserved"),
    ("192.0.2.1", "documentation"),
    ("192.88.99.1", "a relay of 6to4"),
    ("192.168.0.1", "private"),
    ("198.18.0.1", "benchmarking"),
    ("198.19.255.255", "benchmarking"),
    ("198.51.100.1", "documentation"),
    ("203.0.113.1", "documentation"),
    ("224.0.0.1", "multicast"),
    ("224.0.1.1", "multicast"),
    ("239.255.255.255", "multicast"),
    ("240.0.0.1", "reserved"),
    ("255.255.255.255", "reserved"),
    ("::", "unspecified"),
    ("::1", "loopback"),
    ("::7f00:1", EMBEDDED),
    ("::8.8.8.8", EMBEDDED),
    ("::ffff:127.0.0.1", EMBEDDED),
    ("::ffff:7f00:1", EMBEDDED),
    ("::ffff:8.8.8.8", EMBEDDED),
    ("::ffff:0:8.8.8.8", "reserved"),
    ("64:ff9b::127.0.0.1", EMBEDDED),
    ("64:ff9b::8.8.8.8", EMBEDDED),
    ("64:ff9b:1::a00:1", EMBEDDED),
    ("2002:7f00:1::", EMBEDDED),
    ("2002:808:808::1", EMBEDDED),
    ("2001:0:4136:e378:8000:63bf:3fff:fdd2", EMBEDDED),
    ("100::1", "reserved"),
    ("2001:2::1", "reserved"),
    ("2001:10::1", "reserved"),
    ("2001:db8::1", "documentation"),
    ("3fff::1", "documentation"),
    ("5f00::1", "reserved"),
    ("4000::1", "reserved"),
    ("fc00::1", "private"),
    ("fd00:ec2::254", "private"),
    ("fe80::1", "link-local"),
    ("febf::1", "link-local"),
    ("fec0::1", "private"),
    ("ff02::1", "multicast"),
    ("ff0e::1", "multicast"),
    ("fe80::1%eth0", "malformed"),
    ("2606:4700::1%1", "malformed"),
    ("127.1", "malformed"),
    ("0x7f.0.0.1", "malformed"),
    ("localhost", "malformed"),
    ("", "malformed"),
]
ORDINARY = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
    "126.255.255.255", "128.0.0.1", "168.63.129.17", "169.253.255.255", "169.255.0.0",
    "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.167.255.255", "192.169.0.0",
    "198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2001:200::1",
    "2001:4860:4860::8888", "2a00:1450::1", "2003::1", "3ffe::1",
]  # fmt: skip


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as server:
        yield server


@pytest.mark.parametrize(("address", "kind"), SPECIAL)
async def test_a_name_that_leads_to_a_special_address(address: str, kind: str) -> None:
    """Alone, before a public one, or after it: nothing is connected to."""
    assert special(address) == kind
    for answer in ([address], [address, PUBLIC], [PUBLIC, address]):
        network = Detour(names={"a.example": [answer]})
        refused = await HttpFetcher(Stopped(), network=network).fetch("https://a.example/")
        assert told(refused) == f"address: a.example leads to {address}: {kind}"
        assert network.connected == []


@pytest.mark.parametrize(("address", "kind"), SPECIAL)
async def test_a_special_address_in_the_url(address: str, kind: str) -> None:
    """Without a resolver, an address is checked just the same."""
    network = Detour()
    host = f"[{address}]" if ":" in address else address
    refused = await HttpFetcher(Stopped(), network=network).fetch(f"https://{host}/")
    if kind == "malformed":
        assert isinstance(refused, NotFetched)
    else:
        assert told(refused) == f"address: {address}: {kind}"
    assert network.connected == []


@pytest.mark.parametrize("address", ORDINARY)
async def test_an_ordinary_address(address: str) -> None:
    """What lies beside the special ranges is connected to, on 443."""
    assert special(address) is None
    network = Detour(names={"a.example": [[address]]})
    refused = await HttpFetcher(Stopped(), network=network).fetch("https://a.example/")
    assert told(refused) == "connect: no connection"
    assert network.connected == [(address, 443)]


@given(st.ip_addresses())
@example(ip_address("224.0.1.1"))
@example(ip_address("64:ff9b::7f00:1"))
def test_nothing_is_public_that_python_calls_special(address: IPv4Address | IPv6Address) -> None:
    """The table is at least as strict as the standard library's, where that is right."""
    if special(str(address)) is None:
        assert address.is_global
        assert not any((address.is_multicast, address.is_reserved, address.is_loopback))
    assert is_address(str(address))


async def test_a_name_that_changes_between_check_and_connection() -> None:
    """DNS rebinding: one question for a connection, and it goes to what was checked."""
    network = Detour(names={"a.example": [[PUBLIC], ["127.0.0.1"]]})
    refused = await HttpFetcher(Stopped(), network=network).fetch("https://a.example/")
    assert told(refused) == "connect: no connection"
    assert (network.resolved, network.connected) == (["a.example"], [(PUBLIC, 443)])


async def test_a_name_that_changes_between_two_connections(web: WebServer) -> None:
    """robots.txt from a good address does not vouch for the next."""
    web.put("/", Page("secret"))
    network = Detour(
        names={"a.example": [["127.0.0.1"], [PUBLIC]]},
        webs={"127.0.0.1": web.port, PUBLIC: web.port},
    )
    fetcher = HttpFetcher(Stopped(), network=network, allow_loopback_http=True)
    refused = await fetcher.fetch("http://a.example/")
    assert told(refused) == f"address: a.example leads to {PUBLIC}: http, but not loopback"
    assert network.resolved == ["a.example", "a.example"]
    assert network.connected == [("127.0.0.1", 80)]
    assert [each.target for each in web.asked()] == ["/robots.txt"]


async def test_the_next_address_of_a_name(web: WebServer) -> None:
    """Where nobody is at the first address, the next one is asked; the name stays."""
    web.put("/", Page("here"))
    network = Detour(
        names={"a.example": [["127.0.0.9", "127.0.0.1"]]}, webs={"127.0.0.1": web.port}
    )
    fetcher = HttpFetcher(Stopped(), network=network, allow_loopback_http=True)
    assert text(await fetcher.fetch("http://a.example/")) == "here"
    assert network.connected == [("127.0.0.9", 80), ("127.0.0.1", 80)] * 2
    assert {each.headers["host"] for each in web.asked()} == {"a.example"}


async def test_a_name_with_many_addresses() -> None:
    """Four are tried, and all are checked."""
    many = [f"1.1.1.{number}" for number in range(1, 100)]
    network = Detour(names={"a.example": [many], "b.example": [[*many, "10.0.0.1"]]})
    fetcher = HttpFetcher(Stopped(), network=network)
    assert told(await fetcher.fetch("https://a.example/")) == "connect: no connection"
    assert len(network.connected) == 4
    refused = await fetcher.fetch("https://b.example/")
    assert told(refused) == "address: b.example leads to 10.0.0.1: private"
    assert len(network.connected) == 4


async def test_a_name_without_an_address() -> None:
    """Unknown, empty, or a resolver that says nothing: that may pass."""
    network = Detour(names={"empty.example": [[]]}, silent=frozenset({"silent.example"}))
    fetcher = HttpFetcher(Stopped(), network=network, bounds=Bounds(connect_seconds=0.2))
    for name, later in (("unknown", False), ("empty", False), ("silent", True)):
        refused = await fetcher.fetch(f"https://{name}.example/")
        assert told(refused) == f"resolve: {name}.example has no address"
        assert isinstance(refused, NotFetched)
        assert refused.retryable is later


async def test_this_machine_by_its_name(web: WebServer) -> None:
    """The real resolver, and the flag of the tests: without it, nothing of this machine."""
    web.put("/", Page("here"))
    url = f"http://localhost:{web.port}/"
    assert text(await local().fetch(url)) == "here"
    refused = await HttpFetcher(Stopped(), bounds=QUICK).fetch("https://localhost/")
    assert told(refused).startswith("address: localhost leads to ")
    assert told(refused).endswith(": loopback")
    assert told(await HttpFetcher(Stopped()).fetch(url)) == "url: only https is fetched"
