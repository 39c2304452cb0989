"""Webhooks over real HTTP: what is taken, what is refused, and that nothing comes twice."""

import asyncio
import json
import os
import signal
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.enqueue import FAILURE_TTL_SECONDS, JOB_TIMEOUT_SECONDS, RESULT_TTL_SECONDS
from bot.webhook import BODY_LIMIT_BYTES
from ledger.server import EmbeddedServer
from tests.bot.receiver import (
    MARKER_KEYS,
    WEBHOOKS,
    Receiver,
    called,
    command,
    headers,
    queued,
    receiving,
    signature,
)
from triage.asks import Command, SeenEffect, parse_ask
from triage.marker import MarkerKeys, stamp

MIB = 1024 * 1024


# --- Taken --------------------------------------------------------------------------------------


async def test_a_command_is_in_the_queue_before_it_is_answered(
    receiver: Receiver, redis_url: str
) -> None:
    """202, within a second, with one job that a worker can read."""
    began = time.monotonic()
    answer = await receiver.deliver(command("/retriage --force"), guid="d-1")
    assert time.monotonic() - began < 1
    assert (answer.status_code, answer.json()) == (202, {"outcome": "accepted"})
    (job,) = queued(redis_url)
    assert job.func_name == "worker.jobs.handle"
    ask, guid, index = job.args
    assert (guid, index) == ("d-1", 0)
    taken = parse_ask(ask)
    assert isinstance(taken, Command)
    assert (taken.comment_id, taken.arguments) == (77, ("--force",))


async def test_a_job_outlives_the_deadlines_of_what_it_does(
    receiver: Receiver, redis_url: str
) -> None:
    """RQ's own defaults (three minutes, and failures for a year) are not ours."""
    await receiver.deliver(command())
    (job,) = queued(redis_url)
    assert (job.timeout, job.result_ttl, job.failure_ttl) == (
        JOB_TIMEOUT_SECONDS,
        RESULT_TTL_SECONDS,
        FAILURE_TTL_SECONDS,
    )
    assert "ada" not in str(job.description)


async def test_one_line_a_delivery(receiver: Receiver) -> None:
    """With what is needed to find it again, and none of its text."""
    await receiver.deliver(command(), guid="d-1")
    assert receiver.lines() == [
        "DELIVERY accepted guid=d-1 event=issue_comment action=created sender=ada "
        "repository=acme/api asks=command"
    ]


async def test_what_asks_for_nothing_is_ignored_for_a_reason(
    receiver: Receiver, redis_url: str
) -> None:
    """200, the reason in the answer and in the log, and no job."""
    answer = await receiver.deliver({"zen": "Keep it logically awesome."}, "ping", guid="d-1")
    assert (answer.status_code, answer.json()) == (200, {"outcome": "ignored", "reason": "ping"})
    answer = await receiver.deliver({"action": "created"}, "star")
    assert answer.json()["reason"] == "an event that is not listened to"
    assert queued(redis_url) == []
    assert receiver.lines()[0] == "DELIVERY ignored guid=d-1 event=ping reason=ping"


async def test_one_delivery_may_ask_for_two_things(receiver: Receiver, redis_url: str) -> None:
    """A selection of repositories that grew and shrank: a job for each."""
    payload = {
        "action": "added",
        "installation": {"id": 5},
        "repositories_added": [{"id": 42, "full_name": "acme/api"}],
        "repositories_removed": [{"id": 43, "full_name": "acme/web"}],
    }
    answer = await receiver.deliver(payload, "installation_repositories")
    assert answer.status_code == 202
    kinds = [args[0]["kind"] for _, args in called(redis_url)]
    assert kinds == ["removed", "installed"]


async def test_an_identifier_of_the_bot_that_is_new_counts_at_once(
    receiver: Receiver, redis_url: str
) -> None:
    """A worker records it while the receiver runs: the next delivery is read with it."""
    assert (await receiver.deliver(command(comment=1))).status_code == 202
    await receiver.link.ledger.repositories.add_bot_id(7)
    answer = await receiver.deliver(command(comment=2))
    assert answer.json()["outcome"] == "ignored"
    assert len(queued(redis_url)) == 1


# --- Nothing comes twice ------------------------------------------------------------------------


async def test_a_redelivery_starts_nothing(receiver: Receiver, redis_url: str) -> None:
    """GitHub keeps the id when it delivers again."""
    await receiver.deliver(command(), guid="d-1")
    again = await receiver.deliver(command(), guid="d-1")
    assert (again.status_code, again.json()["outcome"]) == (200, "duplicate")
    assert len(queued(redis_url)) == 1


async def test_the_same_meaning_under_another_id_starts_nothing(
    receiver: Receiver, redis_url: str
) -> None:
    """The App's hook and a repository's own tell one comment twice; another comment counts."""
    await receiver.deliver(command())
    again = await receiver.deliver(command())
    assert (again.status_code, again.json()["outcome"]) == (200, "duplicate")
    other = await receiver.deliver(command(comment=78))
    assert other.status_code == 202
    assert len(queued(redis_url)) == 2


