"""How much of everything one fetch may take, and the error of a fetch that ends early."""

from dataclasses import dataclass

from worker.ports import Obstacle

_LONGEST_DETAIL = 200


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one fetch, redirects and robots.txt included, unless it says otherwise.

    ``connect_seconds`` is for resolving, for connecting and for TLS, each; ``idle_seconds`` for
    each wait. ``wire_bytes`` is all that one answer sends, its head and framing too; ``text_bytes``
    is its content decompressed. ``robots_bytes`` is read of a robots.txt, the rest ignored
    (RFC 9309).
    """

    total_seconds: float = 30.0
    robots_seconds: float = 10.0
    connect_seconds: float = 5.0
    idle_seconds: float = 10.0
    wire_bytes: int = 2 * 1024 * 1024
    text_bytes: int = 4 * 1024 * 1024
    robots_bytes: int = 500 * 1024
    redirects: int = 5


class FetchFailed(Exception):  # noqa: N818 - an outcome, told apart by its attributes
    """No document, and why.

    The detail is one printable line in our words: what the other side sends is not repeated in it,
    since it is read by people and by the model. A media type and an address are no free text.
    """

    def __init__(self, reason: Obstacle, detail: str, *, retryable: bool = False) -> None:
        shown = "".join(each if each.isprintable() else "?" for each in detail)
        self.reason = reason
        self.detail = shown[:_LONGEST_DETAIL]
        self.retryable = retryable
        super().__init__(f"{reason}: {self.detail}")
