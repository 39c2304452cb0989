"""What a run says on the way, on stderr: its snapshot, its plan, its writes.

It watches the ledger: what is saved there has happened. A terminal also gets a moving line.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Any, Self, cast

from rich.console import Console
from rich.status import Status as Spinner

from cli.steps import plan_said, snapshot_said
from ledger.memory import Promotion
from ledger.records import Claim, Due, Lease
from triage.contract import Evidence, RunEffect, RunInputs, RunRecord
from triage.identifiers import Mode
from triage.plan import Plan
from triage.snapshot import Snapshot
from worker.ports import Effects, Log, Ports, Runs


class Progress:
    """The lines of one run, each shown once; use it as a context manager."""

    def __init__(self, inputs: RunInputs, console: Console) -> None:
        self._inputs = inputs
        self._console = console
        self._snapshot: Snapshot | None = None
        self._planned = False
        self._sent = 0
        self._spinner: Spinner | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._spinner = self._console.status("Reading")
            self._spinner.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._spinner is not None:
            self._spinner.stop()

    def snapshot(self, snapshot: Snapshot) -> None:
        """The frozen input stands."""
        if self._snapshot is not None or snapshot.dedupe_key != self._inputs.dedupe_key:
            return
        self._snapshot = snapshot
        self._say("Snapshot", snapshot_said(snapshot, self._inputs))
        self._move("Asking the model")

    def plan(self, plan: Plan) -> None:
        """The frozen decisions stand."""
        if self._planned or self._snapshot is None:
            return
        self._planned = True
        self._say("Plan", plan_said(plan, self._snapshot, self._inputs))
        self._move("Writing")

    def settled(self, run: RunRecord) -> None:
        """The attempt is over: what was written, and what reading it back says."""
        if run.inputs.mode is Mode.OBSERVE or not self._planned:
            return
        wanted = [effect for effect in run.effects if effect.evidence is not Evidence.SKIPPED]
        sent = sum(effect.sends > 0 for effect in wanted)
        match = sum(effect.evidence is Evidence.CONFIRMED for effect in wanted)
        there = sum(effect.evidence is Evidence.CONFIRMED and not effect.sends for effect in wanted)
        already = f", {there} in place already" if there else ""
        skipped = len(run.effects) - len(wanted)
        left_out = f", {skipped} skipped" if skipped else ""
        self._say("Wrote", f"{sent} of {len(wanted)}{already}{left_out}")
        self._say("Read back", f"{match} of {len(wanted)} match")

    def answered(self) -> None:
        """GitHub answered a write, or did not."""
        self._sent += 1
        self._move(f"Writing: {self._sent} sent")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A line of somebody else is written."""
        if self._spinner is not None:
            self._spinner.stop()
        yield
        if self._spinner is not None:
            self._spinner.start()

    def _say(self, name: str, text: str) -> None:
        self._console.print(f"{name:<11}{text}")

    def _move(self, text: str) -> None:
        if self._spinner is not None:
            self._spinner.update(text)


def watched(ports: Ports, progress: Progress, *, on_terminal: bool) -> Ports:
    """The same ports, seen by the progress. On a terminal the words that end a run are left out of
    the log: the result says the same."""
    runs = cast("Runs", _WatchedRuns(ports.ledger.runs, progress))
    effects = cast("Effects", _WatchedEffects(ports.ledger.effects, progress))
    log = _quieter(ports.log, progress) if on_terminal else ports.log
    return replace(ports, ledger=replace(ports.ledger, runs=runs, effects=effects), log=log)


def _quieter(log: Log, progress: Progress) -> Log:
    def write(word: str, /, **pairs: object) -> None:
        if not word.startswith("RUN-"):
            with progress.paused():
                log(word, **pairs)

    return write


class _WatchedRuns:
    """``worker.ports.Runs``; what is not named here goes straight through."""

    def __init__(self, runs: Runs, progress: Progress) -> None:
        self._runs = runs
        self._progress = progress

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)

    async def save_snapshot(self, lease: Lease, snapshot: Snapshot) -> Snapshot:
        stands = await self._runs.save_snapshot(lease, snapshot)
        self._progress.snapshot(stands)
        return stands

    async def snapshot(self, dedupe_key: str) -> Snapshot | None:
        stands = await self._runs.snapshot(dedupe_key)
        if stands is not None:
            self._progress.snapshot(stands)
        return stands

    async def save_plan(self, lease: Lease, plan: Plan, staged: Promotion | None = None) -> Plan:
        stands = await self._runs.save_plan(lease, plan, staged)
        self._progress.plan(stands)
        return stands

    async def plan(self, dedupe_key: str) -> Plan | None:
        stands = await self._runs.plan(dedupe_key)
        if stands is not None:
            self._progress.plan(stands)
        return stands

    async def settle(self, lease: Lease, run: RunRecord, due: Mapping[Due, datetime]) -> None:
        await self._runs.settle(lease, run, due)
        self._progress.settled(run)


class _WatchedEffects:
    """``worker.ports.Effects``; what is not named here goes straight through."""

    def __init__(self, effects: Effects, progress: Progress) -> None:
        self._effects = effects
        self._progress = progress

    def __getattr__(self, name: str) -> Any:
        return getattr(self._effects, name)

    async def acknowledge(self, claim: Claim, effect: RunEffect) -> None:
        await self._effects.acknowledge(claim, effect)
        self._progress.answered()
