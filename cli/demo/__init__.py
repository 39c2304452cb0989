"""``retriage demo``: the whole program on this machine, against a GitHub and a model of its own.

Receiver, clock and workers run as the processes that they are elsewhere; only GitHub and the model
are the sandbox's. What is claimed is counted from the sandbox's own state and log.

Invariant: whatever ends the demo, no process, folder or file of it stays.
"""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
    retriage demo                 the story, in half a minute
    retriage demo --keep          and leaves it running, to look around
    retriage demo --json | jq .statuses
    retriage demo --job nightly-repo-review
    retriage demo --issues issues.csv --repo facebook/react
"""


def command(
    *,
    job: Annotated[
        str, typer.Option(metavar="JOB", help="Which job's story: the triage's or the review's.")
    ] = "daily-issue-triage",
    issues: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Triage these issues instead: repo,created_at,label,title,body.",
            show_default=False,
        ),
    ] = None,
    repo: Annotated[
        str | None,
        typer.Option(
            metavar="OWNER/REPO", help="Only this repository's issues of CSV.", show_default=False
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave everything running, until Ctrl-C.")
    ] = False,
) -> None:
    """Show it all on this machine.

    No account, no key and no service is needed. It triages a dozen issues, runs the same window
    again, has two workers ask for one run, kills a worker between a comment and the record of it,
    answers a command, and shows a run in each status. It ends with 0 if all that was seen.

    With --issues it triages the issues of a file, in one window, and counts the requests. With
    --job nightly-repo-review it reviews a repository four nights in a row.
    """
    from cli.demo.playing import Wish, play

    raise typer.Exit(play(Wish(issues, repo, as_json=json, keep=keep, job=job)))
