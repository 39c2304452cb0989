"""Where the ledger is: at REDIS_URL, or in the data folder behind a server of our own."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from cli.failures import CommandError
from ledger.connection import connect
from ledger.ledger import Ledger, open_ledger
from ledger.server import EmbeddedServer
from ledger.timing import LedgerTiming
from worker.settings import Process, Settings, read_settings


def settings_to_look() -> Settings:
    """Where the ledger is, without the secrets that only writing needs. Raises SettingsError."""
    secrets = ("app_id", "private_key", "private_key_path", "marker_keys")
    return read_settings(Process.CLOCK, **dict.fromkeys(secrets))


@contextmanager
def ledger_url(settings: Settings) -> Iterator[str]:
    """The address of the ledger, for as long as the block lasts.

    The embedded server ends with the block, and with this process however that ends. Raises
    CommandError, DataFolderInUseError and ServerStartError.
    """
    if settings.redis_url is not None:
        yield _checked(settings.redis_url.get_secret_value())
        return
    with ExitStack() as stack:
        try:
            server = stack.enter_context(EmbeddedServer(settings.data_dir))
        except OSError as error:
            raise _unusable(settings.data_dir, error) from error
        yield server.url


@asynccontextmanager
async def ledger_at(url: str) -> AsyncIterator[Ledger]:
    """The ledger, to look at: what the bounds decide is decided by who writes."""
    async with connect(url) as client:
        yield open_ledger(client, LedgerTiming())


def has_ledger(settings: Settings) -> bool:
    """False where there cannot be a run: looking must not make a data folder."""
    return settings.redis_url is not None or (settings.data_dir / "ledger").is_dir()


def _unusable(folder: Path, error: OSError) -> CommandError:
    why = error.strerror or type(error).__name__
    return CommandError(f"RETRIAGE_DATA_DIR: {error.filename or folder} cannot be used: {why}")


def _checked(url: str) -> str:
    try:
        _ = urlsplit(url).port
    except ValueError as error:
        raise CommandError("REDIS_URL is no address; one looks like redis://host:6379/0") from error
    return url
