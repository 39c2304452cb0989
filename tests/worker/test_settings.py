"""Settings: each problem one clear line that names its variable, and never a secret."""

import multiprocessing
import os
import stat
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from ledger.timing import LedgerTiming
from triage.marker import MarkerKeys
from worker.settings import Process, Settings, SettingsError, read_settings
from worker.settings.kept_key import KEY_FILE

PEM = "-----BEGIN RSA PRIVATE KEY-----\nAAAA\nBBBB\n-----END RSA PRIVATE KEY-----\n"
KEYS = "k2:" + "ab" * 32 + ",k1:" + "cd" * 32
APP = {"APP_ID": "42", "PRIVATE_KEY": PEM, "MARKER_KEYS": KEYS, "ANTHROPIC_API_KEY": "key-of-model"}
TOKEN = {"GITHUB_TOKEN": "ghp_0123456789abcdef", "ANTHROPIC_API_KEY": "key-of-model"}

Reading = Callable[..., Settings]


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Reading:
    """Read settings from these variables and no others."""
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)

    def read(process: Process = Process.RUN, **variables: str) -> Settings:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return read_settings(process)

    return read


def problems(reading: Reading, process: Process = Process.RUN, **variables: str) -> list[str]:
    """What is said of them."""
    with pytest.raises(SettingsError) as error:
        reading(process, **variables)
    assert str(error.value) == "\n".join(error.value.problems)
    return list(error.value.problems)


# --- What each process needs -----------------------------------------------------------------

APP_MISSING = "APP_ID is missing: the id of the GitHub App (README, Install it)"
TOKEN_MISSING = "GITHUB_TOKEN is missing: a token, or an App with APP_ID and PRIVATE_KEY"
MODEL_MISSING = "ANTHROPIC_API_KEY is missing: the key of the model"


@pytest.mark.parametrize(
    ("process", "expected"),
    [
        (Process.WEB, []),  # it serves /setup
        (Process.CLOCK, []),
        (Process.WORKER, [APP_MISSING, MODEL_MISSING]),
        (Process.RUN, [TOKEN_MISSING, MODEL_MISSING]),
    ],
)
def test_without_settings_each_process_says_what_it_lacks(
    reading: Reading, process: Process, expected: list[str]
) -> None:
    """All of it at once."""
    if expected:
        assert problems(reading, process) == expected
    else:
        assert not reading(process).has_app


@pytest.mark.parametrize("process", Process)
def test_an_app_is_enough_for_every_process(reading: Reading, process: Process) -> None:
    """With the webhook's secret for the web."""
    settings = reading(process, **APP, WEBHOOK_SECRET="s3cret-of-hook")
    assert settings.has_app
    assert settings.may_write


def test_the_web_process_of_an_app_needs_the_webhook_secret(reading: Reading) -> None:
    """Otherwise anyone could send deliveries."""
    assert problems(reading, Process.WEB, **APP) == [
        "WEBHOOK_SECRET is missing: the secret of the App's webhook"
    ]


@pytest.mark.parametrize("process", Process)
def test_an_app_needs_marker_keys(reading: Reading, process: Process) -> None:
    """A key that every process makes for itself would be another in each."""
    variables = {**APP, "WEBHOOK_SECRET": "s3cret-of-hook", "MARKER_KEYS": ""}
    assert problems(reading, process, **variables) == [
        "MARKER_KEYS is missing: kid:hex, newest first; what signs the bot's text"
    ]


def test_a_persons_token_may_only_observe(reading: Reading) -> None:
    """Unless its account is named as the bot's own."""
    assert not reading(**TOKEN).may_write
    assert reading(RETRIAGE_BOT_ID="7").may_write


def test_a_gateway_may_need_no_key_of_the_model(reading: Reading) -> None:
    """An address of its own is enough."""
    settings = reading(GITHUB_TOKEN="t" * 20, ANTHROPIC_BASE_URL="http://model.internal:4000")
    assert settings.anthropic_api_key is None


