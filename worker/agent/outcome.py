"""What a session's end means: an answer, or a failure with the word for it.

Decided by typed attributes alone. ``subtype`` says "success" of refusals and of API failures too,
so only a structured output in a result without error counts.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from claude_agent_sdk import CLINotFoundError, ResultError, ResultMessage

from worker.agent.progress import Progress
from worker.ports import AgentFailed, SessionAnswer


class Reason(StrEnum):
    """Why a session gave no answer."""

    NO_STRUCTURED_OUTPUT = "no-structured-output"
    SCHEMA = "schema"
    MAX_TURNS = "max-turns"
    BUDGET = "budget"
    AUTH = "auth"
    FORBIDDEN = "forbidden"
    NO_MODEL = "no-model"
    RATE_LIMITED = "rate-limited"
    OVERLOADED = "overloaded"
    API = "api"
    TIMEOUT = "timeout"
    IDLE = "idle"
    NO_CLI = "no-cli"
    CRASHED = "crashed"
    SESSION_LOST = "session-lost"
    BOUNDARY = "boundary"


FINAL: Final = frozenset(
    {
        *(Reason.MAX_TURNS, Reason.BUDGET),
        *(Reason.AUTH, Reason.FORBIDDEN, Reason.NO_MODEL, Reason.BOUNDARY),
        Reason.SESSION_LOST,
    }
)
"""Not retryable: spent limits, what a person must set right, and a session that is no more."""

LOSES_SESSION: Final = frozenset({Reason.SESSION_LOST})
"""After anything else the session that was to be resumed is sound: the copy is thrown away."""

BY_STATUS: Final[Mapping[int, Reason]] = {
    401: Reason.AUTH,
    403: Reason.FORBIDDEN,
    404: Reason.NO_MODEL,
    429: Reason.RATE_LIMITED,
    529: Reason.OVERLOADED,
}

BY_SUBTYPE: Final[Mapping[str, Reason]] = {
    "error_max_turns": Reason.MAX_TURNS,
    "error_max_budget_usd": Reason.BUDGET,
    "error_max_structured_output_retries": Reason.SCHEMA,
}

LOST_SUBTYPE: Final = "error_during_execution"
"""What the CLI ends with when it finds no conversation to resume."""


def answer_of(progress: Progress, error: BaseException | None) -> SessionAnswer:
    """The answer of a session that ended by itself. Raises AgentFailed if it gave none."""
    result = progress.result
    if result is None:
        raise failed(_reason_of(error, progress), _described(error, progress), progress)
    if not result.is_error and isinstance(result.structured_output, dict):
        return SessionAnswer(
            output=result.structured_output,
            cost=progress.cost,
            denials=progress.denials,
            session_id=result.session_id,
            saved=progress.copied,
        )
    raise failed(_reason_in(result, progress), _told(result), progress)


def overdue(progress: Progress, reason: Reason, seconds: float) -> AgentFailed:
    """The failure of a session that was ended by one of our deadlines.

    If the API was refusing at that time, that is the reason.
    """
    refused = BY_STATUS.get(progress.api_status) if progress.api_status else None
    detail = f"ended after {seconds:g} s without " + (
        "an end" if reason is Reason.TIMEOUT else "progress"
    )
    if progress.api_status:
        detail += f"; the API answered {progress.api_status}"
    return failed(refused or reason, detail, progress)


def failed(reason: Reason, detail: str, progress: Progress) -> AgentFailed:
    """The failure for a reason, with what was spent and refused until then."""
    return AgentFailed(
        reason.value,
        detail,
        retryable=reason not in FINAL,
        cost=progress.cost,
        keeps_session=reason not in LOSES_SESSION,
        denials=progress.denials,
    )


def _reason_in(result: ResultMessage, progress: Progress) -> Reason:
    if result.api_error_status is not None:
        return BY_STATUS.get(result.api_error_status, Reason.API)
    if result.terminal_reason == "api_error":
        return Reason.API
    if reason := BY_SUBTYPE.get(result.subtype):
        return reason
    if progress.resumed and result.subtype == LOST_SUBTYPE:
        return Reason.SESSION_LOST
    return Reason.CRASHED if result.is_error else Reason.NO_STRUCTURED_OUTPUT


def _reason_of(error: BaseException | None, progress: Progress) -> Reason:
    match error:
        case CLINotFoundError():
            return Reason.NO_CLI
        case ResultError(api_error_status=int(status)):
            return BY_STATUS.get(status, Reason.API)
        case ResultError(subtype=str(subtype)) if subtype in BY_SUBTYPE:
            return BY_SUBTYPE[subtype]
        case ResultError(subtype=str(subtype)) if progress.resumed and subtype == LOST_SUBTYPE:
            return Reason.SESSION_LOST
        case _:
            return Reason.CRASHED


LONGEST_SAID = 250
"""Characters of an error, and of the CLI's last words, that are kept."""


def _told(result: ResultMessage) -> str:
    """What the result says of itself, without a word of the model."""
    parts = {
        "subtype": result.subtype,
        "terminal_reason": result.terminal_reason,
        "api_status": result.api_error_status,
    }
    return " ".join(f"{name}={value}" for name, value in parts.items() if value is not None)


def _described(error: BaseException | None, progress: Progress) -> str:
    """The error and what the CLI said last: its reason stands at the end."""
    said = " / ".join(progress.stderr)[-LONGEST_SAID:]
    name = type(error).__name__ if error else "no result"
    return f"{name}: {str(error or '')[:LONGEST_SAID]} {said}".strip()
