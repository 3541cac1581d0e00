"""A method for each operator, from the catalogue of a daemon.

Written by tools/generate_operators.py; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Optional, TypeVar, Union

from opserve._operator import (
    OperatorCalls,
    OperatorInfo,
    OutputInfo,
    Parameters,
    Scalar,
)

R = TypeVar("R")


class Operators(OperatorCalls[R]):
    """The operators as methods.

    The first parameter is the object itself, so that inputs may be called `self`. Inputs are
    numpy arrays, CPU torch tensors, objects with `__dlpack__`, resident tensors or, in a
    program, outputs of earlier invocations; of those that are None, nothing is sent. Each
    method takes, beside the operator's own arguments, `out`, `dtype` and `timeout` (see
    Parameters), `outputs` if some may be left out, and raises OpserveError, or TypeError and
    ValueError for what cannot be sent. An operator with several outputs gives a named tuple.
    """

    def kl_div_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        target: Any,
        *,
        reduction: Union[int, Literal["none", "mean", "sum", "batchmean"]] = "mean",
        log_target: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the KL divergence loss with respect to its input.

        With B the broadcast shape of self and target and d the divisor of the
        reduction:
          log_target false:  term = -target * grad_output / d
          log_target true:   term = -exp(target) * grad_output / d
        out is the term summed over the axes along which self was broadcast. The values
        of self do not matter, only its shape and dtype. FLOAT, FLOAT16 and BF16 mix
        freely; DOUBLE goes only with DOUBLE. Sums are taken in float32 (float64 for
        DOUBLE) and rounded once. Targets that are zero or negative are not singled out;
        NaN in self reaches nothing.

        Args:
            grad_output: Gradient of the loss; broadcasts to B, often one element.
                float32, float16, bfloat16, float64.
            self: The loss's input (log-probabilities); broadcasts with target. float32,
                float16, bfloat16, float64.
            target: The loss's target, or its logarithm if log_target. float32, float16,
                bfloat16, float64.
            reduction: How the forward loss was reduced; the gradient is divided by 1
                (none, sum), by the number of elements of the broadcast shape B (mean)
                or by B's first extent (batchmean; 1 if B is 0-d). Any other number acts
                as none.
            log_target: Whether target holds logarithms of probabilities.

        Returns:
            out: Gradient with respect to self, in its shape and dtype. float32,
                float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "KlDivBackward",
            {
                "grad_output": grad_output,
                "self": self,
                "target": target,
            },
            {
                "reduction": reduction,
                "log_target": log_target,
            },
            Parameters(out, dtype, timeout),
        )

    def kl_div_target_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        target: Any,
        *,
        reduction: Union[int, Literal["none", "mean", "sum", "batchmean"]] = "mean",
        log_target: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the KL divergence loss with respect to its target.

        With B the broadcast shape of self and target and d the divisor of the
        reduction:
          log_target true:                term = grad_output / d * exp(target) * (target
          - self + 1)
          log_target false, target != 0:  term = grad_output / d * (ln(target) - self +
          1)
          log_target false, target == 0:  term = 0
        grad_target is the term summed over the axes along which target was broadcast.
        The dtypes mix freely; sums are taken in float32 and rounded once. A target of
        zero hides infinities and NaN in grad_output and self; a negative target gives
        NaN.

        Args:
            grad_output: Gradient of the loss; broadcasts to B, often one element.
                float32, float16, bfloat16.
            self: The loss's input (log-probabilities); broadcasts with target. float32,
                float16, bfloat16.
            target: The loss's target, or its logarithm if log_target. float32, float16,
                bfloat16.
            reduction: How the forward loss was reduced; the gradient is divided by 1
                (none, sum), by the number of elements of the broadcast shape B (mean)
                or by B's first extent (batchmean; 1 if B is 0-d). Any other number acts
                as none.
            log_target: Whether target holds logarithms of probabilities.

        Returns:
            grad_target: Gradient with respect to target, in its shape and dtype.
                float32, float16, bfloat16.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "KlDivTargetBackward",
            {
                "grad_output": grad_output,
                "self": self,
                "target": target,
            },
            {
                "reduction": reduction,
                "log_target": log_target,
            },
            Parameters(out, dtype, timeout),
        )

    def l1_loss_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        target: Any,
        *,
        reduction: Union[int, Literal["none", "mean", "sum"]] = "mean",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the L1 (mean absolute error) loss with respect to its input.

        grad_input = sign(self - target) * grad_output / d in the full broadcast shape B
        of all three inputs; nothing is summed. The sign comes from a comparison: it is
        0 where self and target are equal (equal infinities too) or where one is NaN.
        FLOAT, FLOAT16 and BF16 mix freely: equal dtypes stay, any mixture is computed
        as FLOAT. grad_input has that common dtype unless another is asked for.

        Args:
            grad_output: Gradient of the loss; may be larger than the other two.
                float32, float16, bfloat16.
            self: The loss's input. float32, float16, bfloat16.
            target: The loss's target. float32, float16, bfloat16.
            reduction: How the forward loss was reduced; the gradient is divided by 1
                (none, sum) or by the number of elements of the broadcast shape B
                (mean).

        Returns:
            grad_input: Gradient with respect to self, in shape B. float32, float16,
                bfloat16.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "L1LossBackward",
            {
                "grad_output": grad_output,
                "self": self,
                "target": target,
            },
            {
                "reduction": reduction,
            },
            Parameters(out, dtype, timeout),
        )

    def log_softmax_backward(
        client,
        /,
        grad_output: Any,
        output: Any,
        *,
        dim: int = -1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of log-softmax with respect to its input.

        out = grad_output - exp(output) * sum(grad_output over axis dim, kept). output
        is the result of the forward log-softmax and is used as given: it need not be
        normalised. Both inputs have the same shape and dtype. The sum is taken in
        float32. output = -inf has probability 0; a NaN gradient spoils its own row
        only.

        Args:
            grad_output: Gradient of the loss with respect to output. float32, float16,
                bfloat16.
            output: Result of the forward log-softmax. float32, float16, bfloat16.
            dim: Axis of the softmax; negative values count from the end.

        Returns:
            out: Gradient with respect to the softmax's input, in the inputs' dtype
                unless another is asked for. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LogSoftmaxBackward",
            {
                "grad_output": grad_output,
                "output": output,
            },
            {
                "dim": dim,
            },
            Parameters(out, dtype, timeout),
        )

    def mse_loss_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        target: Any,
        *,
        reduction: Union[int, Literal["none", "mean", "sum"]] = "mean",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the mean squared error loss with respect to its input.

        out = 2 * (self - target) * grad_output / d in the full broadcast shape B of all
        three inputs; nothing is summed. All inputs have the same dtype, FLOAT, FLOAT16
        or BF16; it is computed in float32 and rounded once. out has that dtype unless
        another is asked for.

        Args:
            grad_output: Gradient of the loss; may be larger than the other two.
                float32, float16, bfloat16.
            self: The loss's input. float32, float16, bfloat16.
            target: The loss's target. float32, float16, bfloat16.
            reduction: How the forward loss was reduced; the gradient is divided by 1
                (none, sum) or by the number of elements of the broadcast shape B
                (mean).

        Returns:
            out: Gradient with respect to self, in shape B. float32, float16, bfloat16.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "MseLossBackward",
            {
                "grad_output": grad_output,
                "self": self,
                "target": target,
            },
            {
                "reduction": reduction,
            },
            Parameters(out, dtype, timeout),
        )


OPERATORS: dict[str, OperatorInfo] = {
    "KlDivBackward": OperatorInfo(
        "KlDivBackward",
        "kl_div_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16", "float64"),
            "self": ("float32", "float16", "bfloat16", "float64"),
            "target": ("float32", "float16", "bfloat16", "float64"),
        },
        {"reduction": "int", "log_target": "bool"},
        (OutputInfo("out"),),
    ),
    "KlDivTargetBackward": OperatorInfo(
        "KlDivTargetBackward",
        "kl_div_target_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
            "target": ("float32", "float16", "bfloat16"),
        },
        {"reduction": "int", "log_target": "bool"},
        (OutputInfo("grad_target"),),
    ),
    "L1LossBackward": OperatorInfo(
        "L1LossBackward",
        "l1_loss_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
            "target": ("float32", "float16", "bfloat16"),
        },
        {"reduction": "int"},
        (OutputInfo("grad_input"),),
    ),
    "LogSoftmaxBackward": OperatorInfo(
        "LogSoftmaxBackward",
        "log_softmax_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "output": ("float32", "float16", "bfloat16"),
        },
        {"dim": "int"},
        (OutputInfo("out"),),
    ),
    "MseLossBackward": OperatorInfo(
        "MseLossBackward",
        "mse_loss_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
            "target": ("float32", "float16", "bfloat16"),
        },
        {"reduction": "int"},
        (OutputInfo("out"),),
    ),
}
