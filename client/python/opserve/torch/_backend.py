"""torch.compile's backend: graphs of models run on the pool."""

from __future__ import annotations

import collections
import contextlib
import itertools
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Optional, Union

import torch
from functorch.compile import default_partition, make_boxed_func
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd

from opserve import errors
from opserve.client import Client
from opserve.resident import ResidentTensor
from opserve.torch import _decompositions, _experts
from opserve.torch._batch import Pending
from opserve.torch._caller import level_of_caller
from opserve.torch._complex import without_complex
from opserve.torch._entries import Term, key_of, name_inputs
from opserve.torch._graph import lower, metas_of
from opserve.torch._layouts import (
    Extents,
    Layout,
    laid_out,
    layouts_of,
    seen_in,
    views_by_layout,
    without_base,
)
from opserve.torch._local_nodes import left_out, listing, unsupported_nodes
from opserve.torch._nodes import is_backward, is_tangent, running_statistics, written_inputs
from opserve.torch._plan import Plan
from opserve.torch._pool_parameter import adopt, arguments_are_detached, detaching_arguments
from opserve.torch._pool_tensor import Contents, PoolTensor, settle
from opserve.torch._prepared_plan import PreparedPlan
from opserve.torch._residency import Residents, bring_home
from opserve.torch._static_inputs import (
    count_of_returned,
    counted_changes,
    current_metadata,
    gradients_of_parameters,
    have_static_shapes,
    static_inputs,
    with_attributes,
)
from opserve.torch._whole_functions import kept_whole

Tensor = torch.Tensor

# Plans of one graph, of which there is one for each combination of shapes.
_MOST_PLANS = 64
_DEFAULT_LEASE = 600.0
_DEFAULT_CHECKPOINT_BYTES = 256 << 20
_DEFAULT_AHEAD = 2


# Optimizers that were given no backend, until one's graph uses their parameters.
unclaimed: weakref.WeakSet[Any] = weakref.WeakSet()


class UnsupportedError(RuntimeError):
    """A model has nodes that the pool lacks, and may not run them here (strict=True)."""


class LocalNodesWarning(UserWarning):
    """Parts of a model run here: the pool lacks nodes, or torch leaves them out of graphs."""


