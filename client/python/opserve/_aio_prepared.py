"""Prepared programs for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Optional, Union

from opserve import _frame, errors
from opserve._any_prepared import AnyPreparedProgram, GiveUp, Prepared, is_lost
from opserve._frame import Buffer
from opserve._request import FillRange, Request
from opserve._request_numbers import RequestNumbers
from opserve.program import Program, Response

# Sends a PrepareRequest, or an ExecuteRequest.
Prepare = Callable[[bytes, Optional[float]], Awaitable[Buffer]]
Run = Callable[[_frame.Sendable, Optional[float]], Awaitable[Buffer]]


class AsyncPreparedProgram(AnyPreparedProgram):
    """As PreparedProgram, for the event loop of its client.

        step = client.prepare(program, [program.keep(program.tanh(x))])
        [activations] = (await step(batch)).results

    Any number of calls may be in progress; cancelling the task that awaits one cancels the call.
    Not thread-safe.
    """

    def __init__(
        self,
        program: Program,
        request: Request,
        fill_range: FillRange,
        prepare: Prepare,
        run: Run,
        give_up: GiveUp,
        numbers: RequestNumbers,
    ) -> None:
        super().__init__(program, request, fill_range, give_up, numbers)
        self._prepare = prepare
        self._run = run
        # Programs are large: tasks that need it together are to send it once.
        self._is_preparing = asyncio.Lock()

    async def __call__(
        self,
        *inputs: Any,
        attributes: Optional[Mapping[int, Mapping[str, Union[int, float]]]] = None,
        versions: Optional[Mapping[int, int]] = None,
        idempotency_key: str = "",
        timeout: Optional[float] = None,
    ) -> Response:
        """Runs it once; arguments and errors are those of PreparedProgram's calls."""
        views, kinds, encoded, payloads = self._encode(inputs, attributes, versions)
        # As they are now: the caller may change its tensors meanwhile.
        owned = _frame.copied(payloads)
        ticket = self._ticket(idempotency_key)
        message = self._encoder(encoded, owned, idempotency_key, ticket)
        try:
            prepared = await self._find(kinds, timeout)
            try:
                answer = await self._run(message(prepared), timeout)
            except errors.NotFoundError as error:
                if not is_lost(error):
                    raise
                prepared = await self._find(kinds, timeout, lost=prepared)
                answer = await self._run(message(prepared), timeout)
        finally:
            if ticket is not None:
                ticket.release()
        return self._request.decode(answer, inputs=views)

    async def _find(
        self,
        kinds: tuple[int, ...],
        timeout: Optional[float],
        lost: Optional[Prepared] = None,
    ) -> Prepared:
        """The program for inputs of these kinds, as the daemon has it; not `lost`."""
        known = self._known(kinds, lost)
        if known is not None:
            return known
        async with self._is_preparing:
            known = self._known(kinds, lost)
            if known is not None:
                return known
            message = self._message(kinds).SerializeToString()
            return self._learn(kinds, await self._prepare(message, timeout), lost)
