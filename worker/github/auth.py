"""Who asks GitHub: an App with a token for each installation, or one account's token.

Invariant: a token is only in memory, and gone from it once GitHub refuses it.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from githubkit.auth.app import AppAuth
from jwt.exceptions import PyJWTError
from pydantic import BaseModel, ValidationError

from worker.github.connection import Connection, RequestKind
from worker.github.failures import Reading, Verdict
from worker.github.shapes import Moment
from worker.ports import Clock

TOKEN_INSTALLATION: Final = "token"  # noqa: S105 - a name
"""Stands for the installation where there is no App."""

AS_APP: Final = "app"
"""Asks as the App itself, which may read little but its installations."""

AS_NOBODY: Final = "nobody"
"""Asks without a credential."""

_RENEW_BEFORE = timedelta(minutes=2)
_LIFETIME = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class AppCredentials:
    """A GitHub App: its id and its private key (PEM)."""

    app_id: str
    private_key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenCredentials:
    """A token of a person, or of a workflow."""

    token: str = field(repr=False)


class NoToken(Exception):  # noqa: N818 - an outcome, told apart by its reading
    """GitHub, or our own key, gave no token: nothing was asked with it."""

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading.detail)
        self.reading = reading


class Authority:
    """Gives the Authorization header of a request."""

    def __init__(
        self, credentials: AppCredentials | TokenCredentials, connection: Connection, clock: Clock
    ) -> None:
        self._credentials = credentials
        self._connection = connection
        self._clock = clock
        self._kept: dict[str, _Kept] = {}
        self._minting = asyncio.Lock()
        self._signer = (
            AppAuth(connection.github, credentials.app_id, credentials.private_key)
            if isinstance(credentials, AppCredentials)
            else None
        )

    @property
    def is_app(self) -> bool:
        """True where an App asks, False for an account's token."""
        return self._signer is not None

    async def header(self, asker: str) -> str:
        """For an installation, AS_APP or AS_NOBODY; an account's token serves for every
        installation. Raises NoToken, and NoAnswer where a new token was asked for in vain."""
        if asker == AS_NOBODY:
            return ""
        if asker == AS_APP:
            return f"Bearer {await self._signed()}"
        if isinstance(self._credentials, TokenCredentials):
            return f"token {self._credentials.token}"
        async with self._minting:
            kept = self._kept.get(asker)
            if kept is None or kept.until <= self._clock.now():
                kept = self._kept[asker] = await self._mint(asker)
        return f"token {kept.token}"

    def any_installation(self) -> str | None:
        """An installation that has a token now."""
        return next(iter(self._kept), None)

    def evict(self, asker: str, authorization: str) -> bool:
        """GitHub refused this header. True where the next request gets a fresh token."""
        kept = self._kept.get(asker)
        if kept is not None and authorization == f"token {kept.token}":
            del self._kept[asker]
        return self.is_app and asker not in (AS_APP, AS_NOBODY)

    async def _signed(self) -> str:
        if self._signer is None:
            raise NoToken(Reading(Verdict.FORBIDDEN, "there is no App: only a token is set"))
        try:
            return await self._signer.aget_jwt()
        except (PyJWTError, ValueError, TypeError) as error:
            detail = "PRIVATE_KEY cannot sign: it is no RSA private key in PEM"
            raise NoToken(Reading(Verdict.FORBIDDEN, detail)) from error

    async def _mint(self, installation: str) -> "_Kept":
        if not (installation.isascii() and installation.isdigit()):
            detail = f"{installation!r} is no installation of the App"
            raise NoToken(Reading(Verdict.FORBIDDEN, detail))
        answer = await self._connection.send_once(
            RequestKind.TOKEN,
            "POST",
            f"app/installations/{installation}/access_tokens",
            authorization=f"Bearer {await self._signed()}",
        )
        if answer.reading.verdict is not Verdict.DONE:
            raise NoToken(_refused(answer.reading))
        try:
            minted = _Minted.model_validate(answer.content)
        except ValidationError as error:
            raise NoToken(Reading(Verdict.BROKEN, "an answer without a token")) from error
        expires = minted.expires_at or self._clock.now() + _LIFETIME
        return _Kept(minted.token, expires - _RENEW_BEFORE)


@dataclass(frozen=True, slots=True)
class _Kept:
    token: str = field(repr=False)
    until: datetime


def _refused(reading: Reading) -> Reading:
    """No token is no answer about the thing that was asked for: it is not gone."""
    kept = reading.verdict in (Verdict.LIMITED, Verdict.BROKEN)
    detail = f"no token for the installation: {reading.detail}"
    return Reading(reading.verdict if kept else Verdict.FORBIDDEN, detail, reading.retry_at)


class _Minted(BaseModel):
    token: str
    expires_at: Moment | None = None
