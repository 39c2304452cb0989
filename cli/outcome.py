"""What became of a run: its result for people and for programs, and the exit code.

The last line names the next command.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from cli.failures import Code
from cli.review import Doubt, lines_of
from cli.showing import contract_of
from cli.terminal import at, clean, clean_lines, seconds, shown
from ledger.records import Look
from triage.contract import RunInputs, Status
from triage.identifiers import DedupeKey, JobKey, Mode
from worker.stages.settling import RunReport

CODES: Mapping[Status, Code] = {
    Status.COMPLETED: Code.DONE,
    Status.NO_CHANGE: Code.DONE,
    Status.FAILED_BEFORE_WRITE: Code.FAILED,
    Status.FAILED_AFTER_WRITE: Code.FAILED,
    Status.NEEDS_REVIEW: Code.NEEDS_REVIEW,
    Status.WAITING: Code.REFUSED,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """A report, with what the ledger holds of its run. ``text`` is an observe run's report."""

    inputs: RunInputs
    report: RunReport
    look: Look
    doubts: tuple[Doubt, ...]
    text: str
    seconds: float

    @property
    def code(self) -> Code:
        """How the command ends."""
        match self.report.outcome, self.report.status:
            case "refused", _:
                return Code.REFUSED
            case _, None:
                return Code.FAILED
            case _, status:
                return CODES.get(status, Code.FAILED)


def plain(outcome: Outcome) -> dict[str, Any]:
    """One JSON object; what does not show is escaped in it, not dropped."""
    report, look = outcome.report, outcome.look
    return {
        "dedupe_key": report.dedupe_key,
        "outcome": report.outcome,
        "status": report.status,
        "reason": report.reason,
        "until": report.until and report.until.isoformat(),
        "artifact": report.artifact,
        "drift": list(report.drift),
        "exit_code": int(outcome.code),
        "seconds": round(outcome.seconds, 3),
        "report": outcome.text or None,
        "run": contract_of(look) if look.run is not None else None,
    }


def show(outcome: Outcome, console: Console) -> None:
    """The result, and the next command."""
    if outcome.text:
        console.print(clean_lines(outcome.text))
    report, inputs = outcome.report, outcome.inputs
    key = DedupeKey.parse(report.dedupe_key)
    name = f"{key.job} {key.window}  {clean(inputs.repository)}"
    console.print(Text.assemble(shown(report.status), f"  {name}{_aside(outcome)}"))
    for line in _details(outcome):
        console.print(line)
    console.print(_next(outcome))


def _aside(outcome: Outcome) -> str:
    match outcome.report.outcome:
        case "ran":
            return f"  {seconds(outcome.seconds)}"
        case "reused":
            return "  reused, nothing written"
        case _:
            return f": {_why(outcome)}"


def _why(outcome: Outcome) -> str:
    report = outcome.report
    zone = outcome.inputs.policy.schedule.timezone
    until = f", until {at(report.until, zone)}" if report.until is not None else ""
    return clean(report.reason) + until


def _details(outcome: Outcome) -> list[str]:
    report, run = outcome.report, outcome.look.run
    lines = []
    if report.outcome == "ran" and report.reason:
        lines.append(f"Because: {_why(outcome)}")
    if report.outcome == "reused" and outcome.inputs.mode is not Mode.OBSERVE:
        lines += [f"Drift: {clean(line)}" for line in report.drift] or ["Drift: none"]
    if run is not None and run.status is Status.NEEDS_REVIEW:
        lines += lines_of(run, outcome.doubts)
    if report.artifact:
        lines.append(f"Result: {clean(report.artifact)}")
    return lines


def _next(outcome: Outcome) -> str:
    report, inputs = outcome.report, outcome.inputs
    key = DedupeKey.parse(report.dedupe_key)
    match report.status:
        case None | Status.WAITING | Status.FAILED_BEFORE_WRITE | Status.FAILED_AFTER_WRITE if (
            key.job is not JobKey.RETRIAGE and not key.forced
        ):
            return f"Again: {again(inputs)}"
        case _:
            return f"Evidence: retriage show {report.dedupe_key}"


def again(inputs: RunInputs) -> str:
    """The command that asks for the same run of a window."""
    key = DedupeKey.parse(inputs.dedupe_key)
    job = f" --job {key.job}" if key.job is not JobKey.DAILY else ""
    mode = f" --mode {inputs.mode}" if inputs.mode is not inputs.policy.mode else ""
    return f"retriage run {clean(inputs.repository)}{job} --window {key.window}{mode}"
