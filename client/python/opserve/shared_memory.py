"""Memory shared with a daemon on the same machine, so that tensors need not be sent.

    with client.create_region(1 << 20) as region:
        x = region.empty((256, 1024), np.float32)
        ...
        gradient = client.l1_loss_backward(g, x, t, out=region.empty(x.shape, x.dtype))

Arrays of a region are ordinary numpy arrays (torch.from_numpy makes tensors of them). Calls of
the client that made the region notice that an input, or `out`, lies in it: the device uses it
where it is, or copies it once if it cannot map host memory.

The daemon must allow it (--enable_shm). A client that writes to memory while a call uses it
may get a wrong result; a call that was cancelled, or has passed its deadline, may write its
results until it has left the device.
"""

from __future__ import annotations

import array
import bisect
import fcntl
import mmap
import os
import select
import socket
import threading
import weakref
from typing import Any, NoReturn, Optional, Union

import grpc
import numpy as np
import numpy.typing as npt

from opserve import _dtypes, _process, _wire, errors
from opserve._views import TensorView

_MOST_ANSWER_BYTES = 64 << 10
# Bytes a device may touch behind a tensor, and the alignment for use in place.
_SLACK = 32
_ALIGNMENT = 64
# linux/fcntl.h
_F_ADD_SEALS = 1033
_SEAL_SEAL_SHRINK_GROW = 0x1 | 0x2 | 0x4


class SharedMemoryConnection:
    """A connection on which regions are registered; they end when it does.

    It is not made anew after it broke: a client makes another. Thread-safe; requests wait for
    each other.
    """

    def __init__(self, path: str, token: Optional[str], timeout: float) -> None:
        """UnavailableError: no daemon takes shared memory there."""
        self._lock = threading.Lock()
        self._token = token  # guarded by _lock, like all below; sent once
        self._is_broken = False
        self._last_region = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(path + ".shm")
        except OSError as error:
            self._socket.close()
            raise errors.make_error(
                grpc.StatusCode.UNAVAILABLE,
                f"no daemon takes shared memory at {path}.shm: {error.strerror} (opserved needs "
                "--enable_shm)",
            ) from error
        self.regions = Regions()

    def close(self) -> None:
        """Ends the connection, and with it its regions."""
        self._socket.close()

    def is_over(self) -> bool:
        """Whether either side has ended it, so that no daemon knows its regions."""
        poll = select.poll()
        try:
            poll.register(self._socket, 0)  # the end of a connection is told unasked
        except ValueError:
            return True  # closed here
        return bool(poll.poll(0))

    def register(
        self, descriptor: int, size: int, read_only: bool
    ) -> tuple[int, bytes]:
        """Number and key of the region that is now registered."""
        with self._lock:
            self._last_region += 1
            region = self._last_region
        request = _wire.SharedMemoryRequest()
        request.register_region.region = region
        request.register_region.size = size
        request.register_region.read_only = read_only
        return region, self._call(request, descriptor).connection

    def unregister(self, region: int) -> None:
        """No call can use the region from now on; a broken connection has taken it with it."""
        request = _wire.SharedMemoryRequest()
        request.unregister_region.region = region
        try:
            self._call(request)
        except errors.OpserveError:
            pass

    def list_regions(self) -> list[Any]:
        """The regions of this connection that the daemon knows: SharedRegionStatus messages."""
        request = _wire.SharedMemoryRequest()
        request.list_regions.SetInParent()
        return list(self._call(request).regions)

    def _call(self, request: Any, descriptor: Optional[int] = None) -> Any:
        with self._lock:
            if self._is_broken:
                raise _unavailable("it broke before")
            if self._token is not None:
                request.token, self._token = self._token, None
            self._is_broken = True
            ancillary = []
            if descriptor is not None:
                ancillary = [
                    (
                        socket.SOL_SOCKET,
                        socket.SCM_RIGHTS,
                        array.array("i", [descriptor]),
                    )
                ]
            try:
                self._socket.sendmsg([request.SerializeToString()], ancillary)
                answer = self._socket.recv(_MOST_ANSWER_BYTES)
            except TimeoutError as error:
                raise errors.make_error(
                    grpc.StatusCode.DEADLINE_EXCEEDED,
                    "the daemon did not answer about shared memory in time",
                ) from error
            except OSError as error:
                raise _unavailable(error.strerror) from error
            if not answer:
                raise _unavailable("the daemon ended it")
            response = _wire.SharedMemoryResponse.FromString(answer)
            self._is_broken = False
        if response.HasField("error"):
            raise errors.from_status(response.error)
        return response


