"""Who asks GitHub: an App, an account's token, a workflow's token."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from tests.worker.test_github_world import PRIVATE_KEY, REPOSITORY_ID, HastyClock, world
from worker.github.auth import (
    TOKEN_INSTALLATION,
    AppCredentials,
    Authority,
    NoToken,
    TokenCredentials,
)
from worker.github.connection import Connection
from worker.github.failures import NoAnswer, Verdict
from worker.github.reader import RestReader
from worker.github.reads import Reads
from worker.ports import Place, ReadFailed, RepositoryNow, Timing


@pytest.fixture
def anyio_backend() -> str:
    """The program runs on asyncio alone."""
    return "asyncio"


@asynccontextmanager
async def reader_of(
    credentials: AppCredentials | TokenCredentials, api_url: str, bot_id: int | None = None
) -> AsyncIterator[RestReader]:
    """A reader with these credentials."""
    clock = HastyClock()
    async with Connection(clock=clock, timing=Timing(), api_url=api_url) as connection:
        authority = Authority(credentials, connection, clock)
        yield RestReader(Reads(connection, authority, clock), authority, bot_id=bot_id)


async def test_a_token_asks_as_its_account() -> None:
    """One name stands for the installation; there are no others."""
    async with world(as_account="alice") as here:
        now = await here.reader.repository("acme/api")
        assert isinstance(now, RepositoryNow)
        assert now.place == Place(REPOSITORY_ID, "acme/api", TOKEN_INSTALLATION)
        assert await here.reader.installations() == []
        assert await here.reader.installation_repositories(TOKEN_INSTALLATION) == []
        assert await here.reader.bot_user_id() == here.github.account("alice").id
        assert await here.reader.bot_login() == "alice"
        assert here.counted == {"read": 2}


async def test_a_token_must_be_of_the_account_that_is_named() -> None:
    """RETRIAGE_BOT_ID says that an account is the bot's own: it is not taken on trust."""
    async with world(as_account="alice") as here:
        alice = here.github.account("alice").id
        credentials = TokenCredentials(here.github.add_token("alice"))
        async with reader_of(credentials, here.github.base_url, alice) as reader:
            assert await reader.bot_user_id() == alice
        async with reader_of(credentials, here.github.base_url, 1) as reader:
            with pytest.raises(ReadFailed, match="RETRIAGE_BOT_ID is 1") as failure:
                await reader.bot_user_id()
    assert failure.value.permanent


async def test_a_workflows_token_needs_its_account_named() -> None:
    """It may not ask whose it is: one clear line says what helps."""
    async with world() as here:
        authorization = await here.authority.header(here.installation)
        credentials = TokenCredentials(authorization.removeprefix("token "))
        async with reader_of(credentials, here.github.base_url) as reader:
            with pytest.raises(ReadFailed, match="RETRIAGE_BOT_ID") as failure:
                await reader.bot_user_id()
    assert failure.value.permanent


async def test_a_key_that_cannot_sign_is_told_clearly() -> None:
    """No traceback of a library, and no key in the message."""
    broken = "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"
    async with reader_of(AppCredentials("42", broken), "http://127.0.0.1:9") as reader:
        with pytest.raises(ReadFailed, match="PRIVATE_KEY cannot sign") as failure:
            await reader.installations()
    assert failure.value.permanent
    assert "AAAA" not in str(failure.value)


async def test_an_installation_that_is_none_is_refused_without_a_request() -> None:
    """A name never becomes a part of an address."""
    async with world() as here:
        for odd in ("", "../x", "1/2", TOKEN_INSTALLATION):
            with pytest.raises(NoToken) as refusal:
                await here.authority.header(odd)
            assert refusal.value.reading.verdict is Verdict.FORBIDDEN
        assert here.github.requests() == []


async def test_a_secret_is_in_no_repr() -> None:
    """What ends in a log or a traceback holds none."""
    assert "secret" not in repr(TokenCredentials("secret"))
    assert "secret" not in repr(AppCredentials("42", "secret"))


async def test_nobody_there_is_no_answer() -> None:
    """A closed port, and a connection that is not open."""
    clock = HastyClock()
    connection = Connection(
        clock=clock, timing=Timing(request=timedelta(seconds=1)), api_url="http://127.0.0.1:9"
    )
    authority = Authority(AppCredentials("42", PRIVATE_KEY), connection, clock)
    async with connection:
        with pytest.raises(NoAnswer, match="ConnectError"):
            await authority.header("7")
    with pytest.raises(RuntimeError, match="not open"):
        await authority.header("7")
