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
    """A resident tensor that lives as long as a storage of this process."""

    storage: StorageWeakRef
    resident: ResidentTensor
    version: int = 0  # of the storage's content that was uploaded


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
        self._dropped: list[ResidentTensor] = []
        self._stop = threading.Event()
        self._renewing = False
        # Also when the interpreter ends: nothing stays on the pool until its lease is over.
        weakref.finalize(
            self, _end, client, self._stop, self._uploaded, self._saved, self._dropped
        )

    def upload(self, tensor: torch.Tensor) -> ResidentTensor:
        """The tensor on the pool, sent only if it has changed since the last time."""
        storage = tensor.untyped_storage()
        key = (
            storage._cdata,
            tensor.storage_offset(),
            tuple(tensor.shape),
            tensor.stride(),
            tensor.dtype,
        )
        with self._lock:
            entry = self._uploaded.get(key)
            if entry is not None and entry.version == tensor._version:
                return entry.resident
        resident = self._client.upload(tensor.detach(), lease=self._lease)
        with self._lock:
            if entry is not None:
                self._dropped.append(entry.resident)
            self._uploaded[key] = _Entry(
                StorageWeakRef(storage), resident, tensor._version
            )
        self._start_renewing()
        return resident

    def find(self, tensor: torch.Tensor) -> Optional[ResidentTensor]:
        """The tensor on the pool, if it was saved, or uploaded and not changed since."""
        storage = tensor.untyped_storage()
        with self._lock:
            saved = self._saved.get(storage._cdata)
            if saved is not None:
                return saved.resident
            if tensor.is_inference():
                return None
            entry = self._uploaded.get(
                (
                    storage._cdata,
                    tensor.storage_offset(),
                    tuple(tensor.shape),
                    tensor.stride(),
                    tensor.dtype,
                )
            )
            if entry is None or entry.version != tensor._version:
                return None
            return entry.resident

    def save(self, resident: ResidentTensor, dtype: torch.dtype) -> torch.Tensor:
        """A meta tensor that stands for a resident one, which is released when it goes."""
        stand_in = torch.empty(resident.shape, dtype=dtype, device="meta")
        storage = stand_in.untyped_storage()
        with self._lock:
            self._saved[storage._cdata] = _Entry(StorageWeakRef(storage), resident)
        self._start_renewing()
        return stand_in

    def drop(self, residents: Iterable[ResidentTensor]) -> None:
        """Releases tensors that nothing here stands for."""
        with self._lock:
            self._dropped.extend(residents)

    def forget_uploads(self) -> None:
        """What was uploaded is lost with its device: it is sent anew when it is needed."""
        with self._lock:
            self._uploaded.clear()

    def sweep(self) -> None:
        """Releases what nobody needs any more."""
        with self._lock:
            for entries in (self._uploaded, self._saved):
                gone = [key for key, one in entries.items() if one.storage.expired()]
                self._dropped.extend(entries.pop(key).resident for key in gone)  # type: ignore[attr-defined]
            dropped = self._dropped[:]
            self._dropped.clear()
        _release(self._client, dropped)

    def count(self) -> int:
        """Tensors on the pool."""
        with self._lock:
            return len(self._uploaded) + len(self._saved) + len(self._dropped)

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
            living = [
                entry.resident
                for entries in (self._uploaded, self._saved)
                for entry in entries.values()  # type: ignore[attr-defined]
            ]
        for start in range(0, len(living), _BATCH):
            self._client.renew(living[start : start + _BATCH], self._lease)


def _release(client: Client, residents: list[ResidentTensor]) -> None:
    for start in range(0, len(residents), _BATCH):
        client.release(residents[start : start + _BATCH])


def _end(
    client: Client,
    stop: threading.Event,
    uploaded: dict[tuple[Any, ...], _Entry],
    saved: dict[int, _Entry],
    dropped: list[ResidentTensor],
) -> None:
    stop.set()
    entries = [*uploaded.values(), *saved.values()]
    try:
        _release(client, [*dropped, *(entry.resident for entry in entries)])
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
