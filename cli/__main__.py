"""The entry point: ``retriage``, or ``python -m cli``."""

import contextlib
import sys
from typing import NoReturn

from typer.main import get_command

from cli.app import app


def main() -> NoReturn:
    """Run one command and end with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets a question mark, not a traceback.
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    try:
        get_command(app).main(prog_name="retriage")
    except SystemExit as end:
        code = end.code
    except BaseException as error:  # noqa: BLE001 - the last resort: one line instead of a traceback
        from cli.failures import report

        code = report(error)
    else:
        code = 0
    _flush()
    sys.exit(code)


def _flush() -> None:
    """A reader that went away (``| head``) is no failure of ours, and no traceback."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        with contextlib.suppress(OSError):
            sys.stdout.close()


if __name__ == "__main__":
    main()
