"""What is shown to people, piece by piece."""

from datetime import UTC, datetime, timedelta

import pytest

from cli.failures import Code, CommandError, explained
from cli.outcome import CODES, again
from cli.terminal import LOOKS, SENTENCES, at, clean, clean_lines, seconds
from ledger.errors import DataFolderInUseError, LeaseLost, LedgerCorruptError, ServerStartError
from tests.ledger.samples import run
from triage.contract import Status
from triage.identifiers import Mode

NINE = datetime(2026, 9, 16, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("中文 عربي", "中文 عربي"),
        ("two\nlines\tand  more", "two lines and more"),
        ("\x1b[31mred\x07", "[31mred"),
        ("a\u202eb\u2066c\u200fd", "abcd"),
        ("👩\u200d🔧", "👩\u200d🔧"),
        ("e\u2028f\x00g\ud800", "e fg"),
    ],
)
def test_clean(text: str, shown: str) -> None:
    """What does not show or turns the writing direction goes; the rest stays."""
    assert clean(text) == shown


def test_clean_lines_keeps_lines_and_indentation() -> None:
    """A report is more than one line."""
    assert clean_lines("a\n  > b\x1b\n\nc") == "a\n  > b\n\nc"


def test_moments_have_their_zone_and_utc() -> None:
    """Local first; the day of UTC only where it is another."""
    assert at(NINE, "Asia/Taipei") == "2026-09-16 09:00 Asia/Taipei (01:00 UTC)"
    late = datetime(2026, 9, 15, 23, 0, 5, tzinfo=UTC)
    local = "2026-09-16 07:00:05 Asia/Taipei (2026-09-15 23:00:05 UTC)"
    assert at(late, "Asia/Taipei") == local
    assert at(NINE, "UTC") == "2026-09-16 01:00 UTC"


def test_spans() -> None:
    """Tenths are for short ones."""
    assert seconds(34.2345) == "34.2 s"
    assert seconds(timedelta(minutes=3, seconds=5).total_seconds()) == "3 min 5 s"


def test_every_status_has_a_look_a_sentence_and_a_code() -> None:
    """No two look the same; what is still going on ends no command."""
    assert set(LOOKS) == set(SENTENCES) == set(Status)
    assert len({look.shape for look in LOOKS.values()}) == len(Status)
    assert set(CODES) == set(Status) - {Status.QUEUED, Status.RUNNING}


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (DataFolderInUseError("/data"), 99, "/data"),
        (LeaseLost("key"), 1, "run it again"),
        (LedgerCorruptError("no JSON"), 1, "no JSON"),
        (ServerStartError("it ended", "first\nBad file format"), 1, "Bad file format"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (CommandError("a", "b", code=Code.USAGE), 2, "a\nb"),
    ],
)
def test_expected_failures(error: BaseException, code: int, said: str) -> None:
    """Each has its code and names the thing."""
    told = explained(error)
    assert told.code == code
    assert said in str(told)


@pytest.mark.parametrize(
    ("job", "mode", "words"),
    [
        ("daily-issue-triage", Mode.OBSERVE, "--window 2026-09-16"),
        ("daily-issue-triage", Mode.LABEL, "--window 2026-09-16 --mode label"),
        ("nightly-repo-review", Mode.OBSERVE, "--job nightly-repo-review --window 2026-09-16"),
    ],
)
def test_the_command_that_asks_again(job: str, mode: Mode, words: str) -> None:
    """It names what is not taken for granted."""
    inputs = run(f"{job}:R7:2026-09-16:p0000000a").inputs.model_copy(update={"mode": mode})
    assert again(inputs) == f"retriage run acme/API {words}"
