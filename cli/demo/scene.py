"""The GitHub of the demo: an organisation with a repository for each thing that is shown."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from cli.demo.stage import APP
from sandbox import issues_csv
from sandbox.github import GitHub
from sandbox.github.clock import stamp
from sandbox.issues_csv import IssueRow

ORGANISATION = "acme"
MAIN = "acme/api"
KILLED = "acme/search"
QUIET = "acme/docs"
UNASKED = "acme/billing"
UNSEEN = "acme/mobile"
TAMPERED = "acme/web"
SHOWN = (MAIN, KILLED, QUIET, UNASKED, UNSEEN, TAMPERED)
"""All of them, in the order in which their runs are shown."""

REPORTER = "ada"
MAINTAINER = "maria"
USUAL_ISSUES = 300
MOST_ISSUES = 1000
"""Of one window: the policy allows no more."""

HOURS_DUE = 6
"""How long ago the window fell due: the next one is far off, whenever the demo is played."""

_POLICY = """\
jobs:
  daily-issue-triage:
    schedule: {every: daily, at: "%s", timezone: UTC}
    mode: comment
    labels:
      bug: Something that should work does not
      enhancement: A request for something new
      question: Asks how, reports no fault
    exclusive: [[bug, enhancement, question]]
    backlog: full
    summary: daily
"""

_OTHERS: tuple[tuple[str, str, str], ...] = (
    (KILLED, "Search crashes on an empty query", "It crashes with a traceback, every time."),
    (KILLED, "Please add a filter by date", "It would be nice to filter results by date."),
    (UNASKED, "Invoice total is wrong", "The total is incorrect after a refund: an error."),
    (UNSEEN, "App crashes on start", "It crashes since the last update. Steps: open it."),
    (UNSEEN, "Support for dark mode", "Please add support for a dark mode, as an option."),
    (TAMPERED, "Cart fails to load", "The cart does not load, with an error in the console."),
)


def story(github: GitHub) -> None:
    """The world of the story. The App is not installed anywhere yet."""
    github.add_organization(ORGANISATION)
    rows = issues_csv.load(issues_csv.DEMO, MAIN)
    for name in SHOWN:
        github.add_repository(name)
        github.put_file(name, ".github/retriage.yml", policy())
        github.add_collaborator(name, MAINTAINER, "triage")
    others = [IssueRow(name, "", "", title, body) for name, title, body in _OTHERS]
    github.fill(dated([*rows, *others]))
    sorted_already = IssueRow(QUIET, "", "", "Which formats are supported?", "A list is missing.")
    for number in github.fill(dated([sorted_already])):
        github.as_user(MAINTAINER).label(QUIET, number, "question")


def backlog(github: GitHub, name: str, rows: Sequence[IssueRow]) -> None:
    """One repository, whose policy takes all these issues at once."""
    github.fill(dated(rows))
    text = f"{policy()}    max_issues: {max(USUAL_ISSUES, len(rows))}\n"
    if len(rows) > USUAL_ISSUES:  # they cost more than a run may by default
        text += "    budget_usd: {cold: 100.00}\n"
    github.put_file(name, ".github/retriage.yml", text)


def repositories(rows: Iterable[IssueRow]) -> list[str]:
    """Those that the rows name, each once, in their order."""
    return list({row.repo.lower(): row.repo for row in rows}.values())


def install(github: GitHub, names: Sequence[str]) -> int:
    """Install the App on repositories of one owner; gives the installation's id."""
    return github.install(APP, names[0].partition("/")[0], names)


def policy() -> str:
    """The file, with a schedule whose newest window is the one of ``due_at``."""
    return _POLICY % f"{due_at():%H:%M}"


def due_at() -> datetime:
    """When the window fell due."""
    return datetime.now(UTC).replace(minute=0, second=0) - timedelta(hours=HOURS_DUE)


def dated(rows: Iterable[IssueRow]) -> list[IssueRow]:
    """The rows, each from before the window: it takes what was there when it fell due."""
    latest = stamp(due_at() - timedelta(hours=1))
    return [replace(row, created_at=min(row.created_at or latest, latest)) for row in rows]
