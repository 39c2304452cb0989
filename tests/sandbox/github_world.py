"""A small world and a client without sockets, for the tests beside."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import jwt

from sandbox.github import Drop, GitHub, Hang, Outcome, Request, Respond, new_private_key

PRIVATE_KEY = new_private_key()
OTHER_KEY = new_private_key()
REPO = "acme/api"
REPO_ID = 1296269
START = datetime(2026, 9, 16, 9, 0, 0, tzinfo=UTC)


@dataclass
class HandClock:
    """Time that stands still until it is moved."""

    moment: datetime = START

    def __call__(self) -> datetime:
        return self.moment

    def move(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


def make_world(clock: HandClock | None = None, *, private: bool = False) -> GitHub:
    """`acme/api` (and `acme/web`), the App retriage on both, alice with the right to write."""
    github = GitHub(now=clock or HandClock(), seed=7)
    github.add_organization("acme")
    github.add_repository(REPO, id=REPO_ID, private=private)
    github.add_repository("acme/web", private=private)
    github.add_collaborator(REPO, "alice", "write")
    github.add_app("retriage", 42, private_key=PRIVATE_KEY)
    github.install("retriage", "acme", id=5001)
    return github


@dataclass
class Api:
    """Asks the sandbox directly: no server, no waiting."""

    github: GitHub
    token: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, content: object = None, **headers: str) -> Outcome:
        path, _, query = path.partition("?")
        sent = {**self.headers, **{k.replace("_", "-"): v for k, v in headers.items()}}
        if self.token:
            sent.setdefault("authorization", f"Bearer {self.token}")
        body = content if isinstance(content, bytes) else b""
        if content is not None and not isinstance(content, bytes):
            body = json.dumps(content).encode()
        return self.github.handle(Request(method, path, query, sent, body))

    def __call__(self, method: str, path: str, content: object = None, **headers: str) -> Respond:
        outcome = self.ask(method, path, content, **headers)
        assert isinstance(outcome, Respond), outcome
        return outcome

    def json(
        self, method: str, path: str, content: object = None, **headers: str
    ) -> dict[str, object]:
        found = self(method, path, content, **headers).json()
        assert isinstance(found, dict), found
        return found

    def list(self, path: str, **headers: str) -> list[dict[str, object]]:
        answer = self("GET", path, **headers)
        found = answer.json()
        assert isinstance(found, list), found
        return found


def as_app(github: GitHub) -> Api:
    """With an installation token, got the proper way."""
    token = Api(github, app_jwt(github.clock.base())).json(
        "POST", "/app/installations/5001/access_tokens"
    )["token"]
    assert isinstance(token, str)
    return Api(github, token)


def as_user(github: GitHub, login: str) -> Api:
    return Api(github, github.add_token(login))


def app_jwt(
    now: datetime,
    *,
    key: str = PRIVATE_KEY,
    issuer: object = 42,
    lasts: float = 540,
    age: float = 30,
) -> str:
    claims = {
        "iss": str(issuer),
        "iat": int((now - timedelta(seconds=age)).timestamp()),
        "exp": int((now + timedelta(seconds=lasts)).timestamp()),
    }
    return jwt.encode(claims, key, algorithm="RS256")


def hung(outcome: Outcome) -> Hang:
    assert isinstance(outcome, Hang), outcome
    return outcome


def dropped(outcome: Outcome) -> bool:
    return isinstance(outcome, Drop)


def logins(shown: list[dict[str, object]]) -> list[str]:
    """The `user.login` of each."""
    found = []
    for each in shown:
        user = each["user"]
        assert isinstance(user, dict)
        found.append(str(user["login"]))
    return found


def names(shown: object) -> list[str]:
    """The `name` of each."""
    assert isinstance(shown, list)
    return [str(each["name"]) for each in shown]
