"""Tensors of this process that the pool has, too: parameters, and inputs of a backward pass."""

from __future__ import annotations

import dataclasses
import itertools
import threading
import uuid
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, TypeVar, Union

import grpc
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from opserve import _tensors, errors
from opserve.client import Client
from opserve.prepared import PreparedProgram
from opserve.resident import ResidentTensor
from opserve.torch._checkpoints import Checkpoints
from opserve.torch._programs import Programs

K = TypeVar("K")

# As many as one call renews or releases.
_BATCH = 1024



def _uses(storage: torch.UntypedStorage) -> int:
    """How many tensors and other objects refer to the storage."""
    count: int = torch._C._storage_Use_Count(storage._cdata)
    return count


# Of the storage of a tensor that shares it with none.
_OWN_USES = _uses(torch.empty(1).untyped_storage()) + 1


@dataclasses.dataclass
class _Entry:
    """A resident tensor that lives as long as a storage of this process.

    Attributes:
        version: of the storage's content that the pool has.
        borrowed: of a stand-in for a tensor that was there before: that tensor's entry.
        borrowers: stand-ins that need this tensor, though its own storage may be gone or may
            hold other values.
        is_current: whether an upload of the storage would find it.
        is_newer: whether a program has changed it since the storage was written.
        is_exposed: whether the storage may be written without a change of its version.
    """

    storage: StorageWeakRef
    resident: ResidentTensor
    version: int = 0
    borrowed: Optional[_Entry] = None
    borrowers: int = 0
    is_current: bool = True
    is_newer: bool = False
    is_exposed: bool = False


# Storages with newer elements on the pool, by address, with the Residents that have them there; an
# entry goes when they were read or the storage is gone.
_newer: dict[int, Residents] = {}

_all: weakref.WeakSet[Residents] = weakref.WeakSet()


def bring_home(tensor: torch.Tensor) -> None:
    """Makes a tensor's elements the newest ones, before they are read or changed here."""
    owner = _newer.get(tensor.untyped_storage()._cdata) if _newer else None
    if owner is not None:
        owner.refresh(tensor.untyped_storage())


def expose(tensor: torch.Tensor) -> None:
    """Something gets hold of the tensor's memory that changes no version when it writes."""
    storage = tensor.untyped_storage()
    for residents in list(_all):
        residents.expose(storage)


def forget_newer(tensor: torch.Tensor) -> None:
    """All of a tensor's elements are about to be written here: those on the pool are outdated."""
    owner = _newer.get(tensor.untyped_storage()._cdata) if _newer else None
    if owner is not None:
        owner.forget_newer(tensor.untyped_storage())


