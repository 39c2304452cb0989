"""What is seen of a session while it runs: signs of progress, tokens, retries, and its result."""

from collections import deque
from dataclasses import dataclass, field

from claude_agent_sdk import Message, ResultMessage, StreamEvent, SystemMessage

from triage.plan import Cost

INPUT_USD = 5e-6
OUTPUT_USD = 25e-6
"""Dollars a token, of the dearest model in use: for what the SDK gives no estimate of."""

KEPT_LINES = 20


@dataclass(slots=True)
class Progress:
    """The course of one session. ``moved_at`` is monotonic; ``api_status`` is of the last retry."""

    moved_at: float
    result: ResultMessage | None = None
    api_status: int | None = None
    answers: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    stderr: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))

    def note(self, message: Message, at: float) -> None:
        """Take a message in. Pings, states and retries are no progress."""
        match message:
            case SystemMessage(subtype="api_retry", data=data):
                status = data.get("error_status")
                self.api_status = status if isinstance(status, int) else None
                return
            case SystemMessage(subtype=subtype) if subtype != "init":
                return
            case StreamEvent(event={"type": "ping"}):
                return
            case StreamEvent(event=event):
                self._count(event)
            case ResultMessage():
                self.result = message
            case _:
                pass
        self.moved_at = at

    @property
    def cost(self) -> Cost:
        """What was spent: the SDK's estimate, or the dearest price where it gave none."""
        dearest = self.input_tokens * INPUT_USD + self.output_tokens * OUTPUT_USD
        given = self.result.total_cost_usd if self.result else None
        return Cost(
            estimated_usd=round(dearest if given is None else given, 6),
            turns=self.answers,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            sessions=1,
        )

    def _count(self, event: dict[str, object]) -> None:
        """Sum the tokens up: an answer's input is known at its start, its output at its end."""
        self.api_status = None
        match event:
            case {"type": "message_start", "message": {"usage": dict(usage)}}:
                self.answers += 1
                self.input_tokens += sum(
                    value
                    for name, value in usage.items()
                    if name.endswith("input_tokens") and isinstance(value, int)
                )
            case {"type": "message_delta", "usage": {"output_tokens": int(tokens)}}:
                self.output_tokens += tokens
            case _:
                pass
