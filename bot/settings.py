"""The settings of the receiver and of the clock, read from the environment.

Every problem is one clear line that names the variable and never shows its value.
"""

from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BeforeValidator, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from ledger.connection import address_problem
from triage.marker import MarkerKeys


class SettingsError(Exception):
    """The settings cannot be used; ``problems`` has one line for each variable."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


class ClockSettings(BaseSettings):
    """What the clock needs, and everything that talks to Redis."""

    model_config = SettingsConfigDict(
        env_ignore_empty=True, extra="ignore", frozen=True, hide_input_in_errors=True
    )

    redis_url: SecretStr
    retriage_tick_seconds: int = Field(60, ge=1, le=60)
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = (
        "info"
    )
    log_format: Annotated[Literal["line", "json"], BeforeValidator(_lower)] = "line"

    @field_validator("redis_url")
    @classmethod
    def _is_redis(cls, value: SecretStr) -> SecretStr:
        problem = address_problem(value.get_secret_value())
        if problem:
            raise ValueError(problem)
        return value


class WebSettings(ClockSettings):
    """What the receiver needs besides. Without ``CRON_SECRET``, ``/cron`` is closed."""

    webhook_secret: SecretStr
    marker_keys: SecretStr
    cron_secret: SecretStr | None = None
    host: str = "0.0.0.0"  # noqa: S104 - behind a platform's router nothing else is reached
    port: int = Field(8000, ge=0, le=65535)

    @field_validator("marker_keys")
    @classmethod
    def _are_keys(cls, value: SecretStr) -> SecretStr:
        MarkerKeys.parse(value.get_secret_value())
        return value

    def keys(self) -> MarkerKeys:
        """What signs the bot's text."""
        return MarkerKeys.parse(self.marker_keys.get_secret_value())


S = TypeVar("S", bound=ClockSettings)

_MEANT: Final = {
    "REDIS_URL": "where the ledger and the queue are",
    "WEBHOOK_SECRET": "the secret of the App's webhook",
    "MARKER_KEYS": "kid:hex, newest first; what the bot signs its text with",
}


def read_settings(kind: type[S], **given: Any) -> S:
    """Read the environment; ``given`` wins over it. Raises SettingsError with every problem."""
    try:
        return kind(**given)
    except ValidationError as error:
        items = error.errors(include_input=False, include_url=False)
        raise SettingsError(tuple(_line(item) for item in items)) from None


def _line(item: Any) -> str:
    name = str(item["loc"][0]).upper()
    match item["type"]:
        case "missing":
            return f"{name} is missing: {_MEANT[name]}"
        case "value_error":
            return f"{name}: {item['ctx']['error']}"
        case _:
            message = str(item["msg"])
            return f"{name}: {message[0].lower()}{message[1:]}"
