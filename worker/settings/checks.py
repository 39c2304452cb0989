"""What settings must fulfil beyond their types, together and for each kind of process."""

import ipaddress
import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from ledger.connection import address_problem
from triage.marker import MalformedMarkerKeyError, MarkerKeys
from worker.settings.folders import contains_problem, unsafe_path
from worker.settings.problems import NEEDS, SettingsError
from worker.settings.values import Settings

_PEM = re.compile(
    r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----\s[A-Za-z0-9+/=\s]+-----END \1-----\s*", re.ASCII
)


class Process(StrEnum):
    """What a process is for; each needs other settings."""

    WEB = "web"
    WORKER = "worker"
    CLOCK = "clock"
    RUN = "run"


def lacks(settings: Settings, process: Process) -> Iterator[str]:
    """What this kind of process cannot do without. The web process can do without an App."""
    if settings.has_app and settings.marker_keys is None:
        yield NEEDS["MARKER_KEYS"]
    if process is Process.WEB and settings.has_app and settings.webhook_secret is None:
        yield NEEDS["WEBHOOK_SECRET"]
    if process is Process.WORKER and not settings.has_app:
        yield NEEDS["APP_ID"]
    if process is Process.RUN and not settings.has_app and settings.github_token is None:
        yield NEEDS["GITHUB_TOKEN"]
    model = settings.anthropic_api_key or settings.anthropic_base_url
    if process in (Process.WORKER, Process.RUN) and not model:
        yield NEEDS["ANTHROPIC_API_KEY"]


def faults(settings: Settings) -> Iterator[str]:
    """What does not fit together, or is malformed in a way that a type does not show."""
    for check in _CHECKS:
        problem = check(settings)
        if problem:
            yield problem


def _key_is_whole(settings: Settings) -> str | None:
    given = settings.private_key is not None or settings.private_key_path is not None
    if given and not settings.has_app:
        return "APP_ID is missing: PRIVATE_KEY belongs to an App"
    if settings.has_app and not given:
        return NEEDS["PRIVATE_KEY"]
    if settings.private_key is not None and settings.private_key_path is not None:
        return "PRIVATE_KEY_PATH and PRIVATE_KEY are both set: keep one of them"
    name = "PRIVATE_KEY" if settings.private_key is not None else "PRIVATE_KEY_PATH"
    try:
        pem = settings.private_key_pem()
    except SettingsError as error:
        return error.problems[0]
    whole = pem is None or _PEM.fullmatch(pem)
    return None if whole else f"{name} is no private key in PEM, whole from -----BEGIN to -----END"


def _marker_keys_parse(settings: Settings) -> str | None:
    try:
        if settings.marker_keys is not None:
            MarkerKeys.parse(settings.marker_keys.get_secret_value())
    except MalformedMarkerKeyError as error:
        return f"MARKER_KEYS: {error}"
    return None


def _github_is_safe(settings: Settings) -> str | None:
    return _url_problem("GITHUB_API_URL", settings.github_api_url, plain_on_loopback_only=True)


def _model_address(settings: Settings) -> str | None:
    url = settings.anthropic_base_url
    return url and _url_problem("ANTHROPIC_BASE_URL", url, plain_on_loopback_only=False)


def _redis_address(settings: Settings) -> str | None:
    if settings.redis_url is None:
        return None
    problem = address_problem(settings.redis_url.get_secret_value())
    return problem and f"REDIS_URL {problem}"


def _checkouts_are_apart(settings: Settings) -> str | None:
    problem = contains_problem(settings.data_dir, settings.checkout_dir)
    if problem is None and settings.retriage_checkout_dir is not None:
        problem = unsafe_path(settings.checkout_dir)
    return problem and f"RETRIAGE_CHECKOUT_DIR: {problem}"


def _lease_outlives_request(settings: Settings) -> str | None:
    timing = settings.timing()
    if timing.lease > timing.request + timing.margin:
        return None
    least = (timing.request + timing.margin).total_seconds()
    return f"RETRIAGE_LEASE_SECONDS must be more than {least:g}: a request and its margin"


def _lock_delay_outlives_request(settings: Settings) -> str | None:
    timing = settings.timing()
    if timing.lock_delay > timing.request:
        return None
    least = timing.request.total_seconds()
    return (
        f"RETRIAGE_LOCK_DELAY_SECONDS must be more than {least:g}, RETRIAGE_REQUEST_TIMEOUT_SECONDS"
    )


def _absence_outlives_request(settings: Settings) -> str | None:
    timing = settings.timing()
    if timing.absence_window > timing.request:
        return None
    least = timing.request.total_seconds()
    return (
        f"RETRIAGE_ABSENCE_WINDOW_SECONDS must be more than {least:g}, "
        "RETRIAGE_REQUEST_TIMEOUT_SECONDS"
    )


_CHECKS: Final[tuple[Callable[[Settings], str | None], ...]] = (
    _key_is_whole,
    _marker_keys_parse,
    _github_is_safe,
    _model_address,
    _redis_address,
    _checkouts_are_apart,
    _lease_outlives_request,
    _lock_delay_outlives_request,
    _absence_outlives_request,
)


def _url_problem(variable: str, url: str, *, plain_on_loopback_only: bool) -> str | None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
        (host or "").encode("idna")
    except ValueError:  # UnicodeError is one
        return f"{variable} is no URL"
    if parts.scheme not in ("http", "https") or not host:
        return f"{variable} must be an https:// address"
    if parts.username or parts.password or parts.query or parts.fragment:
        return f"{variable} must hold neither a user nor a query"
    if plain_on_loopback_only and parts.scheme == "http" and not is_loopback(host):
        return f"{variable} must be https://: http:// is for this machine alone"
    return None


def is_loopback(host: str) -> bool:
    """True for this machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
