"""Programs of a training that run without the caller's waiting for them.

Programs are collected until an optimizer's step ends, or until something here needs a result. Then
they are joined into one request. Some requests may be on their way at a time: the daemon runs those
that use the same tensors in the order in which they were sent, and a request names versions of the
tensors that those before it replace. So it does not run after one that failed, and an error leaves
the parameters as the last step that succeeded left them. Answers are taken, lost requests are sent
again, and errors are raised when the pipeline is used next.
"""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional

from opserve import _process, _wire, errors
from opserve._connection import release_message
from opserve._retry import Repeat
from opserve._sent_call import SentCall
from opserve.client import Client
from opserve.resident import ResidentTensor
from opserve.torch import _fusion
from opserve.torch._batch import Attributes, Batch, Input, Part, Pending, fail, like
from opserve.torch._fusion import DROPPED, EARLIER, KEPT, REPLACING, SENT, Joined, Template
from opserve.torch._programs import Programs

if TYPE_CHECKING:
    from opserve.torch._residency import Residents

# As many tensors as one call renews or releases.
BATCH = 1024

# Of one request. Longer ones gain nothing, and plans of many invocations take long to make.
_MOST_INVOCATIONS = 4000
_MOST_PARTS = 32


class Pipeline:
    """Collects programs and has them run. Thread-safe."""

    def __init__(self, client: Client, programs: Programs, ahead: int) -> None:
        """
        Args:
            ahead: requests that may be sent before the first of them is answered.
        """
        self._client = client
        self._programs = programs
        self._ahead = max(ahead, 1)
        self.lock = threading.RLock()
        # Guarded by lock, as below.
        self._parts: list[Part] = []
        self._invocations = 0
        self._releases: list[ResidentTensor] = []  # that the parts may use
        self._caller = 0  # thread of the parts
        self._sent: collections.deque[Batch] = collections.deque()  # whose answers were not taken
        self._deadline = 0.0  # of the last one, in seconds of time.monotonic()
        # Versions that tensors have after the requests that were sent, by handle. One that is not
        # there is not known.
        self._versions: dict[bytes, int] = {}
        self._releasing: Optional[SentCall] = None
        self._failure: Optional[Exception] = None  # that was not raised yet
        self._failed: list[Batch] = []  # with that error, or not run after it

    def add(
        self,
        residents: Residents,
        template: Template,
        inputs: Sequence[Input],
        shapes: Sequence[Sequence[int]],
        attributes: Attributes,
        undo: Optional[Callable[[], None]] = None,
    ) -> list[Pending]:
        """Collects a program, and gives its results that replace no input.

        Args:
            shapes: of these results.
            undo: as Part's.

        Raises:
            OpserveError: of an earlier program.
        """
        _check_process()
        with self.lock:
            self._raise_failure()
            count = self._invocations + len(template.program.invocations)
            caller = threading.get_ident()
            is_full = count > _MOST_INVOCATIONS or len(self._parts) == _MOST_PARTS
            if is_full or self._caller != caller:
                self.flush(residents)
                count = len(template.program.invocations)
            template.begin()
            results = [
                Pending(template, position, shape) for position, shape in enumerate(shapes)
            ]
            self._parts.append(Part(template, inputs, attributes, results, undo))
            self._invocations, self._caller = count, caller
            return results

    def flush(self, residents: Residents) -> None:
        """Has the collected programs run; waits for them only if they leave new tensors.

        OpserveError: of an earlier program, or of one of these.
        """
        _check_process()
        with self.lock:
            self._raise_failure()
            if not self._parts:
                return
            # Gives spare tensors. The parts may use those that it releases.
            residents.collect()
            parts, self._parts, self._invocations = self._parts, [], 0
            try:
                # Made before there is room for it: meanwhile the device works.
                batch, new = self._batch(residents, parts)
                versions = self._make_room(batch)
                self._raise_failure()
                self._send(batch, versions)
            except Exception as error:
                fail(parts, error)
                raise
            batch.releases, self._releases = self._releases, []
            if not new:
                return
            self._take_answers()
            self._raise_failure()
            batch.read()
            for one in new:
                residents.place(one)

    def settle(self, residents: Residents) -> None:
        """Has the collected programs run, and waits for all. OpserveError: of one of them."""
        _check_process()
        with self.lock:
            self.flush(residents)
            self._take_answers()
            self._raise_failure()

    def take_answers(self) -> None:
        """Waits for all requests on their way. An error of one is raised by the next use."""
        with self.lock:
            self._take_answers()

    def value(self, residents: Residents, pending: Pending) -> Any:
        """The value of a result. OpserveError: of its program."""
        template = pending.template
        template.was_read = template.was_read or template.goes_ahead
        if pending.value is not None:
            return pending.value
        _check_process()
        with self.lock:
            if pending.batch is None and pending.error is None:
                self.flush(residents)
        batch = pending.batch
        if batch is not None:
            if not batch.is_done:
                template.was_read = True
                batch.wait()  # other threads go on meanwhile
                with self.lock:
                    self._take_answers(batch)
            if batch.error is not None:
                with self.lock:
                    self._raise_failure()
            else:
                batch.read()
        if pending.error is not None:
            raise pending.error
        return pending.value

    def release(self, tensors: Sequence[ResidentTensor]) -> None:
        """Releases tensors after the programs that may use them."""
        if not tensors:
            return
        with self.lock:
            for one in tensors:
                self._versions.pop(one.handle, None)
            if self._parts:
                self._releases += tensors
            elif self._sent:
                self._sent[-1].releases = [*self._sent[-1].releases, *tensors]
            else:
                release(self._client, tensors)

    def forget_versions(self) -> None:
        """A program that did not come from here has changed tensors."""
        with self.lock:
            self._versions.clear()

    def _raise_failure(self) -> None:
        """Raises the error of an earlier request, once; those that needed it have not run."""
        if self._failure is None:
            return
        self._take_answers()
        error, self._failure = self._failure, None
        failed, self._failed = self._failed, []
        parts, self._parts, self._invocations = self._parts, [], 0
        fail(parts, error)
        for batch in reversed(failed):
            batch.fail()
        raise error

    def _batch(
        self, residents: Residents, parts: Sequence[Part]
    ) -> tuple[Batch, Sequence[Pending]]:
        """The request of the parts, and their results that become new tensors."""
        numbers: dict[Pending, int] = {}
        places: dict[bytes, int] = {}
        shapes = []
        needed = []
        for part in parts:
            codes = []
            for given in part.inputs:  # see _fusion
                if type(given) is bytes:
                    codes.append(SENT)
                    continue
                one: Any = given
                if type(one) is Pending:
                    if one.error is not None:
                        raise one.error
                    if one.value is None:
                        codes.append(EARLIER - numbers[one])
                        continue
                    one = one.value
                codes.append(places.setdefault(one.handle, len(places)))
            shapes.append((part.template, tuple(codes)))
            for result in part.results:
                numbers[result] = len(numbers)
                if not result.is_sent and residents.needs(result):
                    needed.append(result)
                else:
                    result.entry = None  # each would keep the other
        found = residents.take_spares(
            [one.template.shapes.get(one.position) for one in needed], places
        )
        fates = [DROPPED] * len(numbers)
        for one in needed:
            fates[numbers[one]] = KEPT if found is None else REPLACING
        joined = self.joined(shapes, fates)
        spares: dict[int, ResidentTensor] = {}
        for one, spare in zip(needed, found or ()):
            spares[numbers[one]] = spare
            one.value = like(one, spare)
            residents.place(one)
        codes_of_parts = [codes for _, codes in shapes]
        batch = Batch(self, joined, parts, codes_of_parts, list(places), spares)
        for result in numbers:
            if result.is_sent:
                result.batch = batch
        return batch, needed if found is None else ()

    def joined(
        self, parts: Sequence[tuple[Template, tuple[int, ...]]], fates: Sequence[int]
    ) -> Joined:
        """The program of parts; found again for the same ones."""
        key = ("joined", tuple(parts), tuple(fates))
        return self._programs.get(key, lambda: _fusion.join(self._client, parts, fates))

    def _make_room(self, batch: Batch) -> list[tuple[int, int]]:
        """Waits until a request may be sent.

        Returns:
            The versions that it names: of a tensor that each request on its way changes, if it
            uses what that one changes.
        """
        while len(self._sent) >= self._ahead:
            self._take_answer()
        versions = {}
        for before in list(self._sent):
            shared = [one for one in before.changed if one in batch.place_of]
            known = next((one for one in shared if one in self._versions), None)
            if known is not None:
                versions[batch.place_of[known]] = self._versions[known]
            elif shared:
                self._take_answers()
                return []
        return list(versions.items())

    def _send(self, batch: Batch, versions: Sequence[tuple[int, int]]) -> None:
        # The daemon begins with it when it has done those before.
        now = time.monotonic()
        begin = max(now, self._deadline) if self._sent else now
        self._deadline = begin + self._client._options.timeout
        batch.send(versions, self._deadline - now)
        known = self._versions
        for one in batch.changed:
            if one in known:
                known[one] += 1
            else:
                batch.teaches = True
        self._sent.append(batch)

    def _take_answers(self, last: Optional[Batch] = None) -> None:
        """Waits for all requests on their way, or up to one."""
        while self._sent and not (last is not None and last.is_done):
            self._take_answer()

    def _take_answer(self) -> None:
        """Waits for the request that was sent first. Notes an error for _raise_failure."""
        batch = self._sent[0]
        error: Optional[Exception] = None
        try:
            if self._failure is not None:
                # If it needed what has failed, the daemon has not run it either.
                batch.outcome()
            elif not batch.finish():
                self._versions.clear()
        except Exception as raised:
            error = raised
        self._sent.popleft()
        if error is None:
            if batch.teaches:
                self._learn(batch.versions())
            self._release_later(batch.releases)
            batch.forget()
        else:
            self._versions.clear()
            if self._failure is None:
                if isinstance(error, errors.OpserveError):
                    batch.name_line(error)
                self._failure = error
            batch.error = self._failure
            self._failed.append(batch)
        batch.is_done = True

    def _learn(self, versions: Mapping[bytes, int]) -> None:
        for handle, version in versions.items():
            later = sum(handle in batch.changed for batch in self._sent)
            self._versions[handle] = version + later

    def _release_later(self, tensors: Sequence[ResidentTensor]) -> None:
        """Releases tensors without waiting for the answer. On an error, their leases end."""
        for start in range(0, len(tensors), BATCH):
            message = release_message(tensors[start : start + BATCH])
            if self._releasing is not None:
                self._releasing.wait()
            with contextlib.suppress(errors.OpserveError):
                self._releasing = self._client._send(_wire.RELEASE, message, None, Repeat())


def _check_process() -> None:
    """ClosedError: this is a forked child, which has the lock without the thread."""
    if _process.is_forked():
        raise errors.ClosedError(_process.REFUSAL)


def release(client: Client, tensors: Sequence[ResidentTensor]) -> None:
    for start in range(0, len(tensors), BATCH):
        client.release(tensors[start : start + BATCH])
