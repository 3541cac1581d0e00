"""Prepared programs: sent once, run any number of times with other inputs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Optional, Union

from opserve import _frame, _wire, errors
from opserve._any_prepared import AnyPreparedProgram, GiveUp, Prepared, is_lost
from opserve._frame import Buffer
from opserve._request import FillRange, Request
from opserve._request_numbers import RequestNumbers, Ticket
from opserve._sent_call import SentCall
from opserve.program import Program, Response

# Sends the message of a method; the first one waits for the answer.
Call = Callable[[str, _frame.Sendable, Optional[float]], Buffer]
Send = Callable[[str, _frame.Sendable, Optional[float]], SentCall]


class SentRun:
    """A run of a prepared program that was sent. One thread at a time may ask for its result."""

    def __init__(
        self,
        sent: SentCall,
        again: Callable[[], Buffer],
        ticket: Optional[Ticket],
    ) -> None:
        """
        Args:
            again: has the program prepared again, if the daemon has lost it, and runs it.
            ticket: of the request, if it has an identity.
        """
        self._sent = sent
        self._again = again
        self._ticket = ticket

    def wait(self) -> None:
        """Waits until result() would not wait for the first attempt."""
        self._sent.wait()

    def result(self) -> Buffer:
        """Waits for the answer, for PreparedProgram.decode(). It is to be called once."""
        try:
            return self._sent.result()
        except errors.NotFoundError as error:
            if not is_lost(error):
                raise
            return self._again()
        finally:
            if self._ticket is not None:
                self._ticket.release()


class PendingRun:
    """A run of a prepared program whose answer was not waited for. Thread-safe.

    The call goes on as long as this object lives: keep it until its result is there.
    """

    def __init__(self, sent: SentRun, decode: Callable[[Buffer], Response]) -> None:
        self._sent = sent
        self._decode = decode
        self._lock = threading.Lock()
        # Guarded by _lock.
        self._response: Optional[Response] = None
        self._error: Optional[Exception] = None

    def result(self) -> Response:
        """Waits for the answer, and repeats the run as a call would. Any number of times.

        Raises:
            OpserveError: the run has failed.
        """
        with self._lock:
            if self._response is None and self._error is None:
                try:
                    self._response = self._decode(self._sent.result())
                except Exception as error:
                    self._error = error  # the answer is read once
            if self._error is not None:
                raise self._error
            assert self._response is not None
            return self._response


class PreparedProgram(AnyPreparedProgram):
    """A program that the daemon has checked, bound and planned; a call gives it inputs and runs it.

        program = opserve.Program()
        x = program.input("float32", (64, 10))
        step = client.prepare(program, [program.keep(program.tanh(x))])
        [activations] = step(batch).results

    Only the inputs travel with a call, and those tensors of the program that are no literals,
    with their elements as of the preparation. The daemon prepares it at the first call; inputs that
    come in another way (as a tensor, a resident tensor, in shared memory) make it prepare the
    program for that way, too. A daemon that has lost the program, since it was restarted or
    the lease ended, is made to prepare it again, once for each call. Thread-safe.

    Attributes:
        prepared_again: how often that was necessary.
        changes_tensors: whether a run replaces or donates tensors.
    """

    def __init__(
        self,
        program: Program,
        request: Request,
        fill_range: FillRange,
        call: Call,
        send: Send,
        give_up: GiveUp,
        numbers: RequestNumbers,
    ) -> None:
        super().__init__(program, request, fill_range, give_up, numbers)
        self._call = call
        self._send = send

    def __call__(
        self,
        *inputs: Any,
        attributes: Optional[Mapping[int, Mapping[str, Union[int, float]]]] = None,
        versions: Optional[Mapping[int, int]] = None,
        idempotency_key: str = "",
        timeout: Optional[float] = None,
    ) -> Response:
        """Runs it once.

        Args:
            inputs: in the order of Program.input, each of its dtype and shape.
            attributes: numbers that are others in this run, by invocation and name: seeds,
                learning rates. An int sets an integer attribute, a float any other.
            versions: that resident tensors must have when the run's turn with them comes, by the
                numbers of the inputs; FailedPreconditionError (tensor_version) if one has another.
            idempotency_key: as in Client.execute().
            timeout: in seconds; None: the client's.

        Raises:
            TypeError, ValueError: an input is missing or not of its dtype and shape, or a version
                is of no resident tensor.
        """
        views, kinds, encoded, payloads = self._encode(inputs, attributes, versions)
        ticket = self._ticket(idempotency_key)
        message = self._encoder(encoded, payloads, idempotency_key, ticket)
        prepared = self._find(kinds, timeout)
        try:
            answer = self._call(_wire.EXECUTE, message(prepared), timeout)
        except errors.NotFoundError as error:
            if not is_lost(error):
                raise
            prepared = self._find(kinds, timeout, lost=prepared)
            answer = self._call(_wire.EXECUTE, message(prepared), timeout)
        finally:
            if ticket is not None:
                ticket.release()
        return self._request.decode(answer, inputs=views)

    def submit(
        self,
        *inputs: Any,
        attributes: Optional[Mapping[int, Mapping[str, Union[int, float]]]] = None,
        versions: Optional[Mapping[int, int]] = None,
        idempotency_key: str = "",
        timeout: Optional[float] = None,
    ) -> PendingRun:
        """Runs it once, and does not wait for the answer; arguments and errors as of a call.

        Runs that use the same resident tensors go in the order in which they were submitted, so
        step n+1 can be sent before step n is answered; with `versions` it runs only if step n has
        succeeded. Tensors are not to be changed until the result is there.
        """
        views, kinds, encoded, payloads = self._encode(inputs, attributes, versions)
        sent = self.send(kinds, encoded, payloads, idempotency_key, timeout)
        return PendingRun(sent, lambda answer: self._request.decode(answer, inputs=views))

    def send(
        self,
        kinds: tuple[int, ...],
        call: bytes,
        payloads: Sequence[Buffer],
        idempotency_key: str = "",
        timeout: Optional[float] = None,
    ) -> SentRun:
        """Runs it once, with inputs that are encoded already. Does not wait for the answer.

        Args:
            kinds: how each input comes (PAYLOAD, RESIDENT, SHARED_MEMORY); 0: it is not used.
            call: a PreparedCall without the program.
            payloads: of the inputs that are payloads; not to be changed until the answer is there.
            idempotency_key, timeout: as for a call.
        """
        ticket = self._ticket(idempotency_key)
        message = self._encoder(call, payloads, idempotency_key, ticket)
        prepared = self._find(kinds, timeout)

        def again() -> Buffer:
            new = message(self._find(kinds, timeout, lost=prepared))
            return self._call(_wire.EXECUTE, new, timeout)

        sent = self._send(_wire.EXECUTE, message(prepared), timeout)
        return SentRun(sent, again, ticket)

    def decode(self, answer: Buffer, wanted: Collection[int]) -> Response:
        """Reads an answer.

        Args:
            wanted: positions of results to read, the others are None; none that replaces an input.
        """
        return self._request.decode(answer, wanted)

    def _find(
        self,
        kinds: tuple[int, ...],
        timeout: Optional[float],
        lost: Optional[Prepared] = None,
    ) -> Prepared:
        """The program for inputs of these kinds, as the daemon has it; not `lost`."""
        with self._lock:
            known = self._known(kinds, lost)
            if known is not None:
                return known
            message = self._message(kinds).SerializeToString()
            return self._learn(kinds, self._call(_wire.PREPARE, message, timeout), lost)
