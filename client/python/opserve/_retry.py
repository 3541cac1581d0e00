"""Which calls are repeated, and when; and how long calls wait for a daemon that is away."""

from __future__ import annotations

import dataclasses
import math
import random
import threading
import time
from collections.abc import Callable
from typing import Optional

import grpc

from opserve import _reachability
from opserve.errors import DeadlineExceededError, OpserveError, ResourceExhaustedError

_FIRST_BACKOFF = 0.05
_LONGEST_BACKOFF = 5.0
# gRPC makes a connection that was ended again after 0.1 s (_target.py) and a fifth, and attempts
# before that fail.
_RECONNECTION = 0.15
# Asking whether a daemon is back costs nothing but this process's time.
_LONGEST_WAIT_FOR_DAEMON = 0.5
_COST = 1.0
_GAIN = 0.1
# Which errors may pass: the call did not run, or it does no harm to run it again.
_UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
_MAY_PASS = (_UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)


@dataclasses.dataclass(frozen=True)
class Repeat:
    """After which failures one call may be repeated.

    Attributes:
        after_losses: it may have run before its connection broke, or on a device that failed.
        after_refusals: the daemon had no room for it, which it says before anything runs.
        waits_for_daemon: the daemon is away, so that it has run nowhere.
    """

    after_losses: bool = True
    after_refusals: bool = True
    waits_for_daemon: bool = True


@dataclasses.dataclass(frozen=True)
class Retry:
    """How often calls are repeated that nothing but their repetition can help.

    A call that has certainly not run, since no connection could be made or the daemon drains,
    waits for the daemon instead, until its timeout: it counts neither as an attempt nor against
    the budget, and may be one that changes tensors. So the restart of a daemon costs time only.
    At an address that has never answered, a connection that is ended or forbidden is likely to be
    a mistake: it is attempted a few times, as other calls are.

    Attributes:
        max_attempts: of one call, the first included; 1 means never to repeat, nor to wait for
            a daemon that is away.
        budget: repetitions of all calls of a client together, so that it does not multiply an
            overload. A repetition takes 1 from it, a success gives 0.1 back, up to this, from
            which it starts; while less than half is left, nothing is repeated. A call that was
            lost with its connection is repeated once for nothing: that is no overload.
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
        self.was_reached = False  # whether a daemon has ever answered

    def record_success(self) -> None:
        """Records a success."""
        self.was_reached = True
        with self._lock:
            self._budget = min(self._budget + _GAIN, self._options.budget)

    def wait_for_daemon(self, waits: int, error: OpserveError) -> Optional[float]:
        """Seconds to wait for a daemon that is away, after `waits` waits; None: not to wait.

        `error` is such that the call has not run.
        """
        if self._options.max_attempts == 1:
            return None
        wished = error.retry_after
        if wished is not None and not math.isinf(wished):
            return wished * (1 + self._uniform() / 4)
        return self._backoff(waits, _LONGEST_WAIT_FOR_DAEMON)

    def wait_after(
        self, attempts: int, time_left: float, error: OpserveError, least: float = 0.0
    ) -> Optional[float]:
        """Seconds, at least `least`, to wait before the next attempt after `attempts` failures.

        The call failed now with `error` and has `time_left` seconds until its deadline. The
        repetition is paid for, but for the first one of a call that was lost with its
        connection. None: `error` is the outcome; its message says after how many attempts.
        """
        note = f"after {attempts} attempt{'s' if attempts > 1 else ''}"
        wait = self._wished_wait(attempts, error)
        if wait is None:
            if attempts > 1:
                error.add_note_of_attempts(note)
            return None
        wait = max(wait, least)
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
            # Callers refused together should not come back together.
            return error.retry_after * (1 + self._uniform() / 4)
        return self._backoff(attempts - 1, _LONGEST_BACKOFF)

    def _backoff(self, doublings: int, longest: float) -> float:
        backoff: float = min(_FIRST_BACKOFF * 2 ** min(doublings, 10), longest)
        return backoff * self._uniform()

    def _take_from_budget(self) -> bool:
        with self._lock:
            if self._budget < _COST or 2 * self._budget < self._options.budget:
                return False
            self._budget -= _COST
            return True


class Attempts:
    """The attempts of one call, until its deadline. Waits for nothing itself.

    A loop makes an attempt with time_left(), and ends with succeed(), or sleeps for the
    time of wait_after() and begins again.
    """

    def __init__(
        self,
        policy: RetryPolicy,
        timeout: float,
        repeat: Repeat,
        explain: Callable[[OpserveError], None],
    ) -> None:
        """
        Args:
            explain: adds to an error the daemon it concerns, and the remedy.
        """
        self._policy = policy
        self._deadline = time.monotonic() + timeout
        self._repeat = repeat
        self._explain = explain
        self._failures = 0  # of attempts that found the daemon
        self._waits = 0  # for a daemon that was away
        self._why_away = ""

    def time_left(self) -> float:
        """Seconds until the deadline; negative after it."""
        return self._deadline - time.monotonic()

    def succeed(self) -> None:
        """Records the success."""
        self._policy.record_success()

    def wait_after(self, error: OpserveError) -> Optional[float]:
        """Seconds to wait before the next attempt; None: `error` is the outcome."""
        self._policy.was_reached |= error.from_daemon
        is_mistake = _reachability.is_mistake(error)
        # It is tried a few times, as an overload is, and not until the deadline.
        is_doubtful = (
            not self._policy.was_reached and _reachability.may_be_mistake(error)
        )
        has_not_run = _reachability.has_not_run(error)
        cause = error.message
        self._explain(error)
        if is_mistake:
            return None
        if has_not_run and not self._repeat.waits_for_daemon:
            return None
        if has_not_run and not is_doubtful:
            wait = self._policy.wait_for_daemon(self._waits, error)
            if wait is None:
                return None
            self._waits += 1
            self._why_away = cause
            if wait < self.time_left():
                return wait
            error.add_note_of_attempts("waited for it until the deadline")
            return None
        if self._waits and isinstance(error, DeadlineExceededError):
            error.add_note_of_attempts(f"{_reachability.AWAY_AT_FIRST}: {self._why_away}")
        self._failures += 1
        is_refusal = isinstance(error, ResourceExhaustedError)
        is_repeated = (
            self._repeat.after_refusals if is_refusal else self._repeat.after_losses
        )
        if not (is_repeated or has_not_run):
            return None
        least = _RECONNECTION if is_doubtful else 0.0
        return self._policy.wait_after(self._failures, self.time_left(), error, least)
