"""Empties the outbox over HTTP, in the background of the server."""

from __future__ import annotations

import asyncio

import httpx

from sandbox.github.core import GitHub
from sandbox.github.webhooks import Delivery

PAUSE_SECONDS = 0.02
TIMEOUT_SECONDS = 10.0  # GitHub gives a receiver as long
MOST_AT_ONCE = 16


async def send_forever(github: GitHub) -> None:
    """Never tries twice by itself, as GitHub does not: ask for a redelivery."""
    slots = asyncio.Semaphore(MOST_AT_ONCE)
    running: set[asyncio.Task[None]] = set()
    async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS, trust_env=False) as client:
        while True:
            delivery = github.outbox.take()
            if delivery is None:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            await slots.acquire()
            task = asyncio.create_task(_send(github, client, delivery, slots))
            running.add(task)
            task.add_done_callback(running.discard)


async def _send(
    github: GitHub, client: httpx.AsyncClient, delivery: Delivery, slots: asyncio.Semaphore
) -> None:
    try:
        answer = await client.post(delivery.url, content=delivery.body, headers=delivery.headers)
        delivery.status = answer.status_code
    except (httpx.HTTPError, httpx.InvalidURL) as problem:
        delivery.error = f"{type(problem).__name__}: {problem}"
    finally:
        delivery.delivered_at = github.now_stamp()
        slots.release()