async def test_deliveries_at_once_start_one_job(receiver: Receiver, redis_url: str) -> None:
    """Twenty copies at the same instant, half of them under other ids."""
    answers = await asyncio.gather(
        *(receiver.deliver(command(), guid=f"d-{number // 2}") for number in range(20))
    )
    assert Counter(answer.status_code for answer in answers) == {202: 1, 200: 19}
    assert len(queued(redis_url)) == 1


async def test_the_bots_own_deeds_start_nothing(receiver: Receiver, redis_url: str) -> None:
    """Its comment is a hit at most, whatever it says, whatever GitHub calls the account."""
    await receiver.link.ledger.repositories.add_bot_id(9000)
    own: dict[str, Any] = {"id": 9000, "login": "retriage[bot]", "type": "User"}
    answer = await receiver.deliver(command("/retriage", **own))
    assert answer.json()["outcome"] == "ignored"
    keys = MarkerKeys.parse(MARKER_KEYS)
    text = stamp("**Triage: `bug`.**", effect_key="e" * 64, run="a-run", keys=keys)
    answer = await receiver.deliver(command(text, **own))
    assert answer.status_code == 202
    ((_, (ask, *_)),) = called(redis_url)
    assert isinstance(parse_ask(ask), SeenEffect)


# --- Refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [
        {"x-hub-signature-256": None},
        {"x-hub-signature-256": ""},
        {"x-hub-signature-256": "sha256="},
        {"x-hub-signature-256": "sha256=" + "0" * 64},
        {"x-hub-signature-256": "sha256=" + "é" * 32},
        {"x-hub-signature-256": signature(b"something else")},
        {"x-hub-signature-256": None, "x-hub-signature": "sha1=" + "0" * 40},
    ],
)
async def test_without_the_right_signature_nothing_is_read(
    receiver: Receiver, redis_url: str, changed: dict[str, str | None]
) -> None:
    """401; SHA-1 alone is none, and the body is not even parsed."""
    body = b"this is no JSON"
    given = {name: value for name, value in (headers(body) | changed).items() if value is not None}
    sent = [(name.encode(), value.encode()) for name, value in given.items()]
    answer = await receiver.client.post(WEBHOOKS, content=body, headers=sent)
    assert answer.status_code == 401
    assert answer.json()["outcome"] == "refused"
    assert receiver.lines("DELIVERY refused")
    assert queued(redis_url) == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the body is not JSON"),
        (b"{", "the body is not JSON"),
        (b"\xff\xfe\x00", "the body is not JSON"),
        (b"[" * 200_000, "the body is not JSON"),
        (b"9" * 10_000, "the body is not JSON"),
        (b"[]", "the body is JSON, but no object"),
        (
            b"payload=%7B%7D",
            "the body is not JSON (set the webhook's content type to application/json)",
        ),
    ],
)
async def test_what_is_no_delivery_is_told_so(receiver: Receiver, body: bytes, reason: str) -> None:
    """400 with one clear line, though the signature is right."""
    answer = await receiver.client.post(WEBHOOKS, content=body, headers=headers(body))
    assert (answer.status_code, answer.json()) == (400, {"outcome": "refused", "reason": reason})


@pytest.mark.parametrize("name", ["X-GitHub-Event", "X-GitHub-Delivery"])
@pytest.mark.parametrize("value", ["", "two words", "x" * 200])
async def test_a_delivery_names_itself(receiver: Receiver, name: str, value: str) -> None:
    """400 where the event or the id is missing or none."""
    body = json.dumps(command()).encode()
    given = {**headers(body), name.lower(): value}
    answer = await receiver.client.post(WEBHOOKS, content=body, headers=given)
    assert answer.status_code == 400
    assert answer.json()["reason"] == f"{name} is missing or malformed"


async def test_other_methods_and_paths(receiver: Receiver) -> None:
    """One JSON line, like every answer."""
    assert (await receiver.client.get(WEBHOOKS)).json()["reason"] == "Method Not Allowed"
    answer = await receiver.client.post("/nowhere")
    assert (answer.status_code, answer.json()["reason"]) == (404, "Not Found")


async def test_hostile_text_stays_in_its_value(receiver: Receiver) -> None:
    """A sender's login cannot start a line, nor forge a pair."""
    login = "x\nDELIVERY accepted guid=forged\u202e"
    payload = {**command(), "sender": {"id": 7, "login": login, "type": "User"}}
    await receiver.deliver(payload)
    (line,) = receiver.lines()
    assert r'sender="x\nDELIVERY accepted guid=forged\u202e"' in line


# --- Large bodies -------------------------------------------------------------------------------


def padded(size: int) -> bytes:
    """A delivery of exactly this size."""
    body = json.dumps(command()).encode()
    return body + b" " * (size - len(body))


async def test_the_largest_delivery_is_taken(receiver: Receiver) -> None:
    """25 MiB to the byte."""
    body = padded(BODY_LIMIT_BYTES)
    answer = await receiver.client.post(WEBHOOKS, content=body, headers=headers(body))
    assert answer.status_code == 202


