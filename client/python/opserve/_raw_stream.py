"""Streams whose events are taken by the thread that wants them.

gRPC's own streams have a thread that sends, and one that wakes the threads that wait for messages:
for a small request that takes longer than all else. Like calls of one operation (_one_batch.py),
these streams use parts of gRPC that are not public; with a version that has other parts there are
none.
"""

from __future__ import annotations

import enum
from typing import Any

import grpc

from opserve._one_batch import Metadata, Status

try:
    from grpc._cython import cygrpc
except ImportError:
    cygrpc = None


class Event(enum.Enum):
    """An event of a stream."""

    BEGUN = enum.auto()  # or never will
    SENT = enum.auto()  # the message, or it never will be
    RECEIVED = enum.auto()  # a message, or the last one has been
    ENDED = enum.auto()  # with a status; perhaps not the last event


class RawStream:
    """A stream of messages in both directions.

    One message at a time may be on its way to be sent, and one be waited for. next_event() waits,
    and is called by one thread at a time. All other methods wait for nothing.

    Raises AttributeError or TypeError where gRPC has other internals.
    """

    def __init__(self, channel: Any, method: str, metadata: Metadata, first: bytes) -> None:
        """Begins to send `first`, and to wait for a message.

        Args:
            channel: of grpc's.
        """
        public = channel.stream_stream(method)
        context: tuple[Any, ...] = (public._context,)
        if hasattr(public, "_registered_call_handle"):  # not in grpcio 1.57
            context += (public._registered_call_handle,)
        self._send_message = cygrpc.SendMessageOperation
        self._receive_message = cygrpc.ReceiveMessageOperation
        self._send_close = cygrpc.SendCloseFromClientOperation
        begin = (
            cygrpc.SendInitialMetadataOperation(metadata, 0),
            cygrpc.SendMessageOperation(first, 0),
        )
        self._call = public._channel.segregated_call(
            cygrpc.PropagationConstants.GRPC_PROPAGATE_DEFAULTS,
            public._method,
            None,
            None,
            metadata,
            None,
            (
                (begin, Event.SENT),
                ((cygrpc.ReceiveInitialMetadataOperation(0),), Event.BEGUN),
                ((cygrpc.ReceiveMessageOperation(0),), Event.RECEIVED),
                ((cygrpc.ReceiveStatusOnClientOperation(0),), Event.ENDED),
            ),
            *context,
        )
        self._events_to_come = 4

    @property
    def is_over(self) -> bool:
        """Whether there are no more events."""
        return self._events_to_come == 0

    def send(self, message: bytes) -> None:
        self._start(self._send_message(message, 0), Event.SENT)

    def close(self) -> None:
        """Says that no message follows, as if that were one."""
        self._start(self._send_close(0), Event.SENT)

    def receive(self) -> None:
        self._start(self._receive_message(0), Event.RECEIVED)

    def next_event(self) -> tuple[Event, Any]:
        """Waits for an event. RECEIVED comes with the message, ENDED with the status."""
        event = self._call.next_event()
        self._events_to_come -= 1
        if event.tag is Event.RECEIVED:
            return event.tag, event.batch_operations[0].message()
        if event.tag is Event.ENDED:
            return event.tag, Status(event.batch_operations[0])
        return event.tag, None

    def cancel(self) -> None:
        """Ends it; the events that are to come come."""
        self._call.cancel(grpc.StatusCode.CANCELLED.value[0], "the client ends the session")

    def end(self) -> None:
        """Ends it, and takes the events that are to come, which come at once."""
        if not self.is_over:
            self.cancel()
        while not self.is_over:
            self.next_event()

    def _start(self, operation: Any, tag: Event) -> None:
        if self._call.operate((operation,), tag):
            self._events_to_come += 1
