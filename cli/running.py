"""``retriage run`` and ``resolve``: here and now, through the same door as a worker's."""

import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from getpass import getuser
from typing import Any

from cli.asking import Wanted, inputs_for, unreadable
from cli.failures import Code, CommandError, explained, out_of_reach
from cli.outcome import Outcome, plain, show
from cli.progress import Progress, watched
from cli.review import doubts_of
from cli.store import ledger_url
from cli.terminal import clean, stderr, stdout
from ledger.errors import LeaseLost, LedgerUnavailableError
from process.log import forward_libraries
from triage.contract import RunInputs
from triage.identifiers import DedupeKey, Mode
from triage.summary import report_path
from worker.pipeline import execute
from worker.ports import Ports, ReadFailed
from worker.resolving import UnresolvableError, resolution_of, resolve
from worker.settings import Settings
from worker.stages.settling import RunReport
from worker.wiring import Wiring


def run_here(wanted: Wanted, settings: Settings, *, as_json: bool) -> int:
    """Execute the window and say what became of it; gives the exit code. Raises CommandError."""
    return carried_out(partial(_run, wanted), settings, as_json=as_json)


def resolve_here(key: str, words: Sequence[str], settings: Settings, *, as_json: bool) -> int:
    """Carry a person's decision out and say what became of the run. Raises CommandError."""
    return carried_out(partial(_resolve, key, words), settings, as_json=as_json)


def carried_out(
    work: Callable[[Wiring], Coroutine[Any, Any, Outcome]], settings: Settings, *, as_json: bool
) -> int:
    """Do it with the ledger at hand, and say how it ended."""
    with ledger_url(settings) as url:
        wiring = Wiring(settings, url)
        forward_libraries(wiring.log, settings.log_level)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # the same clean end as Ctrl-C
        try:
            outcome = asyncio.run(work(wiring))
        except LedgerUnavailableError as error:
            wiring.log("STATE-NOT-SAVED", reason=out_of_reach(error))
            return Code.FAILED
        except LeaseLost as lost:
            wiring.log("RUN-REFUSED", run=str(lost), reason=str(explained(lost)))
            return Code.FAILED
        except KeyboardInterrupt:
            raise CommandError(
                "interrupted: what was begun is in the ledger; once its lease has lapsed "
                f"({settings.retriage_lease_seconds:g} s), the same command goes on",
                code=Code.INTERRUPTED,
            ) from None
    with contextlib.suppress(BrokenPipeError):  # who reads may leave; the code stays the run's
        if as_json:
            sys.stdout.write(json.dumps(plain(outcome), indent=2) + "\n")
        else:
            show(outcome, stdout())
        sys.stdout.flush()
    return outcome.code


async def _run(wanted: Wanted, wiring: Wiring) -> Outcome:
    began, console = time.monotonic(), stderr()
    async with wiring.ledger() as ledger, wiring.ports(ledger) as ports:
        inputs = await inputs_for(wanted, wiring.settings, ports)
        if inputs.policy_notice:
            console.print(f"Warning: {clean(inputs.policy_notice)}")
        with Progress(inputs, console) as progress:
            seen = watched(ports, progress, on_terminal=console.is_terminal)
            try:
                report = await execute(inputs, seen, by_hand=True)
            except ReadFailed as failure:
                raise unreadable(failure, wiring.settings) from failure
        return await _outcome(inputs, report, ports, seconds=time.monotonic() - began)


async def _resolve(key: str, words: Sequence[str], wiring: Wiring) -> Outcome:
    began = time.monotonic()
    async with wiring.ledger() as ledger, wiring.ports(ledger) as ports:
        try:
            decided = resolution_of([key, *words], by=getuser(), at=ports.clock.now())
            report = await resolve(key, decided, ports)
        except UnresolvableError as error:
            raise CommandError(clean(str(error))) from error
        run = (await ports.ledger.leases.view(key)).run
        if run is None:
            raise CommandError(f"the ledger has no run {clean(key)}")
        return await _outcome(run.inputs, report, ports, seconds=time.monotonic() - began)


async def _outcome(
    inputs: RunInputs, report: RunReport, ports: Ports, *, seconds: float
) -> Outcome:
    look = await ports.ledger.leases.view(report.dedupe_key)
    return Outcome(
        inputs=inputs,
        report=report,
        look=look,
        doubts=await doubts_of(look.run, ports.ledger.effects) if look.run else (),
        text=await _text(inputs, ports),
        seconds=seconds,
    )


async def _text(inputs: RunInputs, ports: Ports) -> str:
    """The report of an observe run, if it is still this run's."""
    if inputs.mode is not Mode.OBSERVE:
        return ""
    key = DedupeKey.parse(inputs.dedupe_key)
    found = await ports.ledger.repositories.report(report_path(inputs, key.job, key.window))
    return found.text if found is not None and found.dedupe_key == inputs.dedupe_key else ""
