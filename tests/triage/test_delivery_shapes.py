"""Deliveries of any shape: no JSON makes the reading fail, and asks travel as JSON."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.triage.deliveries import (
    ADA,
    BOT,
    NAMED,
    OWN_TEXT,
    REPOSITORIES,
    ask,
    comment,
    payload,
)
from triage.asks import Installed, Removed, RemovedLabel, parse_ask
from triage.delivery import Ignored, meaning


def test_the_same_thing_has_the_same_meaning() -> None:
    """Two hooks send one comment under two delivery ids; an edit or another comment differs."""
    data = payload("created", comment=comment("/retriage"))
    again = json.loads(json.dumps({**data, "hook": "another"}))
    other = payload("created", comment={**comment("/retriage"), "id": 78})
    assert meaning("issue_comment", data) == meaning("issue_comment", again) is not None
    assert meaning("issue_comment", data) != meaning("issue_comment", other)
    assert meaning("issue_comment", data) != meaning("issue_comment", {**data, "action": "deleted"})


def test_some_deliveries_have_no_meaning_beyond_their_id() -> None:
    """An App may be suspended twice within a second; asking twice is harmless."""
    assert meaning("installation", {"action": "suspend", "installation": {"id": 5}}) is None
    assert meaning("issue_comment", payload("created", comment={"id": 77})) is None
    assert meaning("ping", {}) is None


def test_asks_travel_as_json() -> None:
    """Through the queue and back."""
    removed = Removed(installation="5", whole=False, repositories=REPOSITORIES)
    outcomes = [
        ask("issue_comment", payload("created", comment=comment("/retriage --force"))),
        ask("issue_comment", payload("created", BOT, comment=comment(OWN_TEXT, BOT))),
        ask("issue_comment", payload("deleted", comment=comment(OWN_TEXT, BOT))),
        ask("issues", payload("unlabeled", label={"name": "bug"})),
        ask("issues", payload("opened")),
        ask("repository", payload("renamed")),
        (Installed(installation="5", repositories=REPOSITORIES), removed),
    ]
    for outcome in outcomes:
        assert isinstance(outcome, tuple)
        for item in outcome:
            assert parse_ask(json.loads(json.dumps(item.model_dump(mode="json")))) == item


def test_half_a_surrogate_does_not_travel() -> None:
    """JSON can name what no encoding can write."""
    outcome = ask("issues", payload("unlabeled", label={"name": json.loads('"b\\ud800g"')}))
    assert isinstance(outcome, tuple)
    assert outcome[0].model_dump_json()
    assert isinstance(outcome[0], RemovedLabel)
    assert outcome[0].label == "b?g"


EVENTS = st.sampled_from(
    [
        "issues",
        "issue_comment",
        "installation",
        "installation_repositories",
        "repository",
        "label",
        "ping",
        "push",
    ]
)
ACTIONS = st.sampled_from(
    ["created", "deleted", "opened", "unlabeled", "added", "removed", "renamed", "suspend", "x"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(EVENTS | st.text(max_size=20), JSON)
def test_no_json_raises(event: str, data: Any) -> None:
    """Not even what is no object."""
    assert isinstance(ask(event, data), (tuple, Ignored))
    assert isinstance(meaning(event, data), (str, type(None)))


@settings(max_examples=300)
@given(EVENTS, ACTIONS, st.data())
def test_no_damaged_delivery_raises(event: str, action: str, draw: st.DataObject) -> None:
    """A well-formed delivery with anything in any one place."""
    data = payload(
        action,
        draw.draw(st.sampled_from([ADA, BOT])),
        comment=comment(draw.draw(st.sampled_from(["/retriage", OWN_TEXT, "x"])), BOT),
        label={"name": "bug"},
        repositories=NAMED,
        repositories_added=NAMED,
    )
    outer = draw.draw(st.sampled_from(sorted(data)))
    if isinstance(data[outer], dict) and draw.draw(st.booleans()):
        data[outer][draw.draw(st.sampled_from(sorted(data[outer])))] = draw.draw(JSON)
    else:
        data[outer] = draw.draw(JSON)
    outcome = ask(event, data)
    assert isinstance(outcome, (tuple, Ignored))
    for item in outcome if isinstance(outcome, tuple) else ():
        assert parse_ask(json.loads(item.model_dump_json())) == item


# --- GitHub's own examples ----------------------------------------------------------------------

EXAMPLES = Path(
    os.environ.get("RETRIAGE_WEBHOOK_EXAMPLES")
    or Path(__file__).parents[3] / "shared" / "data" / "webhooks"
)


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="no example deliveries beside the repository")
def test_githubs_examples_are_taken_or_ignored_for_a_reason() -> None:
    """Each of them, by its file name ``event.action.n.json``."""
    taken: dict[str, int] = {}
    for file in sorted(EXAMPLES.glob("*.json")):
        event = file.name.split(".", 1)[0]
        data = json.loads(file.read_text("utf-8"))
        outcome = ask(event, data)
        if isinstance(outcome, Ignored):
            assert outcome.reason
            assert not outcome.reason.startswith("the payload lacks"), file.name
        else:
            name = f"{event}.{data['action']}"
            taken[name] = taken.get(name, 0) + 1
    assert taken == {
        "installation.created": 2,
        "installation.deleted": 2,
        "installation.new_permissions_accepted": 1,
        "installation.suspend": 1,
        "installation.unsuspend": 1,
        "installation_repositories.added": 2,
        "installation_repositories.removed": 1,
        "issues.opened": 4,
        "issues.unlabeled": 2,
        "repository.renamed": 1,
        "repository.transferred": 3,
    }