class Backend:
    """A backend for `torch.compile(model, backend=...)`; "opserve" is one with the defaults.

    Parameters stay on the pool and are sent again when they have changed; tensors of the forward
    pass that the backward pass needs stay there. Thread-safe.
    """

    def __init__(
        self,
        client: Optional[Client] = None,
        *,
        strict: bool = False,
        lease: float = _DEFAULT_LEASE,
        checkpoint_every: Optional[int] = None,
        checkpoint_bytes: int = _DEFAULT_CHECKPOINT_BYTES,
        ahead: int = _DEFAULT_AHEAD,
    ) -> None:
        """
        Args:
            client: None: one connected to the default target when first needed. Of several
                daemons: Client(target, balance=False).
            strict: nodes that the pool lacks are an UnsupportedError that lists those of forward
                and backward pass before anything runs; else they run here, and a
                LocalNodesWarning names each operator once. A LocalNodesWarning also names what
                torch leaves out of its graphs; torch.compile(fullgraph=True) refuses that.
            lease: of tensors on the pool, in seconds; it is renewed while they are needed.
            checkpoint_every: steps of an optimizer of opserve.torch.optim after which all that
                is on the pool is downloaded. If a device or daemon is lost, it is brought back
                to another one, and later programs run again; the caller notices only time.
                None: a loss is an error.
            checkpoint_bytes: of the tensors sent and the programs run since, which are remembered;
                more is a reason for the next snapshot.
            ahead: steps of optimizers of opserve.torch.optim that may be asked for before the
                first of them has ended; one more waits. A loss that the graph itself computes
                comes home when it is read, and an error of a step is raised by the next use of the
                pool. 0: each program is waited for, as with checkpoint_every.

        Raises:
            ValueError: checkpoint_every is less than 1, ahead is negative, or the client's calls
                go round daemons.
        """
        if client is not None:
            _check_target(client)
        if checkpoint_every is not None and checkpoint_every < 1:
            raise ValueError(f"checkpoint_every={checkpoint_every}; expected 1 or more")
        if ahead < 0:
            raise ValueError(f"ahead={ahead}; expected 0 or more")
        self._ahead = ahead
        self._checkpoint_every = checkpoint_every
        self._checkpoint_bytes = checkpoint_bytes
        self._client = client
        self._strict = strict
        self._lease = lease
        self._lock = threading.Lock()
        self._residents: Optional[Residents] = None  # guarded by _lock
        self._warned: set[str] = set()  # likewise; what warnings have named
        # Optimizers that take gradients from the pool.
        self.optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        # Its inputs: those of the model that is compiled. Its backward: the graph of that pass.
        self._compiling = threading.local()
        self.plans: weakref.WeakSet[Plan] = weakref.WeakSet()  # of graphs that are there

    def __call__(
        self, graph: torch.fx.GraphModule, inputs: Sequence[Tensor], **_: Any
    ) -> Callable[..., Any]:
        compiler = aot_autograd(
            fw_compiler=self._compile_forward,
            bw_compiler=self._compile,
            inference_compiler=self._compile,
            decompositions=decompositions(),
            partition_fn=self._partition,
            keep_inference_input_mutations=True,  # those of a training, too
        )
        name_inputs(graph, inputs)
        self._compiling.inputs = with_attributes(graph, inputs)
        self._compiling.attributes = len(self._compiling.inputs) - len(inputs)
        has_attributes = self._compiling.attributes > 0  # in torch 2.4
        self._name_once("these parts", {part: part for part in left_out(graph)})
        try:
            # torch 2.4 looks at parameters here, not at their elements.
            with kept_whole(), torch._C.DisableTorchFunctionSubclass():
                compiled: Callable[..., Any] = compiler(graph, inputs)
        finally:
            del self._compiling.inputs, self._compiling.attributes
            self._compiling.backward = None
        if not has_attributes:
            return compiled

        def call(*arguments: Any) -> Any:
            with detaching_arguments():
                return compiled(*arguments)

        return call

    def _partition(self, joint: Any, inputs: Any, **options: Any) -> Any:
        """Forward and backward graph; strict mode looks at both before the first one runs."""
        without_complex(joint)
        forward, backward = default_partition(joint, inputs, **options)
        self._compiling.backward = backward
        return forward, backward

    @property
    def client(self) -> Client:
        return self.residents()._client

    def residents(self) -> Residents:
        with self._lock:
            if self._residents is None:
                self._residents = Residents(
                    self._client or Client(balance=False),
                    self._lease,
                    self._checkpoint_every,
                    self._checkpoint_bytes,
                    self._ahead,
                )
            return self._residents

    def synchronize(self) -> None:
        """Waits until the pool has run all programs. OpserveError: of one of them."""
        self.residents().settle()

    def _compile_forward(
        self, graph: torch.fx.GraphModule, inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        """Outputs beyond the user's own are for the backward pass: they stay on the pool."""
        return self._runner(graph, static_inputs(), count_of_returned())

    def _compile(
        self, graph: torch.fx.GraphModule, inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        static = set() if is_backward(graph) else static_inputs()
        without_complex(graph)  # of a graph without a backward pass
        return self._runner(graph, static, None)

    def _runner(
        self, graph: torch.fx.GraphModule, static: set[int], returned: Optional[int]
    ) -> Callable[..., Any]:
        adopted = self._adopt(graph, static)
        detached = adopted if returned is not None else {}
        runner: Callable[..., Any] = _Runner(self, graph, static, returned, detached)
        if self._strict and not is_backward(graph):
            refused = self._refused(graph)
            if refused:
                runner = _Refusal(_refusal(refused))
        boxed: Callable[..., Any] = make_boxed_func(runner)
        return boxed

    def _refused(self, forward: torch.fx.GraphModule) -> list[str]:
        """The nodes that the pool lacks, of the graph and of its backward graph."""
        backward = getattr(self._compiling, "backward", None)
        found = list(listing(unsupported_nodes(forward)).values())
        if backward is not None:
            texts = listing(unsupported_nodes(backward)).values()
            found += [f"backward pass: {text}" for text in texts]
        return found

    def _adopt(
        self, graph: torch.fx.GraphModule, static: set[int]
    ) -> dict[int, weakref.ref[Tensor]]:
        """Buffers that the graph changes on the pool come home when they are read.

        So do running statistics that it only reads: torch changes those without a new version.

        Returns:
            By their places, those that it changes and that Dynamo's graph has as attributes.
        """
        placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        inputs = getattr(self._compiling, "inputs", ())
        if is_backward(graph) or len(inputs) != len(placeholders):
            return {}  # what is not adopted comes home at once
        written = written_inputs(graph)
        changed = {*written, *running_statistics(graph)}
        attributes: dict[int, weakref.ref[Tensor]] = {}
        for number, (node, tensor) in enumerate(zip(placeholders, inputs)):
            if node in changed and number in static and isinstance(tensor, Tensor):
                adopt(tensor)
                if node in written and number < self._compiling.attributes:
                    attributes[number] = weakref.ref(tensor)
        return attributes

    def check(self, plan: Plan) -> None:
        """UnsupportedError, or a warning, if the plan has nodes that run here."""
        self.plans.add(plan)
        if not plan.unsupported:
            return
        texts = listing(plan.unsupported)
        if self._strict:
            raise UnsupportedError(_refusal(texts.values()))
        self._name_once("these nodes", texts)

    def _name_once(self, parts: str, texts: Mapping[str, str]) -> None:
        """Warns of parts that run here, but of each key once."""
        with self._lock:
            new = [text for key, text in texts.items() if key not in self._warned]
            self._warned.update(texts)
        if new:
            warnings.warn(
                f"{parts} run here, not on the pool: {', '.join(new)}",
                LocalNodesWarning,
                stacklevel=level_of_caller(),
            )


def _check_target(client: Client) -> None:
    target = client._options.target
    if target.is_list and target.is_balanced:
        raise ValueError(
            f"the client's calls go round the daemons at {target.uri}, but tensors stay with one: "
            "pass Client(target, balance=False)"
        )


# With the layouts of the graph's outputs; None: of one that is not the caller's, or no tensor.
_Planned = tuple[PreparedPlan, list[Optional[Layout]]]


class _Refusal:
    """In place of a graph with nodes that the pool lacks: an error that lists them."""

    def __init__(self, message: str) -> None:
        self._message = message

    def __call__(self, *_: Any) -> Any:
        raise UnsupportedError(self._message)


def _refusal(texts: Iterable[str]) -> str:
    return "\n  ".join(["the pool cannot run these nodes:", *texts])


class _Runner:
    """Runs one graph, with a plan for each combination of shapes."""

    def __init__(
        self,
        backend: Backend,
        graph: torch.fx.GraphModule,
        static: set[int],
        returned: Optional[int],
        detached: Mapping[int, weakref.ref[Tensor]],
    ) -> None:
        """
        Args:
            detached: buffers that it changes and is called with detached, by their places.
        """
        self._backend = backend
        self._detached = detached
        self._graph = graph
        self._static = static
        placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        written = written_inputs(graph)
        # Inputs that the graph changes on the pool.
        self._changed = {
            i for i, node in enumerate(placeholders) if node in written and i in static
        }
        # Those whose version AOTAutograd increments before the graph runs.
        self._ahead = self._changed & counted_changes()
        [output] = [node for node in graph.graph.nodes if node.op == "output"]
        given = output.args[0]
        self._outputs = given if isinstance(given, (tuple, list)) else [given]
        count = len(self._outputs)
        self._returned = count if returned is None else min(returned, count)
        self._gradients = gradients_of_parameters(graph, count)
        # Gradients of the forward graph's outputs. A single one is what the pass is for; of several,
        # torch makes zeros of those that the loss does not depend on.
        tangents = [i for i, node in enumerate(placeholders) if is_tangent(node)]
        self._tangents = tangents if len(tangents) > 1 else []
        # Whether it is a pass of a training.
        self._trains = returned is not None or bool(self._gradients)
        # Whether all arguments are tensors of the same shapes in each call.
        self._is_static = have_static_shapes(placeholders)
        # See views_by_layout.
        metadata = None if is_backward(graph) else current_metadata()
        self._views = views_by_layout(metadata, self._is_static)
        self._plans: collections.OrderedDict[Any, _Planned] = collections.OrderedDict()

    def __call__(self, *arguments: Any) -> list[Any]:
        with torch._C.DisableTorchFunctionSubclass():
            return self._call(arguments)

    def _call(self, arguments: Sequence[Any]) -> list[Any]:
        if self._detached:
            arguments_are_detached()
            arguments = self._with_detached(arguments)
        residents = self._backend.residents()
        if not self._defers(residents):
            residents.collect()  # else once for all programs of a step
        if residents.checkpoints is not None:
            residents.checkpoints.begin(residents)
        if self._gradients:
            # Gradients of earlier backward passes are summed before this one adds to them.
            settle([one for one in residents.sums if len(one.terms) > 1])
        try:
            return self._run(residents, arguments)
        except (errors.TensorLostError, errors.NotFoundError) as error:
            if any(isinstance(one, Tensor) and one.is_meta for one in arguments):
                residents.name_losses(error)
                raise
            residents.forget_uploads()
            return self._run(residents, arguments)

    def _with_detached(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """The arguments, with the buffers themselves: the pool may keep changes only of these."""
        given = list(arguments)
        for place, there in self._detached.items():
            buffer = there()
            if buffer is not None and key_of(buffer) == key_of(given[place]):
                given[place] = buffer
        return given

    def _defers(self, residents: Residents) -> bool:
        """Whether an optimizer's step comes, with which the graph's program may run."""
        return self._trains and residents.defers and bool(self._backend.optimizers)

    def _run(self, residents: Residents, arguments: Sequence[Any]) -> list[Any]:
        values = [self._place(residents, i, one) for i, one in enumerate(arguments)]
        staying = self._gradients if self._backend.optimizers else set()
        zeros = tuple([i for i in self._tangents if _is_zero(values[i])])
        prepared, layouts = self._prepare(arguments, values, staying, zeros)
        tensors, originals = values, arguments
        if not self._is_static:
            there = [i for i, one in enumerate(values) if isinstance(one, _TENSORS)]
            tensors, originals = [values[i] for i in there], [arguments[i] for i in there]
        defers = prepared.is_deferrable and self._views is None and self._defers(residents)
        # Two outputs may be the same tensor.
        terms: dict[Any, Term] = {}
        stand_ins: dict[Any, Tensor] = {}
        # No other thread lets the program run before stand-ins say which results are needed.
        with residents.deferring if defers else contextlib.nullcontext():
            given = prepared.run(residents, tensors, originals, defers)
            forward = next(_forward_numbers)
            for i, one in enumerate(given):
                if type(one) is not tuple:
                    continue
                resident, dtype = one
                name = _name(resident)
                if i < self._returned:
                    if name not in terms:
                        terms[name] = residents.hold(resident)
                elif name not in stand_ins:
                    stand_ins[name] = residents.save(resident, dtype, forward)
            if defers and prepared.goes_ahead:
                residents.flush()
        returned = self._returned
        return [
            stand_ins[_name(one[0])]
            if type(one) is tuple and i >= returned
            else self._give(residents, i, one, layout, arguments, terms)
            for i, (one, layout) in enumerate(zip(given, layouts))
        ]

    def _place(self, residents: Residents, index: int, argument: Any) -> Any:
        """The form in which an argument is sent: the tensor, or the one that the pool has."""
        if not isinstance(argument, Tensor):
            return argument
        if isinstance(argument, PoolTensor):
            argument = argument.contents.read()
        if index in self._static and not argument.is_inference():
            return residents.upload(argument, 1 if index in self._ahead else 0)
        resident = residents.find(argument)
        if resident is not None:
            return resident
        if argument.is_meta:
            raise RuntimeError("the backward pass ran once already, and freed what it needs")
        argument = argument.detach()
        bring_home(argument)
        return argument

    def _prepare(
        self,
        arguments: Sequence[Any],
        values: Sequence[Any],
        staying: set[int],
        zeros: tuple[int, ...],
    ) -> _Planned:
        if self._is_static:
            shapes: Any = tuple([isinstance(one, Tensor) for one in values])
        else:
            shapes = tuple(
                (one.shape, one.dtype, isinstance(value, Tensor))
                if isinstance(one, Tensor)
                else one
                for one, value in zip(arguments, values)
            )
        signature = (shapes, bool(staying), zeros)
        found = self._plans.get(signature)
        if found is not None:
            self._plans.move_to_end(signature)
            return found
        parameters = {id(one) for i, one in enumerate(arguments) if i in self._static}
        for optimizer in list(unclaimed):
            optimizer.claim(self._backend, parameters)
        is_sent = [isinstance(one, Tensor) for one in values]
        stays = [
            i >= self._returned or i in staying for i in range(len(self._outputs))
        ]
        changes = [
            i in self._changed and not sent for i, sent in enumerate(is_sent)
        ]
        plan = lower(self._graph, metas_of(arguments), is_sent, stays, changes, zeros)
        self._backend.check(plan)
        backend = self._backend
        prepared = PreparedPlan(plan, backend.client, backend._lease, bool(self._detached))
        residents = self._backend.residents()
        residents.keep(prepared)
        if not self._plans:
            residents.release_after(self)
        extents = Extents(self._graph, arguments)
        given = layouts_of(self._outputs[: self._returned], extents, must=self._views is not None)
        given += [None] * (len(self._outputs) - self._returned)
        planned = self._plans[signature] = prepared, given
        if len(self._plans) > _MOST_PLANS:
            self._plans.popitem(last=False)
        return planned

    def _give(
        self,
        residents: Residents,
        index: int,
        value: Any,
        layout: Optional[Layout],
        arguments: Sequence[Any],
        terms: Mapping[Any, Term],
    ) -> Any:
        """What the caller gets for an output that is its own."""
        if isinstance(value, Contents):
            return PoolTensor(value)
        if isinstance(value, tuple):  # on the pool, with its dtype
            resident, dtype = value
            term = terms[_name(resident)]
            return PoolTensor(Contents(residents, [term], resident.shape, dtype))
        if not isinstance(value, Tensor):
            return value
        if layout is None:
            return value
        if self._views is not None and index in self._views:
            return seen_in(arguments[self._views[index]], value, layout)
        # autograd may look at the output with the strides that it was promised.
        is_right = layout.strides == value.stride() and self._views is None
        return without_base(value) if is_right else laid_out(value, layout)


# Forms of a tensor that a program takes.
_TENSORS = (Tensor, ResidentTensor, Pending)


# Of forward passes, as Entry.forward has them.
_forward_numbers = itertools.count(1)


# Elements that _is_zero looks at before the others.
_FIRST = 4096


def _is_zero(value: Any) -> bool:
    """Whether a tensor would be sent though all of its elements, more than one, are 0."""
    if not isinstance(value, Tensor) or not value.dim() or not value.is_contiguous():
        return False
    elements = value.view(-1)
    return not elements[:_FIRST].any() and not elements[_FIRST:].any()


def _name(one: Union[ResidentTensor, Pending]) -> object:
    """Equal for the same tensor on the pool."""
    return one if type(one) is Pending else one.handle  # type: ignore[union-attr]


def decompositions() -> dict[Any, Callable[..., Any]]:
    """How nodes are taken apart that the pool has no operator for."""
    from opserve.torch._lowerings import LOWERINGS, VIEWS

    torchs = core_aten_decompositions()
    table = {
        target: function
        for target, function in torchs.items()
        if target not in LOWERINGS and target not in VIEWS
    }
    for target in _decompositions.WHOLE_IN_TRAININGS:
        table[target] = _decompositions.of_other_dtypes(torchs[target])
    table.update(_decompositions.DECOMPOSITIONS)
    table.update(_experts.decompositions())
    return table


def backend(
    client: Optional[Client] = None,
    *,
    strict: bool = False,
    lease: float = _DEFAULT_LEASE,
    checkpoint_every: Optional[int] = None,
    checkpoint_bytes: int = _DEFAULT_CHECKPOINT_BYTES,
    ahead: int = _DEFAULT_AHEAD,
) -> Backend:
    """A backend for torch.compile with options: see Backend."""
    return Backend(
        client,
        strict=strict,
        lease=lease,
        checkpoint_every=checkpoint_every,
        checkpoint_bytes=checkpoint_bytes,
        ahead=ahead,
    )


def default() -> Backend:
    """That of torch.compile(model, backend="opserve")."""
    global _default
    with _default_lock:
        if _default is None:
            _default = Backend()
        return _default


_default: Optional[Backend] = None
_default_lock = threading.Lock()


def compile_graph(
    graph: torch.fx.GraphModule, inputs: Sequence[Tensor], **options: Any
) -> Callable[..., Any]:
    """torch.compile(model, backend="opserve")."""
    return default()(graph, inputs, **options)
