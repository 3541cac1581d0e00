"""Settings of gRPC, which it reads when it is imported: this module has to be imported before.

A variable that the user has set stays as it is. If something else has imported gRPC before, nothing
changes.

GRPC_ENABLE_FORK_SUPPORT=0: gRPC's own support of forks stops its threads in the parent first. A
fork can wait for that for ever, and prints a line if another thread is in a call. This client has
its own way with forks, see _process.py.

GRPC_EXPERIMENTS=-event_engine_client: the thread that waits for an answer reads it itself. With its
event engine, gRPC has threads for that, which hand each event from one to the next: a third more
processor time for a small request. Only this process is meant, so the variable is removed when gRPC
has been imported.
"""

from __future__ import annotations

import importlib.util
import mmap
import os
import pathlib
import sys

_EXPERIMENTS = "GRPC_EXPERIMENTS"
_EXPERIMENT = "event_engine_client"


def _knows_experiment() -> bool:
    """Whether the installed gRPC has the experiment: one that has not prints a line about it."""
    found = importlib.util.find_spec("grpc")
    places = found.submodule_search_locations if found is not None else None
    for place in places or ():
        for library in pathlib.Path(place, "_cython").glob("cygrpc*.so"):
            with library.open("rb") as file:
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                    return content.find(b"\0" + _EXPERIMENT.encode() + b"\0") >= 0
    return False


def _import_grpc() -> None:
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    if "grpc" in sys.modules or _EXPERIMENTS in os.environ or not _knows_experiment():
        return
    os.environ[_EXPERIMENTS] = f"-{_EXPERIMENT}"
    try:
        import grpc  # noqa: F401
    finally:
        del os.environ[_EXPERIMENTS]


_import_grpc()
