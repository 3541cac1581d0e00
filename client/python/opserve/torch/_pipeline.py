"""Programs of a training that run without the caller's waiting for them.

Programs are collected until an optimizer's step ends, or until something here needs a result. Then
they are joined into one request, which a thread sends. The thread sends requests one after another,
each after the answer to the one before, as a caller that waits would: so an error leaves the
parameters as the last step that succeeded left them, and lost connections are those of any call.
"""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

from opserve import _process, errors
from opserve.client import Client
from opserve.prepared import encode_attributes, encode_residents
from opserve.program import Keep
from opserve.resident import ResidentTensor
from opserve.torch import _fusion
from opserve.torch._fusion import DROPPED, EARLIER, KEPT, REPLACING, SENT, Joined, Template
from opserve.torch._programs import Programs

if TYPE_CHECKING:
    from opserve.torch._residency import Residents

Attributes = Mapping[int, Mapping[str, Union[int, float]]]

# As many tensors as one call renews or releases.
BATCH = 1024

# Of one request. Longer ones gain nothing, and plans of many invocations take long to make.
_MOST_INVOCATIONS = 4000
_MOST_PARTS = 32

# A request that the daemon refused as a whole; it has done nothing.
_REFUSALS = (
    errors.InvalidArgumentError,
    errors.FailedPreconditionError,
    errors.ResourceExhaustedError,
)


class Pending:
    """A result of a program that has not run yet, or whose answer has not come.

    Attributes:
        shape: as the graph has it.
        is_sent: whether it comes here; else it stays on the pool.
        value: the tensor, or the ResidentTensor, once it is known.
        batch: of a result that comes here: the request, once it is made.
        entry: of Residents, for the stand-in; None: nothing stands for it.
        error: of the request.
    """

    __slots__ = ("batch", "entry", "error", "is_sent", "position", "shape", "template", "value")

    def __init__(self, template: Template, position: int, shape: Sequence[int]) -> None:
        self.template = template
        self.position = position
        self.shape = tuple(shape)
        self.is_sent = not isinstance(template.made[position], Keep)
        self.value: Any = None
        self.batch: Optional[Batch] = None
        self.entry: Any = None
        self.error: Optional[Exception] = None


Input = Union[bytes, ResidentTensor, Pending]


@dataclasses.dataclass(eq=False)
class Part:
    """A run of a program.

    Attributes:
        inputs: elements of a payload, or tensors on the pool.
        undo: called if it does not run, or fails.
    """

    template: Template
    inputs: Sequence[Input]
    attributes: Attributes
    results: Sequence[Pending]
    undo: Optional[Callable[[], None]]


