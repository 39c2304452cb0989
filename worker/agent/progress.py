"""What is seen of a session while it runs: signs of progress, tokens, retries, and its result."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    Message,
    MirrorErrorMessage,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from triage.plan import Cost
from worker.agent.boundaries import INPUT_USD, OUTPUT_USD
from worker.agent.gate import judge, plain
from worker.ports import Denial

ANSWER_TOOL = "StructuredOutput"
KEPT_LINES = 20


@dataclass(slots=True)
class Progress:
    """The course of one session. ``moved_at`` is monotonic; ``api_status`` is of the last retry;
    ``prior_usd`` is what a resumed session had cost before; ``denied`` has the calls of tools that
    were refused, by their ids, and ``suspect`` those that must be; ``copied``: the session is kept,
    and no entry was left out."""

    moved_at: float
    tools: tuple[str, ...] = ()
    root: Path | None = None
    resumed: bool = False
    prior_usd: float = 0.0
    result: ResultMessage | None = None
    api_status: int | None = None
    copied: bool = False
    denied: dict[str, Denial] = field(default_factory=dict)
    suspect: dict[str, Denial] = field(default_factory=dict)
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
            case MirrorErrorMessage():
                self.copied = False
                return
            case SystemMessage(subtype=subtype) if subtype != "init":
                return
            case StreamEvent(event={"type": "ping"}):
                return
            case StreamEvent(event=event):
                self._count(event)
            case AssistantMessage(content=blocks):
                self._look_at(block for block in blocks if isinstance(block, ToolUseBlock))
            case UserMessage(content=list(blocks)):
                self._look_back(block for block in blocks if isinstance(block, ToolResultBlock))
            case ResultMessage():
                self.result = message
                self._add_denials(message)
            case _:
                pass
        self.moved_at = at

    @property
    def cost(self) -> Cost:
        """What was spent: the SDK's estimate, or the dearest price where it gave none."""
        dearest = self.input_tokens * INPUT_USD + self.output_tokens * OUTPUT_USD
        given = self.result.total_cost_usd if self.result else None
        spent = dearest if given is None else max(0.0, given - self.prior_usd)
        return Cost(
            estimated_usd=round(spent, 6),
            turns=self.answers,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            sessions=1,
        )

    @property
    def denials(self) -> tuple[Denial, ...]:
        """Every call of a tool that was refused, by whichever layer, once."""
        return tuple(self.denied.values())

    def _look_at(self, calls: Iterable[ToolUseBlock]) -> None:
        """Keep in mind what must not succeed. Tools that the session does not have, and files of
        devices, the CLI refuses before the gate, and tells the model alone of it."""
        for call in calls:
            if call.name not in (*self.tools, ANSWER_TOOL):
                self.suspect[call.id] = Denial(plain(call.name), "", "no such tool")
            elif self.root and (found := judge(call.name, call.input, self.root)):
                self.suspect[call.id] = found

    def _look_back(self, results: Iterable[ToolResultBlock]) -> None:
        for result in results:
            if result.is_error and result.tool_use_id in self.suspect:
                self.denied.setdefault(result.tool_use_id, self.suspect[result.tool_use_id])

    def _add_denials(self, result: ResultMessage) -> None:
        """Note what the CLI's own rules denied."""
        for entry in result.permission_denials or ():
            call: Mapping[str, Any] = entry if isinstance(entry, dict) else {}
            tool = plain(str(call.get("tool_name")))
            self.denied.setdefault(str(call.get("tool_use_id")), Denial(tool, "", "no rule"))

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
