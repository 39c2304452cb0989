"""What the demo says: steps on the way on stderr; the runs, the proofs and what is next on stdout.

Nothing moves and nothing is drawn over, so that a pipe gets the same.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import httpx
from rich.table import Table
from rich.text import Text

from cli.demo.watching import StepError
from cli.terminal import clean, cleaned, shown, stderr, stdout
from cli.terminal import seconds as span
from ledger.errors import LedgerUnavailableError
from triage.contract import RunRecord

_TABLE_COLUMNS = 96
"""A narrower terminal gets lines instead of a table."""


@dataclass(frozen=True, slots=True)
class Row:
    """One run: what it wrote, how many requests it took, and what it shows."""

    run: RunRecord
    writes: int
    requests: int
    shows: str

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "dedupe_key": self.run.inputs.dedupe_key,
            "repository": self.run.inputs.repository,
            "window": self.run.key.window,
            "status": self.run.status,
            "attempts": len(self.run.attempts),
            "writes": self.writes,
            "github_requests": self.requests,
            "shows": self.shows,
        }


@dataclass
class Tale:
    """What was seen so far. ``counts`` are the further numbers of the JSON object."""

    rows: list[Row] = field(default_factory=list)
    proofs: list[str] = field(default_factory=list)
    counts: dict[str, Any] = field(default_factory=dict)
    failed: StepError | None = None
    began: float = field(default_factory=monotonic)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """One step: named where it fails, told where it went as it should. Raises StepError."""
        try:
            yield
        except StepError as error:
            error.step = name
            raise
        except (LedgerUnavailableError, httpx.HTTPError) as error:
            lost = StepError(f"{type(error).__name__}: {error}")
            lost.step = name
            raise lost from error
        self.say(name)

    def say(self, text: str) -> None:
        """A line on the way."""
        stderr().print(f"{monotonic() - self.began:5.1f} s  {text}")

    def proved(self, text: str) -> None:
        """A line for the end."""
        self.proofs.append(text)

    def as_json(self) -> None:
        """One object on stdout."""
        statuses = Counter(str(row.run.status) for row in self.rows)
        told = {
            "runs": [row.plain() for row in self.rows],
            "statuses": dict(sorted(statuses.items())),
            **self.counts,
            "proofs": self.proofs,
            "failed_step": self.failed.step if self.failed else None,
            "reason": str(self.failed) if self.failed else None,
            "seconds": round(monotonic() - self.began, 1),
        }
        sys.stdout.write(json.dumps(cleaned(told), indent=2) + "\n")
        sys.stdout.flush()

    def show(self, after: list[str]) -> None:
        """The same for people, and what is next."""
        console = stdout()
        if self.rows:
            console.print()
            if console.width >= _TABLE_COLUMNS:
                console.print(_table(self.rows), soft_wrap=False)
            else:
                for row in self.rows:
                    console.print(_lines(row), soft_wrap=False)
        console.print()
        for proof in self.proofs:
            console.print(Text.assemble(("✓ ", "green"), proof), soft_wrap=False)
        console.print(self._end(), soft_wrap=False)
        for line in after:
            console.print(line)

    def _end(self) -> Text:
        took = span(monotonic() - self.began)
        if self.failed is None:
            return Text(f"All of it in {took}.")
        return Text.assemble(("✗ ", "red"), f"{self.failed.step}: {clean(str(self.failed))}")


def counted(number: int, word: str) -> str:
    """``1 issue``, ``2 issues``."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def _table(rows: list[Row]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("Repository", no_wrap=True)
    table.add_column("Window", no_wrap=True)
    table.add_column("Status", no_wrap=True)
    table.add_column("Writes", justify="right")
    table.add_column("Requests", justify="right")
    table.add_column("What it shows")
    for row in rows:
        table.add_row(
            clean(row.run.inputs.repository),
            row.run.key.window,
            shown(row.run.status),
            str(row.writes),
            str(row.requests),
            row.shows,
        )
    return table


def _lines(row: Row) -> Text:
    where = f"{clean(row.run.inputs.repository)} {row.run.key.window}"
    numbers = f"{counted(row.writes, 'write')}, {counted(row.requests, 'request')}"
    return Text.assemble(shown(row.run.status), f"\n{where}\n{numbers}\n{row.shows}\n")
