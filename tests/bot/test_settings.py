"""The settings: what each variable may be, and that nothing shows a secret."""

from typing import Any

import pytest

from bot.settings import ClockSettings, SettingsError, WebSettings, read_settings
from tests.bot.receiver import CRON_SECRET, MARKER_KEYS, SECRET, settings


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"redis_url": "http://x"}, "REDIS_URL: must start with redis://, rediss:// or unix://"),
        ({"marker_keys": "k1"}, "MARKER_KEYS: the secret of key"),
        ({"marker_keys": ","}, "MARKER_KEYS: at least one kid:hex is needed"),
        ({"port": "99999"}, "PORT: input should be less than or equal to 65535"),
        ({"port": "x"}, "PORT: input should be a valid integer"),
        ({"retriage_tick_seconds": "0"}, "RETRIAGE_TICK_SECONDS: input should be greater"),
        ({"retriage_tick_seconds": "61"}, "RETRIAGE_TICK_SECONDS: input should be less"),
        ({"log_format": "xml"}, "LOG_FORMAT: input should be 'line' or 'json'"),
        ({"log_level": "loud"}, "LOG_LEVEL: input should be 'debug', 'info', 'warning' or 'error'"),
    ],
)
def test_a_malformed_one_names_its_variable(given: dict[str, Any], line: str) -> None:
    """In one line."""
    valid = {"redis_url": "redis://x", "webhook_secret": SECRET, "marker_keys": MARKER_KEYS}
    with pytest.raises(SettingsError) as caught:
        read_settings(WebSettings, **{**valid, **given})
    (problem,) = caught.value.problems
    assert problem.startswith(line)
    assert "\n" not in problem


def test_every_problem_is_told_at_once() -> None:
    """Nobody wants to be told one after the other."""
    with pytest.raises(SettingsError) as caught:
        read_settings(ClockSettings, redis_url="x", log_format="xml")
    assert len(caught.value.problems) == 2


def test_no_secret_is_shown() -> None:
    """However the settings are printed."""
    shown = settings("redis://:a-password@host")
    for secret in (SECRET, CRON_SECRET, MARKER_KEYS, "a-password"):
        assert secret not in f"{shown} {shown!r} {shown.model_dump_json()}"


def test_defaults() -> None:
    """A tick each minute; any case of a level's name."""
    read = read_settings(ClockSettings, redis_url="redis://x", log_level="INFO")
    assert (read.retriage_tick_seconds, read.log_level, read.log_format) == (60, "info", "line")
