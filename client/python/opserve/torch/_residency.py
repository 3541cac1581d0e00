"""Tensors of this process that the pool has, too: parameters, and inputs of a backward pass."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
import weakref
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, TypeVar, Union

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from opserve import _tensors, errors
from opserve.client import Client
from opserve.prepared import PreparedProgram
from opserve.resident import ResidentTensor
from opserve.torch import _leases
from opserve.torch._batch import Attributes, Input, Pending
from opserve.torch._checkpoints import Checkpoints
from opserve.torch._entries import Entry, KnownTensors, StorageRef, Term, key_of, name_of
from opserve.torch._fusion import Shape, Template
from opserve.torch._leases import Message, Messages
from opserve.torch._lost_state import Naming, lost_error, name_state
from opserve.torch._pipeline import Pipeline, release
from opserve.torch._programs import Programs
from opserve.torch._spares import Spares

if TYPE_CHECKING:
    from opserve.torch._prepared_plan import PreparedPlan

K = TypeVar("K")

_META = torch.device("meta")


def _uses(storage: torch.UntypedStorage) -> int:
    """How many tensors and other objects refer to the storage."""
    count: int = torch._C._storage_Use_Count(storage._cdata)
    return count


# Of the storage of a tensor that shares it with none.
_OWN_USES = _uses(torch.empty(1).untyped_storage()) + 1


# Storages with newer elements on the pool, by address, with the Residents that have them there; an
# entry goes when they were read or the storage is gone.
_newer: dict[int, Residents] = {}

_all: weakref.WeakSet[Residents] = weakref.WeakSet()


def bring_home(tensor: torch.Tensor) -> None:
    """Makes a tensor's elements the newest ones, before they are read or changed here."""
    owner = _newer.get(tensor.untyped_storage()._cdata) if _newer else None
    if owner is not None:
        owner.refresh(tensor.untyped_storage())


