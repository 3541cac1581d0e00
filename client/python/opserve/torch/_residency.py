"""Tensors of this process that the pool has, too: parameters, and what a backward pass needs."""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections.abc import Iterable
from typing import Any, Optional

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from opserve import errors
from opserve.client import Client
from opserve.resident import ResidentTensor

# As many as one call renews or releases.
_BATCH = 1024


@dataclasses.dataclass
class _Entry:
    """A resident tensor that lives as long as a storage of this process.

    Attributes:
        version: of the storage's content that the pool has.
        borrowed: of a stand-in for a tensor that was there before: that tensor's entry.
        borrowers: stand-ins that need this tensor, though its own storage may be gone or may
            hold other values.
    """

    storage: StorageWeakRef
    resident: ResidentTensor
    version: int = 0
    borrowed: Optional[_Entry] = None
    borrowers: int = 0
    is_current: bool = True


class Residents:
    """Keeps tensors on the pool while their storages live here, and renews their leases.

    A tensor whose storage is gone is released with others, before the next program. Thread-safe.
    """

    def __init__(self, client: Client, lease: float) -> None:
        self._client = client
        self._lease = lease
        self._lock = threading.Lock()
        self._uploaded: dict[tuple[Any, ...], _Entry] = {}  # guarded by _lock, as below
        self._saved: dict[int, _Entry] = {}
        self._owned: dict[bytes, _Entry] = {}  # of both, by handle
        self._dropped: list[ResidentTensor] = []
        self._stop = threading.Event()
        self._renewing = False
        # Also when the interpreter ends: nothing stays on the pool until its lease is over.
        weakref.finalize(
            self, _end, client, self._stop, self._owned, self._dropped
        )

    def upload(self, tensor: torch.Tensor) -> ResidentTensor:
        """The tensor on the pool, sent only if it has changed since the last time."""
        key = _key(tensor)
        with self._lock:
            entry = self._uploaded.get(key)
            if entry is not None and entry.version == tensor._version:
                return entry.resident
        resident = self._client.upload(tensor.detach(), lease=self._lease)
        entry = _Entry(
            StorageWeakRef(tensor.untyped_storage()), resident, tensor._version
        )
        with self._lock:
            if key in self._uploaded:
                self._retire(self._uploaded[key])
            self._uploaded[key] = self._owned[resident.handle] = entry
        self._start_renewing()
        return resident

    def find(self, tensor: torch.Tensor) -> Optional[ResidentTensor]:
        """The tensor on the pool, if it was saved, or uploaded and not changed since."""
        with self._lock:
            saved = self._saved.get(tensor.untyped_storage()._cdata)
            if saved is not None:
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

    def drop(self, residents: Iterable[ResidentTensor]) -> None:
        """Releases tensors that nothing here stands for."""
        with self._lock:
            self._dropped.extend(residents)

    def forget_uploads(self) -> None:
        """What was uploaded is lost with its device: it is sent anew when it is needed."""
        with self._lock:
            for entry in self._uploaded.values():
                self._owned.pop(entry.resident.handle, None)
            self._uploaded.clear()

    def sweep(self) -> None:
        """Releases what nobody needs any more."""
        with self._lock:
            for entries in (self._uploaded, self._saved):
                gone = [key for key, one in entries.items() if one.storage.expired()]
                for key in gone:
                    self._retire(entries.pop(key))  # type: ignore[attr-defined]
            dropped = self._dropped[:]
            self._dropped.clear()
        _release(self._client, dropped)

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
            args=(weakref.ref(self), self._stop, self._lease / 3),
            name="opserve-leases",
            daemon=True,
        ).start()

    def renew(self) -> None:
        self.sweep()
        with self._lock:
            living = [entry.resident for entry in self._owned.values()]
        for start in range(0, len(living), _BATCH):
            self._client.renew(living[start : start + _BATCH], self._lease)


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
