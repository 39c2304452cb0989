"""``retriage runs``: what became of the runs, those that need a person first."""

import asyncio
import json
import sys
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.failures import Code, CommandError
from cli.options import did_you_mean
from cli.review import Doubt, doubts_of, lines_of
from cli.store import has_ledger, ledger_at, ledger_url, settings_to_look
from cli.terminal import clean, shown, stderr, stdout
from ledger.ledger import Ledger
from triage.contract import RunRecord, Status
from worker.settings import Settings

FIRST = (Status.NEEDS_REVIEW, Status.FAILED_AFTER_WRITE, Status.FAILED_BEFORE_WRITE)
"""What needs somebody stands above what does not; within each, the newest first."""

Doubts = dict[str, tuple[Doubt, ...]]
"""What is undecided, by the run's key."""

_TABLE_COLUMNS = 110
"""A narrower terminal gets two lines for each run: a key that is cut cannot be copied."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which runs."""

    status: str | None
    repository: str | None
    limit: int


def list_runs(wanted: Filter, *, as_json: bool) -> int:
    """Print them."""
    status = _status(wanted.status)
    settings = settings_to_look()
    runs: list[RunRecord] = []
    doubts: Doubts = {}
    if has_ledger(settings):
        with ledger_url(settings) as url:
            runs, doubts = asyncio.run(_read(url, wanted, status))
    if as_json:
        found = [_plain(run, doubts.get(run.inputs.dedupe_key)) for run in runs]
        sys.stdout.write(json.dumps({"runs": found}, indent=2) + "\n")
        return Code.DONE
    _print(runs, doubts, stdout())
    if not runs:
        stderr().print(_empty(wanted, settings))
    elif all(run.inputs.dedupe_key not in doubts for run in runs):
        stderr().print(f"Evidence: retriage show {runs[0].inputs.dedupe_key}")
    return Code.DONE


def _status(word: str | None) -> Status | None:
    if word is None:
        return None
    try:
        return Status(word)
    except ValueError as error:
        known = [str(status) for status in Status]
        raise CommandError(
            f"--status {clean(word)!r} is none of {', '.join(known)}{did_you_mean(word, known)}"
        ) from error


async def _read(url: str, wanted: Filter, status: Status | None) -> tuple[list[RunRecord], Doubts]:
    async with ledger_at(url) as ledger:
        runs = await _listed(ledger, wanted, status)
        review = [run for run in runs if run.status is Status.NEEDS_REVIEW]
        doubts = {run.inputs.dedupe_key: await doubts_of(run, ledger.effects) for run in review}
        return runs, doubts


async def _listed(ledger: Ledger, wanted: Filter, status: Status | None) -> list[RunRecord]:
    kinds = (*FIRST, None) if status is None else (status,)
    found: dict[str, RunRecord] = {}
    for kind in kinds:
        for run in await ledger.runs.listed(kind, wanted.repository, wanted.limit):
            found.setdefault(run.inputs.dedupe_key, run)
    return list(found.values())[: wanted.limit]


def _print(runs: list[RunRecord], doubts: Doubts, console: Console) -> None:
    if console.width >= _TABLE_COLUMNS:
        if runs:
            console.print(_table(runs), soft_wrap=False)
    else:
        for run in runs:
            key = run.key
            where = f"  {clean(run.inputs.repository)}  {key.window}  {run.inputs.mode}"
            console.print(Text.assemble(shown(run.status), where))
            console.print(f"  {run.inputs.dedupe_key}")
    for run in runs:
        if run.inputs.dedupe_key in doubts:
            console.print()
            console.print(Text.assemble(shown(run.status), f"  {run.inputs.dedupe_key}"))
            for line in lines_of(run, doubts[run.inputs.dedupe_key]):
                console.print(f"  {line}")


def _table(runs: list[RunRecord]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("Status", "Repository", "Window", "Mode", "Effects", "Updated", "Key"):
        table.add_column(
            name,
            no_wrap=True,
            overflow="fold" if name == "Key" else "ellipsis",
            justify="right" if name == "Effects" else "left",
        )
    for run in runs:
        table.add_row(
            shown(run.status),
            clean(run.inputs.repository),
            run.key.window,
            str(run.inputs.mode),
            str(len(run.effects)),
            f"{run.updated_at:%Y-%m-%d %H:%M} UTC",
            run.inputs.dedupe_key,
        )
    return table


def _empty(wanted: Filter, settings: Settings) -> str:
    """Why nothing is shown, and what to do."""
    if wanted.status is not None or wanted.repository is not None:
        chosen = " and ".join(
            clean(part)
            for part in (
                wanted.status and f"with status {wanted.status}",
                wanted.repository and f"of {wanted.repository}",
            )
            if part
        )
        return f"No run {chosen} is in the ledger. All of them: retriage runs"
    if settings.redis_url is not None:
        where = "at REDIS_URL"
    else:
        where = f"in {settings.data_dir} (REDIS_URL is not set)"
    return f"No run is in the ledger {where}. The first one: retriage run OWNER/REPO"


def _plain(run: RunRecord, doubts: tuple[Doubt, ...] | None) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for effect in run.effects:
        counts[effect.evidence] = counts.get(effect.evidence, 0) + 1
    listed: dict[str, Any] = {
        "dedupe_key": run.inputs.dedupe_key,
        "job_key": run.key.job,
        "window_key": run.key.window,
        "repository": run.inputs.repository,
        "mode": run.inputs.mode,
        "status": run.status,
        "reason": run.reason,
        "created_at": run.created_at.isoformat(),
        "updated_at": run.updated_at.isoformat(),
        "retry_at": run.retry_at and run.retry_at.isoformat(),
        "proof_until": run.proof_until and run.proof_until.isoformat(),
        "result_artifact": run.result_artifact,
        "effects": counts,
        "estimated_usd": run.cost.estimated_usd,
    }
    if doubts is not None:
        listed["undecided"] = [doubt.plain() for doubt in doubts]
    return listed
