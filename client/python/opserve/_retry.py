"""Which calls are repeated, and when."""

from __future__ import annotations

import dataclasses
import math
import random
import threading
from collections.abc import Callable
from typing import Optional

import grpc

from opserve.errors import OpserveError

_FIRST_BACKOFF = 0.05
_LONGEST_BACKOFF = 5.0
_COST = 1.0
_GAIN = 0.1
# Which errors may pass: the call did not run, or it does no harm to run it again.
_UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
_MAY_PASS = (_UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)


@dataclasses.dataclass(frozen=True)
class Retry:
    """How often calls are repeated that nothing but their repetition can help.

    Attributes:
        max_attempts: of one call, the first included; 1 means never to repeat.
        budget: what the calls of a client may repeat together, so that it does not multiply an
            overload. A repetition takes 1 from it, a success gives 0.1 back, up to this, from
            which it starts; while less than half is left, nothing is repeated. A call that no
            daemon answered, since its connection broke or there was none, is repeated once for
            nothing: that is no overload.
    """

    max_attempts: int = 5
    budget: float = 10.0

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ValueError(
                f"max_attempts is {self.max_attempts}; expected at least 1"
            )
        if not 0 <= self.budget < math.inf:
            raise ValueError(
                f"budget is {self.budget}; expected a number of at least 0"
            )


class RetryPolicy:
    """Decides for all calls of a client. Waits for nothing itself. Thread-safe."""

    def __init__(
        self, options: Retry, uniform: Callable[[], float] = random.random
    ) -> None:
        self._options = options
        self._uniform = uniform  # numbers in [0, 1)
        self._lock = threading.Lock()
        self._budget = options.budget  # guarded by _lock

    def record_success(self) -> None:
        """Tells of a call that succeeded."""
        with self._lock:
            self._budget = min(self._budget + _GAIN, self._options.budget)

    def wait_after(
        self, attempts: int, time_left: float, error: OpserveError
    ) -> Optional[float]:
        """Seconds to wait before the next attempt of a call that failed `attempts` times.

        The call failed now with `error` and has `time_left` seconds until its deadline. The
        repetition is paid for, but for the first one of a call that no daemon answered. None:
        `error` is the outcome; its message says after how many attempts.
        """
        note = f"after {attempts} attempt{'s' if attempts > 1 else ''}"
        wait = self._wished_wait(attempts, error)
        if wait is None:
            if attempts > 1:
                error.add_note_of_attempts(note)
            return None
        if wait >= time_left:
            error.add_note_of_attempts(f"{note}; the next would be beyond the deadline")
            return None
        is_first_loss = (
            attempts == 1 and error.code == _UNAVAILABLE and not error.from_daemon
        )
        if not is_first_loss and not self._take_from_budget():
            error.add_note_of_attempts(f"{note}; too many calls failed to try more")
            return None
        return wait

    def _wished_wait(self, attempts: int, error: OpserveError) -> Optional[float]:
        if error.code not in _MAY_PASS or attempts >= self._options.max_attempts:
            return None
        if error.retry_after is not None:
            if math.isinf(error.retry_after):
                return None
            # Those who were refused together are not to come back together.
            return error.retry_after * (1 + self._uniform() / 4)
        backoff: float = min(
            _FIRST_BACKOFF * 2 ** min(attempts - 1, 10), _LONGEST_BACKOFF
        )
        return backoff * self._uniform()

    def _take_from_budget(self) -> bool:
        with self._lock:
            if self._budget < _COST or 2 * self._budget < self._options.budget:
                return False
            self._budget -= _COST
            return True
