"""Binds the ports to what is behind them. Alone in knowing both."""

import asyncio
import os
import platform
import secrets
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final

from ledger.connection import connect
from ledger.ledger import Ledger, open_ledger
from ledger.timing import LedgerTiming
from process.log import LineLog
from worker.agent import ClaudeAgent, Host
from worker.agent.store import LedgerSessionStore
from worker.artifacts import FileArtifacts
from worker.checkout.adapter import GitCheckouts
from worker.fetching import HttpFetcher
from worker.github.auth import AppCredentials, Authority, NoToken, TokenCredentials
from worker.github.connection import Connection, RequestKind
from worker.github.failures import NoAnswer, Verdict
from worker.github.reader import RestReader
from worker.github.reads import Reads
from worker.github.writer import RestWriter
from worker.ports import CheckoutFailed, LedgerPorts, LedgerUnavailableError, Ports
from worker.settings import Settings

_TOKEN_SCHEME: Final = "token "  # noqa: S105 - what stands before it


class SystemClock:
    """The machine's time and chance."""

    def now(self) -> datetime:
        """The wall-clock time, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    def token(self) -> str:
        """A new unguessable word."""
        return secrets.token_hex(16)


@dataclass(frozen=True)
class Wiring:
    """Everything that a process of the worker is made of, from its settings."""

    settings: Settings
    redis_url: str

    @cached_property
    def log(self) -> LineLog:
        """The log of this process, on stderr."""
        return LineLog(
            sys.stderr, form=self.settings.log_format, secrets=self.settings.secret_values()
        )

    @asynccontextmanager
    async def ledger(self) -> AsyncIterator[Ledger]:
        """The ledger, for as long as the block lasts."""
        async with connect(self.redis_url) as client:
            yield open_ledger(client, ledger_timing(self.settings))

    @asynccontextmanager
    async def ports(self, ledger: Ledger) -> AsyncIterator[Ports]:
        """The ports of a worker; the requests to GitHub are counted when the block ends."""
        settings, clock, counted = self.settings, SystemClock(), Counter[RequestKind]()

        def count(kind: RequestKind) -> None:
            counted[kind] += 1

        connection = Connection(
            clock=clock, timing=settings.timing(), api_url=settings.github_api_url, count=count
        )
        try:
            async with connection:
                authority = Authority(_credentials(settings), connection, clock)
                reads = Reads(connection, authority, clock)
                yield Ports(
                    ledger=LedgerPorts(
                        leases=ledger.leases,
                        runs=ledger.runs,
                        effects=ledger.effects,
                        due=ledger.due,
                        budgets=ledger.budgets,
                        repositories=ledger.repositories,
                        epochs=ledger.epochs,
                        sessions=ledger.sessions,
                        reviews=ledger.reviews,
                    ),
                    reader=RestReader(reads, authority, bot_id=settings.retriage_bot_id),
                    writer=RestWriter(connection, authority, clock, may_write=settings.may_write),
                    agent=_agent(settings, ledger),
                    checkouts=GitCheckouts(
                        settings.checkout_dir,
                        _InstallationTokens(authority),
                        api_url=settings.github_api_url,
                    ),
                    artifacts=FileArtifacts(settings.data_dir, self.log),
                    fetcher=HttpFetcher(
                        clock, allow_loopback_http=settings.retriage_watch_loopback
                    ),
                    clock=clock,
                    keys=settings.keys(),
                    log=self.log,
                    timing=settings.timing(),
                    owner=owner(),
                )
        finally:
            await _keep_counts(ledger, counted)


@dataclass(frozen=True, slots=True)
class _InstallationTokens:
    """What a checkout asks GitHub with: the token that the API is asked with."""

    authority: Authority

    async def token(self, installation: str) -> str:
        """Raises CheckoutFailed where there is none."""
        try:
            header = await self.authority.header(installation)
        except NoToken as refusal:
            again = refusal.reading.verdict in (Verdict.LIMITED, Verdict.BROKEN)
            raise CheckoutFailed("no-token", refusal.reading.detail, retryable=again) from refusal
        except NoAnswer as silence:
            raise CheckoutFailed("no-token", str(silence), retryable=True) from silence
        return header.removeprefix(_TOKEN_SCHEME)

    def refused(self, installation: str, token: str) -> bool:
        """True where the next one is another."""
        return self.authority.evict(installation, _TOKEN_SCHEME + token)


async def _keep_counts(ledger: Ledger, counted: Counter[RequestKind]) -> None:
    """Counts are worth less than what ends here: a ledger that is gone is not waited for."""
    try:
        for kind, number in counted.items():
            await ledger.counters.requests(kind, number)
    except LedgerUnavailableError:
        return


def owner() -> str:
    """Who this worker is, for people: the machine and the process."""
    return f"{platform.node().partition('.')[0] or 'worker'}-{os.getpid()}"


def ledger_timing(settings: Settings) -> LedgerTiming:
    """The bounds that the ledger enforces: the same as the pipeline's."""
    timing = settings.timing()
    return LedgerTiming(
        lease=timing.lease,
        lock_delay=timing.lock_delay,
        absence_window=timing.absence_window,
        request=timing.request,
        margin=timing.margin,
        write_interval=timedelta(seconds=settings.retriage_write_interval_seconds),
        pacing_scale=settings.retriage_pacing_scale,
    )


def _credentials(settings: Settings) -> AppCredentials | TokenCredentials:
    key = settings.private_key_pem()
    if settings.app_id is not None and key is not None:
        return AppCredentials(settings.app_id, key)
    token = settings.github_token
    return TokenCredentials(token.get_secret_value() if token is not None else "")


def _agent(settings: Settings, ledger: Ledger) -> ClaudeAgent:
    key = settings.anthropic_api_key
    return ClaudeAgent(
        model=settings.retriage_model,
        api_key=key.get_secret_value() if key is not None else "",
        base_url=settings.anthropic_base_url,
        host=Host(
            kept_out=(settings.data_dir,),
            stores=lambda staged: LedgerSessionStore(ledger.sessions, staged),
        ),
    )
