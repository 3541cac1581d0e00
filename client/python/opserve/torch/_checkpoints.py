"""Brings back the tensors of a lost device or daemon: a snapshot, and the programs since."""

from __future__ import annotations

import dataclasses
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, TypeVar, Union

import torch

from opserve import errors
from opserve._reachability import was_cut
from opserve.client import Client
from opserve.prepared import PreparedProgram
from opserve.resident import ResidentTensor

if TYPE_CHECKING:
    from opserve.torch._residency import Residents

Tensor = torch.Tensor
T = TypeVar("T")

# Losses one after another, without a call that succeeds; one more is raised.
_MOST_LOSSES = 5
# After the second loss, in seconds; twice as long after each further one. A connection that breaks
# under a large message takes calls for a while that it loses, too.
_FIRST_WAIT = 0.05

_LOSSES = (
    errors.TensorLostError,
    errors.NotFoundError,
    errors.InternalError,
    errors.UnavailableError,
)


@dataclasses.dataclass
class _Upload:
    """A tensor that was sent and stayed, by its first handle."""

    name: bytes
    tensor: Tensor


@dataclasses.dataclass
class _Run:
    """A program that left something on the pool.

    Attributes:
        inputs: tensors that were sent, names of those that were there, with the shape as given.
        results: names of those that stayed, by position.
    """

    program: PreparedProgram
    inputs: Sequence[Union[Tensor, tuple[bytes, tuple[int, ...]]]]
    attributes: Optional[Mapping[int, Mapping[str, Union[int, float]]]]
    results: Sequence[Optional[bytes]]

    def uses(self) -> list[bytes]:
        return [one[0] for one in self.inputs if isinstance(one, tuple)]


