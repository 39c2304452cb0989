"""The model behind the agent SDK. The only owner of ``claude_agent_sdk``.

Invariants: no tool, no setting, no file of this machine and no secret but the API key is within the
model's reach; a session ends by its own deadlines; no process outlives its session or its worker.
"""

from worker.agent.adapter import ClaudeAgent

__all__ = ["ClaudeAgent"]
