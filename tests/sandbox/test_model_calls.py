"""The sandbox's model calls tools by order, and its record shows what came back."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from sandbox.model import ModelServer

PROMPT = "===== FILES 0a BEGIN =====\n===== FILES 0a END ====="
ORDER = {
    "behaviour": "use",
    "calls": [
        {"tool": "Read", "input": {"file_path": "a"}},
        {"tool": "Glob", "input": {"pattern": "*"}},
    ],
}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def say(server: ModelServer, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """What the model calls next, after these messages."""
    schema = {"properties": {"decisions": {"type": "array"}}}
    body = {
        "model": "claude-test",
        "tools": [{"name": "StructuredOutput", "input_schema": schema}],
        "messages": messages,
    }
    answer = httpx.post(f"{server.url}/v1/messages", json=body).json()
    (block,) = answer["content"]
    return dict(block)


def told(messages: list[dict[str, Any]], call: dict[str, Any], result: str, failed: bool) -> None:
    """Go on with a call and what it brought."""
    brought = {
        "type": "tool_result",
        "tool_use_id": call["id"],
        "content": result,
        "is_error": failed,
    }
    messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [brought]}]


def test_calls_come_in_turn_and_then_the_answer(server: ModelServer) -> None:
    """One a request, from the newest prompt on; again after the next prompt."""
    control = f"{server.url}/_sandbox/model"
    assert httpx.post(control, json=ORDER).json()["orders"][0]["calls"] == ORDER["calls"]
    messages: list[dict[str, Any]] = [{"role": "user", "content": PROMPT}]
    for _ in range(2):
        first = say(server, messages)
        assert (first["name"], first["input"]) == ("Read", {"file_path": "a"})
        told(messages, first, "denied", failed=True)
        second = say(server, messages)
        assert (second["name"], second["input"]) == ("Glob", {"pattern": "*"})
        told(messages, second, "a\nb", failed=False)
        third = say(server, messages)
        assert (third["name"], third["input"]) == ("StructuredOutput", {"decisions": []})
        calls = server.requests[-1].calls
        assert [(call.tool, call.failed, call.result) for call in calls] == [
            ("Read", True, "denied"),
            ("Glob", False, "a\nb"),
        ]
        told(messages, third, "fine", failed=False)
        messages.append({"role": "user", "content": PROMPT})
    assert httpx.get(control).json()["requests"][-1]["calls"] == [
        {"tool": "Read", "failed": True, "result": "denied"},
        {"tool": "Glob", "failed": False, "result": "a\nb"},
    ]


def test_python_orders_the_same(server: ModelServer) -> None:
    """``use``, for so many sessions."""
    server.use(("Read", {"file_path": "a"}), sessions=1)
    (order,) = httpx.get(f"{server.url}/_sandbox/model").json()["orders"]
    assert (order["behaviour"], order["sessions"]) == ("use", 1)
    assert say(server, [{"role": "user", "content": PROMPT}])["name"] == "Read"


@pytest.mark.parametrize(
    "calls", ["Read", {"tool": "Read"}, ["Read"], [{"tool": "Read"}], [{"tool": 1, "input": {}}]]
)
def test_what_is_no_call_is_refused(server: ModelServer, calls: object) -> None:
    """At the control address, with a reason."""
    answer = httpx.post(f"{server.url}/_sandbox/model", json={"behaviour": "use", "calls": calls})
    assert answer.status_code == 400
    assert "call" in answer.json()["error"]
