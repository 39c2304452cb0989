"""What the model was told to do and what it was asked, shared by its server and by Python."""

import threading
from collections.abc import Mapping
from typing import Any

from sandbox.model.behaviour import Misbehaviour, Order
from sandbox.model.record import Record, RequestRecord


class BadOrderError(ValueError):
    """The control address was given something that is no order."""


class ModelState:
    """Orders and record. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: list[Order] = []
        self._record = Record()
        self.closing = False

    def add(self, order: Order) -> None:
        """Put an order behind those that stand."""
        with self._lock:
            self._orders.append(order)

    def order(self, fields: object) -> None:
        """Add an order in the form of the control address. Raises BadOrderError."""
        if not isinstance(fields, dict):
            raise BadOrderError("an order is an object that names its behaviour")
        try:
            kind = Misbehaviour(str(fields.get("behaviour")))
        except ValueError:
            known = ", ".join(Misbehaviour)
            raise BadOrderError(f"behaviour is none of: {known}") from None
        order = Order(
            kind,
            sessions=_whole(fields, "sessions"),
            requests=_whole(fields, "requests"),
            issues=_numbers(fields.get("issues")),
            retry_after=_whole(fields, "retry_after"),
            calls=_calls(fields.get("calls")),
        )
        self.add(order)

    def admit(self, record: RequestRecord) -> Order | None:
        """Write a request down and give the first order that meets it."""
        with self._lock:
            self._record.add(record)
            found = next((order for order in self._orders if order.takes(record.session)), None)
            self._orders = [order for order in self._orders if not order.spent]
            record.behaviour = found.kind.value if found else None
            return found

    def note(self, record: RequestRecord) -> None:
        """Write a request down that no order can meet."""
        with self._lock:
            self._record.add(record)

    def reset(self) -> None:
        """Forget every order and every request."""
        with self._lock:
            self._orders = []
            self._record = Record()

    def requests(self) -> tuple[RequestRecord, ...]:
        """Every request, oldest first."""
        with self._lock:
            return self._record.all()

    def counts(self) -> dict[str, int]:
        """Sessions, requests, bytes in and bytes out."""
        with self._lock:
            return self._record.counts()

    def public(self) -> dict[str, object]:
        """The form of the control address."""
        with self._lock:
            return {
                "orders": [order.public() for order in self._orders],
                "counts": self._record.counts(),
                "requests": [record.public() for record in self._record.all()],
            }


def _whole(fields: Mapping[str, Any], name: str) -> int | None:
    value = fields.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise BadOrderError(f"{name} is a whole number or null")
    return value


def _calls(value: object) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    calls = [] if value is None else value
    if not isinstance(calls, list):
        raise BadOrderError("calls is a list")
    for call in calls:
        match call:
            case {"tool": str(), "input": dict()}:
                pass
            case _:
                raise BadOrderError("a call is an object with a tool and its input")
    return tuple((call["tool"], call["input"]) for call in calls)


def _numbers(value: object) -> frozenset[int] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(number, int) for number in value):
        raise BadOrderError("issues is a list of numbers or null")
    return frozenset(value)
