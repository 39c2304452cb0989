"""The receiver as one ASGI application: its routes, and what every answer has in common."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from bot.cron import Cron
from bot.enqueue import AGAIN_TICKS, Link
from bot.health import Health
from bot.settings import WebSettings
from bot.webhook import Webhooks
from process.log import LineLog

SERVER_BODY_LIMIT_BYTES: Final = 26 * 1024 * 1024
"""For every route, before it is called; the webhooks have their own, lower one."""


WEBHOOKS: Final = "/api/github/webhooks"
FAILED: Final = b'{"outcome":"failed","reason":"an error of the receiver"}'
"""What is told of a fault of ours; the server logs it."""


class Receiver(Starlette):
    """The application; ``webhooks`` for who brings a delivery without a route."""

    def __init__(self, webhooks: Webhooks, **given: Any) -> None:
        super().__init__(**given)
        self.webhooks = webhooks


def utc_now() -> datetime:
    """The wall-clock time."""
    return datetime.now(UTC)


def make_app(
    settings: WebSettings,
    link: Link,
    log: LineLog,
    *,
    now: Callable[[], datetime] = utc_now,
    pages: Sequence[BaseRoute] = (),
) -> Receiver:
    """Bind the routes to what they need. ``pages`` are further routes, for people."""
    registry = CollectorRegistry()
    deliveries = Counter(
        "retriage_deliveries", "Webhooks answered, by outcome", ["outcome"], registry=registry
    )
    counter = lru_cache(deliveries.labels)
    secret = settings.webhook_secret.get_secret_value()
    again_in = timedelta(seconds=AGAIN_TICKS * settings.retriage_tick_seconds)
    webhooks = Webhooks(
        link,
        secret,
        settings.keys(),
        log,
        lambda outcome: counter(outcome).inc(),
        again_at=lambda: now() + again_in,
    )
    cron_secret = settings.cron_secret.get_secret_value() if settings.cron_secret else None
    cron = Cron(link, cron_secret, log, now, slot_seconds=settings.retriage_tick_seconds)
    health = Health(link, registry)
    return Receiver(
        webhooks,
        routes=[
            Route(WEBHOOKS, webhooks.receive, methods=["POST"]),
            Route("/cron/{job_key}", cron.ring, methods=["POST"]),
            Route("/healthz", health.lives, methods=["GET"]),
            Route("/readyz", health.ready, methods=["GET"]),
            Route("/metrics", health.metrics, methods=["GET"]),
            *pages,
        ],
        exception_handlers={HTTPException: _refused, Exception: _failed},
        max_body_size=SERVER_BODY_LIMIT_BYTES,
    )


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else "Internal Server Error"
    headers = error.headers if isinstance(error, HTTPException) else None
    return JSONResponse({"outcome": "refused", "reason": detail}, status, headers=headers)


async def _failed(_request: Request, _error: Exception) -> Response:
    return Response(FAILED, 500, media_type="application/json")
