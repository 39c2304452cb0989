"""The model behind the agent SDK. The only owner of ``claude_agent_sdk``.

Invariants: within the model's reach are no tool but reading, no file but those of the checkout that
it was given, no setting of this machine or of the repository, and no secret but the API key; a
session ends by its own deadlines; no process outlives its session or its worker. Where each is
held: ``boundaries``.
"""

from worker.agent.adapter import ClaudeAgent, Host

__all__ = ["ClaudeAgent", "Host"]
