"""Deliveries as tests make them: as GitHub shapes them, with nothing that is not read."""

from collections.abc import Mapping
from typing import Any

from triage.asks import Ask, Repository
from triage.delivery import Ignored, interpret
from triage.marker import MarkerKeys, stamp

KEYS = MarkerKeys.parse("k1:" + "ab" * 16)
OTHER_KEYS = MarkerKeys.parse("k1:" + "cd" * 16)
BOT = {"id": 9000, "login": "retriage[bot]", "type": "Bot"}
ADA = {"id": 7, "login": "ada", "type": "User"}
EFFECT = "e" * 64
RUN = "daily-issue-triage:R42:2026-09-16:p3f2a91c0"
OWN_TEXT = stamp("**Triage: `bug`.**", effect_key=EFFECT, run=RUN, keys=KEYS)

NAMED = [{"id": 42, "full_name": "acme/api", "private": False}]
REPOSITORIES = (Repository(id=42, full_name="acme/api"),)

Payload = dict[str, Any]


def payload(action: str, sender: Mapping[str, Any] = ADA, **parts: Any) -> Payload:
    """A delivery as GitHub shapes it, with nothing that is not read."""
    return {
        "action": action,
        "sender": dict(sender),
        "repository": {"id": 42, "full_name": "acme/api"},
        "installation": {"id": 5},
        "issue": {
            "id": 4201,
            "number": 1,
            "user": ADA,
            "html_url": "https://github.example/acme/api/issues/1",
            "updated_at": "2026-09-16T01:00:00Z",
            "body": "It crashes",
        },
        **parts,
    }


def comment(body: str, author: Mapping[str, Any] = ADA) -> Payload:
    """A comment in a payload."""
    return {
        "id": 77,
        "user": dict(author),
        "body": body,
        "html_url": "https://github.example/acme/api/issues/1#issuecomment-77",
        "updated_at": "2026-09-16T01:02:03Z",
    }


def ask(event: str, data: Payload, keys: MarkerKeys = KEYS) -> tuple[Ask, ...] | Ignored:
    """Interpret as the receiver does, where the bot is user 9000."""
    return interpret(event, data, bot_ids=frozenset({9000}), keys=keys)


def reason(event: str, data: Payload, keys: MarkerKeys = KEYS) -> str:
    """Why a delivery is ignored."""
    outcome = ask(event, data, keys)
    assert isinstance(outcome, Ignored)
    return outcome.reason
