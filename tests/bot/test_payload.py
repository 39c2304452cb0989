"""The parser makes all of a payload that is read of it."""

from collections.abc import Mapping
from typing import Any

import pytest

from bot.webhook import READ, _described
from tests.bot.receiver import MARKER_KEYS, command
from triage.delivery import _READERS, interpret, meaning
from triage.marker import MarkerKeys


@pytest.mark.parametrize("event", sorted({event for event, _ in _READERS}))
def test_all_that_is_read_of_a_payload_is_parsed(event: str) -> None:
    """What the parser leaves out, nobody asks for."""
    for action in sorted(action for name, action in _READERS if name == event):
        payload = Watched(whole() | {"action": action})
        interpret(event, payload, bot_ids=frozenset({7}), keys=MarkerKeys.parse(MARKER_KEYS))
        interpret(event, payload, bot_ids=frozenset(), keys=MarkerKeys.parse(MARKER_KEYS))
        meaning(event, payload)
        _described(payload)
        assert payload.asked
        for path in payload.asked:
            known: Mapping[str, Any] = READ
            for name in path:
                assert name in known, path
                known = known[name] or {below: {} for below in path}  # any value, and all in it


class Watched(dict[str, Any]):
    """An object that notes which paths are asked of it."""

    def __init__(
        self,
        known: Mapping[str, Any],
        path: tuple[str, ...] = (),
        asked: set[tuple[str, ...]] | None = None,
    ) -> None:
        super().__init__(known)
        self.path = path
        self.asked = set() if asked is None else asked

    def get(self, name: str, default: Any = None) -> Any:
        path = (*self.path, name)
        self.asked.add(path)
        value = super().get(name, default)
        return Watched(value, path, self.asked) if isinstance(value, dict) else value


def whole() -> dict[str, Any]:
    """A payload of every event at once."""
    payload = command()
    thing = {**payload["issue"], **payload["comment"], "pull_request": None, "title": "x"}
    named = [{"id": 42, "full_name": "acme/api"}]
    lists = dict.fromkeys(["repositories", "repositories_added", "repositories_removed"], named)
    return {**payload, "issue": thing, "comment": thing, "label": {"name": "bug"}, **lists}
