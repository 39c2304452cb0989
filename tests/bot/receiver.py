"""A receiver on loopback as tests drive it: real HTTP, real Valkey, the real queue."""

import asyncio
import hashlib
import hmac
import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

import httpx
from rq import Queue
from rq.job import Job

from bot.__main__ import listen, make_server
from bot.app import make_app, utc_now
from bot.connection import Connection
from bot.enqueue import QUEUE, SERIALIZER, Link, linked
from bot.settings import WebSettings, read_settings
from ledger.connection import connect_sync
from process.log import LineLog

SECRET = "a webhook's secret"
CRON_SECRET = "a scheduler's secret"
MARKER_KEYS = "k1:" + "ab" * 16
WEBHOOKS = "/api/github/webhooks"


def settings(redis_url: str, **given: Any) -> WebSettings:
    """What a receiver is started with."""
    return read_settings(
        WebSettings,
        redis_url=redis_url,
        webhook_secret=SECRET,
        marker_keys=MARKER_KEYS,
        **{"cron_secret": CRON_SECRET, "host": "127.0.0.1", "port": 0, **given},
    )


def signature(body: bytes, secret: str = SECRET) -> str:
    """The header as GitHub makes it."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def headers(body: bytes, event: str = "issue_comment", guid: str = "") -> dict[str, str]:
    """The headers of a delivery; a new id unless one is given."""
    return {
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": guid or str(uuid4()),
        "x-hub-signature-256": signature(body),
    }


def json_body(payload: Mapping[str, Any]) -> bytes:
    """A payload as it is sent."""
    return json.dumps(payload).encode()


def command(body: str = "/retriage", comment: int = 77, **sender: Any) -> dict[str, Any]:
    """A comment on an issue as GitHub tells it."""
    person = {"id": 7, "login": "ada", "type": "User", **sender}
    return {
        "action": "created",
        "sender": person,
        "repository": {"id": 42, "full_name": "acme/api"},
        "installation": {"id": 5},
        "issue": {"id": 4201, "number": 1, "user": {"id": 8}, "body": "It crashes"},
        "comment": {
            "id": comment,
            "user": person,
            "body": body,
            "html_url": "https://github.example/acme/api/issues/1#issuecomment-77",
            "updated_at": "2026-09-16T01:02:03Z",
        },
    }


class Moment:
    """A clock that can be set."""

    def __init__(self) -> None:
        self.at: datetime | None = None

    def __call__(self) -> datetime:
        return self.at or utc_now()


@dataclass(frozen=True)
class Receiver:
    """One that listens, and what a test looks at."""

    client: httpx.AsyncClient
    redis_url: str
    link: Link
    port: int
    written: io.StringIO
    now: Moment

    def anew(self) -> None:
        """Forget what was logged, and what time it was said to be."""
        self.written.seek(0)
        self.written.truncate()
        self.now.at = None

    async def deliver(
        self, payload: Mapping[str, Any], event: str = "issue_comment", guid: str = ""
    ) -> httpx.Response:
        """A signed delivery."""
        body = json_body(payload)
        return await self.client.post(WEBHOOKS, content=body, headers=headers(body, event, guid))

    async def ring(self, path: str, secret: str = CRON_SECRET) -> httpx.Response:
        """A request to /cron."""
        return await self.client.post(
            f"/cron/{path}", headers={"authorization": f"Bearer {secret}"}
        )

    def lines(self, word: str = "") -> list[str]:
        """The log lines that start with a word."""
        return [line for line in self.written.getvalue().splitlines() if line.startswith(word)]


@asynccontextmanager
async def receiving(
    redis_url: str, *, connection: type[Connection] = Connection, **given: Any
) -> AsyncIterator[Receiver]:
    """A receiver under uvicorn, until the block ends."""
    written, now = io.StringIO(), Moment()
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        async with linked(redis_url) as link:
            app = make_app(settings(redis_url, **given), link, LineLog(written), now=now)
            server = make_server(app, connection=connection)
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
                yield Receiver(client, redis_url, link, port, written, now)
            server.should_exit = True
            await serving


def queued(redis_url: str) -> list[Job]:
    """The jobs that wait, oldest first."""
    with connect_sync(redis_url) as client:
        jobs = Queue(QUEUE, connection=client, serializer=SERIALIZER).jobs
        for job in jobs:
            assert job.args is not None  # reads them, as a worker does
        return jobs


def called(redis_url: str) -> list[tuple[str, tuple[Any, ...]]]:
    """What the waiting jobs would call."""
    return [(str(job.func_name), tuple(job.args)) for job in queued(redis_url)]


def worked_off(redis_url: str) -> None:
    """No job waits any more, and RQ remembers each, as it does after one is done."""
    with connect_sync(redis_url) as client:
        client.delete(f"rq:queue:{QUEUE}")
