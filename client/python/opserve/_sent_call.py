"""Calls that were sent, and whose answers are waited for later, or told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Optional, Union

import grpc

from opserve import _frame, errors
from opserve._session import SessionCall


class SentCall:
    """A call whose answer was not waited for. Thread-safe.

    The answer is read on the thread that waits for it, so that no other one has to wake up. The
    call goes on as long as this object lives.
    """

    def __init__(
        self,
        call: Any,
        repeat: Callable[[Optional[errors.OpserveError]], _frame.Buffer],
        succeed: Callable[[], None],
    ) -> None:
        """
        Args:
            call: of a session's, or of grpc's: an iterator with the answer as its only message.
            repeat: sends the call again as long as that is right, the first time after the error
                that it is given, None: it has run nowhere; waits for the answer. OpserveError: the
                outcome.
            succeed: is told that the first attempt has succeeded.
        """
        self._call = call
        self._repeat = repeat
        self._succeed = succeed
        self._lock = threading.Lock()
        # Of the first attempt, guarded by _lock.
        self._is_over = False
        self._answer: Optional[_frame.Buffer] = None
        self._failure: Optional[errors.OpserveError] = None

    @property
    def is_over(self) -> bool:
        """Whether result() would not wait for the first attempt."""
        return self._is_over

    def wait(self) -> None:
        """Waits until result() would not wait for the first attempt."""
        with self._lock:
            if not self._is_over:
                self._read()

    def result(self) -> _frame.Buffer:
        """Waits for the answer, and repeats the call after errors that may pass.

        It is to be called once.
        """
        self.wait()
        answer, self._answer = self._answer, None
        failure, self._failure = self._failure, None
        if answer is None:
            return self._repeat(failure)
        self._succeed()
        return answer

    def _read(self) -> None:
        try:
            if isinstance(self._call, SessionCall):
                self._answer = self._call.read()
            else:
                for message in self._call:
                    self._answer = message
                if self._answer is None:
                    self._failure = errors.without_answer()
        except errors.OpserveError as error:
            self._failure = error
        except (grpc.RpcError, grpc.FutureCancelledError):
            self._failure = errors.from_rpc_error(self._call)
        self._is_over = True


class UnaryCall:
    """A call of grpc's, used as a SessionCall."""

    def __init__(self, call: Any) -> None:
        """
        Args:
            call: that of a unary_unary(), a future.
        """
        self._call = call

    def tell(self, on_end: Callable[[], object]) -> None:
        self._call.add_done_callback(lambda _: on_end())

    def read(self) -> _frame.Buffer:
        try:
            answer: Optional[bytes] = self._call.result()
        except (grpc.RpcError, grpc.FutureCancelledError):
            error = errors.from_rpc_error(self._call)
        else:
            if answer is not None:
                return answer
            error = errors.without_answer()
        raise error

    def cancel(self) -> None:
        self._call.cancel()


# A call whose caller is told of its end.
ToldCall = Union[SessionCall, UnaryCall]
