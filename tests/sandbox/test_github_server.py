"""Over HTTP: connections that are really dropped, hangs that keep nobody else waiting, the
control address, webhooks that are really sent, and the process.
"""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox.github import GitHub
from sandbox.github.faults import POST_COMMENT
from sandbox.github.server import GitHubServer
from tests.sandbox.github_world import REPO, REPO_ID, as_app, make_world

COMMENTS = f"/repos/{REPO}/issues/1/comments"


@pytest.fixture
def github() -> GitHub:
    world = make_world()
    world.add_issue(REPO, "It crashes", "On start.", author="bob")
    return world


@pytest.fixture
def http_client(github: GitHub) -> Iterator[httpx.Client]:
    headers = {"authorization": f"Bearer {as_app(github).token}"}
    with (
        GitHubServer(github) as server,
        httpx.Client(base_url=server.url, headers=headers, timeout=5) as client,
    ):
        yield client


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    """A server that remembers what it was sent, and answers 202."""
    got: list[tuple[dict[str, str], bytes]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append(({k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(202)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/hook", got
        server.shutdown()
        thread.join()


def until(condition: Any) -> None:
    """Waits, at most two seconds."""
    end = time.monotonic() + 2
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_request_over_http(github: GitHub, http_client: httpx.Client) -> None:
    answer = http_client.post(COMMENTS, json={"body": "hé"})
    assert answer.status_code == 201
    assert answer.headers["x-ratelimit-limit"] == "5000"
    assert answer.json()["html_url"].startswith(str(http_client.base_url).rstrip("/"))
    assert http_client.get(f"/repositories/{REPO_ID}/issues/1/comments").json() == [answer.json()]
    assert http_client.get("/users/retriage[bot]").json()["login"] == "retriage[bot]"
    found = http_client.get(COMMENTS)
    again = http_client.get(COMMENTS, headers={"if-none-match": found.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert http_client.delete(f"/repos/{REPO}/issues/comments/{answer.json()['id']}").content == b""


def test_a_dropped_connection_has_no_answer(github: GitHub, http_client: httpx.Client) -> None:
    github.fail(POST_COMMENT, "apply then drop")
    with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        http_client.post(COMMENTS, json={"body": "x"})
    assert len(github.comments(REPO, 1)) == 1
    assert http_client.get(COMMENTS).status_code == 200


def test_a_hang_keeps_nobody_waiting(github: GitHub, http_client: httpx.Client) -> None:
    """The client gives up; the request lands all the same."""
    github.fail(POST_COMMENT, "hang before applying", seconds=0.15)
    with pytest.raises(httpx.ReadTimeout):
        http_client.post(COMMENTS, json={"body": "late"}, timeout=0.05)
    assert http_client.get(COMMENTS).json() == []
    until(lambda: len(github.comments(REPO, 1)) == 1)
    github.fail(POST_COMMENT, "hang after applying", seconds=0.05)
    started = time.monotonic()
    assert http_client.post(COMMENTS, json={"body": "slow"}).status_code == 201
    assert time.monotonic() - started >= 0.05


def test_a_hang_can_be_ended(github: GitHub, http_client: httpx.Client) -> None:
    github.fail(POST_COMMENT, "hang before applying")
    answers: list[int] = []
    thread = threading.Thread(
        target=lambda: answers.append(http_client.post(COMMENTS, json={"body": "x"}).status_code)
    )
    thread.start()
    until(lambda: github.requests("POST", "/comments"))
    until(lambda: http_client.post("/_sandbox/land").json()["landed"] == 1)
    thread.join()
    assert answers == [201]


def test_faults_over_http(github: GitHub, http_client: httpx.Client) -> None:
    path = "/_sandbox/faults"
    made = http_client.post(path, json={"method": "POST", "path": "/comments$", "action": "502"})
    assert made.status_code == 201
    assert http_client.post(COMMENTS, json={"body": "x"}).status_code == 502
    (shown,) = http_client.get(path).json()
    assert (shown["action"], shown["matched"], shown["struck"]) == ("502", 1, 1)
    several = [
        {"where": POST_COMMENT, "action": "403 secondary", "retry_after": 60},
        {"where": "GET ", "view": "issue_comments", "action": "stale", "lag": 60},
    ]
    second, third = http_client.post(path, json=several).json()
    assert third["times"] is None
    assert http_client.post(COMMENTS, json={"body": "x"}).headers["retry-after"] == "60"
    assert http_client.delete(f"{path}/{second['id']}").status_code == 204
    assert http_client.delete(path).status_code == 204
    assert http_client.get(path).json() == []
    nonsense = [
        {"action": "explode"},
        {"action": "502", "colour": 1},
        {"action": "502", "times": 0},
    ]
    for wrong in (*nonsense, 7):
        assert http_client.post(path, json=wrong).status_code == 422


def test_a_callback_over_http(
    github: GitHub,
    http_client: httpx.Client,
    receiver: tuple[str, list[tuple[dict[str, str], bytes]]],
) -> None:
    """The address is called, and its answer waited for, before the client gets its own."""
    url, got = receiver
    fault = {"where": POST_COMMENT, "action": "call after applying", "call": url}
    http_client.post("/_sandbox/faults", json=fault)
    assert http_client.post(COMMENTS, json={"body": "x"}).status_code == 201
    ((_, body),) = got
    told = {"method": "POST", "path": COMMENTS, "who": "retriage[bot]", "status": 201}
    assert json.loads(body) == told


def test_a_callback_may_ask_the_server(github: GitHub, http_client: httpx.Client) -> None:
    """Even while it is being waited for."""
    seen: list[int] = []
    url = str(http_client.base_url)
    github.fail(
        POST_COMMENT,
        "call after applying",
        call=lambda _: seen.append(len(httpx.get(url.rstrip("/") + COMMENTS).json())),
    )
    http_client.post(COMMENTS, json={"body": "x"})
    assert seen == [1]


def test_the_log_and_the_state(github: GitHub, http_client: httpx.Client) -> None:
    http_client.delete("/_sandbox/requests")
    http_client.post(COMMENTS, json={"body": "x" * 2000})
    http_client.get(f"{COMMENTS}?per_page=5")
    first, second = http_client.get("/_sandbox/requests").json()
    assert (first["who"], first["status"], first["applied"]) == ("retriage[bot]", 201, True)
    assert len(first["body"]) < 600
    assert (second["query"], second["applied"]) == ("per_page=5", False)
    later = http_client.get("/_sandbox/requests", params={"after": first["n"]}).json()
    assert [each["n"] for each in later] == [second["n"]]
    state = http_client.get("/_sandbox/state").json()
    api = next(each for each in state["repositories"] if each["full_name"] == REPO)
    assert api["issues"][0]["title"] == "It crashes"
    assert api["issues"][0]["comments"][0]["author"] == "retriage[bot]"


def test_clock_people_and_limits_over_http(github: GitHub, http_client: httpx.Client) -> None:
    before = github.now_stamp()
    assert http_client.post("/_sandbox/clock", json={"seconds": 60}).json()["now"] > before
    assert http_client.post("/_sandbox/clock", json={"seconds": -1}).status_code == 422
    act = {"actor": "alice", "action": "label", "repo": REPO, "issue": 1, "names": ["bug"]}
    assert http_client.post("/_sandbox/act", json=act).status_code == 200
    assert github.labels(REPO, 1) == ["bug"]
    act = {"actor": "alice", "action": "comment", "repo": REPO, "issue": 1, "body": "- [ ] fine"}
    made = http_client.post("/_sandbox/act", json=act).json()["result"]
    act = {"actor": "alice", "action": "tick_box", "repo": REPO, "comment": made}
    http_client.post("/_sandbox/act", json=act)
    assert github.comments(REPO, 1)[0].body == "- [x] fine"
    for wrong in ({"actor": "alice", "action": "explode"}, {"action": "lock"},
                  {"actor": "a", "action": "lock", "repo": REPO, "issue": 99}):  # fmt: skip
        assert http_client.post("/_sandbox/act", json=wrong).status_code == 422
    http_client.post("/_sandbox/limits", json={"content_per_minute": 1})
    assert [http_client.post(COMMENTS, json={"body": "x"}).status_code for _ in "ab"] == [201, 403]
    http_client.post("/_sandbox/limits", json={"on": False})
    assert http_client.post(COMMENTS, json={"body": "x"}).status_code == 201
    assert http_client.get("/_sandbox/nothing").status_code == 404


def test_webhooks_are_sent(
    github: GitHub,
    http_client: httpx.Client,
    receiver: tuple[str, list[tuple[dict[str, str], bytes]]],
) -> None:
    url, got = receiver
    github.set_hook("retriage", url, "secret")
    http_client.post("/_sandbox/webhooks/ping", json={"app": "retriage"})
    until(lambda: len(got) == 1)
    http_client.post(COMMENTS, json={"body": "x"})
    until(lambda: len(got) == 2)
    assert [headers["x-github-event"] for headers, _ in got] == ["ping", "issue_comment"]
    guid = got[1][0]["x-github-delivery"]
    until(lambda: http_client.get("/_sandbox/webhooks").json()[1]["status"] == 202)
    again = http_client.post("/_sandbox/webhooks/redeliver", json={"guid": guid})
    assert again.status_code == 202
    until(lambda: len(got) == 3)
    assert got[2] == got[1]
    assert http_client.post("/_sandbox/webhooks/redeliver", json={"guid": "?"}).status_code == 422


def test_a_receiver_that_is_out_is_logged(github: GitHub, http_client: httpx.Client) -> None:
    github.set_hook("retriage", "http://127.0.0.1:9/hook", "secret")
    http_client.post(COMMENTS, json={"body": "x"})
    until(lambda: http_client.get("/_sandbox/webhooks").json()[0]["error"])
    http_client.post("/_sandbox/webhooks/hold", json={"on": True})
    http_client.post(COMMENTS, json={"body": "x"})
    assert len(github.outbox) == 1


def test_the_address_of_an_enterprise_server_works_too(http_client: httpx.Client) -> None:
    assert http_client.get(f"/api/v3/repos/{REPO}/issues/1").status_code == 200


def test_the_process(tmp_path: Path) -> None:
    """`python -m sandbox` prints what to set, serves, and ends on a signal."""
    key = tmp_path / "app.pem"
    command = [
        sys.executable,
        "-m",
        "sandbox",
        "--port",
        "0",
        "--model-port",
        "0",
        "--key",
        str(key),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        settings = dict(process.stdout.readline().strip().split("=", 1) for _ in range(6))
        listed = httpx.get(f"{settings['GITHUB_API_URL']}/repos/acme/api/issues?per_page=100")
        process.terminate()
        assert process.wait(5) == 0
    assert len(listed.json()) == 12
    assert all(each["labels"] == [] for each in listed.json())
    assert settings["PRIVATE_KEY_PATH"] == str(key)
    assert key.stat().st_mode & 0o077 == 0
    assert settings["REPOSITORIES"] == "acme/api,acme/web"
    assert settings["ANTHROPIC_BASE_URL"].startswith("http://127.0.0.1:")


def test_the_process_says_what_is_wrong(tmp_path: Path) -> None:
    wrong = subprocess.run(
        [sys.executable, "-m", "sandbox", "--issues", str(tmp_path / "none.csv")],
        capture_output=True, text=True, timeout=20, check=False,
    )  # fmt: skip
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("sandbox: ")
    assert wrong.stderr.count("\n") == 1