class Batch:
    """One request: parts that are joined.

    Attributes:
        releases: tensors that no later request needs.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        joined: Joined,
        parts: Sequence[Part],
        codes: Sequence[Sequence[int]],
        handles: Sequence[bytes],
        spares: Mapping[int, ResidentTensor],
        key: str,
    ) -> None:
        """
        Args:
            codes: of the parts' inputs.
            handles: of resident tensors, by their numbers.
            spares: tensors whose content results replace, by the results' numbers.
        """
        self._pipeline = pipeline
        self._joined = joined
        self._parts = parts
        self._codes = codes
        self._handles = handles
        self._spares = spares
        self._key = key
        results = [one for part in parts for one in part.results]
        # That the answer has, by their numbers.
        self._results = {number: results[number] for number in joined.positions}
        self.releases: Sequence[ResidentTensor] = ()
        self.error: Optional[Exception] = None
        self.done = threading.Event()
        # Here, and not in the thread, for which the device may be waiting.
        self._call = _encode(joined, parts, handles, spares)
        self._lock = threading.Lock()
        self._answer: Optional[bytes] = None  # guarded by _lock: not taken apart yet

    def run(self) -> None:
        """Sends the request and waits for the answer. OpserveError: its error."""
        try:
            answer = self._send(self._joined, self._call, self._parts, self._key)
        except _REFUSALS as error:
            # The limits of a daemon may have room for each part but not for all together.
            if len(self._parts) == 1 or isinstance(error, errors.TensorLostError):
                raise
            self._run_singly()
            return
        self._answer = answer

    def read(self) -> None:
        """Takes the answer apart: values of results become known."""
        with self._lock:
            if self._answer is not None:
                _read(self._joined, self._answer, self._results)
                self._answer, self._results = None, {}

    def _run_singly(self) -> None:
        """Sends a request for each part."""
        handles = list(self._handles)
        results = [one for part in self._parts for one in part.results]
        numbers = {one: number for number, one in enumerate(results)}
        wanted = {EARLIER - code for codes in self._codes for code in codes if code <= EARLIER}
        passing = []  # only for the parts after
        places: dict[int, int] = {}  # in `handles`, of results
        for index, (part, codes) in enumerate(zip(self._parts, self._codes)):
            own = [places[EARLIER - one] if one <= EARLIER else one for one in codes]
            spares, fates = {}, []
            for local, result in enumerate(part.results):
                number = numbers[result]
                if number in self._spares:
                    spares[local] = self._spares[number]
                    fates.append(REPLACING)
                else:
                    is_needed = number in wanted or number in self._joined.positions
                    fates.append(KEPT if is_needed else DROPPED)
            joined = self._pipeline.joined([(part.template, tuple(own))], fates)
            call = _encode(joined, [part], handles, spares)
            try:
                answer = self._send(joined, call, [part], f"{self._key}-{index}")
            except errors.OpserveError as error:
                error.invocation += self._joined.offsets[index]
                raise
            _read(joined, answer, part.results)
            for result, fate in zip(part.results, fates):
                if not result.is_sent and fate != DROPPED:
                    places[numbers[result]] = len(handles)
                    handles.append(result.value.handle)
                    if fate == KEPT and numbers[result] not in self._joined.positions:
                        passing.append(result.value)
        self.releases = [*self.releases, *passing]

    def _send(self, joined: Joined, call: bytes, parts: Sequence[Part], key: str) -> bytes:
        payloads = [one for part in parts for one in part.inputs if type(one) is bytes]
        return joined.run.send(joined.kinds, call, [payloads[one] for one in joined.sent], key)

    def name_line(self, error: errors.OpserveError) -> None:
        """Says in an error which part's invocation it concerns, and its line of the model."""
        for part, offset in reversed(list(zip(self._parts, self._joined.offsets))):
            if error.invocation >= offset:
                error.invocation -= offset
                part.template.name_line(error)
                return

    def forget(self) -> None:
        """Lets go of all but the outcome, which callers may keep for long."""
        self._parts, self._codes, self._handles, self._spares = (), (), (), {}
        self.releases, self._call = (), b""

    def fail(self) -> None:
        """Notes the error where its results are used."""
        assert self.error is not None
        _fail(self._parts, self.error)


def _encode(
    joined: Joined,
    parts: Sequence[Part],
    handles: Sequence[bytes],
    spares: Mapping[int, ResidentTensor],
) -> bytes:
    """The call of a joined program without its payloads."""
    places = [
        handles[one] if one >= 0 else spares[EARLIER - one].handle for one in joined.residents
    ]
    if joined.handles != places:
        joined.handles, joined.encoded = places, encode_residents(places)
    attributes = {
        number + offset: values
        for part, offset in zip(parts, joined.offsets)
        for number, values in part.attributes.items()
    }
    return joined.encoded + encode_attributes(attributes)


def _read(
    joined: Joined, answer: bytes, pending: Union[Sequence[Pending], Mapping[int, Pending]]
) -> None:
    """Gives results their values, but those that replace a spare tensor, which have theirs."""
    results = joined.run.decode(answer, joined.wanted).results
    for number, position in joined.positions.items():
        one, result = pending[number], results[position]
        if one.is_sent:
            one.value = result.reshape(one.shape)
        else:
            one.template.shapes[one.position] = _fusion.shape_of(result)
            one.value = _like(one, result)


def _fail(parts: Sequence[Part], error: Exception) -> None:
    """Parts have not run, or have failed: the last one is undone first."""
    for part in reversed(parts):
        for one in part.results:
            one.error = error
            if one.entry is not None:
                one.entry.error = error
        if part.undo is not None:
            part.undo()


def _like(pending: Pending, resident: ResidentTensor) -> ResidentTensor:
    return dataclasses.replace(resident, shape=pending.shape)


