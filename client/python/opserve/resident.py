"""Tensors that stay with the daemon: uploaded once, used by any number of calls."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import numpy as np

from opserve._data_type import DataType


@dataclasses.dataclass(frozen=True, repr=False)
class ResidentTensor:
    """Refers to a tensor in the memory of one of the daemon's devices; an input of any call.

    The daemon frees it at the end of its lease (Client.renew) or when told to
    (Client.release), not when this value goes. One call can use tensors of one device only.
    Immutable; may be pickled and used by other processes of the same tenant.

    Attributes:
        handle: opaque; it alone gives access to the tensor, within the tenant.
        shape: of the tensor, which is contiguous.
        lease_end: as of the upload.
        device: where it is.
        version: of the elements, as of the answer that told of it; each replacement adds 1.
    """

    handle: bytes
    data_type: DataType
    shape: tuple[int, ...]
    lease_end: datetime.datetime
    device: int
    version: int = dataclasses.field(default=1, compare=False)

    def __repr__(self) -> str:
        # Without the handle: knowing it is the right to use the tensor.
        return (
            f"<opserve.ResidentTensor {self.dtype.name} {list(self.shape)} on device "
            f"{self.device}, lease until {self.lease_end:%Y-%m-%d %H:%M:%S %Z}>"
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """As numpy's."""
        return self.data_type.numpy
