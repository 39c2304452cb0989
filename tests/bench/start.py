"""*start*: the command's help, the worker's imports, and what each process holds when idle."""

import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from ledger.server import EmbeddedServer
from sandbox.github import new_private_key
from tests.bench import Options
from tests.bench.servers import MARKER_KEYS, Running, started, web

TIMES: Final = 20
IDLE_SECONDS: Final = 3
"""After a process has said that it is ready."""

_IMPORT: Final = (
    "import time; began = time.perf_counter(); import worker.__main__; "
    "print(time.perf_counter() - began)"
)


def measure(options: Options) -> dict[str, object]:
    """Seconds are wall clock, each from the start of a process to its end, and in turn."""
    times = 2 if options.quick else TIMES
    retriage = str(Path(sys.executable).with_name("retriage"))
    commands = {"help": [retriage, "--help"], "python": [sys.executable, "-c", "pass"]}
    taken: dict[str, list[float]] = {name: [] for name in commands}
    imports: list[float] = []
    for _ in range(times):
        for name, command in commands.items():
            taken[name].append(_seconds(command))
        ended = subprocess.run(
            [sys.executable, "-c", _IMPORT], capture_output=True, text=True, check=True
        )
        imports.append(float(ended.stdout))
    pairs = zip(taken["help"], taken["python"], strict=True)
    return {
        "times": times,
        "help_seconds": _spread(taken["help"]),
        "python_seconds": _spread(taken["python"]),
        "help_to_python": round(statistics.median(help_ / bare for help_, bare in pairs), 2),
        "worker_import_seconds": _spread(imports),
        "idle_memory": _memory(0 if options.quick else IDLE_SECONDS),
    }


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def _spread(seconds: list[float]) -> dict[str, float]:
    figures = {"median": statistics.median(seconds), "least": min(seconds), "most": max(seconds)}
    return {name: round(value, 4) for name, value in figures.items()}


def _memory(idle_seconds: float) -> dict[str, dict[str, int | None]]:
    """KiB of each process: resident, and the share that is its own where the system says so."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(EmbeddedServer(folder / "data"))
        shared = {"REDIS_URL": server.url, "MARKER_KEYS": MARKER_KEYS}
        acting = {"APP_ID": "42", "PRIVATE_KEY": new_private_key(), "ANTHROPIC_API_KEY": "any"}
        here = Path.cwd()
        running: dict[str, Running] = {"web": stack.enter_context(web(server.url, folder))}
        for name, module, given in (
            ("worker", ["worker"], {**shared, **acting}),
            ("clock", ["bot", "clock"], shared),
        ):
            command = [sys.executable, "-m", *module]
            running[name] = stack.enter_context(started(name, command, folder, given, here))
        for one, word in (("web", "LISTENING"), ("worker", "WORKER-STARTED"), ("clock", "CLOCK-")):
            running[one].says(word)
        time.sleep(idle_seconds)
        return {name: _held(one.process.pid) for name, one in running.items()}


def _held(pid: int) -> dict[str, int | None]:
    asked = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True
    )
    return {"rss_kib": int(asked.stdout), "pss_kib": _share(pid)}


def _share(pid: int) -> int | None:
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    except OSError:
        return None
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
