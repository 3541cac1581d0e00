"""Calls that were sent and whose answers are waited for later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import grpc

from opserve import errors


class SentCall:
    """A call whose answer was not waited for. One thread at a time may ask for its result.

    The call goes on as long as this object lives.
    """

    def __init__(
        self,
        future: Any,
        repeat: Callable[[errors.OpserveError], bytes],
        succeed: Callable[[], None],
    ) -> None:
        """
        Args:
            future: a grpc.Future.
            repeat: sends the call again as long as that is right, the first time after the error
                that it is given; waits for the answer. OpserveError: the outcome.
            succeed: is told that the first attempt has succeeded.
        """
        self._future = future
        self._repeat = repeat
        self._succeed = succeed

    def wait(self) -> None:
        """Waits until result() would not wait for the first attempt."""
        try:
            self._future.exception()
        except grpc.FutureCancelledError:
            pass

    def result(self) -> bytes:
        """Waits for the answer, and repeats the call after errors that may pass.

        It is to be called once.
        """
        failure: Optional[errors.OpserveError] = None
        try:
            answer: bytes = self._future.result()
        except (grpc.RpcError, grpc.FutureCancelledError):
            failure = errors.from_rpc_error(self._future)
        if failure is None:
            self._succeed()
            return answer
        return self._repeat(failure)
