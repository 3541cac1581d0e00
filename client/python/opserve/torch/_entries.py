"""What stands here for tensors on the pool."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from opserve.resident import ResidentTensor
from opserve.torch._fusion import Shape

if TYPE_CHECKING:
    from opserve.torch._batch import Pending

# In a Dynamo source such as L['self']._modules['0']._parameters['weight'], whose first key is the
# model's variable.
_KEY = re.compile(r"\['([^']+)'\]")

# In one of torch 2.4 such as getattr(L['self'].layers, '0').weight or L['self'].factors[0].
_ATTRIBUTE = re.compile(r"\.(\w+)|, '(\w+)'\)|\[(\d+)\]")


# Of parameters and buffers, as the model has them.
_names = WeakTensorKeyDictionary()


def name_inputs(graph: torch.fx.GraphModule, tensors: Sequence[Any]) -> None:
    """Notes how a graph's model names the parameters and buffers among the graph's inputs.

    Args:
        graph: of Dynamo.
    """
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    for node, tensor in zip(placeholders, tensors):
        source = getattr(node, "_dynamo_source", None)
        if source is None or not isinstance(tensor, torch.Tensor):
            continue
        text = source.name() if callable(source.name) else source.name  # by version of torch
        path = _KEY.findall(text)[1:]
        if path:
            _names[tensor] = ".".join(path)
    # torch 2.4 leaves them as attributes.
    attributes = [
        *graph.named_parameters(remove_duplicate=False),
        *graph.named_buffers(remove_duplicate=False),
    ]
    sources = getattr(graph, "_param_name_to_source", None) or {}
    for name, tensor in attributes:
        source = sources.get(name)
        text = source.name() if source is not None else ""
        path = [match[match.lastindex] for match in _ATTRIBUTE.finditer(text)]
        if path:
            _names[tensor] = ".".join(path)


def name_of(tensor: torch.Tensor) -> str:
    """As its model names a parameter or buffer; "": that is not known."""
    name: str = _names.get(tensor, "")
    return name


def key_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Names the elements of a storage that a tensor shows."""
    return (
        tensor.untyped_storage()._cdata,
        tensor.storage_offset(),
        tensor.shape,
        tensor.stride(),
        tensor.dtype,
    )


class StorageRef:
    """A weak reference to a storage: as torch's StorageWeakRef, which takes three times as long.

    While it is there, no other storage has the same address.
    """

    __slots__ = ("address",)

    def __init__(self, storage: torch.UntypedStorage) -> None:
        self.address: Any = storage._weak_ref()

    def is_gone(self) -> bool:
        return bool(_expired(self.address))

    def __del__(self, free: Any = torch.UntypedStorage._free_weak_ref) -> None:
        free(self.address)


_expired: Any = torch.UntypedStorage._expired


class Term:
    """Stands for a tensor on the pool, which is released when this goes.

    As the stand-ins of Residents.save(), but no tensor: making one of those takes ten times as long.
    """

    __slots__ = ("_gone", "entry")

    def __init__(self, resident: Union[ResidentTensor, Pending], gone: list[Entry]) -> None:
        """
        Args:
            gone: gets the entry when this goes, at any moment.
        """
        self._gone = gone
        self.entry = Entry(TermRef(), resident)

    def __del__(self) -> None:
        self.entry.storage.has_ended = True  # type: ignore[union-attr]
        self._gone.append(self.entry)


class TermRef:
    """To a Term: has it gone?"""

    __slots__ = ("has_ended",)

    def __init__(self) -> None:
        self.has_ended = False

    def is_gone(self) -> bool:
        return self.has_ended


class Entry:
    """A resident tensor that lives as long as a storage of this process, or a Term.

    Attributes:
        storage: that storage or Term.
        name: of a parameter or buffer in its model, or "".
        state: of a tensor of an optimizer's state: its name there; else "".
        forward: of a tensor that a forward pass has left for the backward pass: the pass, by a
            number of its own; else 0.
        version: of the storage's content that the pool has.
        borrowed: of a stand-in for a tensor that was there before: that tensor's entry.
        borrowers: stand-ins that need this tensor, though its own storage may be gone or may
            hold other values.
        is_current: whether an upload of the storage would find it.
        is_newer: whether a program has changed it since the storage was written.
        is_exposed: whether the storage may be written without a change of its version.
        spare_shape: of a tensor whose content a later result may replace when nothing needs it any
            more, as the daemon has it.
        is_retired: nothing needs it, but its program has not run.
        error: of the program that should have given it.
    """

    __slots__ = (
        "borrowed",
        "borrowers",
        "error",
        "forward",
        "is_current",
        "is_exposed",
        "is_newer",
        "is_retired",
        "name",
        "resident",
        "spare_shape",
        "state",
        "storage",
        "version",
    )

    def __init__(
        self,
        storage: Union[StorageRef, TermRef],
        resident: Union[ResidentTensor, Pending],
        version: int = 0,
    ) -> None:
        self.storage = storage
        self.resident: Any = resident  # a Pending only until its program has run
        self.name = ""
        self.state = ""
        self.forward = 0
        self.version = version
        self.borrowed: Optional[Entry] = None
        self.borrowers = 0
        self.is_current = True
        self.is_newer = False
        self.is_exposed = False
        self.spare_shape: Optional[Shape] = None
        self.is_retired = False
        self.error: Optional[Exception] = None

    def tensor(self) -> Union[ResidentTensor, Pending]:
        """The tensor on the pool, for one that was saved."""
        owner = self.borrowed
        if owner is not None and owner.version != self.version:
            raise RuntimeError(
                f"a parameter or buffer {list(owner.resident.shape)} that the backward "
                "pass needs was changed on the pool after the forward pass"
            )
        if self.error is not None:
            raise self.error
        resident = self.resident
        if type(resident) is ResidentTensor or resident.value is None:
            return resident  # type: ignore[no-any-return]
        return resident.value  # type: ignore[no-any-return]


class KnownTensors:
    """Entries of tensors that were uploaded, found by the tensors themselves.

    That takes less time than by all that names the elements that a tensor shows. Thread-safe.
    """

    def __init__(self, on_end: Callable[[], None]) -> None:
        """
        Args:
            on_end: called at any moment when one of the tensors is gone.
        """
        self._on_end = on_end
        self._entries: dict[int, tuple[weakref.ref[torch.Tensor], Entry]] = {}

    def find(self, tensor: torch.Tensor) -> Optional[Entry]:
        """The current entry of its storage. The version may be another one."""
        known = self._entries.get(id(tensor))
        if known is None:
            return None
        there, entry = known
        if there() is not tensor or not entry.is_current:
            return None
        # It may have another storage since. In another shape it has another version.
        return entry if entry.storage.address == tensor.untyped_storage()._cdata else None

    def add(self, tensor: torch.Tensor, entry: Entry) -> None:
        number, entries, on_end = id(tensor), self._entries, self._on_end

        def forget(there: weakref.ref[torch.Tensor]) -> None:
            known = entries.get(number)
            if known is not None and known[0] is there:
                del entries[number]
                on_end()

        entries[number] = weakref.ref(tensor, forget), entry

    def clear(self) -> None:
        self._entries.clear()