class Residents:
    """Keeps tensors on the pool while their storages live here, and renews their leases.

    A tensor whose storage is gone is released with others, before the next program. Thread-safe.
    """

    def __init__(
        self,
        client: Client,
        lease: float,
        checkpoint_every: Optional[int] = None,
        checkpoint_bytes: int = 0,
    ) -> None:
        self._client = client
        self.checkpoints = (
            None
            if checkpoint_every is None
            else Checkpoints(client, lease, checkpoint_every, checkpoint_bytes)
        )
        self.lease = lease
        self._lock = threading.Lock()
        self._uploaded: dict[tuple[Any, ...], _Entry] = {}  # guarded by _lock, as below
        self._saved: dict[int, _Entry] = {}
        self._owned: dict[bytes, _Entry] = {}  # of both, by handle
        self._dropped: list[ResidentTensor] = []
        self._stop = threading.Event()
        self._renewing = False
        self.programs = Programs(client)
        self._identity = uuid.uuid4().hex
        self._numbers = itertools.count()
        # Tensors that are sums of several on the pool, not computed yet.
        self.sums: weakref.WeakSet[Any] = weakref.WeakSet()
        _all.add(self)
        # Also when the interpreter ends: nothing stays on the pool until its lease is over.
        weakref.finalize(
            self, _end, client, self._stop, self._owned, self._dropped
        )

    def upload(self, tensor: torch.Tensor, ahead: int = 0) -> ResidentTensor:
        """The tensor on the pool, sent only if it has changed since the last time.

        Args:
            ahead: versions that the tensor has got for a change that is yet to come.
        """
        key = _key(tensor)
        storage = tensor.untyped_storage()
        is_shared = _uses(storage) > _OWN_USES
        with self._lock:
            entry = self._uploaded.get(key)
            is_exposed = entry is not None and entry.is_exposed
            is_there = entry is not None and entry.version + ahead == tensor._version
            if entry is not None and is_there and not is_exposed:
                return entry.resident
        bring_home(tensor)  # if they are there as another view, or another pool's
        resident = self.send(tensor.detach())
        entry = _Entry(StorageWeakRef(storage), resident, tensor._version)
        entry.is_exposed = is_exposed and is_shared
        with self._lock:
            if key in self._uploaded:
                self._retire(self._uploaded[key])
            self._uploaded[key] = self._owned[resident.handle] = entry
        self._start_renewing()
        return resident

    def send(self, tensor: torch.Tensor) -> ResidentTensor:
        """Uploads a tensor that the caller drops or saves."""
        if self.checkpoints is not None:
            return self.checkpoints.upload(self, tensor)
        return self._client.upload(tensor, lease=self.lease)

    def fetch(self, resident: ResidentTensor) -> Any:
        """The elements of a tensor on the pool."""
        if self.checkpoints is not None:
            return self.checkpoints.download(self, resident)
        return self._client.download(resident)

    def run(
        self,
        program: PreparedProgram,
        inputs: Sequence[Any],
        attributes: Optional[Mapping[int, Mapping[str, Union[int, float]]]] = None,
        idempotency_key: str = "",
    ) -> Sequence[Any]:
        """The results of a program; tensors lost with a device come back before, if they can."""
        if self.checkpoints is not None:
            return self.checkpoints.run(self, program, inputs, attributes, idempotency_key)
        return program(
            *inputs, attributes=attributes, idempotency_key=idempotency_key
        ).results

    def key(self, inputs: Iterable[Any]) -> str:
        """An idempotency key for a run of a program that changes tensors.

        Empty if an input lies in shared memory, which such requests cannot use.
        """
        holds = self._client._shared_memory.holds
        if any(holds(one.data_ptr()) for one in inputs if isinstance(one, torch.Tensor)):
            return ""
        return f"{self._identity}-{next(self._numbers)}"

    def living(self) -> list[ResidentTensor]:
        """Those that something here stands for."""
        with self._lock:
            return [entry.resident for entry in self._owned.values()]

    def moved(self, places: Mapping[bytes, ResidentTensor]) -> None:
        """Tensors have new handles, told by those before."""
        with self._lock:
            for entry in {id(one): one for one in self._entries()}.values():
                place = places.get(entry.resident.handle)
                if place is not None:
                    shape = entry.resident.shape
                    entry.resident = dataclasses.replace(place, shape=shape)
            entries = list(self._owned.values())
            self._owned.clear()
            self._owned.update((one.resident.handle, one) for one in entries)

    def _entries(self) -> list[_Entry]:
        return [*self._owned.values(), *self._saved.values()]

    def find(self, tensor: torch.Tensor) -> Optional[ResidentTensor]:
        """The tensor on the pool, if it was saved, or uploaded and not changed since."""
        with self._lock:
            saved = self._saved.get(tensor.untyped_storage()._cdata)
            if saved is not None:
                owner = saved.borrowed
                if owner is not None and owner.version != saved.version:
                    raise RuntimeError(
                        f"a parameter or buffer {list(owner.resident.shape)} that the backward "
                        "pass needs was changed on the pool after the forward pass"
                    )
                return saved.resident
            if tensor.is_inference():
                return None
            entry = self._uploaded.get(_key(tensor))
            if entry is None or entry.version != tensor._version:
                return None
            return entry.resident

    def save(self, resident: ResidentTensor, dtype: torch.dtype) -> torch.Tensor:
        """A meta tensor that stands for a resident one, which is released when it goes.

        One that was there before, as a parameter, stays as long as either needs it.
        """
        if self.checkpoints is not None:
            resident = self.checkpoints.now(resident)
        stand_in = torch.empty(resident.shape, dtype=dtype, device="meta")
        storage = stand_in.untyped_storage()
        entry = _Entry(StorageWeakRef(storage), resident)
        with self._lock:
            owner = self._owned.get(resident.handle)
            if owner is None:
                self._owned[resident.handle] = entry
            else:
                owner.borrowers += 1
                entry.borrowed, entry.version = owner, owner.version
            self._saved[storage._cdata] = entry
        self._start_renewing()
        return stand_in

    def changed(self, tensor: torch.Tensor) -> None:
        """A program has changed the tensor that upload() gave for this one: it comes home later.

        At once if other tensors share the storage: nothing tells when those are read.
        """
        storage = tensor.untyped_storage()
        torch.autograd.graph.increment_version(tensor)
        with self._lock:
            entry = self._uploaded[_key(tensor)]
            entry.version = tensor._version
            entry.is_newer = True
            _newer[storage._cdata] = self
        if _uses(storage) > _OWN_USES:
            self.refresh(storage)

    def refresh(self, storage: torch.UntypedStorage) -> None:
        """Downloads elements that are newer on the pool into the storage; its version stays."""
        for key, entry in self._newer_of(storage):
            _, offset, shape, strides, dtype = key
            try:
                array = self.fetch(entry.resident)
            except (errors.TensorLostError, errors.NotFoundError) as error:
                raise self._lost([entry]) from error
            elements = _tensors.maker_like(torch.empty(0))(
                entry.resident.data_type, shape, memoryview(array.reshape(-1).view("u1"))
            )
            place = torch.empty(0, dtype=dtype).set_(storage, offset, shape, strides)
            place.copy_(elements)
            entry.is_newer = False
        _newer.pop(storage._cdata, None)

    def forget_newer(self, storage: torch.UntypedStorage) -> None:
        for _, entry in self._newer_of(storage):
            entry.is_newer = False
        _newer.pop(storage._cdata, None)

    def expose(self, storage: torch.UntypedStorage) -> None:
        with self._lock:
            for key, entry in self._uploaded.items():
                if key[0] == storage._cdata:
                    entry.is_exposed = True

    def _newer_of(
        self, storage: torch.UntypedStorage
    ) -> list[tuple[tuple[Any, ...], _Entry]]:
        with self._lock:
            return [
                (key, entry)
                for key, entry in self._uploaded.items()
                if entry.is_newer and key[0] == storage._cdata
            ]

    def _lost(self, entries: Sequence[_Entry]) -> errors.TensorLostError:
        shapes = ", ".join(str(list(one.resident.shape)) for one in entries[:5])
        more = ", ..." if len(entries) > 5 else ""
        error = errors.TensorLostError(
            f"{len(entries)} parameters and buffers ({shapes}{more}) were changed on the pool and "
            "are lost with their device: load a checkpoint of the model and the optimizer",
            code=grpc.StatusCode.FAILED_PRECONDITION,
        )
        error.reason = "tensor_lost"
        return error

    def drop(self, residents: Iterable[ResidentTensor]) -> None:
        """Releases tensors that nothing here stands for."""
        with self._lock:
            self._dropped.extend(residents)

    def forget_uploads(self) -> None:
        """Uploaded tensors are lost with their device: they are sent anew when they are needed.

        TensorLostError: one was changed there, and this process has only older values.
        """
        with self._lock:
            lost = [entry for entry in self._uploaded.values() if entry.is_newer]
            if lost:
                raise self._lost(lost)
            for entry in self._uploaded.values():
                self._owned.pop(entry.resident.handle, None)
            self._uploaded.clear()

    def sweep(self) -> None:
        """Releases tensors that are not needed any more."""
        with self._lock:
            self._retire_gone(self._uploaded)
            self._retire_gone(self._saved)
            dropped = self._dropped[:]
            self._dropped.clear()
        _release(self._client, dropped)

    def _retire_gone(self, entries: dict[K, _Entry]) -> None:
        for key in [key for key, one in entries.items() if one.storage.expired()]:
            entry = entries.pop(key)
            self._retire(entry)
            if entry.is_newer:
                _newer.pop(entry.storage.cdata, None)

    def _retire(self, entry: _Entry) -> None:
        """Nothing here stands for the entry any more; _lock is held."""
        if entry.borrowed is None:
            entry.is_current = False
            if entry.borrowers == 0:
                self._give_up(entry)
            return
        owner = entry.borrowed
        owner.borrowers -= 1
        if owner.borrowers == 0 and not owner.is_current:
            self._give_up(owner)

    def _give_up(self, entry: _Entry) -> None:
        # One that was forgotten with its device is not ours to release.
        if self._owned.pop(entry.resident.handle, None) is not None:
            self._dropped.append(entry.resident)

    def count(self) -> int:
        """Tensors on the pool."""
        with self._lock:
            return len(self._owned) + len(self._dropped)

    def _start_renewing(self) -> None:
        with self._lock:
            if self._renewing:
                return
            self._renewing = True
        threading.Thread(
            target=_renew,
            args=(weakref.ref(self), self._stop, self.lease / 3),
            name="opserve-leases",
            daemon=True,
        ).start()

    def renew(self) -> None:
        self.sweep()
        with self._lock:
            living = [entry.resident for entry in self._owned.values()]
        for start in range(0, len(living), _BATCH):
            self._client.renew(living[start : start + _BATCH], self.lease)


def _release(client: Client, residents: list[ResidentTensor]) -> None:
    for start in range(0, len(residents), _BATCH):
        client.release(residents[start : start + _BATCH])


def _key(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Names the elements of a storage that a tensor shows."""
    return (
        tensor.untyped_storage()._cdata,
        tensor.storage_offset(),
        tuple(tensor.shape),
        tensor.stride(),
        tensor.dtype,
    )


def _end(
    client: Client,
    stop: threading.Event,
    owned: dict[bytes, _Entry],
    dropped: list[ResidentTensor],
) -> None:
    stop.set()
    try:
        _release(client, [*dropped, *(entry.resident for entry in owned.values())])
    except errors.OpserveError:
        pass  # their leases end


def _renew(
    residents: weakref.ref[Residents], stop: threading.Event, period: float
) -> None:
    while not stop.wait(period):
        owner = residents()
        if owner is None:
            return
        try:
            owner.renew()
        except errors.OpserveError:
            pass  # the next program that uses a lost tensor says so
        del owner
