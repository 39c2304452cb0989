"""Issues from a CSV `repo,created_at,label,title,body`."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from sandbox.github.clock import parse_stamp, stamp

COLUMNS = ("repo", "created_at", "label", "title", "body")
LARGEST_FIELD = 16 * 1024 * 1024
DEMO = Path(__file__).with_name("data") / "demo_issues.csv"


@dataclass(frozen=True, slots=True)
class IssueRow:
    """`label` is the truth about the issue; the sandbox never shows it."""

    repo: str
    created_at: str  # GitHub's form, or empty
    label: str
    title: str
    body: str


def load(path: str | Path, repo: str | None = None, limit: int | None = None) -> list[IssueRow]:
    """The rows, of one repository if it is named, at most `limit`. Raises ValueError."""
    csv.field_size_limit(LARGEST_FIELD)
    rows: list[IssueRow] = []
    with Path(path).open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        missing = set(COLUMNS) - set(reader.fieldnames or ())
        if missing:
            raise ValueError(f"{path}: no column {', '.join(sorted(missing))}")
        for line in reader:
            if limit is not None and len(rows) >= limit:
                break
            if repo is None or line["repo"].lower() == repo.lower():
                rows.append(_row(line))
    return rows


def _row(line: dict[str, str]) -> IssueRow:
    at = line["created_at"].strip()
    return IssueRow(
        repo=line["repo"],
        created_at=stamp(parse_stamp(at)) if at else "",
        label=line["label"],
        title=line["title"] or "(no title)",
        body=line["body"] or "",
    )
