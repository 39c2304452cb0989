"""The web process as a platform sees it: settings, lines, signals and exit codes."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from starlette.responses import JSONResponse

from bot.__main__ import listen, make_server
from bot.connection import Connection
from tests.bot.receiver import MARKER_KEYS, SECRET, WEBHOOKS, command, headers, json_body

PLAIN = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}


def environment(url: str = "redis://127.0.0.1:1", **changed: str) -> dict[str, str]:
    """What the process is started with; an empty value is none."""
    given = {
        "REDIS_URL": url,
        "WEBHOOK_SECRET": SECRET,
        "MARKER_KEYS": MARKER_KEYS,
        "HOST": "127.0.0.1",
        "PORT": "0",
    }
    return {**PLAIN, **given, **changed}


def run(*arguments: str, **changed: str) -> "subprocess.CompletedProcess[str]":
    """A process that ends by itself."""
    return subprocess.run(
        [sys.executable, "-m", "bot", *arguments],
        env=environment(**changed),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


@contextmanager
def web(url: str, **changed: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that receives."""
    command_line = [sys.executable, "-m", "bot", "web"]
    given = environment(url, **changed)
    with subprocess.Popen(
        command_line, env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def address(process: "subprocess.Popen[str]") -> str:
    """Where it listens, as it says."""
    assert process.stdout is not None
    found = re.fullmatch(
        r"LISTENING address=(http://127\.0\.0\.1:\d+)\n", process.stdout.readline()
    )
    assert found is not None
    return found[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_cleanly(redis_url: str, number: int) -> None:
    """Exit code 0, and a line for each thing that it did."""
    body = json_body(command())
    with web(redis_url) as process:
        url = address(process) + WEBHOOKS
        assert httpx.post(url, content=body, headers=headers(body, guid="d-1")).status_code == 202
        process.send_signal(number)
        rest, _ = process.communicate(timeout=10)
        assert process.returncode == 0
    lines = rest.splitlines()
    assert lines[0].startswith("DELIVERY accepted guid=d-1 ")
    assert lines[1:] == ["STOPPED"]


def test_a_delivery_under_way_is_finished(redis_url: str) -> None:
    """SIGTERM between the head of a request and its body: it is answered first."""
    body = json_body(command())
    with web(redis_url) as process:
        port = int(address(process).rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as client:
            lines = [f"POST {WEBHOOKS} HTTP/1.1", "host: x", f"content-length: {len(body)}"]
            lines += [f"{name}: {value}" for name, value in headers(body).items()]
            client.sendall("\r\n".join([*lines, "", ""]).encode())
            client.sendall(body[:10])
            assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
            process.send_signal(signal.SIGTERM)
            while accepts(port):
                time.sleep(0.01)
            client.sendall(body[10:])
            assert client.recv(100).startswith(b"HTTP/1.1 202 ")
        process.communicate(timeout=10)
        assert process.returncode == 0


class Hasty(Connection):
    """Closed soon."""

    head_seconds = 0.3


async def test_a_connection_that_says_nothing_is_closed() -> None:
    """Or half of a request's head, the first or a later one; one that asks is answered."""
    ask = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
    with listen("127.0.0.1", 0) as listener:
        server = make_server(JSONResponse({}), connection=Hasty)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        for said in (b"", ask[:20], ask + ask[:20]):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            for byte in said:
                writer.write(bytes([byte]))
                await asyncio.sleep(0)
            answered = await asyncio.wait_for(reader.read(), 3)
            assert answered.startswith(b"HTTP/1.1 200 ") is said.startswith(ask)
            writer.close()
        server.should_exit = True
        await serving


def accepts(port: int) -> bool:
    """Whether new connections are taken."""
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


def test_lines_as_json(redis_url: str) -> None:
    """For a collector of logs."""
    with web(redis_url, LOG_FORMAT="json") as process:
        assert process.stdout is not None
        line = process.stdout.readline()
    assert '"word": "LISTENING"' in line
    assert '"at": "20' in line


def test_without_settings_every_variable_is_named() -> None:
    """One line each, exit code 2, no traceback."""
    ended = run("web", REDIS_URL="", WEBHOOK_SECRET="", MARKER_KEYS="")
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [
        "REDIS_URL is missing: where the ledger and the queue are",
        "WEBHOOK_SECRET is missing: the secret of the App's webhook",
        "MARKER_KEYS is missing: kid:hex, newest first; what the bot signs its text with",
    ]


def test_a_malformed_setting_is_one_line() -> None:
    """It names the variable, and shows no value: it may be a secret."""
    ended = run("web", MARKER_KEYS="k1:" + "zz" * 16)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("MARKER_KEYS: the secret of key")
    assert ended.stderr.count("\n") == 1
    assert "zz" not in ended.stderr
    assert SECRET not in ended.stderr


def test_an_address_that_is_taken() -> None:
    """One line, exit code 2."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run("web", PORT=str(port))
    assert ended.returncode == 2
    assert ended.stderr == f"PORT: cannot listen at 127.0.0.1:{port}: Address already in use\n"


@pytest.mark.parametrize("arguments", [(), ("nothing",), ("web", "clock")])
def test_usage(arguments: tuple[str, ...]) -> None:
    """Exit code 2."""
    ended = run(*arguments)
    assert (ended.returncode, ended.stderr) == (2, "usage: python -m bot web|clock\n")
