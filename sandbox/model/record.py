"""What the model was asked: one record a request, and their sums."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.model.conversation import Call, read_conversation

KEPT_BODIES = 200


@dataclass(slots=True)
class RequestRecord:
    """One request. ``status`` is 0 and ``bytes_out`` grows until its answer is complete."""

    session: str
    method: str
    path: str
    bytes_in: int = 0
    bytes_out: int = 0
    status: int = 0
    issues: int = 0
    behaviour: str | None = None
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The tools called since the newest prompt and what each brought, as this request tells;
        none once the body is let go."""
        return read_conversation(self.body).now

    def public(self) -> dict[str, object]:
        """The form of the control address: everything but the body."""
        return {
            "session": self.session,
            "method": self.method,
            "path": self.path,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "status": self.status,
            "issues": self.issues,
            "behaviour": self.behaviour,
            "calls": [
                {"tool": call.tool, "failed": call.failed, "result": call.result}
                for call in self.calls
            ],
        }


class Record:
    """All requests since the last reset; the bodies of the newest KEPT_BODIES are kept."""

    def __init__(self) -> None:
        self._records: deque[RequestRecord] = deque()

    def add(self, record: RequestRecord) -> None:
        """Append a record, and let the oldest kept body go."""
        self._records.append(record)
        if len(self._records) > KEPT_BODIES:
            self._records[-KEPT_BODIES - 1].body = {}

    def all(self) -> tuple[RequestRecord, ...]:
        """Every record, oldest first."""
        return tuple(self._records)

    def counts(self) -> dict[str, int]:
        """Sums over the requests for messages."""
        asked = [record for record in self._records if record.path == "/v1/messages"]
        return {
            "sessions": len({record.session for record in asked}),
            "requests": len(asked),
            "bytes_in": sum(record.bytes_in for record in asked),
            "bytes_out": sum(record.bytes_out for record in asked),
        }
