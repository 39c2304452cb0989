"""Becomes the CLI, after cutting it off from the worker's environment and tying it to its life.

Run as ``python -I -S cli_wrapper.py <cli> <worker's pid> <leash> <argument>…``; imports nothing of
the product, so that it starts in 20 ms.

Why a program of ours: the SDK passes on the whole environment and can only add to it, and a worker
that is killed leaves the CLI alive for a minute. Why Python and not ``env -i`` with ``setpriv``:
Python is there for certain, and one file does both on every system. On Linux the kernel kills the
CLI with its parent (the flag survives exec, and dies with the *thread* that started the CLI);
elsewhere a watchdog looks for the worker four times a second.

The leash is an empty file that the worker made. Whoever holds its lock is alive, and its content is
the pid that leads the CLI's process group. A leash that is gone means: the worker has given up.
"""

import ctypes
import fcntl
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

KEPT = frozenset(
    "ANTHROPIC_API_KEY ANTHROPIC_BASE_URL HOME PATH PWD TMPDIR LANG LC_ALL TZ "
    "CLAUDE_CONFIG_DIR CLAUDE_AGENT_SDK_VERSION CLAUDE_CODE_ENTRYPOINT "
    "CLAUDE_CODE_SDK_READS_SESSION_STATE CLAUDE_CODE_MAX_RETRIES CLAUDE_CODE_MAX_OUTPUT_TOKENS "
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC "
    "CLAUDE_CODE_DISABLE_TERMINAL_TITLE CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS API_TIMEOUT_MS "
    "DISABLE_TELEMETRY DISABLE_ERROR_REPORTING DISABLE_AUTOUPDATER "
    "HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy "
    "NODE_EXTRA_CA_CERTS SSL_CERT_FILE SSL_CERT_DIR".split()
)
"""The only variables that reach the CLI, by name: a pattern would let a later secret through."""

PR_SET_PDEATHSIG = 1
WATCH_SECONDS = 0.25
GIVEN_UP = 75


def main(arguments: list[str]) -> None:
    """Replace this process by the CLI; does not return."""
    cli, worker, leash, *rest = arguments
    take(Path(leash))
    die_with(int(worker))
    os.execve(cli, [cli, *rest], kept(os.environ))  # noqa: S606 - no shell is wanted


def kept(environment: Mapping[str, str]) -> dict[str, str]:
    """What of an environment the CLI may see."""
    return {name: value for name, value in environment.items() if name in KEPT}


def take(leash: Path) -> None:
    """Lead a process group of our own, and hold the leash for as long as anything of it lives."""
    os.setsid()
    try:
        file = os.open(leash, os.O_RDWR)
    except FileNotFoundError:
        sys.exit(GIVEN_UP)
    os.set_inheritable(file, True)
    fcntl.flock(file, fcntl.LOCK_EX)
    os.write(file, str(os.getpid()).encode())
    if not leash.exists():
        sys.exit(GIVEN_UP)


def die_with(worker: int) -> None:
    """End with the worker, however it ends."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    else:
        watch(worker)
    if os.getppid() != worker:
        sys.exit(GIVEN_UP)


def watch(worker: int) -> None:
    """Leave a child behind that kills the group once the worker is gone."""
    group = os.getpid()
    if os.fork():
        return
    os.setsid()
    os.closerange(0, 256)
    while os.getppid() == group:
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            os.killpg(group, signal.SIGKILL)
        time.sleep(WATCH_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
