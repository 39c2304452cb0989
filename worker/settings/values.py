"""What the environment may set, and what follows from it.

Invariant: a secret is a ``SecretStr``: printed, it is asterisks.
"""

from datetime import timedelta
from os.path import realpath
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from triage.marker import MarkerKeys
from worker.ports import Timing
from worker.settings.kept_key import kept_marker_keys
from worker.settings.problems import NEEDS, SettingsError

MARGIN_SHARE: Final = 4
"""A claimed request must start within a quarter of its own time-out: 5 s of 20."""


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


Seconds = Annotated[float, Field(gt=0, le=86_400)]


class Settings(BaseSettings):
    """Everything that the environment may set. Secrets show as asterisks wherever printed."""

    model_config = SettingsConfigDict(
        env_ignore_empty=True, extra="ignore", frozen=True, hide_input_in_errors=True
    )

    app_id: str | None = Field(None, pattern=r"^[0-9]{1,20}$")
    private_key: SecretStr | None = None
    private_key_path: Path | None = None
    webhook_secret: SecretStr | None = None
    github_client_id: str | None = None
    github_client_secret: SecretStr | None = None
    github_token: SecretStr | None = None
    retriage_bot_id: int | None = Field(None, gt=0)
    github_api_url: str = "https://api.github.com"
    redis_url: SecretStr | None = None
    marker_keys: SecretStr | None = None
    cron_secret: SecretStr | None = None
    anthropic_api_key: SecretStr | None = None
    anthropic_base_url: str | None = None
    retriage_model: str | None = None
    retriage_data_dir: Path = Path("data")
    retriage_checkout_dir: Path | None = None
    port: int = Field(8000, ge=0, le=65535)
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = (
        "info"
    )
    log_format: Annotated[Literal["line", "json"], BeforeValidator(_lower)] = "line"
    retriage_lease_seconds: Seconds = 120
    retriage_lock_delay_seconds: Seconds = 60
    retriage_absence_window_seconds: Seconds = 900
    retriage_request_timeout_seconds: Seconds = 20
    retriage_write_interval_seconds: float = Field(1, ge=0, le=3600)
    retriage_pacing_scale: float = Field(1, gt=0, le=10_000)
    retriage_watch_loopback: bool = False

    @property
    def has_app(self) -> bool:
        """True where a GitHub App is set up."""
        return self.app_id is not None

    @property
    def data_dir(self) -> Path:
        """Where the ledger, reports and keys are kept."""
        return self.retriage_data_dir.expanduser()

    @property
    def checkout_dir(self) -> Path:
        """Where the agent's checkouts are kept, apart from the data folder: RETRIAGE_CHECKOUT_DIR,
        or a folder beside the data folder, such as ``data-checkouts``."""
        if self.retriage_checkout_dir is not None:
            return self.retriage_checkout_dir.expanduser()
        data = Path(realpath(self.data_dir))
        return data.parent / f"{data.name}-checkouts"

    @property
    def may_write(self) -> bool:
        """An App may; a token only where its account is named as the bot's own."""
        return self.has_app or (self.github_token is not None and self.retriage_bot_id is not None)

    def private_key_pem(self) -> str | None:
        """The App's key. Raises SettingsError where its file cannot be read."""
        if self.private_key is not None:
            return self.private_key.get_secret_value().replace("\\n", "\n").strip() + "\n"
        if self.private_key_path is None:
            return None
        try:
            return self.private_key_path.expanduser().read_text(encoding="ascii").strip() + "\n"
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise SettingsError((f"PRIVATE_KEY_PATH cannot be read: {why}",)) from error

    def timing(self) -> Timing:
        """The bounds that the pipeline and its adapters keep."""
        request = timedelta(seconds=self.retriage_request_timeout_seconds)
        return Timing(
            lease=timedelta(seconds=self.retriage_lease_seconds),
            lock_delay=timedelta(seconds=self.retriage_lock_delay_seconds),
            absence_window=timedelta(seconds=self.retriage_absence_window_seconds),
            request=request,
            margin=request / MARGIN_SHARE,
        )

    def keys(self) -> MarkerKeys:
        """What signs the bot's text. Without MARKER_KEYS and without an App, one that is kept under
        the data folder, made at the first call. Raises SettingsError."""
        if self.marker_keys is not None:
            return MarkerKeys.parse(self.marker_keys.get_secret_value())
        if self.has_app:
            raise SettingsError((NEEDS["MARKER_KEYS"],))
        return kept_marker_keys(self.data_dir)

    def secret_values(self) -> frozenset[str]:
        """What no log line may show."""
        given = (getattr(self, name) for name in type(self).model_fields)
        return frozenset(item.get_secret_value() for item in given if isinstance(item, SecretStr))
