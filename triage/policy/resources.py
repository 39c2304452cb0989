"""The settings of the resource watch: its allow-list. Nothing that is not in it is fetched.

Invariant: a resource's URL is https, to a name, without credentials or fragment. The exception is
``http://127.0.0.1`` and ``http://[::1]``: a policy has no settings to ask whether it is read in a
test, and its word opens nothing. The fetcher decides, and refuses every address that is not public
unless its process was started for loopback.
"""

from collections import Counter
from enum import StrEnum
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, StringConstraints, field_validator

from triage.identifiers import Mode
from triage.policy.settings import Budget, Language, ScheduleSetting, Strict, Turns

MOST_RESOURCES = 50
LONGEST_URL = 2000
LOOPBACK = ("127.0.0.1", "::1")

ResourceName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]
Url = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_URL)]


class ResourceKind(StrEnum):
    """How a resource is read: Atom or RSS, GitHub's list of releases (JSON or Atom), or text."""

    FEED = "feed"
    RELEASES = "releases"
    PAGE = "page"


class Resource(Strict):
    """One thing that is watched."""

    name: ResourceName
    url: Url
    kind: ResourceKind

    @field_validator("name")
    @classmethod
    def _printable(cls, name: str) -> str:
        if not name.isprintable():
            raise ValueError("a name is one line of letters, digits and signs")
        return name

    @field_validator("url")
    @classmethod
    def _public(cls, url: str) -> str:
        problem = _problem(url)
        if problem:
            raise ValueError(problem)
        return url


class WatchPolicy(Strict):
    """The settings of the resource watch. It writes its report alone, so it has no mode to set."""

    schedule: ScheduleSetting = ScheduleSetting()
    resources: tuple[Resource, ...] = Field(
        json_schema_extra={"minItems": 1, "maxItems": MOST_RESOURCES}
    )
    language: Language | None = None
    budget_usd: Budget = Budget()
    max_turns: Turns = Turns()

    @property
    def mode(self) -> Mode:
        """Always observe."""
        return Mode.OBSERVE

    @field_validator("resources")
    @classmethod
    def _few_and_distinct(cls, resources: tuple[Resource, ...]) -> tuple[Resource, ...]:
        if not 1 <= len(resources) <= MOST_RESOURCES:
            raise ValueError(f"1 to {MOST_RESOURCES} resources, not {len(resources)}")
        for what, counts in (
            ("name", Counter(item.name for item in resources)),
            ("url", Counter(item.url for item in resources)),
        ):
            twice = [word for word, count in counts.items() if count > 1]
            if twice:
                raise ValueError(f"the {what} {twice[0]!r} stands there twice")
        return resources


def _problem(url: str) -> str | None:
    """What is wrong with a URL, or None."""
    if not url.isprintable() or " " in url or "\\" in url or not url.isascii():
        return "a URL is in ASCII, without spaces, controls and backslashes"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return "no URL; one looks like https://example.com/releases.atom"
    if "@" in parts.netloc:
        return "a user or password in a URL would stand in the repository"
    if "#" in url:
        return "a part behind '#' is never sent: leave it out"
    if not host:
        return "no URL; one looks like https://example.com/releases.atom"
    return _place_problem(parts, host)


def _place_problem(parts: SplitResult, host: str) -> str | None:
    if parts.scheme == "http" and host in LOOPBACK:
        return None
    if parts.scheme != "https":
        return "only https is fetched"
    if parts.port not in (None, 443):
        return f"port {parts.port}: only 443 is asked"
    if _is_address(host):
        return "an address in place of a name is not fetched"
    if "." not in host or host.endswith(".localhost"):
        return f"{host!r} is no public name"
    return None


def _is_address(host: str) -> bool:
    """Whether a host is an IP address, also in the forms that only some readers take for one."""
    last = host.rstrip(".").rpartition(".")[2]
    if last.isdigit() or last.startswith("0x"):
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
