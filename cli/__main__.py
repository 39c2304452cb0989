"""The entry point: ``retriage``, or ``python -m cli``."""

import contextlib
import os
import sys
from typing import NoReturn, TextIO

from typer.main import get_command

from cli.app import app


def main() -> NoReturn:
    """Run one command and end with its exit code."""
    _open_what_is_closed()
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
    lost = _flushed(sys.stdout)
    if lost is not None and not isinstance(lost, BrokenPipeError) and not code:
        from cli.failures import report

        code = report(lost)
    _flushed(sys.stderr)
    sys.exit(code)


def _open_what_is_closed() -> None:
    """Who closed a stream (``>&-``) wants nothing of it; nothing else may take its number."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    # They stay open for as long as the process.
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def _flushed(stream: TextIO) -> OSError | None:
    """What kept the rest from being written; such a stream is closed, or Python says it again. A
    reader that went away (``| head``) is no failure of ours."""
    try:
        stream.flush()
    except OSError as error:
        with contextlib.suppress(OSError):
            stream.close()
        return error
    return None


if __name__ == "__main__":
    main()
