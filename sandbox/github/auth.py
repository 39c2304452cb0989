"""Who asks: App (JWT), installation (`ghs_…`), user (`ghp_…`) or nobody."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

import jwt

from sandbox.github.clock import EPOCH
from sandbox.github.deeds import Doer
from sandbox.github.keys import load_public_key
from sandbox.github.state import Account, App, Installation, Token
from sandbox.github.wire import ApiError, Request
from sandbox.github.world import World

LONGEST_JWT = timedelta(minutes=10)
CLOCK_DRIFT = timedelta(seconds=5)
UNDECODABLE = "A JSON web token could not be decoded"


class Kind(Enum):
    ANONYMOUS = "anonymous"
    APP = "app"
    INSTALLATION = "installation"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Caller:
    kind: Kind
    account: Account | None = None
    app: App | None = None
    installation: Installation | None = None
    token: Token | None = None

    @property
    def who(self) -> str:
        """For the log: a login, `app slug`, or `anonymous`."""
        if self.kind is Kind.APP and self.app is not None:
            return f"app {self.app.slug}"
        return "anonymous" if self.account is None else self.account.login

    @property
    def limit_key(self) -> str:
        """What GitHub counts together: an installation, a user, an App."""
        if self.installation is not None:
            return f"installation {self.installation.id}"
        return self.who

    @property
    def doer(self) -> Doer:
        if self.account is None:
            raise ApiError(401, "Requires authentication")
        return Doer(self.account, self.app)


ANONYMOUS = Caller(Kind.ANONYMOUS)


def identify(world: World, request: Request) -> Caller:
    """Raises ApiError where GitHub would answer 401 or 403."""
    header = request.header("authorization")
    if not header:
        return ANONYMOUS
    scheme, _, credential = header.partition(" ")
    credential = credential.strip()
    if scheme.lower() == "basic":  # git's: any name, and the token as the password
        scheme, credential = "token", _password(credential)
    if scheme.lower() not in ("bearer", "token") or not credential:
        raise ApiError(401, "Bad credentials")
    if credential.count(".") == 2:
        return Caller(Kind.APP, app=verify_jwt(world, credential))
    return _by_token(world, credential)


def _password(encoded: str) -> str:
    try:
        return base64.b64decode(encoded, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _by_token(world: World, value: str) -> Caller:
    token = world.tokens.get(value)
    if token is None:
        raise ApiError(401, "Bad credentials")
    if token.expires_at is not None and token.expires_at <= world.clock.now():
        raise ApiError(401, "Bad credentials")
    installation = token.installation
    if installation is None:
        return Caller(Kind.USER, account=token.account, token=token)
    if installation.deleted:
        raise ApiError(401, "Bad credentials")
    if installation.suspended_at is not None:
        raise ApiError(403, "This installation has been suspended")
    return Caller(
        Kind.INSTALLATION,
        account=token.account,
        app=installation.app,
        installation=installation,
        token=token,
    )


def verify_jwt(world: World, text: str) -> App:
    """The App whose key signed it. Time is the clock by which callers sign, without the world's
    offset: moving the world must not make their tokens look forged.
    """
    try:
        if jwt.get_unverified_header(text).get("alg") != "RS256":
            raise ApiError(401, UNDECODABLE)
        claims: dict[str, Any] = jwt.decode(text, options={"verify_signature": False})
    except jwt.PyJWTError:
        raise ApiError(401, UNDECODABLE) from None
    app = _app_named(world, claims.get("iss"))
    try:
        jwt.decode(
            text,
            load_public_key(app.public_key),
            algorithms=["RS256"],
            options={"verify_exp": False, "verify_iat": False, "verify_nbf": False},
        )
    except jwt.PyJWTError:
        raise ApiError(401, UNDECODABLE) from None
    _check_times(claims, world.signers_now())
    return app


def _app_named(world: World, issuer: object) -> App:
    for app in world.apps.values():
        if str(issuer) in (str(app.id), app.client_id):
            return app
    raise ApiError(404, "Integration not found")


def _check_times(claims: dict[str, Any], now: datetime) -> None:
    issued, expires = claims.get("iat"), claims.get("exp")
    if not isinstance(issued, (int, float)) or _moment(issued) > now + CLOCK_DRIFT:
        raise ApiError(
            401,
            "'Issued at' claim ('iat') must be an Integer representing the time that the "
            "assertion was issued",
        )
    if not isinstance(expires, (int, float)) or _moment(expires) <= now:
        raise ApiError(
            401,
            "'Expiration time' claim ('exp') must be a numeric value representing the future "
            "time at which the assertion expires",
        )
    if _moment(expires) > now + LONGEST_JWT + CLOCK_DRIFT:
        raise ApiError(401, "'Expiration time' claim ('exp') is too far in the future")


def _moment(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)