# --- What is malformed -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"APP_ID": "my-app"}, "APP_ID: "),
        ({"PORT": "http"}, "PORT: "),
        ({"PORT": "70000"}, "PORT: "),
        ({"LOG_LEVEL": "loud"}, "LOG_LEVEL: "),
        ({"LOG_FORMAT": "xml"}, "LOG_FORMAT: "),
        ({"RETRIAGE_BOT_ID": "alice"}, "RETRIAGE_BOT_ID: "),
        ({"RETRIAGE_LEASE_SECONDS": "0"}, "RETRIAGE_LEASE_SECONDS: "),
        ({"RETRIAGE_LOCK_DELAY_SECONDS": "x"}, "RETRIAGE_LOCK_DELAY_SECONDS: "),
        ({"RETRIAGE_ABSENCE_WINDOW_SECONDS": "-1"}, "RETRIAGE_ABSENCE_WINDOW_SECONDS: "),
        ({"RETRIAGE_REQUEST_TIMEOUT_SECONDS": "inf"}, "RETRIAGE_REQUEST_TIMEOUT_SECONDS: "),
        ({"RETRIAGE_WRITE_INTERVAL_SECONDS": "-1"}, "RETRIAGE_WRITE_INTERVAL_SECONDS: "),
        ({"RETRIAGE_PACING_SCALE": "0"}, "RETRIAGE_PACING_SCALE: "),
        ({"RETRIAGE_LEASE_SECONDS": "25"}, "RETRIAGE_LEASE_SECONDS must be more than 25"),
        (
            {"RETRIAGE_ABSENCE_WINDOW_SECONDS": "20"},
            "RETRIAGE_ABSENCE_WINDOW_SECONDS must be more than 20",
        ),
        ({"RETRIAGE_LOCK_DELAY_SECONDS": "20"}, "RETRIAGE_LOCK_DELAY_SECONDS must be more than 20"),
        ({"GITHUB_API_URL": "http://ghe.example"}, "GITHUB_API_URL must be https://"),
        ({"GITHUB_API_URL": "http://127.0.0.1.example"}, "GITHUB_API_URL must be https://"),
        ({"GITHUB_API_URL": "ghe.example"}, "GITHUB_API_URL must be an https:// address"),
        ({"GITHUB_API_URL": "file:///x"}, "GITHUB_API_URL must be an https:// address"),
        ({"GITHUB_API_URL": "https://[x"}, "GITHUB_API_URL is no URL"),
        ({"GITHUB_API_URL": "https://a:b@ghe.example"}, "GITHUB_API_URL must hold neither"),
        ({"ANTHROPIC_BASE_URL": "model"}, "ANTHROPIC_BASE_URL must be an https:// address"),
        ({"REDIS_URL": "localhost:6379"}, "REDIS_URL must start with redis://"),
        ({"REDIS_URL": "redis://h/first"}, "REDIS_URL has a database that is no number"),
        ({"REDIS_URL": "redis://h/0?foo=bar"}, "REDIS_URL has an option that the client does not"),
        ({"REDIS_URL": "redis://h?db=x"}, "REDIS_URL has an option that the client does not"),
        ({"GITHUB_API_URL": "https://\u202eghe.example"}, "GITHUB_API_URL is no URL"),
        ({"MARKER_KEYS": "abc"}, "MARKER_KEYS: the secret of key 1 must"),
        ({"MARKER_KEYS": f"{KEYS},k1:{'ef' * 32}"}, "MARKER_KEYS: a key id stands there twice"),
        ({"PRIVATE_KEY": PEM}, "APP_ID is missing: PRIVATE_KEY belongs to an App"),
    ],
)
def test_what_is_malformed_is_one_line_that_names_the_variable(
    reading: Reading, variables: dict[str, str], said: str
) -> None:
    """And nothing else is said."""
    lines = problems(reading, Process.RUN, **{**TOKEN, **variables})
    assert len(lines) == 1
    assert lines[0].startswith(said)
    assert "\n" not in lines[0]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"PRIVATE_KEY": ""}, "PRIVATE_KEY is missing: the App's private key, or PRIVATE_KEY_PATH"),
        ({"PRIVATE_KEY": PEM[:40]}, "PRIVATE_KEY is no private key in PEM"),
        ({"PRIVATE_KEY": "A" * 64}, "PRIVATE_KEY is no private key in PEM"),
        ({"PRIVATE_KEY_PATH": "/x"}, "PRIVATE_KEY_PATH and PRIVATE_KEY are both set"),
        (
            {"PRIVATE_KEY": "", "PRIVATE_KEY_PATH": "/no/such/key.pem"},
            "PRIVATE_KEY_PATH cannot be read: No such file",
        ),
    ],
)
def test_an_apps_key_is_whole(reading: Reading, variables: dict[str, str], said: str) -> None:
    """Found at start, not at the first request."""
    lines = problems(reading, Process.RUN, **{**APP, **variables})
    assert [line.startswith(said) for line in lines] == [True]


def test_no_problem_shows_a_value(reading: Reading) -> None:
    """A variable may hold the secret of another."""
    secret = "ghp_pasted_into_the_wrong_place"
    for name in Settings.model_fields:
        said = ""
        try:
            reading(**{**TOKEN, name.upper(): secret})
        except SettingsError as error:
            said = str(error)
        assert secret not in said
        os.environ.pop(name.upper(), None)


def test_secrets_are_asterisks_wherever_they_are_printed(reading: Reading) -> None:
    """And the log is given their values, to keep them out."""
    settings = reading(**APP, GITHUB_TOKEN="ghp_0123456789abcdef", REDIS_URL="redis://:pw@host")
    shown = repr(settings) + str(settings) + settings.model_dump_json()
    for secret in ("AAAA", "ghp_0123", "pw@host", "key-of-model", "cd" * 32):
        assert secret not in shown
        assert any(secret in value for value in settings.secret_values())