def is_shared(tensor: torch.Tensor, aliases: int = 0) -> bool:
    """Whether other tensors share its storage, beside `aliases` that nothing reads."""
    storage = tensor.untyped_storage()
    return _uses(storage) > _OWN_USES + aliases


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
        ahead: int = 0,
    ) -> None:
        self._client = client
        self.checkpoints = (
            None
            if checkpoint_every is None
            else Checkpoints(client, lease, checkpoint_every, checkpoint_bytes)
        )
        self.lease = lease
        self._messages = Messages()
        self._lock = threading.Lock()
        self._uploaded: dict[tuple[Any, ...], Entry] = {}  # guarded by _lock, as below
        self._tensors = KnownTensors(
            functools.partial(self._messages.put, Message.TENSOR_GONE)
        )
        self._plans: weakref.WeakSet[PreparedPlan] = weakref.WeakSet()
        self._saved: dict[int, Entry] = {}
        self._terms: dict[int, Entry] = {}  # by their ids
        self._gone: list[Entry] = []  # of these, whose Term is gone
        self._owned: dict[bytes, Entry] = {}  # of all three, by handle
        self._dropped: list[ResidentTensor] = []
        self._renewing = False
        self.programs = Programs(client)
        # Restorations run programs one by one.
        self.defers = ahead > 0 and self.checkpoints is None
        self._pipeline = Pipeline(client, self.programs, ahead)
        # Guarded by _lock, as below.
        self._spares = Spares()
        # Tensors that are sums of several on the pool, not computed yet.
        self.sums: weakref.WeakSet[Any] = weakref.WeakSet()
        self._told: weakref.WeakSet[Exception] = weakref.WeakSet()  # errors that name lost tensors
        _all.add(self)
        # Also when the interpreter ends: nothing stays on the pool until its lease is over.
        weakref.finalize(
            self, _end, client, self._messages, self._owned, self._dropped, self._spares
        )

    def upload(self, tensor: torch.Tensor, ahead: int = 0) -> ResidentTensor:
        """The tensor on the pool, sent only if it has changed since the last time.

        Args:
            ahead: versions that the tensor has got for a change that is yet to come.
        """
        known = self._tensors.find(tensor)
        if known is not None and not known.is_exposed:
            if known.version + ahead == tensor._version:
                return known.resident  # type: ignore[no-any-return]
        key = key_of(tensor)
        with self._lock:
            entry = self._uploaded.get(key)
            is_exposed = entry is not None and entry.is_exposed
            is_there = entry is not None and entry.version + ahead == tensor._version
            if entry is not None and is_there and not is_exposed:
                self._tensors.add(tensor, entry)
                return entry.resident  # type: ignore[no-any-return]
        shares = is_shared(tensor)
        storage = tensor.untyped_storage()
        bring_home(tensor)  # if they are there as another view, or another pool's
        resident = self.send(tensor.detach())
        entry = Entry(StorageRef(storage), resident, tensor._version)
        entry.is_exposed, entry.name = is_exposed and shares, name_of(tensor)
        with self._lock:
            if key in self._uploaded:
                self._retire(self._uploaded[key])
            self._uploaded[key] = self._owned[resident.handle] = entry
            self._tensors.add(tensor, entry)
        self._start_renewing()
        return resident

    def send(self, tensor: torch.Tensor) -> ResidentTensor:
        """Uploads a tensor that the caller drops or saves."""
        with Naming(self._name_state):
            if self.checkpoints is not None:
                return self.checkpoints.upload(self, tensor)
            return self._client.upload(tensor, lease=self.lease)

    def fetch(self, resident: Union[ResidentTensor, Pending]) -> Any:
        """The elements of a tensor on the pool."""
        [known] = self.known([resident])
        with Naming(self._name_state):
            if self.checkpoints is not None:
                return self.checkpoints.download(self, known)
            return self._client.download(known)

    def defer(
        self,
        template: Template,
        inputs: Sequence[Input],
        shapes: Sequence[Sequence[int]],
        attributes: Attributes,
        undo: Optional[Callable[[], None]] = None,
    ) -> list[Pending]:
        """Lets a program run later: see Pipeline.add."""
        with Naming(self.name_losses):
            return self._pipeline.add(self, template, inputs, shapes, attributes, undo)

    @property
    def deferring(self) -> contextlib.AbstractContextManager[Any]:
        """While it is held, no other thread lets programs run that were deferred."""
        return self._pipeline.lock

    def flush(self) -> None:
        """Lets programs that were deferred run now."""
        if self.defers:
            with Naming(self.name_losses):
                self._pipeline.flush(self)

    def settle(self) -> None:
        """Waits for all programs. OpserveError: of one of them that nothing waited for."""
        if self.defers:
            with Naming(self.name_losses):
                self._pipeline.settle(self)

    def known(self, inputs: Sequence[Any]) -> list[Any]:
        """Inputs of a program when all before it have run."""
        self.settle()
        return [one.value if isinstance(one, Pending) else one for one in inputs]

    def value(self, pending: Pending) -> torch.Tensor:
        """A result that comes here."""
        with Naming(self.name_losses):
            return self._pipeline.value(self, pending)  # type: ignore[no-any-return]

    def name_losses(self, error: errors.OpserveError) -> None:
        """Says in an error what is lost; of a lost tensor it raises another one that says so."""
        self._name_state(error)
        if isinstance(error, (errors.TensorLostError, errors.NotFoundError)):
            self._forget_spares()
            lost = self._only_there()
            if lost:
                raise lost_error(lost) from error

    def _name_state(self, error: errors.OpserveError) -> None:
        """The first error of a lost device or daemon names what was there, too."""
        kinds = (errors.InternalError, errors.UnavailableError, errors.DeadlineExceededError)
        if isinstance(error, kinds) and error not in self._told:
            self._told.add(error)
            name_state(error, self._client, self._only_there(), self.lease)

    def needs(self, pending: Pending) -> bool:
        """Whether something here stands for a result."""
        entry = pending.entry
        return entry is not None and (entry.borrowers > 0 or not entry.storage.is_gone())

    def place(self, pending: Pending) -> None:
        """The tensor of a result is known: `pending.value`."""
        entry, resident = pending.entry, pending.value
        with self._lock:
            entry.resident = resident
            entry.spare_shape = pending.template.shapes[pending.position]
            if entry.is_retired:
                self._give_up(entry)
            else:
                self._owned[resident.handle] = entry

    def take_spares(
        self, shapes: Sequence[Optional[Shape]], excluded: Container[bytes]
    ) -> Optional[list[ResidentTensor]]:
        """A spare tensor of each shape; None: there are not enough.

        Args:
            excluded: handles that the program reads, of tensors that nothing else needs any more.
        """
        with self._lock:
            return self._spares.take(shapes, excluded)

    def run(
        self,
        program: PreparedProgram,
        inputs: Sequence[Any],
        attributes: Optional[Mapping[int, Mapping[str, Union[int, float]]]] = None,
    ) -> Sequence[Any]:
        """The results of a program; tensors lost with a device come back before, if they can."""
        inputs = self.known(inputs)
        if self.defers:
            self.collect()
        with Naming(self._name_state):
            if self.checkpoints is not None:
                return self.checkpoints.run(self, program, inputs, attributes)
            if program.changes_tensors:
                self._pipeline.forget_versions()
            return program(*inputs, attributes=attributes).results

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

    def _entries(self) -> list[Entry]:
        return [*self._owned.values(), *self._saved.values(), *self._terms.values()]

    def find(self, tensor: torch.Tensor) -> Union[ResidentTensor, Pending, None]:
        """The tensor on the pool, if it was saved, or uploaded and not changed since."""
        saved = self._saved.get(tensor.untyped_storage()._cdata)  # atomic: without the lock
        if saved is not None:
            return saved.tensor()
        if tensor.is_inference():
            return None
        with self._lock:
            entry = self._uploaded.get(key_of(tensor))
        if entry is None or entry.version != tensor._version:
            return None
        return entry.resident  # type: ignore[no-any-return]

    def save(
        self, resident: Union[ResidentTensor, Pending], dtype: torch.dtype, forward: int = 0
    ) -> torch.Tensor:
        """A meta tensor that stands for a resident one, which is released when it goes.

        One that was there before, as a parameter, stays as long as either needs it.

        Args:
            forward: as Entry's.
        """
        resident = self._now(resident)
        stand_in = torch.empty(resident.shape, dtype=dtype, device=_META)
        storage = stand_in.untyped_storage()
        entry = Entry(StorageRef(storage), resident)
        entry.forward = forward
        with self._lock:
            self._own(entry)
            self._saved[storage._cdata] = entry
        self._start_renewing()
        return stand_in

    def hold(self, resident: Union[ResidentTensor, Pending], state: str = "") -> Term:
        """As save(), where no tensor is needed.

        Args:
            state: as Entry's.
        """
        term = Term(self._now(resident), self._gone)
        entry = term.entry
        entry.state = state
        with self._lock:
            self._own(entry)
            self._terms[id(entry)] = entry
        self._start_renewing()
        return term

    def _now(
        self, resident: Union[ResidentTensor, Pending]
    ) -> Union[ResidentTensor, Pending]:
        """The tensor where it is after restorations."""
        if self.checkpoints is None:
            return resident
        assert isinstance(resident, ResidentTensor)
        return self.checkpoints.now(resident)

    def _own(self, entry: Entry) -> None:
        """The entry has its tensor, or borrows it from the one that has; _lock is held."""
        resident = entry.resident
        if isinstance(resident, Pending):
            owner = resident.entry
            resident.entry = owner or entry
        else:
            owner = self._owned.setdefault(resident.handle, entry)
            owner = None if owner is entry else owner
        if owner is not None:
            owner.borrowers += 1
            entry.borrowed, entry.version = owner, owner.version

    def changed(self, tensor: torch.Tensor, aliases: int = 0) -> None:
        """A program has changed the tensor that upload() gave for this one: it comes home later.

        At once if it is shared: nothing tells when other tensors are read.
        """
        torch.autograd.graph.increment_version(tensor)
        entry = self._tensors.find(tensor)
        with self._lock:
            if entry is None:
                entry = self._uploaded[key_of(tensor)]
            entry.version = tensor._version
            entry.is_newer = True
            _newer[tensor.untyped_storage()._cdata] = self
        if is_shared(tensor, aliases):
            self.refresh(tensor.untyped_storage())

    def refresh(self, storage: torch.UntypedStorage) -> None:
        """Downloads elements that are newer on the pool into the storage; its version stays."""
        for key, entry in self._newer_of(storage):
            _, offset, shape, strides, dtype = key
            try:
                array = self.fetch(entry.resident)
            except (errors.TensorLostError, errors.NotFoundError) as error:
                raise lost_error([entry]) from error
            with unset_fake_temporarily():  # other compilers may have torch 2.4 read it within one
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
    ) -> list[tuple[tuple[Any, ...], Entry]]:
        with self._lock:
            return [
                (key, entry)
                for key, entry in self._uploaded.items()
                if entry.is_newer and key[0] == storage._cdata
            ]

    def drop(self, residents: Iterable[ResidentTensor]) -> None:
        """Releases tensors that nothing here stands for."""
        with self._lock:
            self._dropped.extend(residents)

    def forget_uploads(self) -> None:
        """Uploaded tensors are lost with their device: they are sent anew when they are needed.

        TensorLostError: one was changed there, and this process has only older values.
        """
        self._forget_spares()
        if self._newer_entries():
            raise lost_error(self._only_there())
        with self._lock:
            for entry in self._uploaded.values():
                self._owned.pop(entry.resident.handle, None)
            self._uploaded.clear()
            self._tensors.clear()

    def _newer_entries(self) -> list[Entry]:
        with self._lock:
            return [entry for entry in self._uploaded.values() if entry.is_newer]

    def _only_there(self) -> list[Entry]:
        """Of tensors whose newest elements only the pool has, and that something here needs."""
        with self._lock:
            saved = [
                entry
                for entry in (*self._saved.values(), *self._terms.values())
                if (entry.state or entry.forward)
                and entry.borrowed is None
                and isinstance(entry.resident, ResidentTensor)
                and not entry.storage.is_gone()
            ]
        return [*self._newer_entries(), *saved]

    def sweep(self) -> None:
        """Waits for all programs, and releases all tensors that are not needed any more."""
        self.settle()
        self.collect(with_spares=True)

    def collect(self, with_spares: bool = False) -> None:
        """Releases tensors that are not needed any more, or keeps them as spare ones."""
        with self._lock:
            self._retire_gone(self._uploaded)
            self._retire_gone(self._saved)
            gone = self._gone
            while gone:
                entry = gone.pop()
                del self._terms[id(entry)]
                self._retire(entry)
        if with_spares:
            self._drop_spares()
        with self._lock:
            dropped = self._dropped[:]
            self._dropped.clear()
        with Naming(self._name_state):
            self._pipeline.release(dropped)

    def _forget_spares(self) -> None:
        """A device or daemon is lost, and tensors of before are no longer spare ones."""
        self._drop_spares()
        with self._lock:
            for entry in (*self._saved.values(), *self._terms.values()):
                entry.spare_shape = None

    def _drop_spares(self) -> None:
        with self._lock:
            self._dropped += self._spares.all()
            self._spares.clear()

    def _retire_gone(self, entries: dict[K, Entry]) -> None:
        is_gone = torch.UntypedStorage._expired  # StorageRef.is_gone() has it one call deep
        for key in [key for key, one in entries.items() if is_gone(one.storage.address)]:
            entry = entries.pop(key)
            self._retire(entry)
            if entry.is_newer:
                _newer.pop(entry.storage.address, None)

    def _retire(self, entry: Entry) -> None:
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

    def _give_up(self, entry: Entry) -> None:
        resident = entry.resident
        if type(resident) is Pending:
            entry.is_retired = True  # its program has not run
            return
        # One that was forgotten with its device is not ours to release.
        if self._owned.pop(resident.handle, None) is None and not entry.is_retired:
            return
        shape = entry.spare_shape
        if shape is not None and entry.error is None and self._spares.add(resident, shape):
            return
        self._dropped.append(resident)

    def count(self) -> int:
        """Tensors on the pool."""
        self.settle()
        with self._lock:
            return len(self._owned) + len(self._dropped) + len(self._spares.all())

    def keep(self, plan: PreparedPlan) -> None:
        """The plan's programs stay with the daemon while there are models."""
        with self._lock:
            self._plans.add(plan)

    def release_after(self, graph: object) -> None:
        """When `graph` is gone, all that only it needed is released about a second later."""
        weakref.finalize(graph, self._messages.put, Message.GRAPH_GONE).atexit = False
        self._start_renewing()

    def _start_renewing(self) -> None:
        if self._renewing:
            return
        with self._lock:
            if self._renewing:
                return
            self._renewing = True
        _leases.start(self, self._client, self._messages, self.lease / 3)

    def renew(self) -> bool:
        """Renews the leases. False: a call failed and is to be made again soon."""
        try:
            self.collect(with_spares=True)
        except errors.ClosedError:
            raise
        except errors.OpserveError:
            pass  # the leases of those that were to be released end
        return _leases.renew(self._client, self.living(), self.lease)

    def release_unneeded(self, has_lost_graph: bool) -> None:
        """A graph or parameter is gone: releases tensors and programs that nothing needs any more.

        Without any parameter, all programs; torch may keep graphs without their models.
        """
        self._pipeline.take_answers()
        self.collect(with_spares=True)
        with self._lock:
            plans = [] if self._uploaded else list(self._plans)
        if plans or has_lost_graph:
            self.programs.clear()
        for plan in plans:
            plan.release()
        self._client._release_programs()


def _end(
    client: Client,
    messages: Messages,
    owned: dict[bytes, Entry],
    dropped: list[ResidentTensor],
    spares: Spares,
) -> None:
    messages.put(Message.STOP)
    living = [entry.resident for entry in owned.values()]
    try:
        release(client, [*dropped, *spares.all(), *living])
    except errors.OpserveError:
        pass  # their leases end
