"""The commands and their options. What a command does is loaded when it is called."""

import importlib
from pathlib import Path
from typing import Annotated

import typer

from cli.options import CONTEXT, Command, Group

app = typer.Typer(
    cls=Group,
    add_completion=False,
    context_settings=CONTEXT,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="""
        retriage demo                          everything, on this machine
        retriage run acme/api --mode observe   a report, no write
        retriage run acme/api                  one window, once
        retriage run --job nightly-repo-review ./api
        retriage runs                          what became of it
        retriage check .github/retriage.yml    is the policy right?
    """,
)


Json = Annotated[bool, typer.Option("--json", help="Answer with JSON.")]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"retriage {version('retriage')}")
        raise typer.Exit


@app.callback()
def retriage(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Triages a repository's issues, and can be run twice: at most one effect for each key, or a
    person is asked."""


@app.command(
    cls=Command,
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    help="Show it all on this machine; no account needed.",
)
def demo(context: typer.Context) -> None:
    # Its options are its own: cli.demo.command is a function with typer's annotations.
    from typer.main import get_command

    module = importlib.import_module("cli.demo")
    program = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
    )
    program.command("demo", cls=Command, context_settings=CONTEXT, epilog=module.EXAMPLES)(
        module.command
    )
    get_command(program).main(context.args, prog_name="retriage demo")


@app.command(
    cls=Command,
    epilog="""
        retriage run acme/api --mode observe
        retriage run acme/api --window 2026-09-16
        retriage run acme/api --json | jq .status
        retriage run --job nightly-repo-review ./api
    """,
)
def run(
    repository: Annotated[
        str,
        typer.Argument(
            metavar="REPOSITORY",
            help="OWNER/REPO, or a folder that is a clone of it, like ./api. What is read is what "
            "GitHub has, never the folder.",
            show_default=False,
        ),
    ],
    *,
    job: Annotated[
        str,
        typer.Option(
            metavar="JOB",
            help="Which job of the policy: daily-issue-triage, nightly-repo-review or "
            "resource-watch.",
        ),
    ] = "daily-issue-triage",
    window: Annotated[
        str | None,
        typer.Option(
            metavar="WINDOW",
            help="Which slot of the schedule, like 2026-09-16. Default: the newest that is due.",
            show_default=False,
        ),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            metavar="MODE",
            help="How far to go: observe, label or comment; a review: observe or comment; a "
            "watch: observe. Default: as the policy says.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Take the window in anew, decide anew, and put back what people took away.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Execute one window, here and now.

    It runs under the same lease and in the same ledger as a worker's. What is done already is
    reused: running it twice writes nothing twice.

    It needs APP_ID and PRIVATE_KEY, or GITHUB_TOKEN alone, which may only observe; and
    ANTHROPIC_API_KEY.
    """
    from cli.asking import Wish, prepared

    wanted, settings = prepared(Wish(repository, job, window, mode, force))

    from cli.running import run_here  # what is wrong with the above is said without waiting for it

    raise typer.Exit(run_here(wanted, settings, as_json=json))


@app.command(
    cls=Command,
    epilog="""
        retriage runs
        retriage runs --status needs-review
        retriage runs --job nightly-repo-review
        retriage runs --repository acme/api --json
    """,
)
def runs(
    *,
    status: Annotated[
        str | None,
        typer.Option(metavar="STATUS", help="Only those, like needs-review.", show_default=False),
    ] = None,
    repository: Annotated[
        str | None,
        typer.Option(metavar="OWNER/REPO", help="Only this repository.", show_default=False),
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(
            metavar="JOB",
            help="Only this job. A review is listed with its verdict and what it recalled of the "
            "review before.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 20,
    json: Json = False,
) -> None:
    """List runs: what needs a person first.

    Then what failed, then the newest."""
    from cli.listing import Filter, list_runs

    raise typer.Exit(list_runs(Filter(status, repository, job, limit), as_json=json))


@app.command(
    cls=Command,
    epilog="""
        retriage show daily-issue-triage:R1296269:2026-09-16:p3f2a91c0
        retriage show KEY --json | jq .effects
    """,
)
def show(
    key: Annotated[str, typer.Argument(metavar="KEY", show_default=False)], *, json: Json = False
) -> None:
    """Print a run's contract.

    As YAML: its input, its lease, its effects with their evidence, its cost."""
    from cli.showing import show_run

    raise typer.Exit(show_run(key, as_json=json))


@app.command(
    cls=Command,
    epilog="""
        retriage resolve KEY --as done --reason 'the comment is there'
        retriage resolve KEY --as retry --reason 'GitHub was down that night'
    """,
)
def resolve(
    key: Annotated[str, typer.Argument(metavar="KEY", show_default=False)],
    *,
    verdict: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="VERDICT",
            help="done: it is there, or no longer wanted. retry: send it again. abandon: give up "
            "what is not there.",
            show_default=False,
        ),
    ],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why.", show_default=False)],
    json: Json = False,
) -> None:
    """Decide about a run that needs review.

    GitHub is read once more, under the run's lease; then the run is classified anew. Who decided,
    and why, is kept with the run.
    """
    from worker.settings import Process, read_settings

    settings = read_settings(Process.RUN)

    from cli.running import resolve_here  # what is wrong with the above is said without waiting

    raise typer.Exit(resolve_here(key, [verdict, reason], settings, as_json=json))


@app.command(
    cls=Command,
    epilog="""
        retriage check .github/retriage.yml
        retriage check --example > .github/retriage.yml
        retriage check --schema > retriage.schema.json
    """,
)
def check(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", show_default=False)] = None,
    *,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema.")] = False,
    example: Annotated[
        bool, typer.Option("--example", help="Print an example with comments.")
    ] = False,
) -> None:
    """Check a policy file.

    Each error is shown with its line; a file without one, with the settings that follow from it."""
    from cli.checking import check_policy

    raise typer.Exit(check_policy(file, schema=schema, example=example))


@app.command(cls=Command, epilog="REDIS_URL=redis://localhost retriage web")
def web() -> None:
    """Receive webhooks and cron triggers, on PORT."""
    from cli.serving import serve_web

    raise typer.Exit(serve_web())


@app.command(cls=Command, epilog="REDIS_URL=redis://localhost retriage worker")
def worker() -> None:
    """Take jobs from the queue and run them, one at a time."""
    from cli.serving import serve_worker

    raise typer.Exit(serve_worker())


@app.command(cls=Command, epilog="REDIS_URL=redis://localhost retriage clock")
def clock() -> None:
    """Enqueue what is due, each minute. Any number may tick."""
    from cli.serving import serve_clock

    raise typer.Exit(serve_clock())