class SharedRegion:
    """Memory that both sides have; zeros at first. Client.create_region makes it.

    Arrays in it keep its memory after close(), and are then sent like any others. Thread-safe;
    its bytes are the caller's to protect.
    """

    def __init__(
        self, connection: SharedMemoryConnection, size: int, read_only: bool = False
    ) -> None:
        """ValueError: size is not positive. ResourceExhaustedError: a quota or memory."""
        if size < 1:
            raise ValueError(f"a region of {size} bytes; expected at least 1")
        whole = -(-(size + _SLACK) // mmap.PAGESIZE) * mmap.PAGESIZE
        self._connection = connection
        self.size = size
        self._mapping, self.number, self.key = _share(connection, whole, read_only)
        everything = np.frombuffer(self._mapping, np.uint8)
        self._bytes: npt.NDArray[np.uint8] = everything[:size]
        self.address: int = everything.__array_interface__["data"][0]
        self._lock = threading.Lock()
        self._used = 0  # bytes that empty() has given out; guarded by _lock
        self._finalizer = weakref.finalize(
            self, _unregister, connection, self.number, self.address
        )
        connection.regions.add(self.address, self.size, self.number, self.key)

    @property
    def bytes(self) -> npt.NDArray[np.uint8]:
        """All of it."""
        return self._bytes

    def empty(
        self, shape: Union[int, tuple[int, ...]], dtype: npt.DTypeLike
    ) -> npt.NDArray[Any]:
        """The next part of the region as an array, placed so that every device can use it there.

        Parts are not given back: reuse arrays, or make another region. `dtype` may also be a
        torch dtype. MemoryError: it is full.
        """
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        kind = _dtypes.from_any(dtype)
        needed = TensorView(0, kind, shape, ()).element_bytes
        with self._lock:
            start = self._used
            if start + needed > self.size:
                raise MemoryError(
                    f"a region of {self.size} bytes, {start} of them used, has no room for "
                    f"{needed} more"
                )
            self._used = -(-(start + needed + _SLACK) // _ALIGNMENT) * _ALIGNMENT
        part = self._bytes[start : start + needed]
        return part.view(kind.numpy).reshape(shape)

    @property
    def is_shared(self) -> bool:
        """Whether the daemon still has it."""
        return self._finalizer.alive and not self._connection.is_over()

    def close(self) -> None:
        """Unregisters it; calls in progress keep the parts that they use."""
        self._finalizer()

    def __enter__(self) -> SharedRegion:
        return self

    def __repr__(self) -> str:
        state = "" if self._finalizer.alive else ", closed"
        used = f"{self._used} of {self.size} bytes used"
        return f"<opserve.SharedRegion {self.number}: {used}{state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a SharedRegion cannot be pickled or copied: its memory belongs to this process and "
            "the daemon; pickle a copy of its arrays"
        )

    def __exit__(self, *_: object) -> None:
        self.close()


class Regions:
    """Which memory is shared, by address. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._starts: list[int] = []  # sorted; guarded by _lock, as below
        self._entries: list[tuple[int, int, bytes]] = []  # size, number, key

    def add(self, address: int, size: int, number: int, key: bytes) -> None:
        with self._lock:
            position = bisect.bisect(self._starts, address)
            self._starts.insert(position, address)
            self._entries.insert(position, (size, number, key))

    def remove(self, address: int) -> None:
        with self._lock:
            position = self._starts.index(address)
            del self._starts[position], self._entries[position]

    def hold(self, address: int) -> bool:
        """Whether `address` lies in one of them."""
        with self._lock:
            position = bisect.bisect(self._starts, address) - 1
            if position < 0:
                return False
            return address - self._starts[position] < self._entries[position][0]

    def fill_range(self, view: TensorView, message: Any) -> bool:
        """Says in `message.shared_memory` where `view` lies; False: in no region."""
        with self._lock:
            position = bisect.bisect(self._starts, view.address) - 1
            if position < 0:
                return False
            offset = view.address - self._starts[position]
            size, number, key = self._entries[position]
        if offset + view.span_bytes > size or offset % view.dtype.itemsize:
            return False
        place = message.shared_memory
        place.connection, place.region = key, number
        place.offset, place.size = offset, view.span_bytes
        return view.span_bytes > 0


def _share(
    connection: SharedMemoryConnection, size: int, read_only: bool
) -> tuple[mmap.mmap, int, bytes]:
    descriptor = os.memfd_create("opserve", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, size)
        fcntl.fcntl(descriptor, _F_ADD_SEALS, _SEAL_SEAL_SHRINK_GROW)
        mapping = mmap.mmap(descriptor, size)
        number, key = connection.register(descriptor, size, read_only)
    except OSError as error:
        if isinstance(error, errors.OpserveError):
            raise
        raise errors.make_error(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            f"cannot make shared memory of {size} bytes: {error.strerror}",
        ) from error
    finally:
        os.close(descriptor)
    return mapping, number, key


def _unregister(connection: SharedMemoryConnection, number: int, address: int) -> None:
    if _process.is_forked():
        return  # the socket is the parent's, and another thread of it may have the locks
    connection.regions.remove(address)
    connection.unregister(number)


def _unavailable(why: Optional[str]) -> errors.OpserveError:
    return errors.make_error(
        grpc.StatusCode.UNAVAILABLE, f"the connection for shared memory: {why}"
    )
