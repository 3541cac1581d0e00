"""Programs of a training that are sent as one request."""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

from opserve import errors
from opserve._any_prepared import encode_attributes, encode_versions, read_versions
from opserve.prepared import SentRun
from opserve.program import Keep
from opserve.resident import ResidentTensor
from opserve.torch import _fusion
from opserve.torch._fusion import DROPPED, EARLIER, KEPT, REPLACING, Joined, Template

if TYPE_CHECKING:
    from opserve.torch._pipeline import Pipeline

Attributes = Mapping[int, Mapping[str, Union[int, float]]]

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

    __slots__ = (
        "batch", "entry", "error", "is_sent", "position", "shape", "template", "value",
        "__weakref__",
    )  # fmt: skip

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
        is_done: its answer was taken, or its error is known.
        changed: handles of tensors that it replaces, in the order of its results.
        teaches: whether the versions of these are known only from its answer.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        joined: Joined,
        parts: Sequence[Part],
        codes: Sequence[Sequence[int]],
        handles: Sequence[bytes],
        spares: Mapping[int, ResidentTensor],
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
        # That the answer has, by their numbers. Those that nothing else refers to need no value.
        self._results: Mapping[int, weakref.ref[Pending]] = {}
        if joined.positions:
            results = [one for part in parts for one in part.results]
            self._results = {number: weakref.ref(results[number]) for number in joined.positions}
        self.releases: Sequence[ResidentTensor] = ()
        self.error: Optional[Exception] = None
        self.is_done = False
        self._call = _encode(joined, parts, handles, spares)
        self.changed = joined.changed
        self.place_of = joined.place_of
        self.teaches = False
        self._sent: Optional[SentRun] = None
        self._refusal: Optional[Exception] = None  # of one that could not be sent
        self._lock = threading.Lock()
        self._answer: Optional[bytes] = None  # guarded by _lock: not taken apart yet

    def send(self, versions: Sequence[tuple[int, int]], timeout: float) -> None:
        """Sends the request, and does not wait for the answer.

        Args:
            versions: that tensors must have, by their places in the call: else the daemon runs
                nothing.
        """
        call = self._call + encode_versions(versions) if versions else self._call
        try:
            self._sent = self._send(self._joined, call, self._parts, timeout)
        except errors.OpserveError as error:  # the program could not be prepared
            self._refusal = error.with_traceback(None)  # whose frames refer to much

    def wait(self) -> None:
        """Waits until outcome() would not wait for the first attempt."""
        if self._sent is not None:
            self._sent.wait()

    def outcome(self) -> None:
        """Waits for the answer. It is to be called once. OpserveError: of the request as it was sent."""
        if self._refusal is not None:
            refusal, self._refusal = self._refusal, None
            try:
                raise refusal
            finally:
                del refusal
        assert self._sent is not None
        self._answer = self._sent.result()

    def finish(self) -> bool:
        """Waits for the answer when all requests before have succeeded, and sends it anew if need be.

        Returns:
            Whether versions of tensors are those that were expected.

        Raises:
            OpserveError: its error.
        """
        try:
            self.outcome()
            return True
        except errors.FailedPreconditionError as error:
            # It was at the daemon before one that was sent earlier, which was sent again perhaps.
            if error.reason != "tensor_version":
                self._run_singly(error)
                return False
        except _REFUSALS as error:
            self._run_singly(error)
            return False
        self._answer = self._send(self._joined, self._call, self._parts).result()
        return False

    def versions(self) -> dict[bytes, int]:
        """Those of the tensors that it has replaced, by handle."""
        if self._answer is None:
            return {}
        return read_versions(self._answer, self.changed)

    def read(self) -> None:
        """Takes the answer apart: values of results become known."""
        with self._lock:
            if self._answer is not None:
                results = {number: there() for number, there in self._results.items()}
                _read(self._joined, self._answer, results)
                self._answer, self._results = None, {}

    def _run_singly(self, refusal: errors.OpserveError) -> None:
        """Sends a request for each part.

        The limits of a daemon may have room for each but not for all together. OpserveError: that
        of a part; the refusal, if there are no parts.
        """
        if len(self._parts) == 1 or isinstance(refusal, errors.TensorLostError):
            raise refusal
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
                answer = self._send(joined, call, [part]).result()
            except errors.OpserveError as error:
                error.invocation += self._joined.offsets[index]
                raise
            _read(joined, answer, dict(enumerate(part.results)))
            for result, fate in zip(part.results, fates):
                if not result.is_sent and fate != DROPPED:
                    places[numbers[result]] = len(handles)
                    handles.append(result.value.handle)
                    if fate == KEPT and numbers[result] not in self._joined.positions:
                        passing.append(result.value)
        self.releases = [*self.releases, *passing]

    def _send(
        self,
        joined: Joined,
        call: bytes,
        parts: Sequence[Part],
        timeout: Optional[float] = None,
    ) -> SentRun:
        payloads = [one for part in parts for one in part.inputs if type(one) is bytes]
        sent = [payloads[one] for one in joined.sent]
        return joined.run.send(joined.kinds, call, sent, timeout=timeout)

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
        self.releases, self._call, self._sent = (), b"", None

    def fail(self) -> None:
        """Notes the error where its results are used."""
        assert self.error is not None
        fail(self._parts, self.error)


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
    joined.take(places)
    attributes = {
        number + offset: values
        for part, offset in zip(parts, joined.offsets)
        for number, values in part.attributes.items()
    }
    return joined.encoded + encode_attributes(attributes)


def _read(joined: Joined, answer: bytes, pending: Mapping[int, Optional[Pending]]) -> None:
    """Gives results their values, but those that replace a spare tensor, which have theirs."""
    results = joined.run.decode(answer, joined.wanted).results
    for number, position in joined.positions.items():
        one, result = pending[number], results[position]
        if one is None:
            continue
        if one.is_sent:
            one.value = result if result.shape == one.shape else result.reshape(one.shape)
        else:
            one.template.shapes[one.position] = _fusion.shape_of(result)
            one.value = like(one, result)


def fail(parts: Sequence[Part], error: Exception) -> None:
    """Parts have not run, or have failed: the last one is undone first."""
    for part in reversed(parts):
        for one in part.results:
            one.error = error
            if one.entry is not None:
                one.entry.error = error
        if part.undo is not None:
            part.undo()


def like(pending: Pending, resident: ResidentTensor) -> ResidentTensor:
    if resident.shape == pending.shape:
        return resident
    return dataclasses.replace(resident, shape=pending.shape)
