"""A URL that may be asked for, as far as its text tells; its addresses are checked on connecting.

Invariant: what is asked for is what was checked. A URL that two parsers could read differently is
refused: a user, a backslash, white space, a name that is a number in disguise.
"""

import re
from dataclasses import dataclass
from typing import Self

import httpx

from worker.fetching.addresses import is_address
from worker.fetching.bounds import FetchFailed
from worker.ports import Obstacle

LONGEST_URL = 2000
_AUTHORITY = re.compile(r"^[^:/?#]*://([^/?#]*)")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}", re.ASCII)
_LONGEST_NAME = 253
_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)", re.ASCII)
"""A name whose last label looks so is an IPv4 address to some parsers (WHATWG URL, 3.5)."""
_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Target:
    """``host`` is a name in ASCII or an address without brackets; ``path`` has the query.

    ``httpx.URL.host`` is not read: it decodes IDNA, and fails on what only looks like it.
    """

    url: httpx.URL

    @classmethod
    def parse(cls, text: str, *, allow_http: bool) -> Self:
        """Raises FetchFailed with Obstacle.URL."""
        if len(text) > LONGEST_URL:
            raise _refused(f"longer than {LONGEST_URL} characters")
        if not _is_plain(text):
            raise _refused("white space, a control character or a backslash")
        authority = _AUTHORITY.match(text)
        if authority is None or not authority[1]:
            raise _refused("no full URL")
        if "@" in authority[1]:
            raise _refused("a user or password in it")
        if any(each.isdigit() and not each.isascii() for each in authority[1]):
            raise _refused("digits that are not ASCII in the host")
        try:
            url = httpx.URL(text).copy_with(fragment=None)
        except (httpx.InvalidURL, ValueError) as error:
            raise _refused("malformed") from error
        _check_scheme(url, allow_http=allow_http)
        target = cls(url)
        _check_host(target.host)
        return target

    def redirected(self, location: str) -> Self:
        """Where a redirect leads from here: to http only from http. Raises FetchFailed with
        Obstacle.REDIRECT."""
        if not location or not _is_plain(location):
            raise FetchFailed(Obstacle.REDIRECT, "a redirect to no address that can be read")
        try:
            target = self.parse(str(self.url.join(location)), allow_http=True)
        except (httpx.InvalidURL, ValueError) as error:
            raise FetchFailed(Obstacle.REDIRECT, "a redirect to: malformed") from error
        except FetchFailed as error:
            raise FetchFailed(Obstacle.REDIRECT, f"a redirect to: {error.detail}") from error
        if target.scheme == "http" and self.scheme == "https":
            raise FetchFailed(Obstacle.REDIRECT, "a redirect from https to http")
        return target

    def robots(self) -> Self:
        """The robots.txt of its origin."""
        return type(self)(httpx.URL(self.origin + "/robots.txt"))

    @property
    def scheme(self) -> str:
        """``https``, or ``http`` on loopback in tests."""
        return self.url.scheme

    @property
    def host(self) -> str:
        """As it is resolved, and proved by the certificate."""
        return self.url.raw_host.decode("ascii").strip("[]")

    @property
    def port(self) -> int:
        """443, or any on loopback in tests."""
        return self.url.port or _PORTS[self.scheme]

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"{self.scheme}://{self.url.netloc.decode('ascii')}"

    @property
    def path(self) -> str:
        """Path and query, percent-encoded."""
        return self.url.raw_path.decode("ascii")

    def __str__(self) -> str:
        return str(self.url)


def _is_plain(text: str) -> bool:
    return all(each.isprintable() and not each.isspace() and each != "\\" for each in text)


def _check_scheme(url: httpx.URL, *, allow_http: bool) -> None:
    if url.scheme == "http" and allow_http:
        return
    if url.scheme != "https":
        raise _refused("only https is fetched")
    if url.port is not None:  # httpx leaves the scheme's own port out
        raise _refused(f"port {url.port}: only 443 is asked")


def _check_host(host: str) -> None:
    if is_address(host):
        return
    if len(host) > _LONGEST_NAME or not _NAME.fullmatch(host):
        raise _refused("a host that is no name")
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        raise _refused("a host that is a number in disguise")


def _refused(detail: str) -> FetchFailed:
    return FetchFailed(Obstacle.URL, detail)
