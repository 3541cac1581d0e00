"""opserve: gradient operators on Ascend NPUs that a daemon lends.

    import numpy as np, opserve

    with opserve.Client() as client:
        gradient = client.kl_div_backward(g, x, t, reduction="batchmean")

opserve.torch has differentiable functions with a backward pass that runs there.
"""

from opserve import _grpc_settings as _grpc_settings  # before gRPC is imported
from opserve._aio_prepared import AsyncPreparedProgram
from opserve._data_type import DataType
from opserve._operators import OPERATORS
from opserve._retry import Retry
from opserve._target import Keepalive, Tls, default_target
from opserve.aio import AsyncClient
from opserve.client import Client
from opserve.errors import (
    AlreadyExistsError,
    CancelledError,
    ClosedError,
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpserveError,
    PermissionDeniedError,
    ResourceExhaustedError,
    TensorLostError,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
)
from opserve.prepared import PendingRun, PreparedProgram
from opserve.program import (
    InputOf,
    Keep,
    Literal,
    OutputList,
    OutputOf,
    Program,
    Replace,
    Response,
    View,
)
from opserve.resident import ResidentTensor
from opserve.shared_memory import SharedRegion
from opserve.stream import ExecuteStream

__version__ = "0.1.0"

__all__ = [
    "OPERATORS",
    "AlreadyExistsError",
    "AsyncClient",
    "AsyncPreparedProgram",
    "CancelledError",
    "Client",
    "ClosedError",
    "DataLossError",
    "DataType",
    "DeadlineExceededError",
    "ExecuteStream",
    "FailedPreconditionError",
    "InputOf",
    "InternalError",
    "InvalidArgumentError",
    "Keep",
    "Keepalive",
    "Literal",
    "NotFoundError",
    "OpserveError",
    "OutputList",
    "OutputOf",
    "PendingRun",
    "PermissionDeniedError",
    "PreparedProgram",
    "Program",
    "Replace",
    "ResidentTensor",
    "ResourceExhaustedError",
    "Response",
    "Retry",
    "SharedRegion",
    "TensorLostError",
    "Tls",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "View",
    "default_target",
]
