"""Client of an opserve daemon for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Optional, TypeVar, Union

import grpc
import grpc.aio

from opserve import _connection, _frame, _process, _wire, errors
from opserve._aio_prepared import AsyncPreparedProgram
from opserve._aio_sessions import AioSessions
from opserve._connection import (
    DEFAULT_CHUNK_BYTES,
    DEFAULT_TIMEOUT,
    OnProgress,
    OnReceipt,
    TraceParent,
)
from opserve._operator import Parameters
from opserve._operators import Operators
from opserve._request import Request
from opserve._retry import Repeat, Retry
from opserve._session_state import WHOLE, owned
from opserve._target import Keepalive, Tls, default_target
from opserve.program import InputOf, OutputOf, Program, Response, Result
from opserve.resident import ResidentTensor
from opserve.shared_memory import SharedRegion

T = TypeVar("T")

_TRANSFER = Repeat(after_losses=False, after_refusals=False)


class AsyncClient(_connection.ClientBase, Operators[Awaitable[Any]]):
    """As Client, for the event loop in which it is first used.

        async with opserve.AsyncClient() as client:
            gradient = await client.l1_loss_backward(g, x, t)

    The methods of Operators give awaitables; any number may be in progress. Cancelling the task
    that awaits one cancels the call. Not thread-safe. Tensors are put into and taken out of
    messages in the loop's thread.
    """

    def __init__(
        self,
        target: Optional[str] = None,
        *,
        tls: Optional[Tls] = None,
        token: Optional[str] = None,
        timeout: float = DEFAULT_TIMEOUT,
        retry: Retry = Retry(),
        keepalive: Keepalive = Keepalive(),
        on_receipt: Optional[OnReceipt] = None,
        traceparent: Optional[TraceParent] = None,
        balance: bool = True,
        session: bool = True,
    ) -> None:
        """Arguments and errors are those of Client."""
        options = _connection.Options.check(
            target or default_target(),
            tls,
            token,
            timeout,
            retry,
            keepalive,
            on_receipt,
            traceparent,
            balance,
        )
        super().__init__(options)
        self._sessions: Optional[AioSessions] = None
        if session:
            self._sessions = AioSessions(self._connect, options)

    async def execute(
        self,
        program: Program,
        results: Optional[Sequence[OutputOf]] = None,
        *,
        want_receipt: bool = False,
        priority: str = "normal",
        idempotency_key: str = "",
        timeout: Optional[float] = None,
        wait_for_daemon: bool = True,
    ) -> Response:
        """As Client.execute."""
        self._check_usable()
        request = Request(
            program,
            self._shared_memory.fill_range,
            results=results,
            want_receipt=want_receipt or self._options.on_receipt is not None,
            priority=priority,
            idempotency_key=idempotency_key,
        )
        ticket = request.identify(self._numbers)
        repeat = Repeat(waits_for_daemon=wait_for_daemon)
        try:
            answer = await self._run_request(owned(request.encode()), timeout, repeat)
        finally:
            if ticket is not None:
                ticket.release()
        response = request.decode(answer)
        if self._options.on_receipt is not None:
            self._options.on_receipt(response.receipt)
        return response

    def prepare(
        self,
        program: Program,
        results: Optional[Sequence[Result]] = None,
        *,
        donated: Sequence[Union[ResidentTensor, InputOf]] = (),
    ) -> AsyncPreparedProgram:
        """As Client.prepare; nothing is sent before the first call."""
        request = Request(
            program, self._shared_memory.fill_range, results=results, donated=donated
        )
        return AsyncPreparedProgram(
            program,
            request,
            self._shared_memory.fill_range,
            self._prepare,
            self._run_request,
            self._given_up_programs.extend,
            self._numbers,
        )

    async def _prepare(self, message: bytes, timeout: Optional[float]) -> _frame.Buffer:
        """Has the daemon prepare a program, and forget those that were given up."""
        given_up = self._take_given_up()
        if given_up is not None:
            with contextlib.suppress(errors.OpserveError):
                await self._call(_wire.RELEASE_PROGRAMS, given_up, None, _TRANSFER)
        return await self._call(_wire.PREPARE, message, timeout)

    def _call_operator(
        self,
        operator: str,
        inputs: Mapping[str, Any],
        attributes: Mapping[str, Any],
        parameters: Parameters,
    ) -> Awaitable[Any]:
        begun, outputs = self._begin_operator(operator, inputs, attributes, parameters)
        message = owned(begun)

        async def call() -> Any:
            return outputs(await self._run_request(message, parameters.timeout))

        return call()

    async def upload(
        self,
        tensor: object,
        *,
        lease: float = 0,
        device: Optional[int] = None,
        chunk_bytes: int = DEFAULT_CHUNK_BYTES,
        timeout: Optional[float] = None,
        on_progress: Optional[OnProgress] = None,
    ) -> ResidentTensor:
        """As Client.upload."""
        upload = _connection.Upload(
            tensor,
            lease=lease,
            device=device,
            chunk_bytes=chunk_bytes,
            on_progress=on_progress,
        )

        async def attempt(time_left: float) -> bytes:
            answer: bytes = await self._connect().stream_unary(_wire.UPLOAD)(
                upload.messages(), timeout=time_left, metadata=self._options.metadata
            )
            return answer

        return upload.read(await self._run(attempt, timeout, _TRANSFER))

    async def download(
        self,
        tensor: ResidentTensor,
        *,
        timeout: Optional[float] = None,
        on_progress: Optional[OnProgress] = None,
    ) -> Any:
        """As Client.download."""
        return (await self.snapshot([tensor], timeout=timeout, on_progress=on_progress))[0]

    async def snapshot(
        self,
        tensors: Sequence[ResidentTensor],
        *,
        timeout: Optional[float] = None,
        on_progress: Optional[OnProgress] = None,
    ) -> list[Any]:
        """As Client.snapshot."""
        if not tensors:
            return []
        request = _connection.Download.request(tensors)

        async def attempt(time_left: float) -> _connection.Download:
            download = _connection.Download(tensors, on_progress)
            async for message in self._connect().unary_stream(_wire.DOWNLOAD)(
                request, timeout=time_left, metadata=self._options.metadata
            ):
                download.add(message)
            return download

        return (await self._run(attempt, timeout, _TRANSFER)).end()

    async def renew(
        self,
        tensors: Sequence[ResidentTensor],
        lease: float = 0,
        *,
        timeout: Optional[float] = None,
    ) -> list[datetime.datetime]:
        """As Client.renew."""
        message = _connection.renew_message(tensors, lease)
        return _connection.read_renewal(await self._call(_wire.RENEW, message, timeout))

    async def release(
        self, tensors: Sequence[ResidentTensor], *, timeout: Optional[float] = None
    ) -> int:
        """As Client.release."""
        message = _connection.release_message(tensors)
        return _connection.read_release(
            await self._call(_wire.RELEASE, message, timeout)
        )

    def create_region(self, size: int, *, read_only: bool = False) -> SharedRegion:
        """As Client.create_region; waits for the daemon for a moment."""
        self._check_usable()
        return self._shared_memory.create_region(size, read_only)

    async def list_operators(
        self, names: Sequence[str] = (), *, timeout: Optional[float] = None
    ) -> list[Any]:
        """As Client.list_operators."""
        message = _wire.ListOperatorsRequest(names=names).SerializeToString()
        answer = await self._call(_wire.LIST_OPERATORS, message, timeout)
        return list(_wire.ListOperatorsResponse.FromString(answer).operators)

    async def server_status(self, *, timeout: Optional[float] = None) -> Any:
        """As Client.server_status."""
        message = _wire.GetServerStatusRequest().SerializeToString()
        answer = await self._call(_wire.GET_SERVER_STATUS, message, timeout)
        return _wire.GetServerStatusResponse.FromString(answer)

    async def close(self) -> None:
        """Ends the connection, calls in progress, and regions of shared memory, for good."""
        self._is_closed = True
        if _process.is_forked():
            return  # the connection is the parent's
        self._shared_memory.close()
        if self._sessions is not None:
            await self._sessions.stop()
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def __aenter__(self) -> AsyncClient:
        self._check_usable()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _connect(self) -> Any:
        self._check_usable()
        if self._channel is None:
            _process.begin_connection()
            uri, credentials, options = self._options.channel_arguments()
            self._channel = (
                grpc.aio.insecure_channel(uri, options)
                if credentials is None
                else grpc.aio.secure_channel(uri, credentials, options)
            )
        return self._channel

    async def _run_request(
        self,
        message: _frame.Sendable,
        timeout: Optional[float],
        repeat: Repeat = Repeat(),
    ) -> _frame.Buffer:
        """Runs an ExecuteRequest, in a session if there is one."""

        async def attempt(time_left: float) -> _frame.Buffer:
            # A large one may fit no call: if one session has not started it, the next one gets it.
            for _ in range(2 if len(message) > WHOLE else 1):
                self._check_usable()
                started = time.monotonic()
                entered = await self._sessions.enter(message, time_left) if self._sessions else None
                if entered is None:
                    break
                answer = await entered.read()
                if answer is not None:
                    return answer
                time_left -= time.monotonic() - started
            return await self._call_once(_wire.EXECUTE, bytes(message), time_left)

        return await self._run(attempt, timeout, repeat)

    async def _call(
        self, method: str, message: bytes, timeout: Optional[float], repeat: Repeat = Repeat()
    ) -> _frame.Buffer:
        return await self._run(
            lambda time_left: self._call_once(method, message, time_left), timeout, repeat
        )

    async def _call_once(self, method: str, message: bytes, seconds: float) -> _frame.Buffer:
        answer: bytes = await self._connect().unary_unary(method)(
            message, timeout=seconds, metadata=self._options.metadata
        )
        return answer

    async def _run(
        self,
        attempt: Callable[[float], Awaitable[T]],
        timeout: Optional[float],
        repeat: Repeat,
    ) -> T:
        """As Client._run."""
        attempts = self._begin(timeout, repeat)
        while True:
            try:
                result = await attempt(attempts.time_left())
                attempts.succeed()
                return result
            except grpc.aio.AioRpcError as raised:
                error = errors.from_rpc_error(raised)
            except errors.OpserveError as raised_in_session:
                error = raised_in_session
            wait = attempts.wait_after(error)
            if wait is None:
                raise error
            await asyncio.sleep(wait)