class Checkpoints:
    """Takes snapshots of all tensors on the pool, and remembers the programs after the last one.

    A tensor has the name of its first handle; after a loss its handle is another one. Thread-safe:
    calls go one after another.
    """

    def __init__(self, client: Client, lease: float, every: int, most_bytes: int) -> None:
        """
        Args:
            every: steps of an optimizer between snapshots.
            most_bytes: of the tensors sent and the programs run since, in this process's memory;
                more is a reason for a snapshot, too.
        """
        self._lock = threading.RLock()  # guards all that follows
        self._client = client
        self._lease = lease
        self._every = every
        self._most_bytes = most_bytes
        self._snapshot: dict[bytes, Any] = {}
        self._events: list[Union[_Upload, _Run]] = []
        self._bytes = 0
        self._steps = 0
        self._current: dict[bytes, ResidentTensor] = {}  # by name, those that have moved
        self._names: dict[bytes, bytes] = {}  # by all handles since the snapshot
        self.restored = 0  # losses that were mended

    def upload(self, residents: Residents, tensor: Tensor) -> ResidentTensor:
        with self._lock:
            resident = self._repeat(
                residents, lambda: self._client.upload(tensor, lease=self._lease), again=True
            )
            self._remember(_Upload(resident.handle, tensor.detach().clone()))
            return resident

    def download(self, residents: Residents, resident: ResidentTensor) -> Any:
        with self._lock:
            return self._repeat(
                residents, lambda: self._client.download(self._now(resident)), again=True
            )

    def run(
        self,
        residents: Residents,
        program: PreparedProgram,
        inputs: Sequence[Union[Tensor, ResidentTensor]],
        attributes: Optional[Mapping[int, Mapping[str, Union[int, float]]]],
    ) -> Sequence[Any]:
        with self._lock:

            def call() -> Sequence[Any]:
                return program(*map(self._now, inputs), attributes=attributes).results

            # One that changes tensors and may not be repeated begins with what was before it.
            results = self._repeat(residents, call, again=not program.changes_tensors)
            kept = [self._name(one) for one in results]
            if any(one is not None for one in kept):
                remembered: list[Union[Tensor, tuple[bytes, tuple[int, ...]]]] = []
                for one in inputs:
                    if isinstance(one, ResidentTensor):
                        name = self._name(one)
                        assert name is not None
                        remembered.append((name, one.shape))
                    else:
                        remembered.append(one.detach().clone())
                self._remember(_Run(program, remembered, attributes, kept))
            return results

    def _remember(self, event: Union[_Upload, _Run]) -> None:
        self._events.append(event)
        # Without the program, of which all runs are one's.
        parts = [one for one in vars(event).values() if not isinstance(one, PreparedProgram)]
        self._bytes += _bytes_of(parts)

    def now(self, resident: ResidentTensor) -> ResidentTensor:
        """Where a tensor is that had this handle before a loss."""
        with self._lock:
            found: ResidentTensor = self._now(resident)
            return found

    def begin(self, residents: Residents) -> None:
        """Before a graph runs: makes room if too much is remembered."""
        with self._lock:
            if self._bytes > self._most_bytes:
                self._take(residents)

    def step_done(self, residents: Residents) -> None:
        """An optimizer has made a step."""
        with self._lock:
            self._steps += 1
            if self._steps >= self._every:
                self._take(residents)

    def _take(self, residents: Residents) -> None:
        def download_all() -> dict[bytes, Any]:
            # Of many tensors none may be of another step than the others.
            living = {one.handle: one for one in residents.living()}
            arrays = self._client.snapshot(list(living.values()))
            return dict(zip(living, arrays))

        self._snapshot = self._repeat(residents, download_all, again=True)
        self._events.clear()
        self._current.clear()
        self._names.clear()
        self._bytes = self._steps = 0

    def _repeat(self, residents: Residents, call: Callable[[], T], again: bool) -> T:
        """Calls until nothing is lost, and brings back lost tensors in between.

        Args:
            again: whether a call may follow one whose connection broke, without a restoration.
        """
        is_lost = False
        for losses in range(_MOST_LOSSES + 1):
            try:
                if is_lost:
                    self._restore(residents)
                    is_lost = False
                return call()
            except _LOSSES as error:
                if losses == _MOST_LOSSES or not _may_be_mended(error):
                    raise
                if losses > 0:
                    time.sleep(_FIRST_WAIT * 2 ** (losses - 1))
                is_lost = is_lost or not (again and was_cut(error))
        raise AssertionError("the last loss is raised")

    def _restore(self, residents: Residents) -> None:
        living = {self._name(one): one for one in residents.living()}
        last = {
            name: number
            for number, event in enumerate(self._events)
            if isinstance(event, _Run)
            for name in event.uses()
        }
        current: dict[bytes, ResidentTensor] = {}
        try:
            for name, array in self._snapshot.items():
                current[name] = self._client.upload(array, lease=self._lease)
            for number, event in enumerate(self._events):
                if isinstance(event, _Upload):
                    current[event.name] = self._client.upload(event.tensor, lease=self._lease)
                else:
                    self._run_again(event, current)
                gone = [
                    name
                    for name in current
                    if name not in living and last.get(name, -1) <= number
                ]
                if gone:
                    self._client.release([current.pop(name) for name in gone])
        except errors.OpserveError:
            residents.drop(current.values())
            raise
        self._current = current
        # Callers may still have the handles of earlier restorations.
        self._names.update((one.handle, name) for name, one in current.items())
        self.restored += 1
        # The daemon may have them still, if a connection was lost or another device.
        residents.drop(one for name, one in living.items() if name in current)
        residents.moved(
            {one.handle: current[name] for name, one in living.items() if name in current}
        )

    def _run_again(self, event: _Run, current: dict[bytes, ResidentTensor]) -> None:
        inputs = [
            dataclasses.replace(current[one[0]], shape=one[1])
            if isinstance(one, tuple)
            else one
            for one in event.inputs
        ]
        results = event.program(*inputs, attributes=event.attributes).results
        for name, result in zip(event.results, results):
            if name is not None:
                current[name] = result

    def _name(self, one: Any) -> Optional[bytes]:
        if not isinstance(one, ResidentTensor):
            return None
        return self._names.get(one.handle, one.handle)

    def _now(self, one: Any) -> Any:
        """Where a tensor is now that was given by the handle that it had."""
        name = self._name(one)
        if name is None or name not in self._current:
            return one
        return dataclasses.replace(self._current[name], shape=one.shape)


def _bytes_of(value: Any) -> int:
    """Host memory of a value with its parts; those that it shares with other values count, too."""
    size = sys.getsizeof(value)
    if isinstance(value, Tensor):
        return size + value.nbytes
    if isinstance(value, Mapping):
        return size + sum(_bytes_of(key) + _bytes_of(one) for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return size + sum(map(_bytes_of, value))
    return size


def _may_be_mended(error: errors.OpserveError) -> bool:
    if isinstance(error, errors.InternalError):
        return error.acl_error != 0  # a device's, not a mistake's
    return not isinstance(error, errors.UnavailableError) or was_cut(error)
