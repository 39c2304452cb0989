"""Gets the pack of one commit over HTTP, with the token, within bounds.

Why not ``git fetch``: git would need the token in its environment or in a file, would follow its
own settings for proxies, redirects and credentials, and tells 401, 403 and 404 in words alone.

Invariant: the token leaves for git's own address alone; no redirect is followed; nothing of it is
written, logged or in a message.
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

import httpx

from worker.checkout.bounds import Bounds, Reason, Stopped
from worker.checkout.objects import one_line
from worker.checkout.packets import (
    HEADERS,
    SERVICE,
    Garbled,
    PackReader,
    RefusedBySide,
    ask_for,
    can_filter,
)

CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 60.0
"""GitHub packs a large commit before the first byte."""
MOST_ADVERTISED_BYTES: Final = 1_000_000
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_API_HOST: Final = re.compile(r"^api\.(github\.com|[^.]+\.ghe\.com)$")

_STATUSES: Final[Mapping[int, tuple[Reason, str]]] = {
    401: (Reason.UNAUTHORISED, "GitHub refuses the token (401)"),
    403: (Reason.FORBIDDEN, "the App may not read the contents of the repository (403)"),
    404: (Reason.NOT_FOUND, "there is no such repository for the App (404)"),
    410: (Reason.NOT_FOUND, "the repository is gone (410)"),
    429: (Reason.LIMITED, "GitHub asks to come back later"),
    451: (Reason.NOT_FOUND, "the repository was taken down (451)"),
    **{
        status: (Reason.MOVED, f"the repository has another name now ({status})")
        for status in (301, 302, 303, 307, 308)
    },
}
"""Every other status, 5xx among them, is UNREACHABLE."""


@dataclass(frozen=True, slots=True)
class Source:
    """A repository as git sees it: its address, without a slash at the end, and the token."""

    url: str
    token: str = field(repr=False)

    @property
    def authorization(self) -> str:
        """git's form of it: a name that GitHub ignores, and the token as the password."""
        pair = base64.b64encode(f"x-access-token:{self.token}".encode()).decode("ascii")
        return f"Basic {pair}"


def git_url(api_url: str) -> str:
    """Where git asks, from where the API is asked: GitHub's own (with data residency too), or an
    Enterprise Server's."""
    url = httpx.URL(api_url)
    host = _API_HOST.sub(r"\1", url.host)
    path = re.sub(r"/api/v3/?$", "", url.path)
    return str(url.copy_with(host=host, path=path or "/")).rstrip("/")


def repository_url(base: str, full_name: str) -> str:
    """A repository's address for git."""
    return f"{base}/{quote(full_name, safe='/')}.git"


async def download(
    source: Source,
    commit: str,
    pack: Path,
    bounds: Bounds,
    transport: httpx.AsyncBaseTransport | None = None,
) -> None:
    """Write the pack. Raises Stopped, and OSError where the disk refuses."""
    async with httpx.AsyncClient(
        headers={**HEADERS, "Authorization": source.authorization},
        timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
        follow_redirects=False,
        trust_env=httpx.URL(source.url).host not in LOOPBACK,
        transport=transport,
    ) as client:
        try:
            filters = can_filter(await _advertised(client, source))
            asked = ask_for(commit, blob_bytes=bounds.file_bytes if filters else None)
            await _receive(client, source, asked, pack, bounds.pack_bytes)
        except RefusedBySide as refusal:
            raise _refused(str(refusal)) from None
        except Garbled as problem:
            raise Stopped(Reason.BROKEN, str(problem)) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            detail = f"no whole answer from GitHub: {type(error).__name__}"
            raise Stopped(Reason.UNREACHABLE, detail) from None


async def _advertised(client: httpx.AsyncClient, source: Source) -> bytes:
    query = {"service": SERVICE}
    async with client.stream("GET", f"{source.url}/info/refs", params=query) as response:
        _check(response)
        said = b""
        async for chunk in response.aiter_bytes():
            said += chunk
            if len(said) > MOST_ADVERTISED_BYTES:
                raise Garbled("the server offers more than any server has")
    return said


async def _receive(
    client: httpx.AsyncClient, source: Source, asked: bytes, pack: Path, most_bytes: int
) -> None:
    headers = {
        "Content-Type": f"application/x-{SERVICE}-request",
        "Accept": f"application/x-{SERVICE}-result",
    }
    reader, size = PackReader(), 0
    address = f"{source.url}/{SERVICE}"
    async with client.stream("POST", address, content=asked, headers=headers) as response:
        _check(response)
        with pack.open("xb") as out:
            async for chunk in response.aiter_bytes():
                data = reader.feed(chunk)
                size += len(data)
                if size > most_bytes:
                    detail = f"the commit is more than {most_bytes} bytes, packed"
                    raise Stopped(Reason.TOO_LARGE, detail)
                out.write(data)
    if not reader.done:
        raise Stopped(Reason.UNREACHABLE, "GitHub's answer ends too early")


def _check(response: httpx.Response) -> None:
    if response.status_code == 200:
        return
    status = 429 if "retry-after" in response.headers else response.status_code
    unknown = (Reason.UNREACHABLE, f"GitHub answers {status}")
    raise Stopped(*_STATUSES.get(status, unknown))


def _refused(words: str) -> Stopped:
    """``not our ref`` is what every git server says of an object that it has not."""
    if "not our ref" in words:
        return Stopped(Reason.COMMIT_GONE, "the repository does not have the commit any more")
    return Stopped(Reason.BROKEN, f"GitHub refuses the commit: {one_line(words)}")
