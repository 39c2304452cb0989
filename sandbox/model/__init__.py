"""A model on loopback: the Messages API, answered by plain rules instead of a model.

The real agent SDK and its CLI run whole sessions against it::

    with ModelServer() as server:
        agent = ClaudeAgent(base_url=server.url, ...)
        server.misbehave(Misbehaviour.HANG, sessions=1)

Imports nothing of the product: it reads the prompt in the form that the product documents.
"""

from sandbox.model.behaviour import Misbehaviour
from sandbox.model.record import RequestRecord
from sandbox.model.server import ModelServer

__all__ = ["Misbehaviour", "ModelServer", "RequestRecord"]
