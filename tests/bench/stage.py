"""What the measurements stand on: made-up issues, windows run in this process, and figures."""

import os
import random
import re
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ledger.records import Due
from ledger.server import EmbeddedServer
from sandbox import issues_csv
from tests.bench import UnmeasuredError
from tests.processes.fleet import BOUNDS, POLICY, Fleet
from triage.contract import Status
from triage.identifiers import JobKey
from worker.ports import Place, Ports
from worker.recovery import remember_place
from worker.settings import Process, Settings, read_settings
from worker.stages.settling import RunReport
from worker.windows import ensure_window
from worker.wiring import Wiring

OWNER: Final = "acme"
LONG_AGO: Final = "2026-01-02T03:04:05Z"
LARGE_POLICY: Final = POLICY + "    max_issues: 1000\n    budget_usd: {cold: 100}\n"
"""For windows of up to a thousand issues."""

_SENTENCE = re.compile(r"[^.!?\n]{20,120}[.!?]")


def made_up_issues(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Titles and bodies. Their sentences are those of the demo's issues; the words of the titles
    are drawn at random from them, so that they pack no better than people's."""
    drawn = random.Random(seed)
    rows = issues_csv.load(issues_csv.DEMO)
    texts = [row.body for row in rows if row.body.isascii() and len(row.body) < 1000]
    words = sorted({word for text in texts for word in re.findall(r"[A-Za-z]{3,}", text)})
    sentences = sorted({found for text in texts for found in _SENTENCE.findall(text)})
    openings = ("Crash", "Add support for", "How do I", "Error in", "Please allow", "What is")
    return [
        (
            " ".join([drawn.choice(openings), *drawn.choices(words, k=drawn.randint(4, 8))]),
            " ".join(drawn.choices(sentences, k=drawn.randint(3, 8))),
        )
        for _ in range(count)
    ]


def add_repository(
    run: Fleet, name: str, issues: Sequence[tuple[str, str]], policy: str = POLICY
) -> int:
    """A repository ``acme/<name>`` with these issues; its id. Nothing is installed yet."""
    full_name = f"{OWNER}/{name}"
    id_ = run.github.add_repository(full_name).id
    run.github.put_file(full_name, ".github/retriage.yml", policy)
    for title, body in issues:
        run.github.add_issue(full_name, title, body, author="reporter", created_at=LONG_AGO)
    return int(id_)


def install(run: Fleet, names: Sequence[str]) -> str:
    """Install the App on repositories ``acme/<name>``; the installation."""
    return str(run.github.install("retriage", OWNER, [f"{OWNER}/{name}" for name in names]))


def wiring(run: Fleet) -> Wiring:
    """What a worker of the fleet is made of, for windows that are run in this process: with the
    bounds of the program, and without waits for the write budget."""
    unhurried = {name: value for name, value in run.environment.items() if name not in BOUNDS}
    paced = {"RETRIAGE_WRITE_INTERVAL_SECONDS": "0", "RETRIAGE_PACING_SCALE": "10000"}
    given: dict[str, Any] = {
        name.lower(): value
        for name, value in {**unhurried, **paced}.items()
        if name.lower() in Settings.model_fields
    }
    return Wiring(read_settings(Process.WORKER, **given), run.server.url)


async def window(place: Place, ports: Ports) -> RunReport:
    """The due window of a repository, as the clock starts it. Raises UnmeasuredError unless it
    completes."""
    await remember_place(place, ports)
    report = await ensure_window(JobKey.DAILY, place.id, ports)
    if report is None or report.status is not Status.COMPLETED:
        raise UnmeasuredError(f"the window of {place.full_name} came to {report}")
    return report


async def make_due(run: Fleet, installation: str, repositories: Mapping[str, int]) -> None:
    """The windows of repositories, by ``acme/<name>``'s name, are due now; workers do the rest."""
    made = wiring(run)
    async with made.ledger() as ledger, made.ports(ledger) as ports:
        for name, id_ in repositories.items():
            await remember_place(Place(id_, f"{OWNER}/{name}", installation), ports)
            await ledger.due.add(Due.window(JobKey.DAILY, id_), datetime.now(UTC))


async def block_writes(run: Fleet, installation: str, until: datetime) -> None:
    """Nobody of the installation writes before, as where GitHub asks to come back."""
    async with wiring(run).ledger() as ledger:
        await ledger.budgets.block(installation, until)


def arrivals(run: Fleet) -> set[datetime]:
    """When writes of the last hour came, by the sandbox's own count, refused ones apart."""
    with run.github.lock:
        return {at for usage in run.github.limits._usage.values() for at in usage.content}


def refusals(run: Fleet) -> dict[str, int]:
    """How many requests were answered 403, and 429."""
    counted = Counter(request.status for request in run.github.requests())
    return {"403": counted[403], "429": counted[429]}


@contextmanager
def bare_server() -> Iterator[EmbeddedServer]:
    """A server of its own with an empty folder."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedServer(Path(folder)) as server:
        yield server


@contextmanager
def quiet() -> Iterator[None]:
    """The lines of the program, which runs in this process, go nowhere."""
    with Path(os.devnull).open("w") as nowhere, redirect_stderr(nowhere):
        yield


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Samples as figures: how many, and milliseconds."""
    ranked = sorted(seconds)
    return {
        "samples": len(ranked),
        "p50_ms": _milliseconds(statistics.median(ranked)),
        "p99_ms": _milliseconds(ranked[min(len(ranked) - 1, int(len(ranked) * 0.99))]),
        "max_ms": _milliseconds(ranked[-1]),
    }


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 2)
