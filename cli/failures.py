"""What went wrong, as one clear line with the way out, and the exit code.

Exit codes: 0 completed, no-change or reused; 1 failed-before-write, failed-after-write or an
outage; 2 usage, settings, policy; 3 a person must decide; 99 refused: not now; 130 interrupted.
"""

import errno
import os
import sys
import tempfile
import traceback
from enum import IntEnum
from urllib.parse import urlsplit

from cli.terminal import clean, stderr
from ledger.errors import (
    DataFolderInUseError,
    LeaseLost,
    LedgerCorruptError,
    LedgerUnavailableError,
    ServerStartError,
)
from triage.policy import PolicyError
from worker.settings import SettingsError


class Code(IntEnum):
    """How a command ends."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NEEDS_REVIEW = 3
    REFUSED = 99
    INTERRUPTED = 130


class CommandError(Exception):
    """An expected failure: lines for a person, and the exit code."""

    def __init__(self, *lines: str, code: Code = Code.USAGE) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.code = code


def report(error: BaseException) -> int:
    """Say it on stderr; gives the exit code. The last resort for what nobody expected."""
    told = explained(error)
    for line in told.lines:
        stderr().print(line)
    if os.environ.get("LOG_LEVEL", "").lower() == "debug":
        sys.stderr.write("".join(traceback.format_exception(error)))
    return told.code


def explained(error: BaseException) -> CommandError:
    """What an exception means for a person."""
    match error:
        case CommandError():
            return error
        case KeyboardInterrupt():
            return CommandError("interrupted", code=Code.INTERRUPTED)
        case SettingsError():
            return CommandError(*error.problems)
        case PolicyError():
            return CommandError(*(str(problem) for problem in error.problems))
        case DataFolderInUseError():
            return CommandError(
                f"the data folder {error.folder} is in use by another process: wait for it, or "
                "name another folder in RETRIAGE_DATA_DIR",
                code=Code.REFUSED,
            )
        case ServerStartError():
            return _server(error)
        case LedgerUnavailableError():
            return CommandError(out_of_reach(error), code=Code.FAILED)
        case LedgerCorruptError():
            return CommandError(
                f"the ledger holds what this program cannot read: {clean(str(error))}; was it "
                "written by a newer version?",
                code=Code.FAILED,
            )
        case LeaseLost():
            return CommandError(
                "the lease was lost on the way, so nothing more was written: run it again, it "
                "reads GitHub back first",
                code=Code.FAILED,
            )
        case _:
            return _unexpected(error)


def out_of_reach(error: Exception) -> str:
    """Redis does not answer: which one, and what to do."""
    url = os.environ.get("REDIS_URL", "")
    if not url:
        return (
            f"the embedded server ended on the way ({_why(error)}): run it again; see valkey.log "
            "in the ledger's folder if it ends again"
        )
    parts = urlsplit(url)
    where = parts.path if parts.scheme == "unix" else parts.netloc.rpartition("@")[2]
    return (
        f"Redis at {clean(where)} is out of reach ({_why(error)}): start it, or correct REDIS_URL; "
        "then run this again"
    )


def _why(error: Exception) -> str:
    words = clean(str(error)).rstrip(".")
    return words[:200] or type(error).__name__


def _server(error: ServerStartError) -> CommandError:
    last = [line for line in error.log.splitlines() if line.strip()][-1:]
    detail = f": {clean(last[0])}" if last else ""
    return CommandError(
        f"{error.detail}{detail}; valkey.log in the ledger's folder has more, and REDIS_URL can "
        "name a server of your own",
        code=Code.FAILED,
    )


def _unexpected(error: BaseException) -> CommandError:
    """One line; the details go into a file of their own, for a report."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        where = f" for {clean(str(error.filename))}" if error.filename else ""
        return CommandError(f"there is no room left{where}", code=Code.FAILED)
    name = type(error).__name__
    said = clean(str(error))[:200].rstrip(".")
    handle, path = tempfile.mkstemp(prefix="retriage-", suffix=".log")
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
        file.write("".join(traceback.format_exception(error)))
    return CommandError(
        f"an error of retriage itself, {name}{f': {said}' if said else ''}; the details are in "
        f"{path}",
        code=Code.FAILED,
    )