class Pipeline:
    """Collects programs and has them run. Thread-safe."""

    def __init__(
        self, client: Client, programs: Programs, key: Callable[[], str], ahead: int
    ) -> None:
        """
        Args:
            key: makes idempotency keys.
            ahead: requests that may be made before the first of them is answered.
        """
        self._client = client
        self._programs = programs
        self._key = key
        self._room = threading.BoundedSemaphore(max(ahead, 1))
        self.lock = threading.RLock()
        # Guarded by lock, as below.
        self._parts: list[Part] = []
        self._invocations = 0
        self._releases: list[ResidentTensor] = []  # that the parts may use
        self._last: Optional[Batch] = None
        self._caller = 0  # thread of the parts
        self._jobs: queue.SimpleQueue[Optional[Batch]] = queue.SimpleQueue()
        self._has_thread = False
        # Added by the thread, and taken by a caller when the thread has nothing to do.
        self._failure: Optional[Exception] = None
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
                batch, new = self._batch(residents, parts)
            except Exception as error:
                _fail(parts, error)
                raise
            batch.releases, self._releases = self._releases, []
            self._begin(batch, waits=bool(new))
            if not new:
                return
            self._raise_failure()
            batch.read()
            for one in new:
                residents.place(one)

    def settle(self, residents: Residents) -> None:
        """Has the collected programs run, and waits for all. OpserveError: of one of them."""
        _check_process()
        with self.lock:
            self.flush(residents)
            self._wait()
            self._raise_failure()

    def value(self, residents: Residents, pending: Pending) -> Any:
        """The value of a result. OpserveError: of its program."""
        if pending.value is not None:
            return pending.value
        _check_process()
        with self.lock:
            if pending.batch is None and pending.error is None:
                self.flush(residents)
        batch = pending.batch
        if batch is not None:
            batch.done.wait()
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
            if self._parts or self._is_busy():
                self._releases += tensors
                return
        release(self._client, tensors)

    def stop(self) -> None:
        """Lets the thread end."""
        self._jobs.put(None)

    def _is_busy(self) -> bool:
        return self._last is not None and not self._last.done.is_set()

    def _wait(self) -> None:
        if self._last is not None:
            self._last.done.wait()

    def _raise_failure(self) -> None:
        """Raises the error of an earlier request, once; those after it have not run."""
        if self._failure is None:
            return
        self._wait()
        error, self._failure = self._failure, None
        failed, self._failed = self._failed, []
        parts, self._parts, self._invocations = self._parts, [], 0
        _fail(parts, error)
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
        for part in parts:
            codes = tuple(_code(one, numbers, places) for one in part.inputs)
            shapes.append((part.template, codes))
            for result in part.results:
                numbers[result] = len(numbers)
        needed = [one for one in numbers if not one.is_sent and residents.needs(one)]
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
            one.value = _like(one, spare)
            residents.place(one)
        codes_of_parts = [codes for _, codes in shapes]
        batch = Batch(self, joined, parts, codes_of_parts, list(places), spares, self._key())
        for one in numbers:
            if one.is_sent:
                one.batch = batch
        return batch, needed if found is None else ()

    def joined(
        self, parts: Sequence[tuple[Template, tuple[int, ...]]], fates: Sequence[int]
    ) -> Joined:
        """The program of parts; found again for the same ones."""
        key = ("joined", tuple(parts), tuple(fates))
        return self._programs.get(key, lambda: _fusion.join(self._client, parts, fates))

    def _begin(self, batch: Batch, waits: bool) -> None:
        if waits and not self._is_busy():
            self._last = batch
            self._run(batch)
            return
        if not self._has_thread:
            self._has_thread = True
            threading.Thread(target=self._work, name="opserve-programs", daemon=True).start()
        self._room.acquire()
        self._last = batch
        self._jobs.put(batch)
        if waits:
            batch.done.wait()

    def _work(self) -> None:
        while True:
            batch = self._jobs.get()
            if batch is None:
                return
            self._run(batch)
            self._room.release()

    def _run(self, batch: Batch) -> None:
        try:
            if self._failure is None:
                batch.run()
                with contextlib.suppress(errors.OpserveError):  # their leases end
                    release(self._client, batch.releases)
                batch.forget()
        except Exception as error:
            if isinstance(error, errors.OpserveError):
                batch.name_line(error)
            self._failure = error
        if self._failure is not None:
            batch.error = self._failure
            self._failed.append(batch)
        batch.done.set()


def _check_process() -> None:
    """ClosedError: this is a forked child, which has the lock without the thread."""
    if _process.is_forked():
        raise errors.ClosedError(_process.REFUSAL)


def release(client: Client, tensors: Sequence[ResidentTensor]) -> None:
    for start in range(0, len(tensors), BATCH):
        client.release(tensors[start : start + BATCH])


def _code(one: Input, numbers: Mapping[Pending, int], places: dict[bytes, int]) -> int:
    """How the joined program gets an input: see _fusion."""
    if type(one) is bytes:
        return SENT
    if isinstance(one, Pending):
        if one.error is not None:
            raise one.error
        if one.value is None:
            return EARLIER - numbers[one]
        one = one.value
    assert isinstance(one, ResidentTensor)
    return places.setdefault(one.handle, len(places))