# --- What follows ----------------------------------------------------------------------------


def test_a_key_of_one_line_is_accepted(reading: Reading) -> None:
    """As many platforms keep it: with the two characters backslash and n."""
    settings = reading(**{**APP, "PRIVATE_KEY": PEM.replace("\n", "\\n")})
    assert settings.private_key_pem() == PEM


def test_a_key_may_be_a_file(reading: Reading, tmp_path: Path) -> None:
    """PRIVATE_KEY_PATH."""
    path = tmp_path / "key.pem"
    path.write_text(PEM)
    settings = reading(**{**APP, "PRIVATE_KEY": "", "PRIVATE_KEY_PATH": str(path)})
    assert settings.private_key_pem() == PEM
    assert reading(Process.CLOCK, APP_ID="", PRIVATE_KEY_PATH="").private_key_pem() is None


def test_the_defaults_are_those_of_the_ledger(reading: Reading) -> None:
    """Two modules keep the same bounds."""
    timing, ledger = reading(**TOKEN).timing(), LedgerTiming()
    assert (timing.lease, timing.lock_delay) == (ledger.lease, ledger.lock_delay)
    assert (timing.request, timing.margin) == (ledger.request, ledger.margin)
    assert timing.absence_window == ledger.absence_window


def test_short_bounds_for_tests_are_allowed_in_their_proportions(reading: Reading) -> None:
    """The margin shrinks with the request."""
    timing = reading(
        **TOKEN,
        RETRIAGE_LEASE_SECONDS="2",
        RETRIAGE_LOCK_DELAY_SECONDS="1",
        RETRIAGE_REQUEST_TIMEOUT_SECONDS="0.8",
        RETRIAGE_ABSENCE_WINDOW_SECONDS="1.5",
    ).timing()
    assert timing.margin == timedelta(seconds=0.2)
    assert timing.lease == timedelta(seconds=2)


@pytest.mark.parametrize(
    "url",
    [
        "https://api.github.com",
        "https://ghe.example/api/v3",
        "http://127.0.0.1:8300",
        "http://localhost:8300/",
        "http://[::1]:8300",
    ],
)
def test_github_may_be_elsewhere(reading: Reading, url: str) -> None:
    """GitHub Enterprise Server; without TLS only on this machine."""
    assert reading(**TOKEN, GITHUB_API_URL=url).github_api_url == url


def test_a_file_may_hold_settings_and_the_environment_wins(
    reading: Reading, tmp_path: Path
) -> None:
    """As /setup writes them."""
    file = tmp_path / "app.env"
    file.write_text("PORT=9000\nLOG_LEVEL=DEBUG\n")
    reading(**TOKEN, PORT="7000")
    settings = read_settings(Process.RUN, env_file=file)
    assert (settings.port, settings.log_level) == (7000, "debug")


# --- The kept marker key ---------------------------------------------------------------------


def test_a_key_is_kept_for_the_command_line(reading: Reading, tmp_path: Path) -> None:
    """Made once, mode 0600, under the data folder; a folder of its own has another."""
    folder = tmp_path / "new" / "data"
    settings = reading(**TOKEN, RETRIAGE_DATA_DIR=str(folder))
    assert not folder.exists()
    keys = settings.keys()
    assert settings.keys() == keys
    assert stat.S_IMODE((folder / KEY_FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    other = reading(RETRIAGE_DATA_DIR=str(tmp_path / "other")).keys()
    assert other.keys[0].kid != keys.keys[0].kid


def test_keys_that_are_given_win(reading: Reading, tmp_path: Path) -> None:
    """Nothing is kept then."""
    settings = reading(**APP, RETRIAGE_DATA_DIR=str(tmp_path))
    assert settings.keys() == MarkerKeys.parse(KEYS)
    assert list(tmp_path.iterdir()) == []


def _kept(folder: Path) -> str:
    """The key of a folder, as another process gets it."""
    settings = Settings(retriage_data_dir=folder)
    return settings.keys().keys[0].kid


def test_two_at_once_agree_on_the_key(tmp_path: Path) -> None:
    """Eight processes, one key."""
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert len(set(pool.map(_kept, [tmp_path] * 8))) == 1


def test_a_folder_that_cannot_be_used_is_one_line(reading: Reading, tmp_path: Path) -> None:
    """It names the variable and the file."""
    (tmp_path / "file").write_text("")
    settings = reading(**TOKEN, RETRIAGE_DATA_DIR=str(tmp_path / "file"))
    with pytest.raises(SettingsError, match=r"^RETRIAGE_DATA_DIR: .* cannot be used: "):
        settings.keys()
    (tmp_path / KEY_FILE).write_text("nothing of a key")
    with pytest.raises(SettingsError, match=r"^RETRIAGE_DATA_DIR: .* holds no marker key$"):
        reading(RETRIAGE_DATA_DIR=str(tmp_path)).keys()
