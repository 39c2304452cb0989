"""``/healthz``: this process lives. ``/readyz``: it can take work. ``/metrics``: for Prometheus.

``/readyz`` answers 503 and names each problem: Redis or the queue out of reach, or Redis set so
that an acknowledged write can be lost.

``/metrics`` reads the counts that all processes share in the ledger; where that is out of reach,
``retriage_ledger_up`` is 0 and only this process's own counts are shown.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from anyio import to_thread
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.enqueue import Link
from ledger.counters import Counts
from ledger.errors import LedgerUnavailableError

DOLLARS: Final = "estimated_usd"
"""The name of the dollars among what a run cost."""


class Health:
    """The three routes. ``registry`` holds what this process counts itself."""

    def __init__(self, link: Link, registry: CollectorRegistry) -> None:
        self._link = link
        self._registry = registry

    async def lives(self, _request: Request) -> JSONResponse:
        """Always 200."""
        return JSONResponse({"alive": True})

    async def ready(self, _request: Request) -> JSONResponse:
        """200, or 503 with the problems."""
        try:
            problems = await self._link.unsafe_settings()
            waiting = await to_thread.run_sync(self._link.queue.depth)
        except LedgerUnavailableError:
            return _not_ready(["Redis is out of reach"])
        if problems:
            return _not_ready(problems)
        return JSONResponse({"ready": True, "waiting": waiting})

    async def metrics(self, _request: Request) -> Response:
        """The text format of Prometheus."""
        registry = CollectorRegistry()
        try:
            counts = await self._link.ledger.counters.snapshot()
            waiting = await to_thread.run_sync(self._link.queue.depth)
        except LedgerUnavailableError:
            registry.register(_Down())
        else:
            registry.register(LedgerMetrics(counts, waiting))
        text = generate_latest(registry) + generate_latest(self._registry)
        return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _not_ready(problems: list[str]) -> JSONResponse:
    return JSONResponse({"ready": False, "problems": problems}, 503)


def _up(value: int) -> Metric:
    return GaugeMetricFamily("retriage_ledger_up", "1 if the ledger answered", value)


class _Down(Collector):
    def collect(self) -> Iterable[Metric]:
        yield _up(0)


class LedgerMetrics(Collector):
    """What the ledger counts, and how many jobs wait, as Prometheus names it."""

    def __init__(self, counts: Counts, waiting: int) -> None:
        self._counts = counts
        self._waiting = waiting

    def collect(self) -> Iterable[Metric]:
        """All of them."""
        counts = self._counts
        yield _up(1)
        runs = {str(status): number for status, number in counts.runs_now.items()}
        yield _gauges("retriage_runs", "Runs by their present status", "status", runs)
        yield _counters(
            "retriage_attempts", "Attempts by the status they ended with", "status", counts.attempts
        )
        yield _counters(
            "retriage_effects", "Effects of runs that are over", "evidence", counts.effects
        )
        yield _counters(
            "retriage_incidents", "What the promise excludes: look", "kind", counts.incidents
        )
        yield _counters(
            "retriage_github_requests", "Requests to GitHub by kind", "kind", counts.requests
        )
        yield CounterMetricFamily(
            "retriage_model_cost_estimated_usd",
            "Dollars that the model cost, by its SDK's estimate",
            counts.cost.get(DOLLARS, 0.0),
        )
        usage = {name: value for name, value in counts.cost.items() if name != DOLLARS}
        yield _counters("retriage_model_usage", "Sessions, turns and tokens", "unit", usage)
        yield CounterMetricFamily(
            "retriage_resume_link_broken",
            "Resumed reviews whose answer was not continuous",
            counts.broken_links,
        )
        yield CounterMetricFamily(
            "retriage_agent_denials", "Calls of tools that the agent was denied", counts.denials
        )
        yield GaugeMetricFamily("retriage_queue_jobs", "Jobs that wait", self._waiting)
        yield GaugeMetricFamily("retriage_due", "What is to fall due", counts.due)
        yield _of_places(
            "retriage_review_recall_ratio",
            "Of the last review's findings, the share that the newest completed one recalled",
            counts.recalled,
        )
        yield _of_places(
            "retriage_last_completed_window_timestamp",
            "When a window was last completed, in seconds since 1970: standing still is the alarm",
            {place: at.timestamp() for place, at in counts.completed.items()},
        )


def _of_places(name: str, text: str, values: Mapping[tuple[str, str], float]) -> Metric:
    """By repository and job."""
    family = GaugeMetricFamily(name, text, labels=["repository", "job"])
    for place, value in sorted(values.items()):
        family.add_metric(place, value)
    return family


def _gauges(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for key, value in sorted(values.items()):
        family.add_metric([str(key)], value)
    return family


def _counters(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    for key, value in sorted(values.items()):
        family.add_metric([str(key)], value)
    return family
