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
from cli.jobs import job_named
from cli.options import did_you_mean
from cli.review import Doubt, doubts_of, lines_of
from cli.store import has_ledger, ledger_at, ledger_url, settings_to_look
from cli.terminal import clean, shown, stderr, stdout
from ledger.ledger import Ledger
from triage.contract import RunRecord, Status
from triage.identifiers import JobKey
from worker.settings import Settings

FIRST = (Status.NEEDS_REVIEW, Status.FAILED_AFTER_WRITE, Status.FAILED_BEFORE_WRITE)
"""What needs somebody stands above what does not; within each, the newest first."""

Doubts = dict[str, tuple[Doubt, ...]]
"""What is undecided, by the run's key."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which runs."""

    status: str | None
    repository: str | None
    job: str | None
    limit: int


def list_runs(wanted: Filter, *, as_json: bool) -> int:
    """Print them."""
    status = _status(wanted.status)
    job = None if wanted.job is None else job_named(wanted.job, tuple(JobKey))
    settings = settings_to_look()
    runs: list[RunRecord] = []
    doubts: Doubts = {}
    if has_ledger(settings):
        with ledger_url(settings) as url:
            runs, doubts = asyncio.run(_read(url, wanted, status, job))
    if as_json:
        found = [_plain(run, doubts.get(run.inputs.dedupe_key)) for run in runs]
        sys.stdout.write(json.dumps({"runs": found}, indent=2) + "\n")
        return Code.DONE
    _print(runs, doubts, stdout(), reviewed=job is JobKey.REVIEW)
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


async def _read(
    url: str, wanted: Filter, status: Status | None, job: JobKey | None
) -> tuple[list[RunRecord], Doubts]:
    async with ledger_at(url) as ledger:
        runs = await _listed(ledger, wanted, status, job)
        review = [run for run in runs if run.status is Status.NEEDS_REVIEW]
        doubts = {run.inputs.dedupe_key: await doubts_of(run, ledger.effects) for run in review}
        return runs, doubts


async def _listed(
    ledger: Ledger, wanted: Filter, status: Status | None, job: JobKey | None
) -> list[RunRecord]:
    kinds = (*FIRST, None) if status is None else (status,)
    found: dict[str, RunRecord] = {}
    for kind in kinds:
        for run in await ledger.runs.listed(kind, wanted.repository, wanted.limit, job=job):
            found.setdefault(run.inputs.dedupe_key, run)
    return list(found.values())[: wanted.limit]


def _print(runs: list[RunRecord], doubts: Doubts, console: Console, *, reviewed: bool) -> None:
    table = _table(runs, reviewed=reviewed)
    if runs and _fits(table, console):
        console.print(table, soft_wrap=False)
    else:
        for run in runs:
            key = run.key
            where = f"  {clean(run.inputs.repository)}  {key.window}  {run.inputs.mode}"
            said = "  ".join(part for part in _review(run) if part)
            console.print(Text.assemble(shown(run.status), where, said and f"  {said}"))
            console.print(f"  {run.inputs.dedupe_key}")
    for run in runs:
        if run.inputs.dedupe_key in doubts:
            console.print()
            console.print(Text.assemble(shown(run.status), f"  {run.inputs.dedupe_key}"))
            for line in lines_of(run, doubts[run.inputs.dedupe_key]):
                console.print(f"  {line}")


def _fits(table: Table, console: Console) -> bool:
    """Whether nothing is cut: a key that is cannot be copied. Else each run gets two lines."""
    unbound = console.options.update(max_width=10_000)
    return console.measure(table, options=unbound).maximum <= console.width


def _table(runs: list[RunRecord], *, reviewed: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    of_review = ("Verdict", "Recall") if reviewed else ()
    for name in ("Status", "Repository", "Window", "Mode", *of_review, "Effects", "Updated", "Key"):
        table.add_column(
            name,
            no_wrap=True,
            justify="right" if name == "Effects" else "left",
        )
    for run in runs:
        table.add_row(
            shown(run.status),
            clean(run.inputs.repository),
            run.key.window,
            str(run.inputs.mode),
            *(_review(run) if reviewed else ()),
            str(len(run.effects)),
            f"{run.updated_at:%Y-%m-%d %H:%M} UTC",
            run.inputs.dedupe_key,
        )
    return table


def _review(run: RunRecord) -> tuple[str, str]:
    """``concerns`` and ``3/4``, ``3/4, continuous: no``; empty where there is nothing to say."""
    if run.review is None:
        return "", ""
    link = run.review.link
    if link is None:
        return str(run.review.verdict), ""
    recalled = f"{link.recalled}/{link.prior}"
    return str(run.review.verdict), f"{recalled}, continuous: no" if link.broken else recalled


def _empty(wanted: Filter, settings: Settings) -> str:
    """Why nothing is shown, and what to do."""
    if any(part is not None for part in (wanted.status, wanted.repository, wanted.job)):
        chosen = " and ".join(
            clean(part)
            for part in (
                wanted.status and f"with status {wanted.status}",
                wanted.repository and f"of {wanted.repository}",
                wanted.job and f"of the job {wanted.job}",
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
        "review": _plain_review(run),
    }
    if doubts is not None:
        listed["undecided"] = [doubt.plain() for doubt in doubts]
    return listed


def _plain_review(run: RunRecord) -> dict[str, Any] | None:
    """Null for what is no review, or has no answer yet; ``link`` is null for the first one."""
    if run.review is None:
        return None
    link = run.review.link
    told = link and {
        "same_session": link.same_session,
        "prior_review_id_echoed": link.prior_review_id_echoed,
        "recalled_findings": link.recalled,
        "prior_findings": link.prior,
        "current_findings": link.current,
        "continuous": not link.broken,
        "broken": list(link.broken),
    }
    return {"verdict": run.review.verdict, "link": told}