@pytest.mark.parametrize("size", [BODY_LIMIT_BYTES + 1, 26 * MIB])
async def test_a_larger_one_is_refused(receiver: Receiver, redis_url: str, size: int) -> None:
    """413, though it is signed."""
    body = padded(size)
    answer = await receiver.client.post(WEBHOOKS, content=body, headers=headers(body))
    assert (answer.status_code, answer.json()["reason"]) == (413, "the body is larger than 25 MiB")
    assert receiver.lines("DELIVERY refused")
    assert queued(redis_url) == []


async def test_a_body_of_undeclared_length_is_bound_too(receiver: Receiver) -> None:
    """It is counted as it arrives."""
    body = padded(26 * MIB)

    async def chunks() -> Any:
        for start in range(0, len(body), MIB):
            yield body[start : start + MIB]

    answer = await receiver.client.post(WEBHOOKS, content=chunks(), headers=headers(body))
    assert answer.status_code == 413


@pytest.mark.parametrize("expect", ["", "expect: 100-continue\r\n"])
async def test_a_huge_declared_length_is_refused_unread(receiver: Receiver, expect: str) -> None:
    """The answer comes before the body."""
    head = (
        f"POST {WEBHOOKS} HTTP/1.1\r\nhost: x\r\ncontent-length: 10000000000\r\n{expect}"
        f"x-hub-signature-256: {signature(b'')}\r\n\r\n"
    )
    assert (await raw(receiver, head.encode())).startswith(b"HTTP/1.1 413 ")


async def test_a_wrong_signature_is_refused_unread(receiver: Receiver) -> None:
    """One that has not even the form of one."""
    head = f"POST {WEBHOOKS} HTTP/1.1\r\nhost: x\r\ncontent-length: 20000000\r\n\r\n"
    assert await raw(receiver, head.encode()) == b"HTTP/1.1 401 Unauthorized"


async def test_a_client_that_goes_away_harms_nothing(receiver: Receiver) -> None:
    """The next delivery is taken."""
    head = (
        f"POST {WEBHOOKS} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n"
        f"x-hub-signature-256: {signature(b'')}\r\n\r\n" + "{"
    )
    _, writer = await asyncio.open_connection("127.0.0.1", receiver.port)
    writer.write(head.encode())
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await receiver.deliver(command())).status_code == 202


async def raw(receiver: Receiver, sent: bytes) -> bytes:
    """The first line that is answered to these bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", receiver.port)
    writer.write(sent)
    line = await asyncio.wait_for(reader.readline(), 5)
    writer.close()
    await writer.wait_closed()
    return line.strip()


# --- Redis out of reach -------------------------------------------------------------------------


async def test_redis_gone_and_back(tmp_path: Path) -> None:
    """503 and no trace while it is gone; the redelivery is accepted, once, when it is back."""
    with ExitStack() as first:
        server = first.enter_context(EmbeddedServer(tmp_path))
        async with receiving(server.url) as receiver:
            assert (await receiver.deliver(command(comment=1), guid="d-1")).status_code == 202
            server.kill()
            answer = await receiver.deliver(command(comment=2), guid="d-2")
            assert (answer.status_code, answer.json()["outcome"]) == (503, "refused")
            first.close()
            with EmbeddedServer(tmp_path) as again:
                answer = await receiver.deliver(command(comment=2), guid="d-2")
                assert answer.status_code == 202
                answer = await receiver.deliver(command(comment=1), guid="d-1")
                assert answer.json()["outcome"] == "duplicate"
                assert len(queued(again.url)) == 2


async def test_redis_that_hangs(tmp_path: Path) -> None:
    """It takes the connection and says nothing: 503 well before GitHub gives up."""
    with EmbeddedServer(tmp_path) as server:
        async with receiving(server.url) as receiver:
            os.kill(server.pid, signal.SIGSTOP)
            began = time.monotonic()
            answer = await receiver.deliver(command())
            assert time.monotonic() - began < 8
            assert answer.status_code == 503
            os.kill(server.pid, signal.SIGCONT)


# --- GitHub's own examples ----------------------------------------------------------------------

EXAMPLES = Path(
    os.environ.get("RETRIAGE_WEBHOOK_EXAMPLES")
    or Path(__file__).parents[3] / "shared" / "data" / "webhooks"
)


def examples() -> list[tuple[str, bytes]]:
    """Event and body of each; a file is named ``event.action.n.json``."""
    files = sorted(EXAMPLES.glob("*.json"))
    return [(file.name.split(".", 1)[0], file.read_bytes()) for file in files]


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="no example deliveries beside the repository")
async def test_githubs_examples_are_answered(receiver: Receiver) -> None:
    """Each is accepted, ignored for a reason, or means what another meant; none is an error."""
    answers: list[httpx.Response] = []
    for event, body in examples():
        answers.append(
            await receiver.client.post(WEBHOOKS, content=body, headers=headers(body, event))
        )
    outcomes = Counter(answer.json()["outcome"] for answer in answers)
    assert {answer.status_code for answer in answers} == {200, 202}
    assert all(a.json().get("reason") for a in answers if a.status_code == 200)
    assert outcomes["accepted"] + outcomes["duplicate"] == 20
    assert len(receiver.lines("DELIVERY")) == len(answers)
