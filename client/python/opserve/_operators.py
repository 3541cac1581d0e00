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
    numpy arrays, CPU torch tensors, objects with `__dlpack__`, numbers and nested lists of
    them, resident tensors or, in a program, outputs of earlier invocations; of those that are
    None, nothing is sent. Numbers get the dtype of the first tensor where the operator takes
    it there and it holds them, else float32, int64 or bool. Each method takes, beside the
    operator's own arguments, `out`, `dtype` and `timeout` (see Parameters), `outputs` if some
    may be left out, and raises OpserveError, or TypeError and ValueError for what cannot be
    sent. An operator with several outputs gives a named tuple.
    """

    def abs(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes absolute values.

        out = |self|. The smallest integer of a dtype stays as it is; NaN stays NaN.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Abs",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def acos(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the inverse cosine.

        out = arccos(self) in radians, from 0 to pi. Outside of -1 to 1 it is NaN.
        Integers and BOOL are computed as FLOAT; out has the computed dtype unless
        another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Acos",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def acosh(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the inverse hyperbolic cosine.

        out = arcosh(self). Below 1 it is NaN. Integers and BOOL are computed as FLOAT;
        out has the computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Acosh",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def add(
        client,
        /,
        self: Any,
        other: Any,
        *,
        alpha: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds two tensors.

        out = self + alpha * other. The operands broadcast and are promoted to a common
        dtype, in which the result is computed and rounded once; out has it unless
        another is asked for.

        Args:
            self: Left operand; broadcasts with other. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts with self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            alpha: Factor on other.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Add",
            {
                "self": self,
                "other": other,
            },
            {
                "alpha": alpha,
            },
            Parameters(out, dtype, timeout),
        )

    def add_layer_norm(
        client,
        /,
        x1: Any,
        x2: Any,
        gamma: Any,
        beta: Any,
        bias: Any = None,
        *,
        epsilon: float = 1e-05,
        additional_output: bool = True,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Sum of two tensors, layer-normalised over the last axis.

        x = x1 + x2 + bias and y_out = (x - mean) / sqrt(variance + epsilon) * gamma +
        beta, with mean and biased variance over the trailing axes that gamma covers.
        x_out is written if additional_output.

        Args:
            x1: First summand. float32, float16, bfloat16.
            x2: Second summand. float32, float16, bfloat16.
            gamma: Factor on the normalised elements. float32, float16, bfloat16.
            beta: Added to the normalised elements. float32, float16, bfloat16.
            bias: Third summand, of gamma's or x1's shape; left out: 0. float32,
                float16, bfloat16. Optional.
            epsilon: Added to the variance.
            additional_output: Whether x_out is written.

        Returns:
            y_out: The normalised sum.
            mean_out: The means; x1's shape with the normalised axes 1.
            rstd_out: 1 / sqrt(variance + epsilon), in the same shape.
            x_out: The sum.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "AddLayerNorm",
            {
                "x1": x1,
                "x2": x2,
                "gamma": gamma,
                "beta": beta,
                "bias": bias,
            },
            {
                "epsilon": epsilon,
                "additional_output": additional_output,
            },
            Parameters(out, dtype, timeout),
        )

    def add_layer_norm_grad(
        client,
        /,
        dy: Any,
        x1: Any,
        x2: Any,
        rstd: Any,
        mean: Any,
        gamma: Any,
        dsum: Any = None,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradients of the layer-normalised sum of two tensors.

        With x = x1 + x2, xhat = (x - mean) * rstd and g = dy * gamma:
        dx_out = rstd * (g - mean of g - xhat * mean of (g * xhat)) + dsum
        dgamma_out = sum of dy * xhat, dbeta_out = sum of dy over the leading axes

        Args:
            dy: Gradient of the loss with respect to the forward result. float32,
                float16, bfloat16.
            x1: First forward summand. float32, float16, bfloat16.
            x2: Second forward summand. float32, float16, bfloat16.
            rstd: rstd_out of the forward call. float32.
            mean: mean_out of the forward call. float32.
            gamma: The forward factor. float32, float16, bfloat16.
            dsum: Gradient with respect to x_out; left out: 0. float32, float16,
                bfloat16. Optional.

        Returns:
            dx_out: Gradient with respect to both summands.
            dgamma_out: Gradient with respect to gamma.
            dbeta_out: Gradient with respect to beta.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "AddLayerNormGrad",
            {
                "dy": dy,
                "x1": x1,
                "x2": x2,
                "rstd": rstd,
                "mean": mean,
                "gamma": gamma,
                "dsum": dsum,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def add_rms_norm(
        client,
        /,
        x1: Any,
        x2: Any,
        gamma: Any,
        *,
        epsilon: float = 1e-06,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
        outputs: Optional[Sequence[Literal["x_out"]]] = None,
    ) -> R:
        """Sum of two tensors, normalised by its root mean square.

        x_out = x1 + x2 and y_out = x_out * rstd_out * gamma with rstd_out = 1 /
        sqrt(mean(x_out * x_out) + epsilon), the mean over the trailing axes that gamma
        covers.

        Args:
            x1: First summand. float32, float16, bfloat16.
            x2: Second summand. float32, float16, bfloat16.
            gamma: Factor on the normalised elements; its shape is that of the trailing
                axes. float32, float16, bfloat16.
            epsilon: Added to the mean square.
            outputs: of the outputs that may be left out, those to compute; None: all.

        Returns:
            y_out: The normalised sum.
            rstd_out: The factors; x1's shape with the normalised axes 1.
            x_out: The sum. None if it is not among `outputs`.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "AddRmsNorm",
            {
                "x1": x1,
                "x2": x2,
                "gamma": gamma,
            },
            {
                "epsilon": epsilon,
            },
            Parameters(out, dtype, timeout, outputs),
        )

    def addbmm(
        client,
        /,
        self: Any,
        batch1: Any,
        batch2: Any,
        *,
        beta: Scalar = 1,
        alpha: Scalar = 1,
        cube_math_type: Union[int, Literal["keep", "allow_hf32", "use_fp16", "use_hf32"]] = "keep",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds the sum of products of a batch of matrices to a tensor.

        out = beta * self + alpha * (sum over b of batch1[b] @ batch2[b]). self
        broadcasts to [n, m]. Sums are taken in float32 and rounded once.

        Args:
            self: The summand; broadcasts to [n, m]. float32, float16, bfloat16.
            batch1: Left factors, [b, n, k]. float32, float16, bfloat16.
            batch2: Right factors, [b, k, m]. float32, float16, bfloat16.
            beta: Factor on self.
            alpha: Factor on the product.
            cube_math_type: Precision of FLOAT products: keep it, allow HFLOAT32, use
                FLOAT16, use HFLOAT32.

        Returns:
            out: The product.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Addbmm",
            {
                "self": self,
                "batch1": batch1,
                "batch2": batch2,
            },
            {
                "beta": beta,
                "alpha": alpha,
                "cube_math_type": cube_math_type,
            },
            Parameters(out, dtype, timeout),
        )

    def addcdiv(
        client,
        /,
        self: Any,
        tensor1: Any,
        tensor2: Any,
        *,
        value: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds a scaled quotient of two tensors to a tensor.

        out = self + value * tensor1 / tensor2. Division by zero gives an infinity, or
        NaN for 0 / 0. The tensors broadcast and are promoted to a common dtype, in
        which the result is computed; out has it unless another is asked for.

        Args:
            self: The summand; broadcasts with the other two. float32, float16,
                bfloat16, float64, int64.
            tensor1: Dividend. float32, float16, bfloat16, float64, int64.
            tensor2: Divisor. float32, float16, bfloat16, float64, int64.
            value: Factor on the quotient.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Addcdiv",
            {
                "self": self,
                "tensor1": tensor1,
                "tensor2": tensor2,
            },
            {
                "value": value,
            },
            Parameters(out, dtype, timeout),
        )

    def addcmul(
        client,
        /,
        self: Any,
        tensor1: Any,
        tensor2: Any,
        *,
        value: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds a scaled product of two tensors to a tensor.

        out = self + value * tensor1 * tensor2. The tensors broadcast and are promoted
        to a common dtype, in which the result is computed; out has it unless another is
        asked for.

        Args:
            self: The summand; broadcasts with the other two. float32, float16,
                bfloat16, float64, int8, uint8, int32, int64.
            tensor1: First factor. float32, float16, bfloat16, float64, int8, uint8,
                int32, int64.
            tensor2: Second factor. float32, float16, bfloat16, float64, int8, uint8,
                int32, int64.
            value: Factor on the product.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Addcmul",
            {
                "self": self,
                "tensor1": tensor1,
                "tensor2": tensor2,
            },
            {
                "value": value,
            },
            Parameters(out, dtype, timeout),
        )

    def addmm(
        client,
        /,
        self: Any,
        mat1: Any,
        mat2: Any,
        *,
        beta: Scalar = 1,
        alpha: Scalar = 1,
        cube_math_type: Union[int, Literal["keep", "allow_hf32", "use_fp16", "use_hf32"]] = "keep",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds a product of matrices to a tensor.

        out = beta * self + alpha * (mat1 @ mat2). self broadcasts to [n, m]. Sums are
        taken in float32 and rounded once.

        Args:
            self: The summand; broadcasts to the product. float32, float16, bfloat16.
            mat1: Left factor, [n, k]. float32, float16, bfloat16.
            mat2: Right factor, [k, m]. float32, float16, bfloat16.
            beta: Factor on self.
            alpha: Factor on the product.
            cube_math_type: Precision of FLOAT products: keep it, allow HFLOAT32, use
                FLOAT16, use HFLOAT32.

        Returns:
            out: The product.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Addmm",
            {
                "self": self,
                "mat1": mat1,
                "mat2": mat2,
            },
            {
                "beta": beta,
                "alpha": alpha,
                "cube_math_type": cube_math_type,
            },
            Parameters(out, dtype, timeout),
        )

    def addmv(
        client,
        /,
        self: Any,
        mat: Any,
        vec: Any,
        *,
        alpha: Scalar = 1,
        beta: Scalar = 1,
        cube_math_type: Union[int, Literal["keep", "allow_hf32", "use_fp16", "use_hf32"]] = "keep",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds the product of a matrix and a vector to a vector.

        out = beta * self + alpha * (mat @ vec). self broadcasts to [n]. Sums are taken
        in float32 and rounded once.

        Args:
            self: The summand; broadcasts to [n]. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool.
            mat: The matrix, [n, k]. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            vec: The vector, [k]. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            alpha: Factor on the product.
            beta: Factor on self.
            cube_math_type: Precision of FLOAT products: keep it, allow HFLOAT32, use
                FLOAT16, use HFLOAT32.

        Returns:
            out: The product.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Addmv",
            {
                "self": self,
                "mat": mat,
                "vec": vec,
            },
            {
                "alpha": alpha,
                "beta": beta,
                "cube_math_type": cube_math_type,
            },
            Parameters(out, dtype, timeout),
        )

    def adds(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        alpha: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds a number to a tensor.

        out = self + alpha * other. The number only lifts the kind of self's dtype
        (integer to floating point); out has that dtype unless another is asked for.

        Args:
            self: The tensor operand. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            other: The number.
            alpha: Factor on other.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Adds",
            {
                "self": self,
            },
            {
                "other": other,
                "alpha": alpha,
            },
            Parameters(out, dtype, timeout),
        )

    def all(
        client,
        /,
        self: Any,
        *,
        dim: Sequence[int],
        keepdim: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Whether all elements along axes are true.

        out = whether all of the elements over the axes dim are not 0; NaN counts as
        true. Nothing to look at gives true.

        Args:
            self: The tensor to reduce. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.
            dim: Axes to reduce; negative values count from the end; an empty array
                means all.
            keepdim: Whether the reduced axes stay with extent 1.

        Returns:
            out: The result. uint8, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "All",
            {
                "self": self,
            },
            {
                "dim": dim,
                "keepdim": keepdim,
            },
            Parameters(out, dtype, timeout),
        )

    def amax(
        client,
        /,
        self: Any,
        *,
        dim: Sequence[int],
        keep_dim: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Largest elements along axes.

        out = the largest element of self over the axes dim, which are different. NaN
        wins.

        Args:
            self: The tensor to reduce. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.
            dim: Axes to reduce; negative values count from the end; an empty array
                means all.
            keep_dim: Whether the reduced axes stay with extent 1.

        Returns:
            out: The result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Amax",
            {
                "self": self,
            },
            {
                "dim": dim,
                "keep_dim": keep_dim,
            },
            Parameters(out, dtype, timeout),
        )

    def amin(
        client,
        /,
        self: Any,
        *,
        dim: Sequence[int],
        keep_dim: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Smallest elements along axes.

        out = the smallest element of self over the axes dim, which are different. NaN
        wins.

        Args:
            self: The tensor to reduce. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.
            dim: Axes to reduce; negative values count from the end; an empty array
                means all.
            keep_dim: Whether the reduced axes stay with extent 1.

        Returns:
            out: The result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Amin",
            {
                "self": self,
            },
            {
                "dim": dim,
                "keep_dim": keep_dim,
            },
            Parameters(out, dtype, timeout),
        )

    def amp_update_scale(
        client,
        /,
        current_scale: Any,
        growth_tracker: Any,
        found_inf: Any,
        *,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Moves the scale of the loss in mixed precision.

        If found_inf is not 0: updated_scale = current_scale * backoff_factor and the
        tracker becomes 0. Otherwise the tracker grows by 1; when it reaches
        growth_interval the scale is multiplied by growth_factor, unless it would
        overflow, and the tracker becomes 0.

        Args:
            current_scale: The scale, one element. float32, float16, bfloat16.
            growth_tracker: Steps without infinities since the last change, one element.
                int32.
            found_inf: Not 0 if a gradient was not finite, one element. float32,
                float16, bfloat16.
            growth_factor: Factor of growth.
            backoff_factor: Factor after infinities.
            growth_interval: Steps without infinities before the scale grows.

        Returns:
            updated_scale: The new scale.
            updated_growth_tracker: The new tracker.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "AmpUpdateScale",
            {
                "current_scale": current_scale,
                "growth_tracker": growth_tracker,
                "found_inf": found_inf,
            },
            {
                "growth_factor": growth_factor,
                "backoff_factor": backoff_factor,
                "growth_interval": growth_interval,
            },
            Parameters(out, dtype, timeout),
        )

    def any(
        client,
        /,
        self: Any,
        *,
        dim: Sequence[int],
        keepdim: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Whether any elements along axes are true.

        out = whether any of the elements over the axes dim is not 0; NaN counts as
        true. Nothing to look at gives false.

        Args:
            self: The tensor to reduce. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.
            dim: Axes to reduce; negative values count from the end; an empty array
                means all.
            keepdim: Whether the reduced axes stay with extent 1.

        Returns:
            out: The result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Any",
            {
                "self": self,
            },
            {
                "dim": dim,
                "keepdim": keepdim,
            },
            Parameters(out, dtype, timeout),
        )

    def apply_adam_wv2(
        client,
        /,
        var: Any,
        m: Any,
        v: Any,
        grad: Any,
        step: Any,
        *,
        max_grad_norm: Any = None,
        lr: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        weight_decay: float = 0.01,
        eps: float = 1e-08,
        amsgrad: bool = False,
        maximize: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """One AdamW step on a parameter.

        With t = step + 1:
        var = var * (1 - lr * weight_decay)
        m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 - beta2) * g * g
        var = var - lr / (1 - beta1 ** t) * m / (sqrt(v / (1 - beta2 ** t)) + eps)
        with g the gradient, or its negative if maximize. With amsgrad the largest v so
        far takes the place of v. Callers that count steps from 1 pass their count less
        one.

        Args:
            var: The parameter. float32, float16, bfloat16.
            m: First moment. float32, float16, bfloat16.
            v: Second moment. float32, float16, bfloat16.
            max_grad_norm: Largest second moment so far; needed with amsgrad. float32,
                float16, bfloat16. Optional.
            grad: The gradient. float32, float16, bfloat16.
            step: Number of steps before this one; one element. float32, int64.
            lr: Learning rate.
            beta1: Decay of the first moment.
            beta2: Decay of the second moment.
            weight_decay: Weight decay, decoupled from the gradient.
            eps: Added to the denominator.
            amsgrad: Whether the largest second moment so far is used.
            maximize: Whether the objective grows instead of shrinks.

        Returns:
            var: The parameter.
            m: First moment.
            v: Second moment.
            max_grad_norm: Largest second moment so far; needed with amsgrad.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ApplyAdamWV2",
            {
                "var": var,
                "m": m,
                "v": v,
                "max_grad_norm": max_grad_norm,
                "grad": grad,
                "step": step,
            },
            {
                "lr": lr,
                "beta1": beta1,
                "beta2": beta2,
                "weight_decay": weight_decay,
                "eps": eps,
                "amsgrad": amsgrad,
                "maximize": maximize,
            },
            Parameters(out, dtype, timeout),
        )

    def apply_fused_ema_adam(
        client,
        /,
        grad: Any,
        var: Any,
        m: Any,
        v: Any,
        s: Any,
        step: Any,
        *,
        lr: float,
        ema_decay: float = 0.999,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        mode: Union[int, Literal["adam", "adamw"]] = "adamw",
        bias_correction: bool = True,
        weight_decay: float = 0.0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """One Adam step on a parameter with a moving average of it.

        With g = grad, plus weight_decay * var in mode 0:
        m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 - beta2) * g * g
        u = m / (1 - beta1 ** step) / (sqrt(v / (1 - beta2 ** step)) + eps), plus
        weight_decay * var in mode 1
        var = var - lr * u, s = ema_decay * s + (1 - ema_decay) * var
        Without bias_correction the divisors of m and v are 1.

        Args:
            grad: The gradient. float32, float16, bfloat16.
            var: The parameter. float32, float16, bfloat16.
            m: First moment. float32, float16, bfloat16.
            v: Second moment. float32, float16, bfloat16.
            s: Moving average of the parameter. float32, float16, bfloat16.
            step: Number of this step, from 1; one element. int64.
            lr: Learning rate.
            ema_decay: Decay of the moving average.
            beta1: Decay of the first moment.
            beta2: Decay of the second moment.
            eps: Added to the denominator.
            mode: Where the weight decay goes: into the gradient or into the update.
            bias_correction: Whether the moments are corrected for their start.
            weight_decay: Weight decay.

        Returns:
            var: The parameter.
            m: First moment.
            v: Second moment.
            s: Moving average of the parameter.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ApplyFusedEmaAdam",
            {
                "grad": grad,
                "var": var,
                "m": m,
                "v": v,
                "s": s,
                "step": step,
            },
            {
                "lr": lr,
                "ema_decay": ema_decay,
                "beta1": beta1,
                "beta2": beta2,
                "eps": eps,
                "mode": mode,
                "bias_correction": bias_correction,
                "weight_decay": weight_decay,
            },
            Parameters(out, dtype, timeout),
        )

    def arange(
        client,
        /,
        *,
        start: Scalar = 0,
        end: Scalar,
        step: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Lists equally spaced numbers.

        out[i] = start + i * step for i from 0 as long as end is not reached. out is
        1-d; it is INT64 if all three numbers are whole, else FLOAT, unless another
        dtype is asked for.

        Args:
            start: The first number.
            end: The bound, which out does not reach.
            step: The difference between two numbers; not 0.

        Returns:
            out: The numbers. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Arange",
            {},
            {
                "start": start,
                "end": end,
                "step": step,
            },
            Parameters(out, dtype, timeout),
        )

    def arg_max(
        client,
        /,
        self: Any,
        *,
        dim: int,
        keepdim: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Positions of the largest elements along an axis.

        out = the position of the largest element along axis dim, the first of equal
        ones. NaN wins.

        Args:
            self: The tensor to search. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64.
            dim: Axis to search; negative values count from the end.
            keepdim: Whether the searched axis stays with extent 1.

        Returns:
            out: The positions. int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ArgMax",
            {
                "self": self,
            },
            {
                "dim": dim,
                "keepdim": keepdim,
            },
            Parameters(out, dtype, timeout),
        )

    def arg_min(
        client,
        /,
        self: Any,
        *,
        dim: int,
        keepdim: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Positions of the smallest elements along an axis.

        out = the position of the smallest element along axis dim, the first of equal
        ones. NaN wins.

        Args:
            self: The tensor to search. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64.
            dim: Axis to search; negative values count from the end.
            keepdim: Whether the searched axis stays with extent 1.

        Returns:
            out: The positions. int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ArgMin",
            {
                "self": self,
            },
            {
                "dim": dim,
                "keepdim": keepdim,
            },
            Parameters(out, dtype, timeout),
        )

    def asin(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the inverse sine.

        out = arcsin(self) in radians, from -pi / 2 to pi / 2. Outside of -1 to 1 it is
        NaN. Integers and BOOL are computed as FLOAT; out has the computed dtype unless
        another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Asin",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def asinh(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the inverse hyperbolic sine.

        out = arsinh(self). Integers and BOOL are computed as FLOAT; out has the
        computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Asinh",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def atan(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the inverse tangent.

        out = arctan(self) in radians, from -pi / 2 to pi / 2. Integers and BOOL are
        computed as FLOAT; out has the computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Atan",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def atan2(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the angle of points.

        out = the angle of the point (other, self) from the first axis, in radians, from
        -pi to pi. Integers and BOOL are computed as FLOAT. The operands broadcast and
        are promoted to a common dtype, in which the result is computed and rounded
        once; out has it unless another is asked for.

        Args:
            self: Left operand; broadcasts with other. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts with self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Atan2",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def atanh(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the inverse hyperbolic tangent.

        out = artanh(self). At 1 and -1 it is infinite, outside of them NaN. Integers
        and BOOL are computed as FLOAT; out has the computed dtype unless another is
        asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Atanh",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def avg_pool2d(
        client,
        /,
        self: Any,
        *,
        kernel_size: Sequence[int],
        strides: Sequence[int],
        paddings: Sequence[int],
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int = 0,
        cube_math_type: Union[int, Literal["keep", "allow_hf32", "use_fp16", "use_hf32"]] = "keep",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Means of windows of images.

        out = the sum of each window divided by divisor_override, or else by its number
        of elements, padding included if count_include_pad.

        Args:
            self: The images, [N, C, H, W] or [C, H, W]. float32, float16, bfloat16.
            kernel_size: Extents of the window: height and width, or one number for
                both.
            strides: Steps of the window; an empty array: those of its extents.
            paddings: Rows and columns around the image; at most half of the window.
            ceil_mode: Whether the extents of the result are rounded up.
            count_include_pad: Whether padding counts in the divisor.
            divisor_override: The divisor; 0: the number of elements.
            cube_math_type: Precision of FLOAT products: keep it, allow HFLOAT32, use
                FLOAT16, use HFLOAT32.

        Returns:
            out: The means.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "AvgPool2d",
            {
                "self": self,
            },
            {
                "kernel_size": kernel_size,
                "strides": strides,
                "paddings": paddings,
                "ceil_mode": ceil_mode,
                "count_include_pad": count_include_pad,
                "divisor_override": divisor_override,
                "cube_math_type": cube_math_type,
            },
            Parameters(out, dtype, timeout),
        )

    def avg_pool2d_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        *,
        kernel_size: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int = 0,
        cube_math_type: Union[int, Literal["keep", "allow_hf32", "use_fp16", "use_hf32"]] = "keep",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the means of windows of images.

        grad_input = the sum of grad_output / divisor over the windows that hold each
        element, the divisor being that of the forward call.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            self: The forward images; only their shape matters. float32, float16,
                bfloat16.
            kernel_size: Extents of the window: height and width, or one number for
                both.
            stride: Steps of the window; an empty array: those of its extents.
            padding: Rows and columns around the image; at most half of the window.
            ceil_mode: Whether the extents of the result are rounded up.
            count_include_pad: Whether padding counts in the divisor.
            divisor_override: The divisor; 0: the number of elements.
            cube_math_type: Precision of FLOAT products: keep it, allow HFLOAT32, use
                FLOAT16, use HFLOAT32.

        Returns:
            grad_input: Gradient with respect to self.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "AvgPool2dBackward",
            {
                "grad_output": grad_output,
                "self": self,
            },
            {
                "kernel_size": kernel_size,
                "stride": stride,
                "padding": padding,
                "ceil_mode": ceil_mode,
                "count_include_pad": count_include_pad,
                "divisor_override": divisor_override,
                "cube_math_type": cube_math_type,
            },
            Parameters(out, dtype, timeout),
        )

    def baddbmm(
        client,
        /,
        self: Any,
        batch1: Any,
        batch2: Any,
        *,
        beta: Scalar = 1,
        alpha: Scalar = 1,
        cube_math_type: Union[int, Literal["keep", "allow_hf32", "use_fp16", "use_hf32"]] = "keep",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds products of batches of matrices to a tensor.

        out = beta * self + alpha * (batch1 @ batch2). self broadcasts to [b, n, m].
        Sums are taken in float32 and rounded once.

        Args:
            self: The summand; broadcasts to the products. float32, float16, bfloat16.
            batch1: Left factors, [b, n, k]. float32, float16, bfloat16.
            batch2: Right factors, [b, k, m]. float32, float16, bfloat16.
            beta: Factor on self.
            alpha: Factor on the product.
            cube_math_type: Precision of FLOAT products: keep it, allow HFLOAT32, use
                FLOAT16, use HFLOAT32.

        Returns:
            out: The product.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Baddbmm",
            {
                "self": self,
                "batch1": batch1,
                "batch2": batch2,
            },
            {
                "beta": beta,
                "alpha": alpha,
                "cube_math_type": cube_math_type,
            },
            Parameters(out, dtype, timeout),
        )

    def batch_mat_mul(
        client,
        /,
        self: Any,
        mat2: Any,
        *,
        cube_math_type: Union[int, Literal["keep", "allow_hf32", "use_fp16", "use_hf32"]] = "keep",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Products of batches of matrices.

        out[b] = self[b] @ mat2[b], [b, n, k] by [b, k, m]; a batch of 1 broadcasts.
        Sums are taken in float32 and rounded once.

        Args:
            self: Left factors, [b, n, k]. float32, float16, bfloat16.
            mat2: Right factors, [b, k, m]. float32, float16, bfloat16.
            cube_math_type: Precision of FLOAT products: keep it, allow HFLOAT32, use
                FLOAT16, use HFLOAT32.

        Returns:
            out: The product.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BatchMatMul",
            {
                "self": self,
                "mat2": mat2,
            },
            {
                "cube_math_type": cube_math_type,
            },
            Parameters(out, dtype, timeout),
        )

    def batch_norm(
        client,
        /,
        input: Any,
        weight: Any,
        bias: Any,
        running_mean: Any = None,
        running_var: Any = None,
        *,
        training: bool = False,
        momentum: float = 0.1,
        eps: float = 1e-05,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Batch normalisation over everything but the channels.

        output = (input - mean) * invstd * weight + bias for each channel (axis 1), with
        invstd = 1 / sqrt(variance + eps). training takes mean and biased variance of
        the batch and moves the running statistics: new = (1 - momentum) * old +
        momentum * batch, with the unbiased variance. Without training the running
        statistics are used and save_mean and save_invstd hold nothing of use.

        Args:
            input: The tensor to normalise, [N, C, ...]. float32, float16, bfloat16.
            weight: Factor for each channel. float32, float16, bfloat16.
            bias: Added for each channel. float32, float16, bfloat16.
            running_mean: Running means; updated in training. float32, float16,
                bfloat16. Optional.
            running_var: Running variances; updated in training. float32, float16,
                bfloat16. Optional.
            training: Whether statistics of the batch are used.
            momentum: Weight of the batch in the running statistics.
            eps: Added to the variance.

        Returns:
            running_mean: Running means; updated in training.
            running_var: Running variances; updated in training.
            output: The normalised tensor.
            save_mean: Means of the batch, for the gradient.
            save_invstd: invstd of the batch, for the gradient.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BatchNorm",
            {
                "input": input,
                "weight": weight,
                "bias": bias,
                "running_mean": running_mean,
                "running_var": running_var,
            },
            {
                "training": training,
                "momentum": momentum,
                "eps": eps,
            },
            Parameters(out, dtype, timeout),
        )

    def batch_norm_backward(
        client,
        /,
        grad_out: Any,
        input: Any,
        weight: Any = None,
        running_mean: Any = None,
        running_var: Any = None,
        save_mean: Any = None,
        save_invstd: Any = None,
        *,
        training: bool = False,
        eps: float = 1e-05,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
        outputs: Optional[Sequence[Literal["grad_input", "grad_weight", "grad_bias"]]] = None,
    ) -> R:
        """Gradients of batch normalisation.

        With xhat = (input - mean) * invstd and g = grad_out * weight, for each channel:
        training:  grad_input = invstd * (g - mean of g - xhat * mean of (g * xhat)),
        mean and invstd the saved ones
        otherwise: grad_input = invstd * g, mean and invstd from the running statistics
        and eps
        grad_weight = sum of grad_out * xhat, grad_bias = sum of grad_out

        Args:
            grad_out: Gradient of the loss with respect to the forward result. float32,
                float16, bfloat16.
            input: The forward input, [N, C, ...]. float32, float16, bfloat16.
            weight: The forward weight; left out: 1. float32, float16, bfloat16.
                Optional.
            running_mean: Running means; needed without training. float32, float16,
                bfloat16. Optional.
            running_var: Running variances; needed without training. float32, float16,
                bfloat16. Optional.
            save_mean: save_mean of the forward call; needed in training. float32,
                float16, bfloat16. Optional.
            save_invstd: save_invstd of the forward call; needed in training. float32,
                float16, bfloat16. Optional.
            training: Whether the forward call used statistics of the batch.
            eps: Added to the variance.
            outputs: of the outputs that may be left out, those to compute; None: all.

        Returns:
            grad_input: Gradient with respect to input. None if it is not among
                `outputs`.
            grad_weight: Gradient with respect to weight. None if it is not among
                `outputs`.
            grad_bias: Gradient with respect to bias. None if it is not among `outputs`.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BatchNormBackward",
            {
                "grad_out": grad_out,
                "input": input,
                "weight": weight,
                "running_mean": running_mean,
                "running_var": running_var,
                "save_mean": save_mean,
                "save_invstd": save_invstd,
            },
            {
                "training": training,
                "eps": eps,
            },
            Parameters(out, dtype, timeout, outputs),
        )

    def batch_norm_elemt(
        client,
        /,
        input: Any,
        weight: Any,
        bias: Any,
        mean: Any,
        invstd: Any,
        *,
        eps: float = 1e-05,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Normalisation of a batch by given statistics.

        output = (input - mean) * invstd * weight + bias for each channel (axis 1). eps
        is not used: invstd already holds it.

        Args:
            input: The batch, [N, C, ...]. float32, float16, bfloat16.
            weight: Factor for each channel. float32, float16, bfloat16.
            bias: Added for each channel. float32, float16, bfloat16.
            mean: The means. float32, float16, bfloat16.
            invstd: The inverse deviations. float32, float16, bfloat16.
            eps: Unused.

        Returns:
            output: The normalised batch.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BatchNormElemt",
            {
                "input": input,
                "weight": weight,
                "bias": bias,
                "mean": mean,
                "invstd": invstd,
            },
            {
                "eps": eps,
            },
            Parameters(out, dtype, timeout),
        )

    def batch_norm_elemt_backward(
        client,
        /,
        grad_out: Any,
        input: Any,
        mean: Any,
        invstd: Any,
        sum_dy: Any,
        sum_dy_xmu: Any,
        counter: Any,
        *,
        weight: Any = None,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of batch normalisation with respect to its input, from sums.

        With n the sum of counter, for each channel (axis 1):
        grad_input = (grad_out - sum_dy / n - (input - mean) * invstd ** 2 * sum_dy_xmu
        / n) * invstd * weight

        Args:
            grad_out: Gradient of the loss with respect to the forward result. float32,
                float16, bfloat16.
            input: The forward input, [N, C, ...]. float32, float16, bfloat16.
            mean: The means. float32, float16, bfloat16.
            invstd: The inverse deviations. float32, float16, bfloat16.
            weight: The forward weight; left out: 1. float32, float16, bfloat16.
                Optional.
            sum_dy: Sums of the gradient. float32, float16, bfloat16.
            sum_dy_xmu: Sums of the gradient times the deviation. float32, float16,
                bfloat16.
            counter: Numbers of elements of a channel, one for each process. float32,
                float16, int32.

        Returns:
            grad_input: Gradient with respect to input.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BatchNormElemtBackward",
            {
                "grad_out": grad_out,
                "input": input,
                "mean": mean,
                "invstd": invstd,
                "weight": weight,
                "sum_dy": sum_dy,
                "sum_dy_xmu": sum_dy_xmu,
                "counter": counter,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def batch_norm_reduce_backward(
        client,
        /,
        grad_out: Any,
        input: Any,
        mean: Any,
        invstd: Any,
        weight: Any = None,
        *,
        input_g: bool = True,
        weight_g: bool = True,
        bias_g: bool = True,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
        outputs: Optional[Sequence[Literal["sum_dy", "sum_dy_xmu", "grad_weight", "grad_bias"]]] = None,
    ) -> R:
        """Sums for the gradients of batch normalisation.

        For each channel (axis 1): sum_dy = sum of grad_out, sum_dy_xmu = sum of
        grad_out * (input - mean), grad_weight = sum_dy_xmu * invstd, grad_bias =
        sum_dy.

        Args:
            grad_out: Gradient of the loss with respect to the forward result. float32,
                float16, bfloat16.
            input: The forward input, [N, C, ...]. float32, float16, bfloat16.
            mean: The means. float32, float16, bfloat16.
            invstd: The inverse deviations. float32, float16, bfloat16.
            weight: The forward weight; unused. float32, float16, bfloat16. Optional.
            input_g: Whether sum_dy and sum_dy_xmu are wanted.
            weight_g: Whether grad_weight is wanted.
            bias_g: Whether grad_bias is wanted.
            outputs: of the outputs that may be left out, those to compute; None: all.

        Returns:
            sum_dy: Sums of the gradient. None if it is not among `outputs`.
            sum_dy_xmu: Sums of the gradient times the deviation. None if it is not
                among `outputs`.
            grad_weight: Gradient with respect to weight. None if it is not among
                `outputs`.
            grad_bias: Gradient with respect to bias. None if it is not among `outputs`.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BatchNormReduceBackward",
            {
                "grad_out": grad_out,
                "input": input,
                "mean": mean,
                "invstd": invstd,
                "weight": weight,
            },
            {
                "input_g": input_g,
                "weight_g": weight_g,
                "bias_g": bias_g,
            },
            Parameters(out, dtype, timeout, outputs),
        )

    def batch_norm_stats(
        client,
        /,
        input: Any,
        *,
        eps: float = 1e-05,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Means and inverse deviations of the channels of a batch.

        For each channel (axis 1): mean, and invstd = 1 / sqrt(biased variance + eps).

        Args:
            input: The batch, [N, C, ...]. float32, float16.
            eps: Added to the variance.

        Returns:
            mean: The means.
            invstd: The inverse deviations.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BatchNormStats",
            {
                "input": input,
            },
            {
                "eps": eps,
            },
            Parameters(out, dtype, timeout),
        )

    def binary_cross_entropy(
        client,
        /,
        self: Any,
        target: Any,
        weight: Any = None,
        *,
        reduction: Union[int, Literal["none", "mean", "sum"]] = "mean",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Binary cross entropy between probabilities and a target.

        The single loss is -weight * (target * ln(self) + (1 - target) * ln(1 - self)),
        with logarithms not below -100. target has self's shape; self lies between 0 and
        1.

        Args:
            self: The probabilities, between 0 and 1. float32, float16, bfloat16.
            target: The target, between 0 and 1. float32, float16, bfloat16.
            weight: Factors on the single losses; broadcast to self. Left out: 1.
                float32, float16, bfloat16. Optional.
            reduction: What becomes of the single losses: none keeps them, mean
                averages, sum adds.

        Returns:
            out: The losses, or the reduced one as a 0-d tensor.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BinaryCrossEntropy",
            {
                "self": self,
                "target": target,
                "weight": weight,
            },
            {
                "reduction": reduction,
            },
            Parameters(out, dtype, timeout),
        )

    def binary_cross_entropy_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        target: Any,
        weight: Any = None,
        *,
        reduction: Union[int, Literal["none", "mean", "sum"]] = "mean",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of binary cross entropy with respect to its input.

        out = grad_output * weight * (self - target) / max(self * (1 - self), 1e-12) /
        d, d being the number of elements for mean, else 1. Everything broadcasts to
        self.

        Args:
            grad_output: Gradient of the loss; one element if it was reduced. float32,
                float16, bfloat16.
            self: The probabilities. float32, float16, bfloat16.
            target: The target. float32, float16, bfloat16.
            weight: Factors on the single losses; broadcast to self. Left out: 1.
                float32, float16, bfloat16. Optional.
            reduction: How the forward loss was reduced; for mean the gradient is
                divided by the number of elements.

        Returns:
            out: Gradient with respect to self, in its shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BinaryCrossEntropyBackward",
            {
                "grad_output": grad_output,
                "self": self,
                "target": target,
                "weight": weight,
            },
            {
                "reduction": reduction,
            },
            Parameters(out, dtype, timeout),
        )

    def binary_cross_entropy_with_logits(
        client,
        /,
        self: Any,
        target: Any,
        weight: Any = None,
        pos_weight: Any = None,
        *,
        reduction: Union[int, Literal["none", "mean", "sum"]] = "mean",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Binary cross entropy between logits and a target.

        With p = 1 / (1 + exp(-self)) the single loss is
        -weight * (pos_weight * target * ln(p) + (1 - target) * ln(1 - p)),
        computed without loss for large logits. target has self's shape.

        Args:
            self: The logits: their logistic function is the probability. float32,
                float16, bfloat16.
            target: The target, between 0 and 1. float32, float16, bfloat16.
            weight: Factors on the single losses; broadcast to target. Left out: 1.
                float32, float16, bfloat16. Optional.
            pos_weight: Factors on the positive part; broadcast to target. Left out: 1.
                float32, float16, bfloat16. Optional.
            reduction: What becomes of the single losses: none keeps them, mean
                averages, sum adds.

        Returns:
            out: The losses, or the reduced one in shape [1].

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BinaryCrossEntropyWithLogits",
            {
                "self": self,
                "target": target,
                "weight": weight,
                "pos_weight": pos_weight,
            },
            {
                "reduction": reduction,
            },
            Parameters(out, dtype, timeout),
        )

    def binary_cross_entropy_with_logits_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        target: Any,
        weight: Any = None,
        pos_weight: Any = None,
        *,
        reduction: Union[int, Literal["none", "mean", "sum"]] = "mean",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of binary cross entropy with logits with respect to its input.

        With p = 1 / (1 + exp(-self)) and d the number of elements for mean, else 1:
        out = grad_output * weight * ((pos_weight * target + 1 - target) * p -
        pos_weight * target) / d

        Args:
            grad_output: Gradient of the loss; one element if it was reduced. float32,
                float16, bfloat16.
            self: The logits: their logistic function is the probability. float32,
                float16, bfloat16.
            target: The target. float32, float16, bfloat16.
            weight: Factors on the single losses; broadcast to target. Left out: 1.
                float32, float16, bfloat16. Optional.
            pos_weight: Factors on the positive part; broadcast to target. Left out: 1.
                float32, float16, bfloat16. Optional.
            reduction: How the forward loss was reduced; for mean the gradient is
                divided by the number of elements.

        Returns:
            out: Gradient with respect to self, in its shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BinaryCrossEntropyWithLogitsBackward",
            {
                "grad_output": grad_output,
                "self": self,
                "target": target,
                "weight": weight,
                "pos_weight": pos_weight,
            },
            {
                "reduction": reduction,
            },
            Parameters(out, dtype, timeout),
        )

    def binary_cross_entropy_with_logits_target_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        target: Any,
        weight: Any = None,
        pos_weight: Any = None,
        *,
        reduction: Union[int, Literal["none", "mean", "sum"]] = "mean",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of binary cross entropy with logits with respect to its target.

        With p = 1 / (1 + exp(-self)) and d the number of elements for mean, else 1:
        grad_target = grad_output * weight * (ln(1 - p) - pos_weight * ln(p)) / d

        Args:
            grad_output: Gradient of the loss; one element if it was reduced. float32,
                float16, bfloat16.
            self: The logits: their logistic function is the probability. float32,
                float16, bfloat16.
            target: The target. float32, float16, bfloat16.
            weight: Factors on the single losses; broadcast to target. Left out: 1.
                float32, float16, bfloat16. Optional.
            pos_weight: Factors on the positive part; broadcast to target. Left out: 1.
                float32, float16, bfloat16. Optional.
            reduction: How the forward loss was reduced; for mean the gradient is
                divided by the number of elements.

        Returns:
            grad_target: Gradient with respect to target, in its shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BinaryCrossEntropyWithLogitsTargetBackward",
            {
                "grad_output": grad_output,
                "self": self,
                "target": target,
                "weight": weight,
                "pos_weight": pos_weight,
            },
            {
                "reduction": reduction,
            },
            Parameters(out, dtype, timeout),
        )

    def bitwise_and_scalar(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Joins the bits of a tensor and a number by and.

        out = the and of the bits of self and other; of BOOL the logical one. The number
        only lifts the kind of self's dtype, which out has unless another is asked for.

        Args:
            self: The tensor operand. int8, uint8, int16, int32, int64, bool.
            other: The number; an integer or BOOL.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BitwiseAndScalar",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def bitwise_and_tensor(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Joins the bits of two tensors by and.

        out = the and of the bits of self and other; of BOOL the logical one. The
        operands broadcast and are promoted to a common dtype, which out has unless
        another is asked for.

        Args:
            self: Left operand; broadcasts with other. int8, uint8, int16, int32, int64,
                bool.
            other: Right operand; broadcasts with self. int8, uint8, int16, int32,
                int64, bool.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BitwiseAndTensor",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def bitwise_not(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Negates every bit.

        out = ~self for integers; the logical negation for BOOL.

        Args:
            self: The tensor to negate. int8, uint8, int16, int32, int64, bool.

        Returns:
            out: The negation, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BitwiseNot",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def bitwise_or_scalar(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Joins the bits of a tensor and a number by or.

        out = the or of the bits of self and other; of BOOL the logical one. The number
        only lifts the kind of self's dtype, which out has unless another is asked for.

        Args:
            self: The tensor operand. int8, uint8, int16, int32, int64, bool.
            other: The number; an integer or BOOL.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BitwiseOrScalar",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def bitwise_or_tensor(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Joins the bits of two tensors by or.

        out = the or of the bits of self and other; of BOOL the logical one. The
        operands broadcast and are promoted to a common dtype, which out has unless
        another is asked for.

        Args:
            self: Left operand; broadcasts with other. int8, uint8, int16, int32, int64,
                bool.
            other: Right operand; broadcasts with self. int8, uint8, int16, int32,
                int64, bool.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BitwiseOrTensor",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def bitwise_xor_scalar(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Joins the bits of a tensor and a number by exclusive or.

        out = the exclusive or of the bits of self and other; of BOOL the logical one.
        The number only lifts the kind of self's dtype, which out has unless another is
        asked for.

        Args:
            self: The tensor operand. int8, uint8, int16, int32, int64, bool.
            other: The number; an integer or BOOL.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BitwiseXorScalar",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def bitwise_xor_tensor(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Joins the bits of two tensors by exclusive or.

        out = the exclusive or of the bits of self and other; of BOOL the logical one.
        The operands broadcast and are promoted to a common dtype, which out has unless
        another is asked for.

        Args:
            self: Left operand; broadcasts with other. int8, uint8, int16, int32, int64,
                bool.
            other: Right operand; broadcasts with self. int8, uint8, int16, int32,
                int64, bool.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "BitwiseXorTensor",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def cast(
        client,
        /,
        self: Any,
        *,
        dtype: Any,
        out: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Converts a tensor to another dtype.

        out = self in the dtype asked for. Floating-point numbers are rounded to the
        nearest, for integers towards zero; NaN becomes integer 0. Everything but 0
        becomes true.

        Args:
            self: Tensor to convert. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            dtype: The dtype of out.

        Returns:
            out: The converted tensor, in self's shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Cast",
            {
                "self": self,
            },
            {
                "dtype": dtype,
            },
            Parameters(out, None, timeout),
        )

    def cat(
        client,
        /,
        tensors: Any,
        *,
        dim: int = 0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Joins tensors along an axis.

        out = the tensors one after the other along axis dim; the other extents agree.
        The dtypes are promoted to a common one; empty 1-d tensors are left out.

        Args:
            tensors: The tensors, at least one. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool. A list of tensors.
            dim: Axis to join along; negative values count from the end.

        Returns:
            out: The joined tensors. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Cat",
            {
                "tensors": tensors,
            },
            {
                "dim": dim,
            },
            Parameters(out, dtype, timeout),
        )

    def ceil(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Rounds up.

        out = the smallest whole number that is not below self. NaN and infinities stay.

        Args:
            self: The argument. float32, float16, bfloat16, float64.

        Returns:
            out: The result, in self's shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Ceil",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def celu(
        client,
        /,
        self: Any,
        *,
        alpha: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies CELU, the continuously differentiable exponential linear unit.

        out = max(0, self) + min(0, alpha * (exp(self / alpha) - 1)).

        Args:
            self: The argument. float32, float16, bfloat16.
            alpha: Scale of the negative branch; not 0.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Celu",
            {
                "self": self,
            },
            {
                "alpha": alpha,
            },
            Parameters(out, dtype, timeout),
        )

    def clamp(
        client,
        /,
        self: Any,
        *,
        clip_value_min: Optional[Scalar] = None,
        clip_value_max: Optional[Scalar] = None,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Limits a tensor to an interval.

        self is limited from below and above: out = min(max(self, clip_value_min),
        clip_value_max). Where the limits cross, the upper one wins. NaN stays NaN.
        Either limit may be left out, but not both. The numbers only lift the kind of
        self's dtype.

        Args:
            self: Tensor to limit. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64.
            clip_value_min: Lower limit; left out: none. Optional.
            clip_value_max: Upper limit; left out: none. Optional.

        Returns:
            out: The limited tensor, in self's shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Clamp",
            {
                "self": self,
            },
            {
                "clip_value_min": clip_value_min,
                "clip_value_max": clip_value_max,
            },
            Parameters(out, dtype, timeout),
        )

    def clamp_max(
        client,
        /,
        self: Any,
        *,
        clip_value_max: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Limits a tensor from above by a number.

        out = min(self, clip_value_max). NaN stays NaN. The number only lifts the kind
        of self's dtype; out has that dtype unless another is asked for.

        Args:
            self: Tensor to limit. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64.
            clip_value_max: The limit.

        Returns:
            out: The limited tensor, in self's shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ClampMax",
            {
                "self": self,
            },
            {
                "clip_value_max": clip_value_max,
            },
            Parameters(out, dtype, timeout),
        )

    def clamp_max_tensor(
        client,
        /,
        self: Any,
        clip_value_max: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Limits a tensor from above by another, element by element.

        out = min(self, clip_value_max). NaN in either gives NaN. The operands broadcast
        and are promoted to a common dtype, in which the result is computed and rounded
        once; out has it unless another is asked for.

        Args:
            self: Tensor to limit; broadcasts with the limit. float32, float16,
                bfloat16, float64, int8, uint8, int16, int32, int64.
            clip_value_max: The limit of each element. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64.

        Returns:
            out: The limited tensor, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ClampMaxTensor",
            {
                "self": self,
                "clip_value_max": clip_value_max,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def clamp_min(
        client,
        /,
        self: Any,
        *,
        clip_value_min: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Limits a tensor from below by a number.

        out = max(self, clip_value_min). NaN stays NaN. The number only lifts the kind
        of self's dtype; out has that dtype unless another is asked for.

        Args:
            self: Tensor to limit. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64.
            clip_value_min: The limit.

        Returns:
            out: The limited tensor, in self's shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ClampMin",
            {
                "self": self,
            },
            {
                "clip_value_min": clip_value_min,
            },
            Parameters(out, dtype, timeout),
        )

    def clamp_min_tensor(
        client,
        /,
        self: Any,
        clip_value_min: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Limits a tensor from below by another, element by element.

        out = max(self, clip_value_min). NaN in either gives NaN. The operands broadcast
        and are promoted to a common dtype, in which the result is computed and rounded
        once; out has it unless another is asked for.

        Args:
            self: Tensor to limit; broadcasts with the limit. float32, float16,
                bfloat16, float64, int8, uint8, int16, int32, int64.
            clip_value_min: The limit of each element. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64.

        Returns:
            out: The limited tensor, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ClampMinTensor",
            {
                "self": self,
                "clip_value_min": clip_value_min,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def clamp_tensor(
        client,
        /,
        self: Any,
        clip_value_min: Any,
        clip_value_max: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Limits a tensor by two others, element by element.

        self is limited from below and above: out = min(max(self, clip_value_min),
        clip_value_max). Where the limits cross, the upper one wins. NaN stays NaN. NaN
        in a limit gives NaN. All three broadcast and are promoted to a common dtype,
        which out has unless another is asked for.

        Args:
            self: Tensor to limit. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64.
            clip_value_min: Lower limit of each element. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            clip_value_max: Upper limit of each element. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            out: The limited tensor, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ClampTensor",
            {
                "self": self,
                "clip_value_min": clip_value_min,
                "clip_value_max": clip_value_max,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def constant_pad_nd(
        client,
        /,
        self: Any,
        *,
        pad: Sequence[int],
        value: Scalar = 0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Pads axes with a number.

        out = self with pad[0] elements before and pad[1] after the last axis, pad[2]
        and pad[3] at the one before it, and so on, all equal to value. Negative entries
        cut off.

        Args:
            self: The tensor. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.
            pad: Pairs of numbers of elements, from the last axis on.
            value: The number.

        Returns:
            out: The result, in self's dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ConstantPadNd",
            {
                "self": self,
            },
            {
                "pad": pad,
                "value": value,
            },
            Parameters(out, dtype, timeout),
        )

    def convolution(
        client,
        /,
        input: Any,
        weight: Any,
        bias: Any = None,
        *,
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        transposed: bool = False,
        output_padding: Sequence[int],
        groups: int = 1,
        cube_math_type: Union[int, Literal["keep", "allow_hf32", "use_fp16", "use_hf32"]] = "keep",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Convolution of one to three dimensions.

        output[n, c, p] = bias[c] + the sum of input[n, :, window at p] * weight[c], the
        input padded with zeros, channels of one group only. transposed runs the windows
        the other way round: it is the gradient of a convolution with respect to its
        input. Sums are taken in float32 and rounded once.

        Args:
            input: The input, [N, C, spatial axes]. float32, float16, bfloat16.
            weight: The windows: [C out, C in / groups, window], transposed [C in, C out
                / groups, window]. float32, float16, bfloat16.
            bias: Added to each channel of the result; left out: 0. float32, float16,
                bfloat16. Optional.
            stride: Steps of the window, one for each spatial axis.
            padding: Zeros around the input, one number for each spatial axis.
            dilation: Distances between the elements of the window.
            transposed: Whether it is the transposed convolution.
            output_padding: Extra extent of the transposed convolution's result.
            groups: Number of groups that the channels are split into.
            cube_math_type: Precision of FLOAT products: keep it, allow HFLOAT32, use
                FLOAT16, use HFLOAT32.

        Returns:
            output: The result, [N, C out, spatial axes].

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Convolution",
            {
                "input": input,
                "weight": weight,
                "bias": bias,
            },
            {
                "stride": stride,
                "padding": padding,
                "dilation": dilation,
                "transposed": transposed,
                "output_padding": output_padding,
                "groups": groups,
                "cube_math_type": cube_math_type,
            },
            Parameters(out, dtype, timeout),
        )

    def convolution_backward(
        client,
        /,
        grad_output: Any,
        input: Any,
        weight: Any,
        *,
        bias_sizes: Optional[Sequence[int]] = None,
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        transposed: bool = False,
        output_padding: Sequence[int],
        groups: int = 1,
        cube_math_type: Union[int, Literal["keep", "allow_hf32", "use_fp16", "use_hf32"]] = "keep",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
        outputs: Optional[Sequence[Literal["grad_input", "grad_weight", "grad_bias"]]] = None,
    ) -> R:
        """Gradients of convolution.

        The gradients of the sum of grad_output * convolution(input, weight, bias) with
        respect to input, weight and bias. Sums are taken in float32 and rounded once.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            input: The forward input, [N, C, spatial axes]. float32, float16, bfloat16.
            weight: The forward windows. float32, float16, bfloat16.
            bias_sizes: Shape of the bias: one entry, the number of channels of the
                result. Optional.
            stride: Steps of the window, one for each spatial axis.
            padding: Zeros around the input, one number for each spatial axis.
            dilation: Distances between the elements of the window.
            transposed: Whether it is the transposed convolution.
            output_padding: Extra extent of the transposed convolution's result.
            groups: Number of groups that the channels are split into.
            cube_math_type: Precision of FLOAT products: keep it, allow HFLOAT32, use
                FLOAT16, use HFLOAT32.
            outputs: of the outputs that may be left out, those to compute; None: all.

        Returns:
            grad_input: Gradient with respect to input. None if it is not among
                `outputs`.
            grad_weight: Gradient with respect to weight. None if it is not among
                `outputs`.
            grad_bias: Gradient with respect to bias. None if it is not among `outputs`.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ConvolutionBackward",
            {
                "grad_output": grad_output,
                "input": input,
                "weight": weight,
            },
            {
                "bias_sizes": bias_sizes,
                "stride": stride,
                "padding": padding,
                "dilation": dilation,
                "transposed": transposed,
                "output_padding": output_padding,
                "groups": groups,
                "cube_math_type": cube_math_type,
            },
            Parameters(out, dtype, timeout, outputs),
        )

    def cos(
        client,
        /,
        input: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the cosine.

        out = cos(input), input in radians. Infinities give NaN. Integers and BOOL are
        computed as FLOAT; out has the computed dtype unless another is asked for.

        Args:
            input: The argument. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.

        Returns:
            out: The result, in input's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Cos",
            {
                "input": input,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def cosh(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the hyperbolic cosine.

        out = cosh(self). Large arguments give inf. Integers and BOOL are computed as
        FLOAT; out has the computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Cosh",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def cross_entropy_loss(
        client,
        /,
        input: Any,
        target: Any,
        weight: Any = None,
        *,
        reduction: Literal["none", "mean", "sum"] = "mean",
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        lse_square_scale_for_zloss: float = 0.0,
        return_zloss: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Cross entropy between logits and target classes.

        log_prob_out = log-softmax of input along axis 1. The single loss is that of
        NllLoss on log_prob_out; label_smoothing takes that share of it from the
        weighted mean over all classes instead. For mean the sum is divided by that of
        the weights that were used. zloss_out and lse_for_zloss_out are not computed.

        Args:
            input: The logits, [N, C]. float32, float16, bfloat16.
            target: The class of each sample, [N]. int32, int64.
            weight: A factor for each class; left out: 1. float32. Optional.
            reduction: What becomes of the single losses: none keeps them, mean
                averages, sum adds.
            ignore_index: Target class whose samples count for nothing.
            label_smoothing: Share of the target that is spread over all classes.
            lse_square_scale_for_zloss: Not supported: must be 0.
            return_zloss: Not supported: must be false.

        Returns:
            loss_out: The losses, [N], or the reduced one in shape [1].
            log_prob_out: The log-probabilities, in input's shape.
            zloss_out: Not computed; must be there.
            lse_for_zloss_out: Not computed; must be there.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "CrossEntropyLoss",
            {
                "input": input,
                "target": target,
                "weight": weight,
            },
            {
                "reduction": reduction,
                "ignore_index": ignore_index,
                "label_smoothing": label_smoothing,
                "lse_square_scale_for_zloss": lse_square_scale_for_zloss,
                "return_zloss": return_zloss,
            },
            Parameters(out, dtype, timeout),
        )

    def cross_entropy_loss_grad(
        client,
        /,
        grad_loss: Any,
        log_prob: Any,
        target: Any,
        weight: Any = None,
        grad_zloss: Any = None,
        lse_for_zloss: Any = None,
        *,
        reduction: Literal["none", "mean", "sum"] = "mean",
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        lse_square_scale_for_zloss: float = 0.0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of cross entropy with respect to its logits.

        With t the target, w its weight and d the sum of the weights that were used for
        mean, else 1:
        out = grad_loss * w / d * (exp(log_prob) - (1 at class t, else 0)), 0 for
        ignored samples.

        Args:
            grad_loss: Gradient of the loss; [N] for none, else one element. float32,
                float16, bfloat16.
            log_prob: log_prob_out of the forward call, [N, C]. float32, float16,
                bfloat16.
            target: The class of each sample, [N]. int64.
            weight: A factor for each class; left out: 1. float32. Optional.
            grad_zloss: Not supported: must be left out. float32, float16, bfloat16.
                Optional.
            lse_for_zloss: Not supported: must be left out. float32, float16, bfloat16.
                Optional.
            reduction: How the forward loss was reduced.
            ignore_index: Target class whose samples count for nothing.
            label_smoothing: Not supported: must be 0.
            lse_square_scale_for_zloss: Not supported: must be 0.

        Returns:
            out: Gradient with respect to the logits, in their shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "CrossEntropyLossGrad",
            {
                "grad_loss": grad_loss,
                "log_prob": log_prob,
                "target": target,
                "weight": weight,
                "grad_zloss": grad_zloss,
                "lse_for_zloss": lse_for_zloss,
            },
            {
                "reduction": reduction,
                "ignore_index": ignore_index,
                "label_smoothing": label_smoothing,
                "lse_square_scale_for_zloss": lse_square_scale_for_zloss,
            },
            Parameters(out, dtype, timeout),
        )

    def cumprod(
        client,
        /,
        input: Any,
        *,
        dim: Scalar,
        dtype: Any,
        out: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Running products along an axis.

        out[i] = input[0] * ... * input[i] along axis dim, computed in dtype.

        Args:
            input: The tensor to multiply up. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64.
            dim: Axis to multiply along; a whole number; negative values count from the
                end.
            dtype: The dtype of out, in which it is computed.

        Returns:
            out: The products, in input's shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Cumprod",
            {
                "input": input,
            },
            {
                "dim": dim,
                "dtype": dtype,
            },
            Parameters(out, None, timeout),
        )

    def cumsum(
        client,
        /,
        self: Any,
        *,
        dim: int,
        dtype: Any,
        out: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Running sums along an axis.

        out[i] = self[0] + ... + self[i] along axis dim, computed in dtype.

        Args:
            self: The tensor to add up. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64.
            dim: Axis to add along; negative values count from the end.
            dtype: The dtype of out, in which it is computed.

        Returns:
            out: The sums, in self's shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Cumsum",
            {
                "self": self,
            },
            {
                "dim": dim,
                "dtype": dtype,
            },
            Parameters(out, None, timeout),
        )

    def cumsum_v2(
        client,
        /,
        self: Any,
        *,
        dim: int,
        exclusive: bool = False,
        reverse: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Running sums along an axis, with choices.

        out[i] = self[0] + ... + self[i] along axis dim; without self[i] itself if
        exclusive; from the other end if reverse.

        Args:
            self: The tensor to add up. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64.
            dim: Axis to add along; negative values count from the end.
            exclusive: Whether an element's sum leaves it out.
            reverse: Whether it is added from the end.

        Returns:
            out: The sums, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "CumsumV2",
            {
                "self": self,
            },
            {
                "dim": dim,
                "exclusive": exclusive,
                "reverse": reverse,
            },
            Parameters(out, dtype, timeout),
        )

    def deep_norm(
        client,
        /,
        x: Any,
        gx: Any,
        beta: Any,
        gamma: Any,
        *,
        alpha: float = 0.3,
        epsilon: float = 1e-06,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Layer normalisation of a scaled sum.

        y_out = (x * alpha + gx - mean) / sqrt(variance + epsilon) * gamma + beta, with
        mean and biased variance over the trailing axes that gamma covers.

        Args:
            x: First summand. float32, float16, bfloat16.
            gx: Second summand. float32, float16, bfloat16.
            beta: Added to the normalised elements. float32, float16, bfloat16.
            gamma: Factor on the normalised elements. float32, float16, bfloat16.
            alpha: Factor on x.
            epsilon: Added to the variance.

        Returns:
            mean_out: The means; x's shape with the normalised axes 1.
            rstd_out: 1 / sqrt(variance + epsilon), in the same shape.
            y_out: The normalised sum.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "DeepNorm",
            {
                "x": x,
                "gx": gx,
                "beta": beta,
                "gamma": gamma,
            },
            {
                "alpha": alpha,
                "epsilon": epsilon,
            },
            Parameters(out, dtype, timeout),
        )

    def deep_norm_grad(
        client,
        /,
        dy: Any,
        x: Any,
        gx: Any,
        gamma: Any,
        mean: Any,
        rstd: Any,
        *,
        alpha: float = 0.3,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradients of the layer normalisation of a scaled sum.

        With xhat = (alpha * x + gx - mean) * rstd and g = dy * gamma:
        dgx_out = rstd * (g - mean of g - xhat * mean of (g * xhat)), dx_out = alpha *
        dgx_out
        dgamma_out = sum of dy * xhat, dbeta_out = sum of dy over the leading axes

        Args:
            dy: Gradient of the loss with respect to the forward result. float32,
                float16, bfloat16.
            x: First forward summand. float32, float16, bfloat16.
            gx: Second forward summand. float32, float16, bfloat16.
            gamma: The forward factor. float32, float16, bfloat16.
            mean: mean_out of the forward call. float32.
            rstd: rstd_out of the forward call. float32.
            alpha: The forward factor on x.

        Returns:
            dx_out: Gradient with respect to x.
            dgx_out: Gradient with respect to gx.
            dbeta_out: Gradient with respect to beta.
            dgamma_out: Gradient with respect to gamma.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "DeepNormGrad",
            {
                "dy": dy,
                "x": x,
                "gx": gx,
                "gamma": gamma,
                "mean": mean,
                "rstd": rstd,
            },
            {
                "alpha": alpha,
            },
            Parameters(out, dtype, timeout),
        )

    def div(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Divides one tensor by another.

        out = self / other, a true division: integers and BOOL divide as FLOAT. A zero
        divisor gives an infinity, or NaN for 0 / 0. The operands broadcast and are
        promoted to a common dtype, in which the result is computed and rounded once;
        out has it unless another is asked for.

        Args:
            self: Left operand; broadcasts with other. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts with self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Div",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def div_mod(
        client,
        /,
        self: Any,
        other: Any,
        *,
        mode: Union[int, Literal["true", "trunc", "floor"]] = "true",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Divides two tensors and rounds the quotient.

        out = self / other, rounded towards zero (trunc) or down (floor). Without
        rounding integers and BOOL divide as FLOAT; with it an integer divided by zero
        gives 0. The operands broadcast and are promoted to a common dtype, in which the
        result is computed and rounded once; out has it unless another is asked for.

        Args:
            self: Dividend; broadcasts with other. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool.
            other: Divisor; broadcasts with self. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool.
            mode: How the quotient is rounded: not at all, towards zero or down.

        Returns:
            out: The quotient, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "DivMod",
            {
                "self": self,
                "other": other,
            },
            {
                "mode": mode,
            },
            Parameters(out, dtype, timeout),
        )

    def div_mods(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        mode: Union[int, Literal["true", "trunc", "floor"]] = "true",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Divides a tensor by a number and rounds the quotient.

        out = self / other, rounded towards zero (trunc) or down (floor). Without
        rounding integers and BOOL divide as FLOAT; with it an integer divided by zero
        gives 0. The number only lifts the kind of self's dtype (integer to floating
        point); out has that dtype unless another is asked for.

        Args:
            self: Dividend. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.
            other: Divisor.
            mode: How the quotient is rounded: not at all, towards zero or down.

        Returns:
            out: The quotient, in self's shape. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "DivMods",
            {
                "self": self,
            },
            {
                "other": other,
                "mode": mode,
            },
            Parameters(out, dtype, timeout),
        )

    def divs(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Divides a tensor by a number.

        out = self / other, a true division: integers and BOOL divide as FLOAT. A zero
        divisor gives an infinity, or NaN for 0 / 0. The number only lifts the kind of
        self's dtype (integer to floating point); out has that dtype unless another is
        asked for.

        Args:
            self: The tensor operand. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            other: The number.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Divs",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def dot(
        client,
        /,
        self: Any,
        tensor: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Inner product of two vectors.

        out = sum of self * tensor. Sums are taken in float32 and rounded once.

        Args:
            self: Left factor, 1-d. float32, float16, bfloat16, int8, uint8, int32.
            tensor: Right factor, as long as self. float32, float16, bfloat16, int8,
                uint8, int32.

        Returns:
            out: The product.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Dot",
            {
                "self": self,
                "tensor": tensor,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def dropout(
        client,
        /,
        input: Any,
        *,
        p: float,
        train: bool = True,
        seed: int,
        offset: int = 0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Drops elements at random.

        In training out = input / (1 - p) where the mask's bit is 1, else 0, each bit 1
        with probability 1 - p. Without training, or with p 0, out = input; with p 1 it
        is 0; mask_out is left alone then. Equal seeds and offsets give equal masks.

        Args:
            input: Tensor to drop elements of. float32, float16, bfloat16.
            p: Probability of dropping an element.
            train: Whether elements are dropped.
            seed: Seed of the random numbers.
            offset: Random numbers to skip.

        Returns:
            out: The result, in input's shape and dtype.
            mask_out: The mask: a bit for each element in row-major order, lowest bit of
                a byte first, padded to a multiple of 128 bits.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Dropout",
            {
                "input": input,
            },
            {
                "p": p,
                "train": train,
                "seed": seed,
                "offset": offset,
            },
            Parameters(out, dtype, timeout),
        )

    def dropout_backward(
        client,
        /,
        grad_output: Any,
        mask: Any,
        *,
        scale: float,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of dropout with respect to its input.

        out = grad_output * scale where the mask's bit is 1, else 0. The mask holds a
        bit for each element in row-major order, lowest bit of a byte first, and is
        padded to a multiple of 128 bits.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            mask: The forward mask. uint8.
            scale: 1 / (1 - p) of the forward call: 0, or 1 and more.

        Returns:
            out: Gradient with respect to the input, in its shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "DropoutBackward",
            {
                "grad_output": grad_output,
                "mask": mask,
            },
            {
                "scale": scale,
            },
            Parameters(out, dtype, timeout),
        )

    def dropout_do_mask(
        client,
        /,
        self: Any,
        mask: Any,
        *,
        prob: float,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies a dropout mask.

        out = self / (1 - prob) where the mask's bit is 1, else 0. The mask holds a bit
        for each element of self in row-major order, lowest bit of a byte first, and is
        padded to a multiple of 128 bits.

        Args:
            self: Tensor to drop elements of. float32, float16, bfloat16.
            mask: The bits, of DropoutGenMask or Dropout. uint8.
            prob: Probability with which elements were dropped.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "DropoutDoMask",
            {
                "self": self,
                "mask": mask,
            },
            {
                "prob": prob,
            },
            Parameters(out, dtype, timeout),
        )

    def dropout_gen_mask(
        client,
        /,
        *,
        shape: Sequence[int],
        prob: float,
        seed: int,
        offset: int = 0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Draws a dropout mask.

        out holds a bit for each element of the shape in row-major order, lowest bit of
        a byte first, padded to a multiple of 128 bits: 1 with probability 1 - prob.
        Equal seeds and offsets give equal masks.

        Args:
            shape: Shape of the tensor that is to be masked.
            prob: Probability of dropping an element.
            seed: Seed of the random numbers.
            offset: Random numbers to skip.

        Returns:
            out: The bits.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "DropoutGenMask",
            {},
            {
                "shape": shape,
                "prob": prob,
                "seed": seed,
                "offset": offset,
            },
            Parameters(out, dtype, timeout),
        )

    def elu(
        client,
        /,
        self: Any,
        *,
        alpha: Scalar = 1,
        scale: Scalar = 1,
        input_scale: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies ELU, the exponential linear unit.

        out = scale * self where self > 0, else scale * alpha * (exp(self * input_scale)
        - 1).

        Args:
            self: The argument. float32, float16, bfloat16.
            alpha: Factor of the negative branch.
            scale: Factor of both branches.
            input_scale: Factor in the exponent.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Elu",
            {
                "self": self,
            },
            {
                "alpha": alpha,
                "scale": scale,
                "input_scale": input_scale,
            },
            Parameters(out, dtype, timeout),
        )

    def elu_backward(
        client,
        /,
        grad_output: Any,
        self_or_result: Any,
        *,
        alpha: Scalar = 1,
        scale: Scalar = 1,
        input_scale: Scalar = 1,
        is_result: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of ELU with respect to its input.

        Where self_or_result > 0: grad_input = grad_output * scale, else
        is_result false:  grad_output * input_scale * alpha * scale * exp(self_or_result
        * input_scale)
        is_result true:   grad_output * input_scale * (self_or_result + alpha * scale)
        The tensors broadcast and are promoted to a common dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            self_or_result: The forward argument, or result if is_result. float32,
                float16, bfloat16.
            alpha: Factor of the negative branch.
            scale: Factor of both branches.
            input_scale: Factor in the exponent.
            is_result: Whether self_or_result is the forward result; alpha is not
                negative then.

        Returns:
            grad_input: Gradient with respect to the forward argument, in the broadcast
                shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "EluBackward",
            {
                "grad_output": grad_output,
                "self_or_result": self_or_result,
            },
            {
                "alpha": alpha,
                "scale": scale,
                "input_scale": input_scale,
                "is_result": is_result,
            },
            Parameters(out, dtype, timeout),
        )

    def embedding(
        client,
        /,
        weight: Any,
        indices: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Rows of a table at indices.

        out = weight[indices]: the shape of indices, followed by the extent of a row.
        Indices are not negative. Indices outside of the range are undefined.

        Args:
            weight: The table, [rows, extent]. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool.
            indices: Which rows. int32, int64.

        Returns:
            out: The rows, in weight's dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Embedding",
            {
                "weight": weight,
                "indices": indices,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def embedding_bag(
        client,
        /,
        weight: Any,
        indices: Any,
        offsets: Any,
        per_sample_weights: Any = None,
        *,
        scale_grad_by_freq: bool = False,
        mode: Union[int, Literal["sum", "mean", "max"]] = "sum",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: Union[int, Literal["none"]] = "none",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Sums, means or greatest elements of bags of a table's rows.

        Bag b has the indices from offsets[b] up to the next offset, or up to the end.
        output[b] is the sum, the mean or, by column, the greatest element of the bag's
        rows in weight; of no rows 0. Sums are taken in float32 in the order of the
        indices, and of equal greatest elements the first counts. Indices outside of the
        table and offsets that begin with another number than 0, fall or exceed the
        number of indices are undefined.

        Args:
            weight: The table, [rows, extent]. float32, float16, bfloat16.
            indices: The rows of all bags, one bag after the other. int32, int64.
            offsets: Where each bag begins in indices: 0 first, then rising or equal
                numbers. int32, int64.
            per_sample_weights: A factor for the row of each index, in weight's dtype;
                of sums only. float32, float16, bfloat16. Optional.
            scale_grad_by_freq: A matter of the gradient: false.
            mode: What a bag comes to; any other number is max, too.
            sparse: A matter of the gradient: false.
            include_last_offset: Whether the last offset begins no bag but ends the last
                one.
            padding_idx: Index whose rows are left out of their bags; a negative number:
                none.

        Returns:
            output: A row for each bag, in weight's dtype.
            offset2bag: The bag of each index; INT64 if indices or offsets are.
            bag_size: How many rows each bag has, without those of padding_idx.
            max_indices: Mode max: the row of each element of output, 0 if the bag has
                none. Otherwise as bag_size.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "EmbeddingBag",
            {
                "weight": weight,
                "indices": indices,
                "offsets": offsets,
                "per_sample_weights": per_sample_weights,
            },
            {
                "scale_grad_by_freq": scale_grad_by_freq,
                "mode": mode,
                "sparse": sparse,
                "include_last_offset": include_last_offset,
                "padding_idx": padding_idx,
            },
            Parameters(out, dtype, timeout),
        )

    def embedding_dense_backward(
        client,
        /,
        grad: Any,
        indices: Any,
        *,
        num_weights: int,
        padding_idx: Union[int, Literal["none"]] = "none",
        scale_grad_by_freq: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of an embedding with respect to its table.

        out[indices] += grad, row by row, from zero; rows of padding_idx get nothing.
        With scale_grad_by_freq each row is divided by how often its index occurs. Sums
        are taken in float32 in a fixed order.

        Args:
            grad: Gradient of the loss: the shape of indices, followed by the extent of
                a row. float32, float16, bfloat16.
            indices: The forward indices. int8, uint8, int16, int32, int64.
            num_weights: Number of rows of the table.
            padding_idx: Index whose rows get no gradient; a negative number (as
                unsigned): none.
            scale_grad_by_freq: Whether gradients are divided by the frequency of their
                index.

        Returns:
            out: Gradient with respect to the table, [num_weights, extent of a row].

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "EmbeddingDenseBackward",
            {
                "grad": grad,
                "indices": indices,
            },
            {
                "num_weights": num_weights,
                "padding_idx": padding_idx,
                "scale_grad_by_freq": scale_grad_by_freq,
            },
            Parameters(out, dtype, timeout),
        )

    def eq_scalar(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where a tensor is equal to a number.

        out = self == other, compared in self's dtype, or FLOAT if self is an integer
        and other a fraction. NaN equals nothing, not even itself. out is BOOL, or 1 and
        0 in another dtype if that is asked for.

        Args:
            self: The tensor operand. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            other: The number.

        Returns:
            out: Whether it holds, in self's shape. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "EqScalar",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def eq_tensor(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where one tensor is equal to another.

        out = self == other, compared in the common dtype of both. NaN equals nothing,
        not even itself. The operands broadcast. out is BOOL, or 1 and 0 in another
        dtype if that is asked for.

        Args:
            self: Left operand; broadcasts with other. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts with self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            out: Whether it holds, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "EqTensor",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def erf(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the error function.

        out = 2 / sqrt(pi) * the integral of exp(-t * t) from 0 to self. Integers and
        BOOL are computed as FLOAT; out has the computed dtype unless another is asked
        for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Erf",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def erfc(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the complement of the error function.

        out = 1 - erf(self), exact to rounding for large arguments. Integers and BOOL
        are computed as FLOAT; out has the computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Erfc",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def exp(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the exponential.

        out = e ** self. Large arguments give inf, -inf gives 0. Integers and BOOL are
        computed as FLOAT; out has the computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Exp",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def exp2(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Raises two to the power of a tensor.

        out = 2 ** self. Large arguments give inf, -inf gives 0. Integers and BOOL are
        computed as FLOAT; out has the computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Exp2",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def expand(
        client,
        /,
        self: Any,
        *,
        size: Sequence[int],
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Broadcasts a tensor to a shape.

        out = self, broadcast to size; -1 keeps an extent.

        Args:
            self: The tensor. float32, float16, bfloat16, int8, uint8, int32, int64,
                bool.
            size: The shape of out; -1 keeps an extent of self.

        Returns:
            out: The result, in self's dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Expand",
            {
                "self": self,
            },
            {
                "size": size,
            },
            Parameters(out, dtype, timeout),
        )

    def expm1(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the exponential less one.

        out = e ** self - 1, exact to rounding near 0. -inf gives -1. Integers and BOOL
        are computed as FLOAT; out has the computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Expm1",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def eye(
        client,
        /,
        *,
        n: int,
        m: int,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Makes a matrix with ones on its diagonal.

        out[i, j] = 1 where i = j, else 0. It is FLOAT unless another dtype is asked
        for.

        Args:
            n: Number of rows.
            m: Number of columns.

        Returns:
            out: The matrix, [n, m]. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Eye",
            {},
            {
                "n": n,
                "m": m,
            },
            Parameters(out, dtype, timeout),
        )

    def fast_gelu(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies the fast approximation of GELU.

        out = self / (1 + exp(-1.702 * self)).

        Args:
            self: The argument. float32, float16, bfloat16.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "FastGelu",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def fast_gelu_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the fast approximation of GELU with respect to its input.

        With s = 1 / (1 + exp(-1.702 * self)):
        grad_input = grad_output * s * (1 + 1.702 * self * (1 - s)). All tensors have
        one shape and dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            self: The forward argument. float32, float16, bfloat16.

        Returns:
            grad_input: Gradient with respect to the forward argument.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "FastGeluBackward",
            {
                "grad_output": grad_output,
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def fast_layer_norm(
        client,
        /,
        input: Any,
        weight: Any = None,
        bias: Any = None,
        *,
        normalized_shape: Sequence[int],
        eps: float = 1e-05,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
        outputs: Optional[Sequence[Literal["mean_out", "rstd_out"]]] = None,
    ) -> R:
        """Layer normalisation by a faster kernel.

        out = (input - mean) / sqrt(variance + eps) * weight + bias, with mean and
        biased variance over the trailing axes normalized_shape. Sums are taken in
        float32. weight and bias have input's dtype or FLOAT.

        Args:
            input: The tensor to normalise. float32, float16, bfloat16.
            weight: Factor on the normalised elements; left out: 1. float32, float16,
                bfloat16. Optional.
            bias: Added to the normalised elements; left out: 0. float32, float16,
                bfloat16. Optional.
            normalized_shape: The trailing axes that are normalised: input's last
                extents.
            eps: Added to the variance.
            outputs: of the outputs that may be left out, those to compute; None: all.

        Returns:
            out: The normalised tensor, in input's shape and dtype.
            mean_out: The means; input's shape with the normalised axes 1. float32,
                float16, bfloat16. None if it is not among `outputs`.
            rstd_out: 1 / sqrt(variance + eps); input's shape with the normalised axes
                1. float32, float16, bfloat16. None if it is not among `outputs`.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "FastLayerNorm",
            {
                "input": input,
                "weight": weight,
                "bias": bias,
            },
            {
                "normalized_shape": normalized_shape,
                "eps": eps,
            },
            Parameters(out, dtype, timeout, outputs),
        )

    def flip(
        client,
        /,
        self: Any,
        *,
        dims: Sequence[int],
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Reverses axes.

        out = self with the order of the axes dims reversed; each occurs at most once.

        Args:
            self: The tensor. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.
            dims: The axes to reverse; negative values count from the end.

        Returns:
            out: The result, in self's dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Flip",
            {
                "self": self,
            },
            {
                "dims": dims,
            },
            Parameters(out, dtype, timeout),
        )

    def floor(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Rounds down.

        out = the largest whole number that is not above self. Integers stay; so do NaN
        and infinities.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64.

        Returns:
            out: The result, in self's shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Floor",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def floor_divide(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Divides two tensors and rounds down.

        out = floor(self / other). An integer divided by zero gives 0. The operands
        broadcast and are promoted to a common dtype, in which the result is computed
        and rounded once; out has it unless another is asked for.

        Args:
            self: Dividend; broadcasts with other. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64.
            other: Divisor; broadcasts with self. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "FloorDivide",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def floor_divides(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Divides a tensor and a number and rounds down.

        out = floor(self / other). An integer divided by zero gives 0. The number only
        lifts the kind of self's dtype (integer to floating point); out has that dtype
        unless another is asked for.

        Args:
            self: Dividend. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64.
            other: Divisor.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "FloorDivides",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def fmod_scalar(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the remainder of a tensor and a number with the dividend's sign.

        out = self - trunc(self / other) * other. An integer modulo zero gives 0. The
        number only lifts the kind of self's dtype (integer to floating point); out has
        that dtype unless another is asked for.

        Args:
            self: Dividend. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64.
            other: Divisor.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "FmodScalar",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def fmod_tensor(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the remainder of two tensors with the dividend's sign.

        out = self - trunc(self / other) * other. An integer modulo zero gives 0. The
        operands broadcast and are promoted to a common dtype, in which the result is
        computed and rounded once; out has it unless another is asked for.

        Args:
            self: Dividend; broadcasts with other. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64.
            other: Divisor; broadcasts with self. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "FmodTensor",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def foreach_add_list(
        client,
        /,
        x1: Any,
        x2: Any,
        alpha: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds two lists of tensors, the factor being in a tensor.

        out[i] = x1[i] + alpha * x2[i]. Element i of the lists belongs together; the
        tensors of one list have one dtype.

        Args:
            x1: First operands. float32, float16, bfloat16, int8, uint8, int16, int32. A
                list of tensors.
            x2: Second operands. float32, float16, bfloat16, int8, uint8, int16, int32.
                A list of tensors.
            alpha: Factor on x2, one element. float32, float16, int32.

        Returns:
            out: The results, in the shapes of x1. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachAddList",
            {
                "x1": x1,
                "x2": x2,
                "alpha": alpha,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def foreach_add_list_v2(
        client,
        /,
        x1: Any,
        x2: Any,
        *,
        alpha: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds two lists of tensors.

        out[i] = x1[i] + alpha * x2[i]. Element i of the lists belongs together; the
        tensors of one list have one dtype.

        Args:
            x1: First operands. float32, float16, bfloat16, int8, uint8, int16, int32. A
                list of tensors.
            x2: Second operands. float32, float16, bfloat16, int8, uint8, int16, int32.
                A list of tensors.
            alpha: Factor on x2.

        Returns:
            out: The results, in the shapes of x1. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachAddListV2",
            {
                "x1": x1,
                "x2": x2,
            },
            {
                "alpha": alpha,
            },
            Parameters(out, dtype, timeout),
        )

    def foreach_add_scalar(
        client,
        /,
        x: Any,
        scalar: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds a number to the tensors of a list, the number being in a tensor.

        out[i] = x[i] + scalar. The tensors have one dtype.

        Args:
            x: The tensors. float32, float16, bfloat16, int8, uint8, int16, int32. A
                list of tensors.
            scalar: The number, one element. float32, float16, int32.

        Returns:
            out: The results, in the shapes of x. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachAddScalar",
            {
                "x": x,
                "scalar": scalar,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def foreach_add_scalar_list(
        client,
        /,
        x: Any,
        *,
        scalars: Sequence[float],
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds a number of its own to each tensor of a list.

        out[i] = x[i] + scalars[i]. The tensors have one dtype.

        Args:
            x: The tensors. float32, float16, bfloat16, int32. A list of tensors.
            scalars: The numbers, one for each tensor.

        Returns:
            out: The results, in the shapes of x. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachAddScalarList",
            {
                "x": x,
            },
            {
                "scalars": scalars,
            },
            Parameters(out, dtype, timeout),
        )

    def foreach_add_scalar_v2(
        client,
        /,
        x: Any,
        *,
        scalar: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds a number to the tensors of a list.

        out[i] = x[i] + scalar. The tensors have one dtype.

        Args:
            x: The tensors. float32, float16, bfloat16, int8, uint8, int16, int32. A
                list of tensors.
            scalar: The number.

        Returns:
            out: The results, in the shapes of x. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachAddScalarV2",
            {
                "x": x,
            },
            {
                "scalar": scalar,
            },
            Parameters(out, dtype, timeout),
        )

    def foreach_addcdiv_scalar(
        client,
        /,
        x1: Any,
        x2: Any,
        x3: Any,
        scalar: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds a scaled quotient of two lists of tensors to a list, the number being in a tensor.

        out[i] = x1[i] + scalar * x2[i] / x3[i]. Element i of the lists belongs
        together; the tensors of one list have one dtype.

        Args:
            x1: The summands. float32, float16, bfloat16. A list of tensors.
            x2: Dividends. float32, float16, bfloat16. A list of tensors.
            x3: Divisors. float32, float16, bfloat16. A list of tensors.
            scalar: Factor on the quotient, one element. float32, float16.

        Returns:
            out: The results, in the shapes of x1. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachAddcdivScalar",
            {
                "x1": x1,
                "x2": x2,
                "x3": x3,
                "scalar": scalar,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def foreach_addcdiv_scalar_list(
        client,
        /,
        x1: Any,
        x2: Any,
        x3: Any,
        scalars: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds a quotient of two lists of tensors to a list, each scaled by a number of its own.

        out[i] = x1[i] + scalars[i] * x2[i] / x3[i]. Element i of the lists belongs
        together; the tensors of one list have one dtype.

        Args:
            x1: The summands. float32, float16, bfloat16. A list of tensors.
            x2: Dividends. float32, float16, bfloat16. A list of tensors.
            x3: Divisors. float32, float16, bfloat16. A list of tensors.
            scalars: The factors, 1-d, one for each tensor. float32, float16, bfloat16.

        Returns:
            out: The results, in the shapes of x1. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachAddcdivScalarList",
            {
                "x1": x1,
                "x2": x2,
                "x3": x3,
                "scalars": scalars,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def foreach_addcdiv_scalar_v2(
        client,
        /,
        x1: Any,
        x2: Any,
        x3: Any,
        *,
        scalar: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds a scaled quotient of two lists of tensors to a list.

        out[i] = x1[i] + scalar * x2[i] / x3[i]. Element i of the lists belongs
        together; the tensors of one list have one dtype.

        Args:
            x1: The summands. float32, float16, bfloat16. A list of tensors.
            x2: Dividends. float32, float16, bfloat16. A list of tensors.
            x3: Divisors. float32, float16, bfloat16. A list of tensors.
            scalar: Factor on the quotient.

        Returns:
            out: The results, in the shapes of x1. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachAddcdivScalarV2",
            {
                "x1": x1,
                "x2": x2,
                "x3": x3,
            },
            {
                "scalar": scalar,
            },
            Parameters(out, dtype, timeout),
        )

    def foreach_addcmul_scalar(
        client,
        /,
        x1: Any,
        x2: Any,
        x3: Any,
        scalar: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds a scaled product of two lists of tensors to a list, the number being in a tensor.

        out[i] = x1[i] + scalar * x2[i] * x3[i]. Element i of the lists belongs
        together; the tensors of one list have one dtype.

        Args:
            x1: The summands. float32, float16, bfloat16, int32. A list of tensors.
            x2: First factors. float32, float16, bfloat16, int32. A list of tensors.
            x3: Second factors. float32, float16, bfloat16, int32. A list of tensors.
            scalar: Factor on the product, one element. float32, float16, int32.

        Returns:
            out: The results, in the shapes of x1. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachAddcmulScalar",
            {
                "x1": x1,
                "x2": x2,
                "x3": x3,
                "scalar": scalar,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def foreach_addcmul_scalar_v2(
        client,
        /,
        x1: Any,
        x2: Any,
        x3: Any,
        *,
        scalar: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds a scaled product of two lists of tensors to a list.

        out[i] = x1[i] + scalar * x2[i] * x3[i]. Element i of the lists belongs
        together; the tensors of one list have one dtype.

        Args:
            x1: The summands. float32, float16, bfloat16, int32. A list of tensors.
            x2: First factors. float32, float16, bfloat16, int32. A list of tensors.
            x3: Second factors. float32, float16, bfloat16, int32. A list of tensors.
            scalar: Factor on the product.

        Returns:
            out: The results, in the shapes of x1. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachAddcmulScalarV2",
            {
                "x1": x1,
                "x2": x2,
                "x3": x3,
            },
            {
                "scalar": scalar,
            },
            Parameters(out, dtype, timeout),
        )

    def foreach_copy(
        client,
        /,
        x: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Copies a list of tensors, converting dtypes.

        out[i] = x[i], converted to out's dtype as Cast does; the dtype is x's unless
        another is asked for.

        Args:
            x: The tensors to copy. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool. A list of tensors.

        Returns:
            out: The copies, in the shapes of x. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachCopy",
            {
                "x": x,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def foreach_div_scalar(
        client,
        /,
        x: Any,
        scalar: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Divides the tensors of a list by a number, the number being in a tensor.

        out[i] = x[i] / scalar. The tensors have one dtype.

        Args:
            x: The tensors. float32, float16, bfloat16. A list of tensors.
            scalar: The number, one element. float32, float16.

        Returns:
            out: The results, in the shapes of x. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachDivScalar",
            {
                "x": x,
                "scalar": scalar,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def foreach_lerp_scalar(
        client,
        /,
        x1: Any,
        x2: Any,
        *,
        weight: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Interpolates between two lists of tensors.

        out[i] = x1[i] + weight * (x2[i] - x1[i]). Element i of the lists belongs
        together; the tensors of one list have one dtype.

        Args:
            x1: First operands. float32, float16, bfloat16. A list of tensors.
            x2: Second operands. float32, float16, bfloat16. A list of tensors.
            weight: The weight: 0 gives x1, 1 gives x2.

        Returns:
            out: The results, in the shapes of x1. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachLerpScalar",
            {
                "x1": x1,
                "x2": x2,
            },
            {
                "weight": weight,
            },
            Parameters(out, dtype, timeout),
        )

    def foreach_maximum_list(
        client,
        /,
        x1: Any,
        x2: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the larger elements of two lists of tensors.

        out[i] = the larger of x1[i] and x2[i]; NaN wins. Element i of the lists belongs
        together; the tensors of one list have one dtype.

        Args:
            x1: First operands. float32, float16, bfloat16, int32. A list of tensors.
            x2: Second operands. float32, float16, bfloat16, int32. A list of tensors.

        Returns:
            out: The results, in the shapes of x1. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachMaximumList",
            {
                "x1": x1,
                "x2": x2,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def foreach_mul_list(
        client,
        /,
        x1: Any,
        x2: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Multiplies two lists of tensors.

        out[i] = x1[i] * x2[i]. Element i of the lists belongs together; the tensors of
        one list have one dtype.

        Args:
            x1: First operands. float32, float16, bfloat16, int8, uint8, int16, int32. A
                list of tensors.
            x2: Second operands. float32, float16, bfloat16, int8, uint8, int16, int32.
                A list of tensors.

        Returns:
            out: The results, in the shapes of x1. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachMulList",
            {
                "x1": x1,
                "x2": x2,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def foreach_mul_scalar(
        client,
        /,
        x: Any,
        scalar: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Multiplies the tensors of a list by a number, the number being in a tensor.

        out[i] = x[i] * scalar. The tensors have one dtype.

        Args:
            x: The tensors. float32, float16, bfloat16, int32. A list of tensors.
            scalar: The number, one element. float32, float16, int32.

        Returns:
            out: The results, in the shapes of x. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachMulScalar",
            {
                "x": x,
                "scalar": scalar,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def foreach_mul_scalar_list(
        client,
        /,
        x: Any,
        *,
        scalars: Sequence[float],
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Multiplies each tensor of a list by a number of its own.

        out[i] = x[i] * scalars[i]. The tensors have one dtype.

        Args:
            x: The tensors. float32, float16, bfloat16, int32. A list of tensors.
            scalars: The numbers, one for each tensor.

        Returns:
            out: The results, in the shapes of x. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachMulScalarList",
            {
                "x": x,
            },
            {
                "scalars": scalars,
            },
            Parameters(out, dtype, timeout),
        )

    def foreach_mul_scalar_v2(
        client,
        /,
        x: Any,
        *,
        scalar: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Multiplies the tensors of a list by a number.

        out[i] = x[i] * scalar. The tensors have one dtype.

        Args:
            x: The tensors. float32, float16, bfloat16, int32. A list of tensors.
            scalar: The number.

        Returns:
            out: The results, in the shapes of x. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachMulScalarV2",
            {
                "x": x,
            },
            {
                "scalar": scalar,
            },
            Parameters(out, dtype, timeout),
        )

    def foreach_neg(
        client,
        /,
        x: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Negates a list of tensors.

        out[i] = -x[i]. The tensors have one dtype.

        Args:
            x: The tensors. float32, float16, bfloat16, int8, uint8, int16, int32. A
                list of tensors.

        Returns:
            out: The results, in the shapes of x. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachNeg",
            {
                "x": x,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def foreach_non_finite_check_and_unscale(
        client,
        /,
        scaled_grads: Any,
        found_inf: Any,
        inv_scale: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Unscales gradients and tells whether any is not finite.

        scaled_grads = scaled_grads * inv_scale; found_inf becomes 1 if any element was
        NaN or infinite, else it stays.

        Args:
            scaled_grads: The gradients. float32, float16, bfloat16. A list of tensors.
            found_inf: 1 as soon as a gradient is not finite, one element. float32.
            inv_scale: The factor, one element. float32.

        Returns:
            scaled_grads: The gradients. A list of tensors.
            found_inf: 1 as soon as a gradient is not finite, one element.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachNonFiniteCheckAndUnscale",
            {
                "scaled_grads": scaled_grads,
                "found_inf": found_inf,
                "inv_scale": inv_scale,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def foreach_norm(
        client,
        /,
        x: Any,
        *,
        scalar: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the vector norm of each tensor of a list.

        out[i] = sum(|x[i]| ** scalar) ** (1 / scalar) over all elements, inf taking the
        largest. Sums are taken in float32. The tensors have one dtype.

        Args:
            x: The tensors. float32, float16, bfloat16. A list of tensors.
            scalar: Order of the norm.

        Returns:
            out: The results, 0-d. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachNorm",
            {
                "x": x,
            },
            {
                "scalar": scalar,
            },
            Parameters(out, dtype, timeout),
        )

    def foreach_pow_scalar(
        client,
        /,
        x: Any,
        scalar: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Raises a list of tensors to the power of a number, the number being in a tensor.

        out[i] = x[i] ** scalar. The tensors have one dtype.

        Args:
            x: The tensors. float32, float16, bfloat16, int32. A list of tensors.
            scalar: The exponent, one element. float32, float16, int32.

        Returns:
            out: The results, in the shapes of x. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachPowScalar",
            {
                "x": x,
                "scalar": scalar,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def foreach_reciprocal(
        client,
        /,
        x: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the reciprocals of a list of tensors.

        out[i] = 1 / x[i]; 0 gives an infinity. The tensors have one dtype.

        Args:
            x: The tensors. float32, float16, bfloat16. A list of tensors.

        Returns:
            out: The results, in the shapes of x. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachReciprocal",
            {
                "x": x,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def foreach_sqrt(
        client,
        /,
        x: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the square roots of a list of tensors.

        out[i] = sqrt(x[i]); negative numbers give NaN. The tensors have one dtype.

        Args:
            x: The tensors. float32, float16, bfloat16. A list of tensors.

        Returns:
            out: The results, in the shapes of x. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachSqrt",
            {
                "x": x,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def foreach_zero_inplace(
        client,
        /,
        x: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Fills a list of tensors with zeros.

        x[i] = 0. The tensors have one dtype.

        Args:
            x: The tensors to fill. float32, float16, bfloat16, int16, int32. A list of
                tensors.

        Returns:
            x: The tensors to fill. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ForeachZeroInplace",
            {
                "x": x,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def frac(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the fraction.

        out = self - trunc(self), with self's sign.

        Args:
            self: The argument. float32, float16, bfloat16, float64.

        Returns:
            out: The result, in self's shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Frac",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def fused_adamw(
        client,
        /,
        params: Any,
        grads: Any,
        exp_avgs: Any,
        exp_avg_sqs: Any,
        state_steps: Any,
        grad_scale: Any = None,
        found_inf: Any = None,
        *,
        max_exp_avg_sqs: Any = None,
        lr: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        weight_decay: float = 0.01,
        eps: float = 1e-08,
        amsgrad: bool = False,
        maximize: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """One AdamW step on a list of parameters.

        For each parameter, with t its element of state_steps:
        param = param * (1 - lr * weight_decay)
        m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 - beta2) * g * g
        param = param - lr / (1 - beta1 ** t) * m / (sqrt(v / (1 - beta2 ** t)) + eps)
        with g the gradient, divided by grad_scale, negative if maximize. With amsgrad
        the largest v so far takes the place of v. Nothing happens if found_inf is 1.

        Args:
            params: The parameters. float32, float16, bfloat16. A list of tensors.
            grads: The gradients. float32, float16, bfloat16. A list of tensors.
            exp_avgs: First moments. float32, float16, bfloat16. A list of tensors.
            exp_avg_sqs: Second moments. float32, float16, bfloat16. A list of tensors.
            max_exp_avg_sqs: Largest second moments so far; an empty list unless
                amsgrad. float32, float16, bfloat16. A list of tensors. Optional.
            state_steps: Numbers of this step, from 1; one element each. float32, int64.
                A list of tensors.
            grad_scale: Divisor of the gradients, one element; left out: 1. float32.
                Optional.
            found_inf: 1 if the step must not be taken, one element; left out: 0.
                float32. Optional.
            lr: Learning rate.
            beta1: Decay of the first moment.
            beta2: Decay of the second moment.
            weight_decay: Weight decay, decoupled from the gradient.
            eps: Added to the denominator.
            amsgrad: Whether the largest second moment so far is used.
            maximize: Whether the objective grows instead of shrinks.

        Returns:
            params: The parameters. A list of tensors.
            exp_avgs: First moments. A list of tensors.
            exp_avg_sqs: Second moments. A list of tensors.
            max_exp_avg_sqs: Largest second moments so far; an empty list unless
                amsgrad. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "FusedAdamw",
            {
                "params": params,
                "grads": grads,
                "exp_avgs": exp_avgs,
                "exp_avg_sqs": exp_avg_sqs,
                "max_exp_avg_sqs": max_exp_avg_sqs,
                "state_steps": state_steps,
                "grad_scale": grad_scale,
                "found_inf": found_inf,
            },
            {
                "lr": lr,
                "beta1": beta1,
                "beta2": beta2,
                "weight_decay": weight_decay,
                "eps": eps,
                "amsgrad": amsgrad,
                "maximize": maximize,
            },
            Parameters(out, dtype, timeout),
        )

    def fused_sgd(
        client,
        /,
        params: Any,
        grads: Any,
        momentum_buffers: Any,
        grad_scale: Any = None,
        *,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        lr: float,
        dampening: float = 0.0,
        nesterov: bool = False,
        maximize: bool = False,
        is_first_step: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """One step of gradient descent with momentum on a list of parameters.

        For each parameter, with g the gradient, divided by grad_scale, negative if
        maximize:
        g = g + weight_decay * param
        b = g in the first step, else momentum * b + (1 - dampening) * g
        param = param - lr * (g + momentum * b if nesterov, else b)
        With grad_scale the divided gradients are written back. Without momentum g takes
        the place of b.

        Args:
            params: The parameters. float32, float16, bfloat16. A list of tensors.
            grads: The gradients. float32, float16, bfloat16. A list of tensors.
            momentum_buffers: The momentum buffers b; must be given. float32, float16,
                bfloat16. A list of tensors.
            grad_scale: Divisor of the gradients, one element; left out: 1. float32,
                float16, bfloat16. Optional.
            weight_decay: Weight decay.
            momentum: Decay of the buffers.
            lr: Learning rate.
            dampening: Share of the gradient that is kept out of the buffers.
            nesterov: Whether the step looks ahead by the momentum.
            maximize: Whether the objective grows instead of shrinks.
            is_first_step: Whether the buffers hold nothing yet.

        Returns:
            params: The parameters. A list of tensors.
            grads: The gradients. A list of tensors.
            momentum_buffers: The momentum buffers b; must be given. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "FusedSgd",
            {
                "params": params,
                "grads": grads,
                "momentum_buffers": momentum_buffers,
                "grad_scale": grad_scale,
            },
            {
                "weight_decay": weight_decay,
                "momentum": momentum,
                "lr": lr,
                "dampening": dampening,
                "nesterov": nesterov,
                "maximize": maximize,
                "is_first_step": is_first_step,
            },
            Parameters(out, dtype, timeout),
        )

    def gather(
        client,
        /,
        self: Any,
        index: Any,
        *,
        dim: int,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Elements at indices along an axis.

        out[i][j][k] = self[index[i][j][k]][j][k] for dim 0, likewise for the others;
        out has index's shape, which fits into self's beside dim. Indices outside of the
        range are undefined.

        Args:
            self: The tensor to read. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            index: The indices. int32, int64.
            dim: Axis that is indexed; negative values count from the end.

        Returns:
            out: The elements, in self's dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Gather",
            {
                "self": self,
                "index": index,
            },
            {
                "dim": dim,
            },
            Parameters(out, dtype, timeout),
        )

    def gather_nd(
        client,
        /,
        self: Any,
        indices: Any,
        *,
        negative_index_support: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Slices at places that are given by several indices.

        The last axis of indices holds places in the leading axes of self; out has the
        other axes of indices, followed by the rest of self's. Indices outside of the
        range are undefined.

        Args:
            self: The tensor to read. float32, float16, bfloat16, int8, uint8, int32,
                int64, bool.
            indices: The places. int32, int64.
            negative_index_support: Whether negative indices count from the end.

        Returns:
            out: The slices, in self's dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "GatherNd",
            {
                "self": self,
                "indices": indices,
            },
            {
                "negative_index_support": negative_index_support,
            },
            Parameters(out, dtype, timeout),
        )

    def gather_v2(
        client,
        /,
        self: Any,
        index: Any,
        *,
        dim: int,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Slices at indices along an axis.

        out is self with axis dim replaced by the axes of index: the slices at index, of
        any rank. Indices outside of the range are undefined.

        Args:
            self: The tensor to read. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            index: The indices. int32, int64.
            dim: Axis that is indexed; negative values count from the end.

        Returns:
            out: The slices, in self's dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "GatherV2",
            {
                "self": self,
                "index": index,
            },
            {
                "dim": dim,
            },
            Parameters(out, dtype, timeout),
        )

    def ge_glu(
        client,
        /,
        self: Any,
        *,
        dim: int = -1,
        approximate: Union[int, Literal["none", "tanh"]] = "tanh",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies the linear unit gated by GELU.

        self is halved along axis dim into a and b: out_gelu = gelu(b) and out = a *
        out_gelu. The axis must have an even extent.

        Args:
            self: The argument; values and gates. float32, float16, bfloat16.
            dim: The axis that is halved; negative values count from the end.
            approximate: The formula of GELU: none is exact by erf, tanh the
                approximation.

        Returns:
            out: The result, half as long along dim.
            out_gelu: gelu(b), for the gradient.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "GeGlu",
            {
                "self": self,
            },
            {
                "dim": dim,
                "approximate": approximate,
            },
            Parameters(out, dtype, timeout),
        )

    def ge_glu_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        gelu: Any,
        *,
        dim: int = -1,
        approximate: Union[int, Literal["none", "tanh"]] = "tanh",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the linear unit gated by GELU with respect to its input.

        self is halved along axis dim into a and b; the halves of grad_input are
        grad_output * gelu and grad_output * a * the derivative of GELU at b.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            self: The forward argument. float32, float16, bfloat16.
            gelu: out_gelu of the forward call. float32, float16, bfloat16.
            dim: The axis that is halved; negative values count from the end.
            approximate: The formula of GELU: none is exact by erf, tanh the
                approximation.

        Returns:
            grad_input: Gradient with respect to self, in its shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "GeGluBackward",
            {
                "grad_output": grad_output,
                "self": self,
                "gelu": gelu,
            },
            {
                "dim": dim,
                "approximate": approximate,
            },
            Parameters(out, dtype, timeout),
        )

    def ge_scalar(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where a tensor is not below a number.

        out = self >= other, compared in self's dtype, or FLOAT if self is an integer
        and other a fraction. Comparisons with NaN are false. out is BOOL, or 1 and 0 in
        another dtype if that is asked for.

        Args:
            self: The tensor operand. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            other: The number.

        Returns:
            out: Whether it holds, in self's shape. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "GeScalar",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def ge_tensor(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where one tensor is not below another.

        out = self >= other, compared in the common dtype of both. Comparisons with NaN
        are false. The operands broadcast. out is BOOL, or 1 and 0 in another dtype if
        that is asked for.

        Args:
            self: Left operand; broadcasts with other. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts with self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            out: Whether it holds, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "GeTensor",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def gelu(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies GELU, the Gaussian error linear unit.

        out = 0.5 * self * (1 + erf(self / sqrt(2))).

        Args:
            self: The argument. float32, float16, bfloat16.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Gelu",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def gelu_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of exact GELU with respect to its input.

        grad_input = grad_output * (phi(self) + self * pdf(self)) with phi and pdf the
        distribution function and the density of the standard normal distribution. The
        tensors broadcast and are promoted to a common dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            self: The forward argument. float32, float16, bfloat16.

        Returns:
            grad_input: Gradient with respect to the forward argument, in the broadcast
                shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "GeluBackward",
            {
                "grad_output": grad_output,
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def gelu_backward_v2(
        client,
        /,
        grad_output: Any,
        self: Any,
        *,
        approximate: Literal["none", "tanh"] = "none",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of GELU, exact or approximated, with respect to its input.

        grad_input = grad_output * the derivative of GELU at self:
        none:  of 0.5 * x * (1 + erf(x / sqrt(2)))
        tanh:  of 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))
        The tensors broadcast and are promoted to a common dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            self: The forward argument. float32, float16, bfloat16.
            approximate: The forward formula: none is exact by erf, tanh the
                approximation.

        Returns:
            grad_input: Gradient with respect to the forward argument, in the broadcast
                shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "GeluBackwardV2",
            {
                "grad_output": grad_output,
                "self": self,
            },
            {
                "approximate": approximate,
            },
            Parameters(out, dtype, timeout),
        )

    def gelu_v2(
        client,
        /,
        x: Any,
        *,
        approximate: Union[int, Literal["none", "tanh"]] = "none",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies GELU, exact or approximated.

        none:  y = 0.5 * x * (1 + erf(x / sqrt(2)))
        tanh:  y = 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))
        y has the shape and dtype of x.

        Args:
            x: The argument. float32, float16, bfloat16.
            approximate: The formula: none is exact by erf, tanh the approximation.

        Returns:
            y: The result, in x's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "GeluV2",
            {
                "x": x,
            },
            {
                "approximate": approximate,
            },
            Parameters(out, dtype, timeout),
        )

    def gemm(
        client,
        /,
        a: Any,
        b: Any,
        c: Any,
        *,
        alpha: float = 1.0,
        beta: float = 1.0,
        trans_a: int = 0,
        trans_b: int = 0,
        cube_math_type: Union[int, Literal["keep", "allow_hf32", "use_fp16", "use_hf32"]] = "keep",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """General product of matrices.

        out = alpha * (a @ b) + beta * c, where trans_a and trans_b transpose a and b
        first. c broadcasts to the product. Sums are taken in float32 and rounded once.

        Args:
            a: Left factor, [n, k], or [k, n] if trans_a. float32, float16, bfloat16.
            b: Right factor, [k, m], or [m, k] if trans_b. float32, float16, bfloat16.
            c: The summand; broadcasts to [n, m]. float32, float16, bfloat16.
            alpha: Factor on the product.
            beta: Factor on c.
            trans_a: 1: a is transposed.
            trans_b: 1: b is transposed.
            cube_math_type: Precision of FLOAT products: keep it, allow HFLOAT32, use
                FLOAT16, use HFLOAT32.

        Returns:
            out: The result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Gemm",
            {
                "a": a,
                "b": b,
                "c": c,
            },
            {
                "alpha": alpha,
                "beta": beta,
                "trans_a": trans_a,
                "trans_b": trans_b,
                "cube_math_type": cube_math_type,
            },
            Parameters(out, dtype, timeout),
        )

    def ger(
        client,
        /,
        self: Any,
        vec2: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Outer product of two vectors.

        out[i, j] = self[i] * vec2[j].

        Args:
            self: Left factor, 1-d. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            vec2: Right factor, 1-d. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.

        Returns:
            out: The product.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Ger",
            {
                "self": self,
                "vec2": vec2,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def glu(
        client,
        /,
        self: Any,
        *,
        dim: int = -1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies the gated linear unit.

        self is halved along axis dim into a and b: out = a * sigmoid(b). The axis must
        have an even extent.

        Args:
            self: The argument; values and gates. float32, float16, bfloat16, float64.
            dim: The axis that is halved; negative values count from the end.

        Returns:
            out: The result, half as long along dim.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Glu",
            {
                "self": self,
            },
            {
                "dim": dim,
            },
            Parameters(out, dtype, timeout),
        )

    def glu_backward(
        client,
        /,
        grad_out: Any,
        self: Any,
        *,
        dim: int = -1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the gated linear unit with respect to its input.

        self is halved along axis dim into a and b; the halves of out are
        grad_out * sigmoid(b) and grad_out * a * sigmoid(b) * (1 - sigmoid(b)).

        Args:
            grad_out: Gradient of the loss with respect to the forward result. float32,
                float16, bfloat16, float64.
            self: The forward argument. float32, float16, bfloat16, float64.
            dim: The axis that is halved; negative values count from the end.

        Returns:
            out: Gradient with respect to self, in its shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "GluBackward",
            {
                "grad_out": grad_out,
                "self": self,
            },
            {
                "dim": dim,
            },
            Parameters(out, dtype, timeout),
        )

    def group_norm(
        client,
        /,
        self: Any,
        gamma: Any = None,
        beta: Any = None,
        *,
        n: int,
        c: int,
        hxw: int,
        group: int,
        eps: float = 1e-05,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Group normalisation.

        The channels are split into groups; out = (self - mean) * rstd * gamma + beta,
        with mean and biased variance over each group of each sample and rstd = 1 /
        sqrt(variance + eps). Sums are taken in float32.

        Args:
            self: The tensor to normalise, [N, C, ...]. float32, float16, bfloat16.
            gamma: Factor for each channel; left out: 1. float32, float16, bfloat16.
                Optional.
            beta: Added for each channel; left out: 0. float32, float16, bfloat16.
                Optional.
            n: Extent of axis 0.
            c: Extent of axis 1, the channels.
            hxw: Product of the other extents.
            group: Number of groups; divides C.
            eps: Added to the variance.

        Returns:
            out: The normalised tensor.
            mean_out: The means, [N, group].
            rstd_out: 1 / sqrt(variance + eps), [N, group].

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "GroupNorm",
            {
                "self": self,
                "gamma": gamma,
                "beta": beta,
            },
            {
                "n": n,
                "c": c,
                "hxw": hxw,
                "group": group,
                "eps": eps,
            },
            Parameters(out, dtype, timeout),
        )

    def group_norm_backward(
        client,
        /,
        grad_out: Any,
        input: Any,
        mean: Any,
        rstd: Any,
        gamma: Any = None,
        *,
        n: int,
        c: int,
        hxw: int,
        group: int,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
        outputs: Optional[Sequence[Literal["grad_input", "grad_gamma_out", "grad_beta_out"]]] = None,
    ) -> R:
        """Gradients of group normalisation.

        With xhat = (input - mean) * rstd and g = grad_out * gamma:
        grad_input = rstd * (g - mean of g - xhat * mean of (g * xhat)), means over each
        group of each sample
        grad_gamma_out = sum of grad_out * xhat, grad_beta_out = sum of grad_out, for
        each channel

        Args:
            grad_out: Gradient of the loss with respect to the forward result. float32,
                float16, bfloat16.
            input: The forward input, [N, C, ...]. float32, float16, bfloat16.
            mean: mean_out of the forward call. float32, float16, bfloat16.
            rstd: rstd_out of the forward call. float32, float16, bfloat16.
            gamma: The forward gamma; left out: 1. float32, float16, bfloat16. Optional.
            n: Extent of axis 0.
            c: Extent of axis 1, the channels.
            hxw: Product of the other extents.
            group: Number of groups; divides C.
            outputs: of the outputs that may be left out, those to compute; None: all.

        Returns:
            grad_input: Gradient with respect to input. None if it is not among
                `outputs`.
            grad_gamma_out: Gradient with respect to gamma. None if it is not among
                `outputs`.
            grad_beta_out: Gradient with respect to beta. None if it is not among
                `outputs`.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "GroupNormBackward",
            {
                "grad_out": grad_out,
                "input": input,
                "mean": mean,
                "rstd": rstd,
                "gamma": gamma,
            },
            {
                "n": n,
                "c": c,
                "hxw": hxw,
                "group": group,
            },
            Parameters(out, dtype, timeout, outputs),
        )

    def gt_scalar(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where a tensor is above a number.

        out = self > other, compared in self's dtype, or FLOAT if self is an integer and
        other a fraction. Comparisons with NaN are false. out is BOOL, or 1 and 0 in
        another dtype if that is asked for.

        Args:
            self: The tensor operand. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            other: The number.

        Returns:
            out: Whether it holds, in self's shape. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "GtScalar",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def gt_tensor(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where one tensor is above another.

        out = self > other, compared in the common dtype of both. Comparisons with NaN
        are false. The operands broadcast. out is BOOL, or 1 and 0 in another dtype if
        that is asked for.

        Args:
            self: Left operand; broadcasts with other. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts with self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            out: Whether it holds, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "GtTensor",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def hardshrink(
        client,
        /,
        self: Any,
        *,
        lambd: Optional[Scalar] = None,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Makes small elements zero.

        out = self where self < -lambd or self > lambd, else 0.

        Args:
            self: The argument. float32, float16, bfloat16.
            lambd: Half width of the interval around 0 that is cut out. Default: 0.5
                (float32).

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Hardshrink",
            {
                "self": self,
            },
            {
                "lambd": lambd,
            },
            Parameters(out, dtype, timeout),
        )

    def hardshrink_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        *,
        lambd: Optional[Scalar] = None,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of hard shrinkage with respect to its input.

        grad_input = grad_output where self < -lambd or self > lambd, else 0. A negative
        lambd counts as 0. The tensors broadcast and are promoted to a common dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            self: The forward argument. float32, float16, bfloat16.
            lambd: Half width of the interval around 0 that is cut out. Default: 0.5
                (float32).

        Returns:
            grad_input: Gradient with respect to the forward argument, in the broadcast
                shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "HardshrinkBackward",
            {
                "grad_output": grad_output,
                "self": self,
            },
            {
                "lambd": lambd,
            },
            Parameters(out, dtype, timeout),
        )

    def hardsigmoid(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies the hard sigmoid.

        out = min(max(self + 3, 0), 6) / 6.

        Args:
            self: The argument. float32, float16, bfloat16, int32.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Hardsigmoid",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def hardsigmoid_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the hard sigmoid with respect to its input.

        out = grad_output / 6 where -3 < self < 3, else 0. The tensors broadcast and are
        promoted to a common dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            self: The forward argument. float32, float16, bfloat16.

        Returns:
            out: Gradient with respect to the forward argument, in the broadcast shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "HardsigmoidBackward",
            {
                "grad_output": grad_output,
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def hardswish(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies hard swish.

        out = self * min(max(self + 3, 0), 6) / 6.

        Args:
            self: The argument. float32, float16, bfloat16.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Hardswish",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def hardswish_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of hard swish with respect to its input.

        out = 0 where self < -3, grad_output where self > 3, else grad_output * (self /
        3 + 0.5). The tensors broadcast and are promoted to a common dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            self: The forward argument. float32, float16, bfloat16.

        Returns:
            out: Gradient with respect to the forward argument, in the broadcast shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "HardswishBackward",
            {
                "grad_output": grad_output,
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def hardswish_backward_v2(
        client,
        /,
        grad_output: Any,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of hard swish with respect to its input.

        out = 0 where self < -3, grad_output where self > 3, else grad_output * (self /
        3 + 0.5). All tensors have one shape and dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            self: The forward argument. float32, float16, bfloat16.

        Returns:
            out: Gradient with respect to the forward argument.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "HardswishBackwardV2",
            {
                "grad_output": grad_output,
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def hardtanh(
        client,
        /,
        self: Any,
        *,
        clip_value_min: Scalar = -1,
        clip_value_max: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Limits a tensor to an interval, as an activation.

        out = min(max(self, clip_value_min), clip_value_max). NaN stays NaN.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64.
            clip_value_min: Lower limit.
            clip_value_max: Upper limit.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Hardtanh",
            {
                "self": self,
            },
            {
                "clip_value_min": clip_value_min,
                "clip_value_max": clip_value_max,
            },
            Parameters(out, dtype, timeout),
        )

    def hardtanh_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        *,
        min: Scalar = -1,
        max: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the limiting activation with respect to its input.

        out = grad_output where min < self < max, else 0. Empty tensors are refused. All
        tensors have one shape and dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            self: The forward argument. float32, float16, bfloat16.
            min: The forward lower limit.
            max: The forward upper limit.

        Returns:
            out: Gradient with respect to the forward argument.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "HardtanhBackward",
            {
                "grad_output": grad_output,
                "self": self,
            },
            {
                "min": min,
                "max": max,
            },
            Parameters(out, dtype, timeout),
        )

    def index(
        client,
        /,
        self: Any,
        indices: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Elements at places that are given by a tensor for each leading axis.

        out = self[indices[0], indices[1], ...]; the indices broadcast, out has their
        shape, followed by the axes of self that have none. Negative indices count from
        the end. Indices outside of the range are undefined.

        Args:
            self: The tensor to read. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            indices: The indices, one tensor for each leading axis. int32, int64. A list
                of tensors.

        Returns:
            out: The elements, in self's dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Index",
            {
                "self": self,
                "indices": indices,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def index_add(
        client,
        /,
        self: Any,
        index: Any,
        source: Any,
        *,
        dim: int,
        alpha: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds slices at indices along an axis.

        out = self; then out's slices at index along axis dim += alpha * source. Equal
        indices add up. Indices outside of the range are undefined.

        Args:
            self: The tensor to add to. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.
            index: The indices, 1-d. int32, int64.
            source: The slices to add; as many along dim as index has. float32, float16,
                bfloat16, float64, int8, uint8, int16, int32, int64, bool.
            dim: Axis that is indexed; negative values count from the end.
            alpha: Factor on source.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "IndexAdd",
            {
                "self": self,
                "index": index,
                "source": source,
            },
            {
                "dim": dim,
                "alpha": alpha,
            },
            Parameters(out, dtype, timeout),
        )

    def index_put_impl(
        client,
        /,
        self: Any,
        indices: Any,
        values: Any,
        *,
        accumulate: bool = False,
        unsafe: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Writes at places that are given by a tensor for each leading axis.

        self[indices[0], indices[1], ...] = values, or += values if accumulate; values
        broadcast to the indexed shape. Negative indices count from the end. Without
        accumulate equal places get any one of their values.

        Args:
            self: The tensor to write to. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.
            indices: The indices, one tensor for each leading axis. int32, int64. A list
                of tensors.
            values: What is written. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            accumulate: Whether values are added.
            unsafe: Whether indices go unchecked.

        Returns:
            self: The tensor to write to.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "IndexPutImpl",
            {
                "self": self,
                "indices": indices,
                "values": values,
            },
            {
                "accumulate": accumulate,
                "unsafe": unsafe,
            },
            Parameters(out, dtype, timeout),
        )

    def index_select(
        client,
        /,
        self: Any,
        index: Any,
        *,
        dim: int,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Slices at indices along an axis.

        out = the slices of self at index along axis dim. Indices outside of the range
        are undefined.

        Args:
            self: The tensor to read. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            index: The indices, 0-d or 1-d. int32, int64.
            dim: Axis that is indexed; negative values count from the end.

        Returns:
            out: The slices, in self's dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "IndexSelect",
            {
                "self": self,
                "index": index,
            },
            {
                "dim": dim,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_add(
        client,
        /,
        self: Any,
        other: Any,
        *,
        alpha: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds a tensor to another, in place.

        self = self + alpha * other. other broadcasts to self's shape; the common dtype
        must convert to self's.

        Args:
            self: Left operand; overwritten with the result. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts to self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            alpha: Factor on other.

        Returns:
            self: Left operand; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceAdd",
            {
                "self": self,
                "other": other,
            },
            {
                "alpha": alpha,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_addcdiv(
        client,
        /,
        self: Any,
        tensor1: Any,
        tensor2: Any,
        *,
        value: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds a scaled quotient of two tensors to a tensor, in place.

        self = self + value * tensor1 / tensor2. Division by zero gives an infinity, or
        NaN for 0 / 0. tensor1 and tensor2 broadcast to self's shape; the common dtype
        must convert to self's.

        Args:
            self: The summand; overwritten with the result. float32, float16, bfloat16,
                float64, int64.
            tensor1: Dividend. float32, float16, bfloat16, float64, int64.
            tensor2: Divisor. float32, float16, bfloat16, float64, int64.
            value: Factor on the quotient.

        Returns:
            self: The summand; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceAddcdiv",
            {
                "self": self,
                "tensor1": tensor1,
                "tensor2": tensor2,
            },
            {
                "value": value,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_addcmul(
        client,
        /,
        self: Any,
        tensor1: Any,
        tensor2: Any,
        *,
        value: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds a scaled product of two tensors to a tensor, in place.

        self = self + value * tensor1 * tensor2. tensor1 and tensor2 broadcast to self's
        shape; the common dtype must convert to self's.

        Args:
            self: The summand; overwritten with the result. float32, float16, bfloat16,
                float64, int8, uint8, int32, int64.
            tensor1: First factor. float32, float16, bfloat16, float64, int8, uint8,
                int32, int64.
            tensor2: Second factor. float32, float16, bfloat16, float64, int8, uint8,
                int32, int64.
            value: Factor on the product.

        Returns:
            self: The summand; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceAddcmul",
            {
                "self": self,
                "tensor1": tensor1,
                "tensor2": tensor2,
            },
            {
                "value": value,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_addmm(
        client,
        /,
        self: Any,
        mat1: Any,
        mat2: Any,
        *,
        beta: Scalar = 1,
        alpha: Scalar = 1,
        cube_math_type: Union[int, Literal["keep", "allow_hf32", "use_fp16", "use_hf32"]] = "keep",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds a product of matrices to a matrix, in place.

        self = beta * self + alpha * (mat1 @ mat2). Sums are taken in float32 and
        rounded once.

        Args:
            self: The summand, [n, m]; overwritten with the result. float32, float16,
                bfloat16.
            mat1: Left factor, [n, k]. float32, float16, bfloat16.
            mat2: Right factor, [k, m]. float32, float16, bfloat16.
            beta: Factor on self.
            alpha: Factor on the product.
            cube_math_type: Precision of FLOAT products: keep it, allow HFLOAT32, use
                FLOAT16, use HFLOAT32.

        Returns:
            self: The summand, [n, m]; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceAddmm",
            {
                "self": self,
                "mat1": mat1,
                "mat2": mat2,
            },
            {
                "beta": beta,
                "alpha": alpha,
                "cube_math_type": cube_math_type,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_adds(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        alpha: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds a number to a tensor, in place.

        self = self + alpha * other. The common dtype must convert to self's.

        Args:
            self: The tensor operand; overwritten with the result. float32, float16,
                bfloat16, float64, int8, uint8, int16, int32, int64, bool.
            other: The number.
            alpha: Factor on other.

        Returns:
            self: The tensor operand; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceAdds",
            {
                "self": self,
            },
            {
                "other": other,
                "alpha": alpha,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_baddbmm(
        client,
        /,
        self: Any,
        batch1: Any,
        batch2: Any,
        *,
        beta: Scalar = 1,
        alpha: Scalar = 1,
        cube_math_type: Union[int, Literal["keep", "allow_hf32", "use_fp16", "use_hf32"]] = "keep",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds products of batches of matrices to a tensor, in place.

        self = beta * self + alpha * (batch1 @ batch2). Sums are taken in float32 and
        rounded once.

        Args:
            self: The summand, [b, n, m]; overwritten with the result. float32, float16,
                bfloat16.
            batch1: Left factors, [b, n, k]. float32, float16, bfloat16.
            batch2: Right factors, [b, k, m]. float32, float16, bfloat16.
            beta: Factor on self.
            alpha: Factor on the product.
            cube_math_type: Precision of FLOAT products: keep it, allow HFLOAT32, use
                FLOAT16, use HFLOAT32.

        Returns:
            self: The summand, [b, n, m]; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceBaddbmm",
            {
                "self": self,
                "batch1": batch1,
                "batch2": batch2,
            },
            {
                "beta": beta,
                "alpha": alpha,
                "cube_math_type": cube_math_type,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_ceil(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Rounds up, in place.

        self = the smallest whole number that is not below self.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16,
                float64.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceCeil",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_celu(
        client,
        /,
        self: Any,
        *,
        alpha: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies CELU, the continuously differentiable exponential linear unit, in place.

        self = max(0, self) + min(0, alpha * (exp(self / alpha) - 1)).

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16.
            alpha: Scale of the negative branch; not 0.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceCelu",
            {
                "self": self,
            },
            {
                "alpha": alpha,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_clamp_max(
        client,
        /,
        self: Any,
        *,
        clip_value_max: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Limits a tensor from above by a number, in place.

        self = min(self, clip_value_max). NaN stays NaN. The common dtype must convert
        to self's.

        Args:
            self: Tensor to limit; overwritten with the result. float32, float16,
                bfloat16, float64, int8, uint8, int16, int32, int64.
            clip_value_max: The limit.

        Returns:
            self: Tensor to limit; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceClampMax",
            {
                "self": self,
            },
            {
                "clip_value_max": clip_value_max,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_clamp_max_tensor(
        client,
        /,
        self: Any,
        clip_value_max: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Limits a tensor from above by another, in place.

        self = min(self, clip_value_max). NaN in either gives NaN. The limit broadcasts
        to self's shape; the common dtype must convert to self's.

        Args:
            self: Tensor to limit; overwritten with the result. float32, float16,
                bfloat16, float64, int8, uint8, int16, int32, int64.
            clip_value_max: The limit of each element. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64.

        Returns:
            self: Tensor to limit; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceClampMaxTensor",
            {
                "self": self,
                "clip_value_max": clip_value_max,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_clamp_min_tensor(
        client,
        /,
        self: Any,
        clip_value_min: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Limits a tensor from below by another, in place.

        self = max(self, clip_value_min). NaN in either gives NaN. The limit broadcasts
        to self's shape; the common dtype must convert to self's.

        Args:
            self: Tensor to limit; overwritten with the result. float32, float16,
                bfloat16, float64, int8, uint8, int16, int32, int64.
            clip_value_min: The limit of each element. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64.

        Returns:
            self: Tensor to limit; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceClampMinTensor",
            {
                "self": self,
                "clip_value_min": clip_value_min,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_copy(
        client,
        /,
        self: Any,
        src: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Copies one tensor into another.

        self = src, broadcast to self's shape and converted to its dtype as Cast does.

        Args:
            self: Tensor to overwrite; its old elements do not matter. float32, float16,
                bfloat16, float64, int8, uint8, int16, int32, int64, bool.
            src: Tensor to copy; broadcasts to self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            self: Tensor to overwrite; its old elements do not matter.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceCopy",
            {
                "self": self,
                "src": src,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_cos(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the cosine, in place.

        self = cos(self), self in radians. Infinities give NaN.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceCos",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_div(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Divides a tensor by another, in place.

        self = self / other, a true division: integers and BOOL divide as FLOAT. A zero
        divisor gives an infinity, or NaN for 0 / 0. other broadcasts to self's shape;
        the common dtype must convert to self's.

        Args:
            self: Left operand; overwritten with the result. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts to self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            self: Left operand; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceDiv",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_div_mod(
        client,
        /,
        self: Any,
        other: Any,
        *,
        mode: Union[int, Literal["true", "trunc", "floor"]] = "true",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Divides a tensor by another and rounds the quotient, in place.

        self = self / other, rounded towards zero (trunc) or down (floor). Without
        rounding integers and BOOL divide as FLOAT; with it an integer divided by zero
        gives 0. other broadcasts to self's shape; the common dtype must convert to
        self's.

        Args:
            self: Dividend; overwritten with the quotient. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Divisor; broadcasts to self. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool.
            mode: How the quotient is rounded: not at all, towards zero or down.

        Returns:
            self: Dividend; overwritten with the quotient.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceDivMod",
            {
                "self": self,
                "other": other,
            },
            {
                "mode": mode,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_div_mods(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        mode: Union[int, Literal["true", "trunc", "floor"]] = "true",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Divides a tensor by a number and rounds the quotient, in place.

        self = self / other, rounded towards zero (trunc) or down (floor). Without
        rounding integers and BOOL divide as FLOAT; with it an integer divided by zero
        gives 0. The common dtype must convert to self's.

        Args:
            self: Dividend; overwritten with the quotient. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Divisor.
            mode: How the quotient is rounded: not at all, towards zero or down.

        Returns:
            self: Dividend; overwritten with the quotient.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceDivMods",
            {
                "self": self,
            },
            {
                "other": other,
                "mode": mode,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_divs(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Divides a tensor by a number, in place.

        self = self / other, a true division: integers and BOOL divide as FLOAT. A zero
        divisor gives an infinity, or NaN for 0 / 0. The common dtype must convert to
        self's.

        Args:
            self: The tensor operand; overwritten with the result. float32, float16,
                bfloat16, float64, int8, uint8, int16, int32, int64, bool.
            other: The number.

        Returns:
            self: The tensor operand; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceDivs",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_elu(
        client,
        /,
        self: Any,
        *,
        alpha: Scalar = 1,
        scale: Scalar = 1,
        input_scale: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies ELU, the exponential linear unit, in place.

        self = scale * self where self > 0, else scale * alpha * (exp(self *
        input_scale) - 1).

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16.
            alpha: Factor of the negative branch.
            scale: Factor of both branches.
            input_scale: Factor in the exponent.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceElu",
            {
                "self": self,
            },
            {
                "alpha": alpha,
                "scale": scale,
                "input_scale": input_scale,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_eq_scalar(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where a tensor is equal to a number, in place.

        self = 1 where self == other, else 0, compared in self's dtype, or FLOAT if self
        is an integer and other a fraction. NaN equals nothing, not even itself.

        Args:
            self: The tensor operand; overwritten with 1 where it holds, else 0.
                float32, float16, bfloat16, float64, int8, uint8, int16, int32, int64,
                bool.
            other: The number.

        Returns:
            self: The tensor operand; overwritten with 1 where it holds, else 0.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceEqScalar",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_eq_tensor(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where one tensor is equal to another, in place.

        self = 1 where self == other, else 0, compared in the common dtype of both. NaN
        equals nothing, not even itself. other broadcasts to self's shape.

        Args:
            self: Left operand; overwritten with 1 where it holds, else 0. float32,
                float16, bfloat16, float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts to self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            self: Left operand; overwritten with 1 where it holds, else 0.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceEqTensor",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_erf(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the error function, in place.

        self = 2 / sqrt(pi) * the integral of exp(-t * t) from 0 to self.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceErf",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_exp(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the exponential, in place.

        self = e ** self. Large arguments give inf, -inf gives 0.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceExp",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_fill_scalar(
        client,
        /,
        self: Any,
        *,
        value: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Fills a tensor with a number.

        self = value, converted to self's dtype.

        Args:
            self: Tensor to fill; its old elements do not matter. float32, float16,
                bfloat16, float64, int8, uint8, int16, int32, int64, bool.
            value: The number to write.

        Returns:
            self: Tensor to fill; its old elements do not matter.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceFillScalar",
            {
                "self": self,
            },
            {
                "value": value,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_fill_tensor(
        client,
        /,
        self: Any,
        value: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Fills a tensor with the number in another.

        self = value, converted to self's dtype. value is 0-d or has one element.

        Args:
            self: Tensor to fill; its old elements do not matter. float32, float16,
                bfloat16, float64, int8, uint8, int16, int32, int64, bool.
            value: Tensor with the one number to write. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            self: Tensor to fill; its old elements do not matter.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceFillTensor",
            {
                "self": self,
                "value": value,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_floor(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Rounds down, in place.

        self = the largest whole number that is not above self.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16,
                float64.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceFloor",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_ge_scalar(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where a tensor is not below a number, in place.

        self = 1 where self >= other, else 0, compared in self's dtype, or FLOAT if self
        is an integer and other a fraction. Comparisons with NaN are false.

        Args:
            self: The tensor operand; overwritten with 1 where it holds, else 0.
                float32, float16, bfloat16, float64, int8, uint8, int16, int32, int64,
                bool.
            other: The number.

        Returns:
            self: The tensor operand; overwritten with 1 where it holds, else 0.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceGeScalar",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_ge_tensor(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where one tensor is not below another, in place.

        self = 1 where self >= other, else 0, compared in the common dtype of both.
        Comparisons with NaN are false. other broadcasts to self's shape.

        Args:
            self: Left operand; overwritten with 1 where it holds, else 0. float32,
                float16, bfloat16, float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts to self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            self: Left operand; overwritten with 1 where it holds, else 0.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceGeTensor",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_gt_scalar(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where a tensor is above a number, in place.

        self = 1 where self > other, else 0, compared in self's dtype, or FLOAT if self
        is an integer and other a fraction. Comparisons with NaN are false.

        Args:
            self: The tensor operand; overwritten with 1 where it holds, else 0.
                float32, float16, bfloat16, float64, int8, uint8, int16, int32, int64,
                bool.
            other: The number.

        Returns:
            self: The tensor operand; overwritten with 1 where it holds, else 0.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceGtScalar",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_gt_tensor(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where one tensor is above another, in place.

        self = 1 where self > other, else 0, compared in the common dtype of both.
        Comparisons with NaN are false. other broadcasts to self's shape.

        Args:
            self: Left operand; overwritten with 1 where it holds, else 0. float32,
                float16, bfloat16, float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts to self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            self: Left operand; overwritten with 1 where it holds, else 0.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceGtTensor",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_hardsigmoid(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies the hard sigmoid, in place.

        self = min(max(self + 3, 0), 6) / 6.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16,
                int32.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceHardsigmoid",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_hardswish(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies hard swish, in place.

        self = self * min(max(self + 3, 0), 6) / 6.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceHardswish",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_hardtanh(
        client,
        /,
        self: Any,
        *,
        clip_value_min: Scalar = -1,
        clip_value_max: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Limits a tensor to an interval, as an activation, in place.

        self = min(max(self, clip_value_min), clip_value_max). NaN stays NaN.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64.
            clip_value_min: Lower limit.
            clip_value_max: Upper limit.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceHardtanh",
            {
                "self": self,
            },
            {
                "clip_value_min": clip_value_min,
                "clip_value_max": clip_value_max,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_le_scalar(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where a tensor is not above a number, in place.

        self = 1 where self <= other, else 0, compared in self's dtype, or FLOAT if self
        is an integer and other a fraction. Comparisons with NaN are false.

        Args:
            self: The tensor operand; overwritten with 1 where it holds, else 0.
                float32, float16, bfloat16, float64, int8, uint8, int16, int32, int64,
                bool.
            other: The number.

        Returns:
            self: The tensor operand; overwritten with 1 where it holds, else 0.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceLeScalar",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_le_tensor(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where one tensor is not above another, in place.

        self = 1 where self <= other, else 0, compared in the common dtype of both.
        Comparisons with NaN are false. other broadcasts to self's shape.

        Args:
            self: Left operand; overwritten with 1 where it holds, else 0. float32,
                float16, bfloat16, float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts to self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            self: Left operand; overwritten with 1 where it holds, else 0.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceLeTensor",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_leaky_relu(
        client,
        /,
        self: Any,
        *,
        negative_slope: Scalar = 0.01,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies leaky relu, in place.

        self = self where self > 0, else negative_slope * self.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16,
                float64.
            negative_slope: Slope for negative elements.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceLeakyRelu",
            {
                "self": self,
            },
            {
                "negative_slope": negative_slope,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_lerp(
        client,
        /,
        self: Any,
        end: Any,
        weight: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Interpolates between two tensors with a weight for each element, in place.

        self = self + weight * (end - self). weight 0 gives self, weight 1 end; values
        outside of 0 to 1 extrapolate. end and weight broadcast to self's shape; all
        three have one dtype.

        Args:
            self: Start of the interpolation; overwritten with the result. float32,
                float16, bfloat16.
            end: End of the interpolation. float32, float16, bfloat16.
            weight: The weights. float32, float16, bfloat16.

        Returns:
            self: Start of the interpolation; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceLerp",
            {
                "self": self,
                "end": end,
                "weight": weight,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_lerps(
        client,
        /,
        self: Any,
        end: Any,
        *,
        weight: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Interpolates between two tensors with one weight, in place.

        self = self + weight * (end - self). weight 0 gives self, weight 1 end; values
        outside of 0 to 1 extrapolate. end broadcasts to self's shape and has its dtype.

        Args:
            self: Start of the interpolation; overwritten with the result. float32,
                float16, bfloat16.
            end: End of the interpolation. float32, float16, bfloat16.
            weight: The weight.

        Returns:
            self: Start of the interpolation; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceLerps",
            {
                "self": self,
                "end": end,
            },
            {
                "weight": weight,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_log(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the natural logarithm, in place.

        self = ln(self). 0 gives -inf, negative numbers NaN.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceLog",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_logical_and(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Joins two tensors by logical and, in place.

        self = 1 where self and other holds, else 0; everything but 0 counts as true,
        NaN included. other broadcasts to self's shape.

        Args:
            self: Left operand; overwritten with the result. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts to self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            self: Left operand; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceLogicalAnd",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_logical_not(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Negates logically, in place.

        self = 1 where self is 0, else 0; NaN counts as true and gives 0.

        Args:
            self: The tensor to negate; overwritten with the result. float32, float16,
                bfloat16, float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            self: The tensor to negate; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceLogicalNot",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_logical_or(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Joins two tensors by logical or, in place.

        self = 1 where self or other holds, else 0; everything but 0 counts as true, NaN
        included. other broadcasts to self's shape.

        Args:
            self: Left operand; overwritten with the result. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts to self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            self: Left operand; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceLogicalOr",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_lt_scalar(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where a tensor is below a number, in place.

        self = 1 where self < other, else 0, compared in self's dtype, or FLOAT if self
        is an integer and other a fraction. Comparisons with NaN are false.

        Args:
            self: The tensor operand; overwritten with 1 where it holds, else 0.
                float32, float16, bfloat16, float64, int8, uint8, int16, int32, int64,
                bool.
            other: The number.

        Returns:
            self: The tensor operand; overwritten with 1 where it holds, else 0.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceLtScalar",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_lt_tensor(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where one tensor is below another, in place.

        self = 1 where self < other, else 0, compared in the common dtype of both.
        Comparisons with NaN are false. other broadcasts to self's shape.

        Args:
            self: Left operand; overwritten with 1 where it holds, else 0. float32,
                float16, bfloat16, float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts to self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            self: Left operand; overwritten with 1 where it holds, else 0.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceLtTensor",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_masked_fill_scalar(
        client,
        /,
        self: Any,
        mask: Any,
        *,
        value: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Overwrites the masked elements with a number.

        self = value where mask holds; the rest stays. mask broadcasts to self's shape;
        value is converted to self's dtype.

        Args:
            self: Tensor to fill. float32, float16, bfloat16, int8, int32, int64, bool.
            mask: Where to write value; broadcasts to self. bool.
            value: The number to write.

        Returns:
            self: Tensor to fill.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceMaskedFillScalar",
            {
                "self": self,
                "mask": mask,
            },
            {
                "value": value,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_masked_fill_tensor(
        client,
        /,
        self: Any,
        mask: Any,
        value: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Overwrites the masked elements with the number in a tensor.

        self = value where mask holds; the rest stays. mask broadcasts to self's shape;
        value has one element, which is converted to self's dtype.

        Args:
            self: Tensor to fill. float32, float16, bfloat16, int8, int32, int64, bool.
            mask: Where to write value; broadcasts to self. bool.
            value: 0-d tensor with the number to write. float32, float16, bfloat16,
                int8, int32, int64, bool.

        Returns:
            self: Tensor to fill.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceMaskedFillTensor",
            {
                "self": self,
                "mask": mask,
                "value": value,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_masked_scatter(
        client,
        /,
        self: Any,
        mask: Any,
        source: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Overwrites the masked elements with the elements of a tensor in turn.

        The elements of self where mask holds take the first elements of source, in
        row-major order; the rest stays. mask broadcasts to self's shape; source has
        self's dtype and at least as many elements as are masked.

        Args:
            self: Tensor to fill. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            mask: Where to write; broadcasts to self. uint8, bool.
            source: The elements to write, in row-major order. float32, float16,
                bfloat16, float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            self: Tensor to fill.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceMaskedScatter",
            {
                "self": self,
                "mask": mask,
                "source": source,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_mish(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies Mish, in place.

        self = self * tanh(ln(1 + exp(self))).

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceMish",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_mul(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Multiplies a tensor by another, in place.

        self = self * other. other broadcasts to self's shape; the common dtype must
        convert to self's.

        Args:
            self: Left operand; overwritten with the result. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts to self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            self: Left operand; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceMul",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_muls(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Multiplies a tensor by a number, in place.

        self = self * other. The common dtype must convert to self's.

        Args:
            self: The tensor operand; overwritten with the result. float32, float16,
                bfloat16, float64, int8, uint8, int16, int32, int64, bool.
            other: The number.

        Returns:
            self: The tensor operand; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceMuls",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_ne_scalar(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where a tensor is different from a number, in place.

        self = 1 where self != other, else 0, compared in self's dtype, or FLOAT if self
        is an integer and other a fraction. NaN differs from everything, even from
        itself.

        Args:
            self: The tensor operand; overwritten with 1 where it holds, else 0.
                float32, float16, bfloat16, float64, int8, uint8, int16, int32, int64,
                bool.
            other: The number.

        Returns:
            self: The tensor operand; overwritten with 1 where it holds, else 0.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceNeScalar",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_ne_tensor(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where one tensor is different from another, in place.

        self = 1 where self != other, else 0, compared in the common dtype of both. NaN
        differs from everything, even from itself. other broadcasts to self's shape.

        Args:
            self: Left operand; overwritten with 1 where it holds, else 0. float32,
                float16, bfloat16, float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts to self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            self: Left operand; overwritten with 1 where it holds, else 0.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceNeTensor",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_neg(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Negates a tensor, in place.

        self = -self.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16,
                float64.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceNeg",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_one(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Fills a tensor with ones.

        self = 1, true for BOOL.

        Args:
            self: Tensor to fill; its old elements do not matter. float32, float16,
                bfloat16, float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            self: Tensor to fill; its old elements do not matter.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceOne",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_pow_tensor_scalar(
        client,
        /,
        self: Any,
        *,
        exponent: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Raises a tensor to the power of a number, in place.

        self = self ** exponent. 0 to the power 0 is 1; a negative number to a
        fractional power is NaN. Integer powers of integers wrap around; negative
        exponents of integers other than 1 and -1 give 0. The common dtype must convert
        to self's.

        Args:
            self: The bases; overwritten with the powers. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            exponent: The exponent.

        Returns:
            self: The bases; overwritten with the powers.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplacePowTensorScalar",
            {
                "self": self,
            },
            {
                "exponent": exponent,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_pow_tensor_tensor(
        client,
        /,
        self: Any,
        exponent: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Raises a tensor to the powers in another, in place.

        self = self ** exponent. 0 to the power 0 is 1; a negative number to a
        fractional power is NaN. Integer powers of integers wrap around; negative
        exponents of integers other than 1 and -1 give 0. exponent broadcasts to self's
        shape; the common dtype must convert to self's.

        Args:
            self: The bases; overwritten with the powers. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            exponent: The exponents; broadcast to self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            self: The bases; overwritten with the powers.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplacePowTensorTensor",
            {
                "self": self,
                "exponent": exponent,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_reciprocal(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes reciprocals, in place.

        self = 1 / self. 0 gives an infinity of its sign.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceReciprocal",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_relu(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Rectifies: keeps positive elements and makes the others zero, in place.

        self = max(self, 0). NaN stays NaN.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16,
                int8, uint8, int32, int64.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceRelu",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_round(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Rounds to the nearest whole number, in place.

        self = the whole number nearest to self; of two equally near ones the even one.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16,
                float64.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceRound",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_rsqrt(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the reciprocal of the square root, in place.

        self = 1 / sqrt(self). 0 gives inf, negative numbers NaN.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceRsqrt",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_scatter(
        client,
        /,
        self: Any,
        index: Any,
        src: Any,
        *,
        dim: int,
        reduce: Union[int, Literal["replace", "add", "multiply"]] = "replace",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Writes elements at indices along an axis, in place.

        self[index[i][j]][j] = src[i][j] for dim 0, likewise for the others. index fits
        into src, and into self beside dim. reduce adds or multiplies instead. Without
        it equal places get any one of their elements.

        Args:
            self: The tensor to write to. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.
            index: The indices. int32, int64.
            src: The elements. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.
            dim: Axis that is indexed; negative values count from the end.
            reduce: What happens to the old element.

        Returns:
            self: The tensor to write to.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceScatter",
            {
                "self": self,
                "index": index,
                "src": src,
            },
            {
                "dim": dim,
                "reduce": reduce,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_scatter_update(
        client,
        /,
        data: Any,
        indices: Any,
        updates: Any,
        *,
        axis: int = -2,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Overwrites slices at indices along an axis.

        For each b of axis 0 the slice that starts at index b of axis is overwritten, as
        long as that of updates.

        Args:
            data: The tensor to write to. float32, float16, bfloat16, int8, uint8,
                int32.
            indices: Where the slices start, one for each place of axis 0. int32, int64.
            updates: The slices, in data's dtype. float32, float16, bfloat16, int8,
                uint8, int32.
            axis: Axis along which the slices are placed; not the first.

        Returns:
            data: The tensor to write to.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceScatterUpdate",
            {
                "data": data,
                "indices": indices,
                "updates": updates,
            },
            {
                "axis": axis,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_scatter_value(
        client,
        /,
        self: Any,
        index: Any,
        *,
        dim: int,
        value: Scalar,
        reduce: Union[int, Literal["replace", "add", "multiply"]] = "replace",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Writes a number at indices along an axis, in place.

        self[index[i][j]][j] = value for dim 0, likewise for the others. index fits into
        self beside dim. reduce adds or multiplies instead.

        Args:
            self: The tensor to write to. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.
            index: The indices. int32, int64.
            dim: Axis that is indexed; negative values count from the end.
            value: The number.
            reduce: What happens to the old element.

        Returns:
            self: The tensor to write to.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceScatterValue",
            {
                "self": self,
                "index": index,
            },
            {
                "dim": dim,
                "value": value,
                "reduce": reduce,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_selu(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies SELU, the self-normalising exponential linear unit, in place.

        self = s * (self where self > 0, else a * (exp(self) - 1)), with a =
        1.6732632423543772 and s = 1.0507009873554805.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16,
                int8, int32.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceSelu",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_sigmoid(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies the logistic function, in place.

        self = 1 / (1 + exp(-self)), between 0 and 1.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceSigmoid",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_sin(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the sine, in place.

        self = sin(self), self in radians. Infinities give NaN.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceSin",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_sqrt(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the square root, in place.

        self = sqrt(self). Negative numbers give NaN.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceSqrt",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_sub(
        client,
        /,
        self: Any,
        other: Any,
        *,
        alpha: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Subtracts a tensor from another, in place.

        self = self - alpha * other. other broadcasts to self's shape; the common dtype
        must convert to self's.

        Args:
            self: Left operand; overwritten with the result. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts to self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            alpha: Factor on other.

        Returns:
            self: Left operand; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceSub",
            {
                "self": self,
                "other": other,
            },
            {
                "alpha": alpha,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_subs(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        alpha: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Subtracts a number from a tensor, in place.

        self = self - alpha * other. The common dtype must convert to self's.

        Args:
            self: The tensor operand; overwritten with the result. float32, float16,
                bfloat16, float64, int8, uint8, int16, int32, int64, bool.
            other: The number.
            alpha: Factor on other.

        Returns:
            self: The tensor operand; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceSubs",
            {
                "self": self,
            },
            {
                "other": other,
                "alpha": alpha,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_tanh(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies the hyperbolic tangent, in place.

        self = tanh(self), between -1 and 1.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceTanh",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_threshold(
        client,
        /,
        self: Any,
        *,
        threshold: Scalar,
        value: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Replaces elements that are not above a threshold, in place.

        self = self where self > threshold, else value.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16,
                int8, uint8, int16, int32, int64.
            threshold: Elements above it are kept.
            value: What the other elements become.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceThreshold",
            {
                "self": self,
            },
            {
                "threshold": threshold,
                "value": value,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_tril(
        client,
        /,
        self: Any,
        *,
        diagonal: int = 0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Keeps the lower triangle of matrices, in place.

        The two last axes are the matrix: elements above the diagonal become 0, the
        others stay. Leading axes are batches.

        Args:
            self: The matrices, of rank 2 or more; overwritten with the triangles.
                float32, float16, bfloat16, float64, int8, uint8, int16, int32, int64,
                bool.
            diagonal: The diagonal that bounds what stays: 0 the main one, positive ones
                above it, negative ones below.

        Returns:
            self: The matrices, of rank 2 or more; overwritten with the triangles.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceTril",
            {
                "self": self,
            },
            {
                "diagonal": diagonal,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_triu(
        client,
        /,
        self: Any,
        *,
        diagonal: int = 0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Keeps the upper triangle of matrices, in place.

        The two last axes are the matrix: elements below the diagonal become 0, the
        others stay. Leading axes are batches.

        Args:
            self: The matrices, of rank 2 or more; overwritten with the triangles.
                float32, float16, bfloat16, float64, int8, uint8, int16, int32, int64,
                bool.
            diagonal: The diagonal that bounds what stays: 0 the main one, positive ones
                above it, negative ones below.

        Returns:
            self: The matrices, of rank 2 or more; overwritten with the triangles.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceTriu",
            {
                "self": self,
            },
            {
                "diagonal": diagonal,
            },
            Parameters(out, dtype, timeout),
        )

    def inplace_trunc(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Rounds towards zero, in place.

        self = self without its fraction. NaN and infinities stay.

        Args:
            self: The argument; overwritten with the result. float32, float16, bfloat16.

        Returns:
            self: The argument; overwritten with the result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceTrunc",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def inplace_zero(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Fills a tensor with zeros.

        self = 0, false for BOOL.

        Args:
            self: Tensor to fill; its old elements do not matter. float32, float16,
                bfloat16, float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            self: Tensor to fill; its old elements do not matter.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "InplaceZero",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def is_finite(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where a tensor is finite.

        out = false where self is NaN or infinite, else true; integers and BOOL are
        always finite.

        Args:
            self: The tensor to look at. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.

        Returns:
            out: Whether each element is finite, in self's shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "IsFinite",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def is_inf(
        client,
        /,
        x: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where a tensor is infinite.

        out = whether x is inf or -inf; integers and BOOL never are.

        Args:
            x: The tensor to look at. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.

        Returns:
            out: Whether each element is infinite, in x's shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "IsInf",
            {
                "x": x,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def is_neg_inf(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where a tensor is -inf.

        out = whether self is -inf; integers and BOOL never are.

        Args:
            self: The tensor to look at. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.

        Returns:
            out: Whether it holds, in self's shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "IsNegInf",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def is_pos_inf(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where a tensor is inf.

        out = whether self is inf; integers and BOOL never are.

        Args:
            self: The tensor to look at. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.

        Returns:
            out: Whether it holds, in self's shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "IsPosInf",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def kl_div(
        client,
        /,
        self: Any,
        target: Any,
        *,
        reduction: Union[int, Literal["none", "mean", "sum", "batchmean"]] = "mean",
        log_target: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """KL divergence loss between log-probabilities and a target.

        log_target false:  the single loss is target * (ln(target) - self), 0 where
        target is 0
        log_target true:   it is exp(target) * (target - self)
        self and target broadcast and are promoted to a common dtype; sums are taken in
        float32 and rounded once. Means are over all elements, batchmean over the first
        axis.

        Args:
            self: The log-probabilities. float32, float16, bfloat16.
            target: The target, or its logarithm if log_target. float32, float16,
                bfloat16.
            reduction: What becomes of the single losses: none keeps them, mean
                averages, sum adds, batchmean divides their sum by the first extent.
            log_target: Whether target holds logarithms of probabilities.

        Returns:
            out: The losses, or the reduced one in shape [1].

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "KlDiv",
            {
                "self": self,
                "target": target,
            },
            {
                "reduction": reduction,
                "log_target": log_target,
            },
            Parameters(out, dtype, timeout),
        )

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

    def l1_loss(
        client,
        /,
        self: Any,
        target: Any,
        *,
        reduction: Union[int, Literal["none", "mean", "sum"]] = "mean",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Mean absolute error between two tensors.

        The single loss is |self - target|. self and target broadcast and are promoted
        to a common dtype; sums are taken in float32 and rounded once.

        Args:
            self: The loss's input. float32, float16, bfloat16, int64.
            target: The loss's target. float32, float16, bfloat16, int64.
            reduction: What becomes of the single losses: none keeps them, mean
                averages, sum adds.

        Returns:
            out: The losses, or the reduced one as a 0-d tensor.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "L1Loss",
            {
                "self": self,
                "target": target,
            },
            {
                "reduction": reduction,
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

    def layer_norm(
        client,
        /,
        input: Any,
        weight: Any = None,
        bias: Any = None,
        *,
        normalized_shape: Sequence[int],
        eps: float = 1e-05,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
        outputs: Optional[Sequence[Literal["mean_out", "rstd_out"]]] = None,
    ) -> R:
        """Layer normalisation.

        out = (input - mean) / sqrt(variance + eps) * weight + bias, with mean and
        biased variance over the trailing axes normalized_shape. Sums are taken in
        float32. weight and bias have input's dtype or FLOAT.

        Args:
            input: The tensor to normalise. float32, float16, bfloat16.
            weight: Factor on the normalised elements; left out: 1. float32, float16,
                bfloat16. Optional.
            bias: Added to the normalised elements; left out: 0. float32, float16,
                bfloat16. Optional.
            normalized_shape: The trailing axes that are normalised: input's last
                extents.
            eps: Added to the variance.
            outputs: of the outputs that may be left out, those to compute; None: all.

        Returns:
            out: The normalised tensor, in input's shape and dtype.
            mean_out: The means; input's shape with the normalised axes 1. float32,
                float16, bfloat16. None if it is not among `outputs`.
            rstd_out: 1 / sqrt(variance + eps); input's shape with the normalised axes
                1. float32, float16, bfloat16. None if it is not among `outputs`.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LayerNorm",
            {
                "input": input,
                "weight": weight,
                "bias": bias,
            },
            {
                "normalized_shape": normalized_shape,
                "eps": eps,
            },
            Parameters(out, dtype, timeout, outputs),
        )

    def layer_norm_backward(
        client,
        /,
        grad_out: Any,
        input: Any,
        mean: Any,
        rstd: Any,
        weight: Any = None,
        bias: Any = None,
        *,
        normalized_shape: Sequence[int],
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
        outputs: Optional[Sequence[Literal["grad_input_out", "grad_weight_out", "grad_bias_out"]]] = None,
    ) -> R:
        """Gradients of layer normalisation.

        With xhat = (input - mean) * rstd and g = grad_out * weight:
        grad_input_out = rstd * (g - mean of g - xhat * mean of (g * xhat)), means over
        the normalised axes
        grad_weight_out = sum of grad_out * xhat over the leading axes
        grad_bias_out = sum of grad_out over the leading axes
        Sums are taken in float32. The elements of bias are not used.

        Args:
            grad_out: Gradient of the loss with respect to the forward result. float32,
                float16, bfloat16.
            input: The forward input. float32, float16, bfloat16.
            mean: mean_out of the forward call. float32, float16, bfloat16.
            rstd: rstd_out of the forward call. float32, float16, bfloat16.
            weight: The forward weight; left out: 1. float32, float16, bfloat16.
                Optional.
            bias: The forward bias; unused. float32, float16, bfloat16. Optional.
            normalized_shape: The trailing axes that are normalised: input's last
                extents.
            outputs: of the outputs that may be left out, those to compute; None: all.

        Returns:
            grad_input_out: Gradient with respect to input. None if it is not among
                `outputs`.
            grad_weight_out: Gradient with respect to weight. None if it is not among
                `outputs`.
            grad_bias_out: Gradient with respect to bias. None if it is not among
                `outputs`.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LayerNormBackward",
            {
                "grad_out": grad_out,
                "input": input,
                "mean": mean,
                "rstd": rstd,
                "weight": weight,
                "bias": bias,
            },
            {
                "normalized_shape": normalized_shape,
            },
            Parameters(out, dtype, timeout, outputs),
        )

    def layer_norm_with_impl_mode(
        client,
        /,
        input: Any,
        weight: Any = None,
        bias: Any = None,
        *,
        normalized_shape: Sequence[int],
        eps: float = 1e-05,
        impl_mode: Union[int, Literal["precise", "fast", "keep_fp16"]] = "precise",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
        outputs: Optional[Sequence[Literal["mean_out", "rstd_out"]]] = None,
    ) -> R:
        """Layer normalisation with a choice of precision.

        out = (input - mean) / sqrt(variance + eps) * weight + bias, with mean and
        biased variance over the trailing axes normalized_shape. Sums are taken in
        float32. weight and bias have input's dtype or FLOAT.

        Args:
            input: The tensor to normalise. float32, float16, bfloat16.
            weight: Factor on the normalised elements; left out: 1. float32, float16,
                bfloat16. Optional.
            bias: Added to the normalised elements; left out: 0. float32, float16,
                bfloat16. Optional.
            normalized_shape: The trailing axes that are normalised: input's last
                extents.
            eps: Added to the variance.
            impl_mode: Precision: precise, fast, or keeping FLOAT16 in between.
            outputs: of the outputs that may be left out, those to compute; None: all.

        Returns:
            out: The normalised tensor, in input's shape and dtype.
            mean_out: The means; input's shape with the normalised axes 1. float32,
                float16, bfloat16. None if it is not among `outputs`.
            rstd_out: 1 / sqrt(variance + eps); input's shape with the normalised axes
                1. float32, float16, bfloat16. None if it is not among `outputs`.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LayerNormWithImplMode",
            {
                "input": input,
                "weight": weight,
                "bias": bias,
            },
            {
                "normalized_shape": normalized_shape,
                "eps": eps,
                "impl_mode": impl_mode,
            },
            Parameters(out, dtype, timeout, outputs),
        )

    def le_scalar(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where a tensor is not above a number.

        out = self <= other, compared in self's dtype, or FLOAT if self is an integer
        and other a fraction. Comparisons with NaN are false. out is BOOL, or 1 and 0 in
        another dtype if that is asked for.

        Args:
            self: The tensor operand. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            other: The number.

        Returns:
            out: Whether it holds, in self's shape. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LeScalar",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def le_tensor(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where one tensor is not above another.

        out = self <= other, compared in the common dtype of both. Comparisons with NaN
        are false. The operands broadcast. out is BOOL, or 1 and 0 in another dtype if
        that is asked for.

        Args:
            self: Left operand; broadcasts with other. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts with self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            out: Whether it holds, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LeTensor",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def leaky_relu(
        client,
        /,
        self: Any,
        *,
        negative_slope: Scalar = 0.01,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies leaky relu.

        out = self where self > 0, else negative_slope * self.

        Args:
            self: The argument. float32, float16, bfloat16, float64.
            negative_slope: Slope for negative elements.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LeakyRelu",
            {
                "self": self,
            },
            {
                "negative_slope": negative_slope,
            },
            Parameters(out, dtype, timeout),
        )

    def leaky_relu_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        *,
        negative_slope: Scalar = 0.01,
        self_is_result: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of leaky relu with respect to its input.

        out = grad_output where self > 0, else negative_slope * grad_output. The tensors
        broadcast and are promoted to a common dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16, float64.
            self: The forward argument. float32, float16, bfloat16, float64.
            negative_slope: Slope for negative elements.
            self_is_result: Whether self is the forward result; negative_slope is not
                negative then.

        Returns:
            out: Gradient with respect to the forward argument, in the broadcast shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LeakyReluBackward",
            {
                "grad_output": grad_output,
                "self": self,
            },
            {
                "negative_slope": negative_slope,
                "self_is_result": self_is_result,
            },
            Parameters(out, dtype, timeout),
        )

    def lerp(
        client,
        /,
        self: Any,
        end: Any,
        weight: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Interpolates between two tensors with a weight for each element.

        out = self + weight * (end - self). weight 0 gives self, weight 1 end; values
        outside of 0 to 1 extrapolate. All three broadcast and have one dtype.

        Args:
            self: Start of the interpolation. float32, float16, bfloat16.
            end: End of the interpolation. float32, float16, bfloat16.
            weight: The weights. float32, float16, bfloat16.

        Returns:
            out: The result, in the broadcast shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Lerp",
            {
                "self": self,
                "end": end,
                "weight": weight,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def lerps(
        client,
        /,
        self: Any,
        end: Any,
        *,
        weight: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Interpolates between two tensors with one weight.

        out = self + weight * (end - self). weight 0 gives self, weight 1 end; values
        outside of 0 to 1 extrapolate. self and end broadcast and have one dtype, which
        out has unless another is asked for.

        Args:
            self: Start of the interpolation. float32, float16, bfloat16.
            end: End of the interpolation. float32, float16, bfloat16.
            weight: The weight.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Lerps",
            {
                "self": self,
                "end": end,
            },
            {
                "weight": weight,
            },
            Parameters(out, dtype, timeout),
        )

    def linalg_vector_norm(
        client,
        /,
        self: Any,
        *,
        ord: Scalar = 2,
        dims: Optional[Sequence[int]] = None,
        keep_dims: bool = False,
        dtype: Any,
        out: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Vector norm along axes in a chosen dtype.

        out = sum(|self| ** ord over the axes dims) ** (1 / ord). ord = inf takes the
        largest, -inf the smallest absolute value, 0 counts what is not 0.

        Args:
            self: The tensor to reduce. float32, float16, bfloat16.
            ord: Order of the norm.
            dims: Axes to reduce; negative values count from the end; left out or empty:
                all. Optional.
            keep_dims: Whether the reduced axes stay with extent 1.
            dtype: The dtype of out, in which it is computed.

        Returns:
            out: The result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LinalgVectorNorm",
            {
                "self": self,
            },
            {
                "ord": ord,
                "dims": dims,
                "keep_dims": keep_dims,
                "dtype": dtype,
            },
            Parameters(out, None, timeout),
        )

    def linspace(
        client,
        /,
        *,
        start: Scalar,
        end: Scalar,
        steps: int,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Lists numbers from one to another.

        out[i] = start + i * (end - start) / (steps - 1); a single step gives start. It
        is FLOAT unless another dtype is asked for.

        Args:
            start: The first number.
            end: The last number.
            steps: How many.

        Returns:
            out: The numbers, [steps]. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Linspace",
            {},
            {
                "start": start,
                "end": end,
                "steps": steps,
            },
            Parameters(out, dtype, timeout),
        )

    def log(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the natural logarithm.

        out = ln(self). 0 gives -inf, negative numbers NaN. Integers and BOOL are
        computed as FLOAT; out has the computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Log",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def log10(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the logarithm to base ten.

        out = log10(self). 0 gives -inf, negative numbers NaN. Integers and BOOL are
        computed as FLOAT; out has the computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Log10",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def log1p(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the natural logarithm of one plus a tensor.

        out = ln(1 + self), exact to rounding near 0. -1 gives -inf, smaller numbers
        NaN. Integers and BOOL are computed as FLOAT; out has the computed dtype unless
        another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Log1p",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def log2(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the logarithm to base two.

        out = log2(self). 0 gives -inf, negative numbers NaN. Integers and BOOL are
        computed as FLOAT; out has the computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Log2",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def log_sigmoid(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the logarithm of the logistic function.

        out = -ln(1 + exp(-self)), never above 0; large negative arguments stay.

        Args:
            self: The argument. float32, float16, bfloat16.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LogSigmoid",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def log_sigmoid_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        buffer: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the logarithm of the logistic function with respect to its input.

        grad_input = grad_output * (1 - 1 / (1 + exp(-self))). The elements of buffer
        are not used. All tensors have one shape and dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            self: The forward argument. float32, float16, bfloat16.
            buffer: The forward buffer; unused. float32, float16, bfloat16.

        Returns:
            grad_input: Gradient with respect to the forward argument.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LogSigmoidBackward",
            {
                "grad_output": grad_output,
                "self": self,
                "buffer": buffer,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def log_sigmoid_forward(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the logarithm of the logistic function, with a buffer for its gradient.

        out = -ln(1 + exp(-self)), never above 0. buffer stays unwritten: it is there
        for the sake of the declaration only.

        Args:
            self: The argument. float32, float16, bfloat16.

        Returns:
            out: The result, in self's shape and dtype.
            buffer: Unused; must be there.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LogSigmoidForward",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def log_softmax(
        client,
        /,
        self: Any,
        *,
        dim: int = -1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Logarithm of softmax along an axis.

        out = self - ln(sum(exp(self) over axis dim, kept)), computed without overflow.
        A row of -inf alone gives NaN.

        Args:
            self: The logits. float32, float16, bfloat16, float64.
            dim: Axis of the softmax; negative values count from the end.

        Returns:
            out: The log-probabilities, in self's shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LogSoftmax",
            {
                "self": self,
            },
            {
                "dim": dim,
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

    def log_sum_exp(
        client,
        /,
        self: Any,
        *,
        dim: Sequence[int],
        keep_dim: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Logarithm of the sum of exponentials.

        out = ln(sum(exp(self) over the axes dim)), computed without overflow. Nothing
        to add gives -inf. Integers and BOOL are computed as FLOAT.

        Args:
            self: The tensor to reduce. float32, float16, bfloat16, int8, uint8, int16,
                int32, int64, bool.
            dim: Axes to reduce; negative values count from the end; an empty array
                means all.
            keep_dim: Whether the reduced axes stay with extent 1.

        Returns:
            out: The result. float32, float16, bfloat16.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LogSumExp",
            {
                "self": self,
            },
            {
                "dim": dim,
                "keep_dim": keep_dim,
            },
            Parameters(out, dtype, timeout),
        )

    def logical_and(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Joins two tensors by logical and.

        out = self and other, where everything but 0 counts as true, NaN included. The
        operands broadcast; their dtypes may differ. out is BOOL, or 1 and 0 in another
        dtype if that is asked for.

        Args:
            self: Left operand; broadcasts with other. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts with self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LogicalAnd",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def logical_not(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Negates logically.

        out = true where self is 0, else false; NaN counts as true and gives false. out
        is BOOL, or 1 and 0 in another dtype if that is asked for.

        Args:
            self: The tensor to negate. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.

        Returns:
            out: Whether each element is 0, in self's shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LogicalNot",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def logical_or(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Joins two tensors by logical or.

        out = self or other, where everything but 0 counts as true, NaN included. The
        operands broadcast; their dtypes may differ. out is BOOL, or 1 and 0 in another
        dtype if that is asked for.

        Args:
            self: Left operand; broadcasts with other. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts with self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LogicalOr",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def logical_xor(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where exactly one of two tensors is true.

        out = whether exactly one of self and other is not 0; NaN counts as true. The
        operands broadcast; their dtypes may differ. out is BOOL, or 1 and 0 in another
        dtype if that is asked for.

        Args:
            self: Left operand; broadcasts with other. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts with self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LogicalXor",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def logit(
        client,
        /,
        input: Any,
        *,
        eps: float = -1.0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the logit of probabilities.

        out = ln(p / (1 - p)) with p = input, moved into eps to 1 - eps unless eps is
        negative. 0 gives -inf, 1 gives inf.

        Args:
            input: The probabilities. float32, float16, bfloat16.
            eps: Distance that is kept from 0 and 1; -1: none.

        Returns:
            out: The logits, in input's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Logit",
            {
                "input": input,
            },
            {
                "eps": eps,
            },
            Parameters(out, dtype, timeout),
        )

    def logit_grad(
        client,
        /,
        x: Any,
        dy: Any,
        *,
        eps: float = -1.0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the logit with respect to the probabilities.

        out = dy / (x * (1 - x)); where x is outside of eps to 1 - eps it is 0, without
        eps NaN outside of 0 to 1.

        Args:
            x: The forward probabilities. float32, float16, bfloat16.
            dy: Gradient of the loss with respect to the forward result. float32,
                float16, bfloat16.
            eps: Distance that is kept from 0 and 1; -1: none.

        Returns:
            out: Gradient with respect to x, in its shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LogitGrad",
            {
                "x": x,
                "dy": dy,
            },
            {
                "eps": eps,
            },
            Parameters(out, dtype, timeout),
        )

    def lt_scalar(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where a tensor is below a number.

        out = self < other, compared in self's dtype, or FLOAT if self is an integer and
        other a fraction. Comparisons with NaN are false. out is BOOL, or 1 and 0 in
        another dtype if that is asked for.

        Args:
            self: The tensor operand. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            other: The number.

        Returns:
            out: Whether it holds, in self's shape. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LtScalar",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def lt_tensor(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where one tensor is below another.

        out = self < other, compared in the common dtype of both. Comparisons with NaN
        are false. The operands broadcast. out is BOOL, or 1 and 0 in another dtype if
        that is asked for.

        Args:
            self: Left operand; broadcasts with other. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts with self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            out: Whether it holds, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "LtTensor",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def matmul(
        client,
        /,
        self: Any,
        mat2: Any,
        *,
        cube_math_type: Union[int, Literal["keep", "allow_hf32", "use_fp16", "use_hf32"]] = "keep",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Matrix product by the rules of torch.matmul.

        out = self @ mat2. Vectors are promoted to matrices and their axis is dropped
        again; leading axes are batches and broadcast. Sums are taken in float32 and
        rounded once.

        Args:
            self: Left factor, of rank 1 to 6. float32, float16, bfloat16.
            mat2: Right factor, of rank 1 to 6. float32, float16, bfloat16.
            cube_math_type: Precision of FLOAT products: keep it, allow HFLOAT32, use
                FLOAT16, use HFLOAT32.

        Returns:
            out: The product.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Matmul",
            {
                "self": self,
                "mat2": mat2,
            },
            {
                "cube_math_type": cube_math_type,
            },
            Parameters(out, dtype, timeout),
        )

    def max(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """The largest element of a tensor.

        out = the largest of all elements of self, as a 0-d tensor. NaN wins. Empty
        tensors are refused.

        Args:
            self: The tensor to reduce. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.

        Returns:
            out: The element, 0-d.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Max",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def max_dim(
        client,
        /,
        self: Any,
        *,
        dim: int,
        keepdim: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Largest elements along an axis and where they are.

        out = the largest element along axis dim, indices = its position there, the
        first of equal ones. NaN wins.

        Args:
            self: The tensor to reduce. float32, float16, bfloat16, int64, bool.
            dim: Axis to reduce; negative values count from the end.
            keepdim: Whether the reduced axis stays with extent 1.

        Returns:
            out: The elements.
            indices: Their positions. int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "MaxDim",
            {
                "self": self,
            },
            {
                "dim": dim,
                "keepdim": keepdim,
            },
            Parameters(out, dtype, timeout),
        )

    def max_pool2d_with_indices(
        client,
        /,
        self: Any,
        *,
        kernel_size: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        ceil_mode: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Largest elements of windows of images, and where they are.

        out = the largest element of each window, NaN wins; indices = its place in the
        image, counted row by row, the first of equal ones. Padding never wins.

        Args:
            self: The images, [N, C, H, W] or [C, H, W]. float32, float16, bfloat16.
            kernel_size: Extents of the window: height and width, or one number for
                both.
            stride: Steps of the window; an empty array: those of its extents.
            padding: Rows and columns around the image; at most half of the window.
            dilation: Distances between the elements of the window, height and width, or
                one number for both.
            ceil_mode: Whether the extents of the result are rounded up.

        Returns:
            out: The elements.
            indices: Their places. int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "MaxPool2dWithIndices",
            {
                "self": self,
            },
            {
                "kernel_size": kernel_size,
                "stride": stride,
                "padding": padding,
                "dilation": dilation,
                "ceil_mode": ceil_mode,
            },
            Parameters(out, dtype, timeout),
        )

    def max_pool2d_with_indices_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        indices: Any,
        *,
        kernel_size: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        ceil_mode: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the largest elements of windows of images.

        grad_input = the sum of grad_output over the windows whose largest element each
        one is; 0 elsewhere.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            self: The forward images; only their shape matters. float32, float16,
                bfloat16.
            indices: indices of the forward call. int32, int64.
            kernel_size: Extents of the window: height and width, or one number for
                both.
            stride: Steps of the window; an empty array: those of its extents.
            padding: Rows and columns around the image; at most half of the window.
            dilation: Distances between the elements of the window, height and width, or
                one number for both.
            ceil_mode: Whether the extents of the result are rounded up.

        Returns:
            grad_input: Gradient with respect to self.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "MaxPool2dWithIndicesBackward",
            {
                "grad_output": grad_output,
                "self": self,
                "indices": indices,
            },
            {
                "kernel_size": kernel_size,
                "stride": stride,
                "padding": padding,
                "dilation": dilation,
                "ceil_mode": ceil_mode,
            },
            Parameters(out, dtype, timeout),
        )

    def maximum(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the larger of two tensors, element by element.

        out = the larger of self and other. NaN in either operand gives NaN. The
        operands broadcast and are promoted to a common dtype, in which the result is
        computed and rounded once; out has it unless another is asked for.

        Args:
            self: Left operand; broadcasts with other. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts with self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Maximum",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def mean(
        client,
        /,
        self: Any,
        *,
        dim: Sequence[int],
        keep_dim: bool = False,
        dtype: Any,
        out: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Mean along axes.

        out = the sum of self over the axes dim, divided by the number of summands,
        computed in dtype. Nothing to average gives NaN.

        Args:
            self: The tensor to reduce. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64.
            dim: Axes to reduce; negative values count from the end; an empty array
                means all.
            keep_dim: Whether the reduced axes stay with extent 1.
            dtype: The dtype of out, in which it is computed.

        Returns:
            out: The result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Mean",
            {
                "self": self,
            },
            {
                "dim": dim,
                "keep_dim": keep_dim,
                "dtype": dtype,
            },
            Parameters(out, None, timeout),
        )

    def mean_v2(
        client,
        /,
        self: Any,
        *,
        dim: Sequence[int],
        keep_dim: bool = False,
        noop_with_empty_axes: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Mean along axes, or a copy for no axes.

        out = the mean of self over the axes dim. An empty dim means all axes, or none
        if noop_with_empty_axes: out is self then.

        Args:
            self: The tensor to reduce. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64.
            dim: Axes to reduce; negative values count from the end; an empty array
                means all.
            keep_dim: Whether the reduced axes stay with extent 1.
            noop_with_empty_axes: Whether an empty dim reduces nothing.

        Returns:
            out: The result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "MeanV2",
            {
                "self": self,
            },
            {
                "dim": dim,
                "keep_dim": keep_dim,
                "noop_with_empty_axes": noop_with_empty_axes,
            },
            Parameters(out, dtype, timeout),
        )

    def min(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """The smallest element of a tensor.

        out = the smallest of all elements of self, as a 0-d tensor. NaN wins. Empty
        tensors are refused.

        Args:
            self: The tensor to reduce. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.

        Returns:
            out: The element, 0-d.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Min",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def min_dim(
        client,
        /,
        self: Any,
        *,
        dim: int,
        keepdim: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Smallest elements along an axis and where they are.

        out = the smallest element along axis dim, indices = its position there, the
        first of equal ones. NaN wins.

        Args:
            self: The tensor to reduce. float32, float16, bfloat16, int64, bool.
            dim: Axis to reduce; negative values count from the end.
            keepdim: Whether the reduced axis stays with extent 1.

        Returns:
            out: The elements.
            indices: Their positions.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "MinDim",
            {
                "self": self,
            },
            {
                "dim": dim,
                "keepdim": keepdim,
            },
            Parameters(out, dtype, timeout),
        )

    def minimum(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the smaller of two tensors, element by element.

        out = the smaller of self and other. NaN in either operand gives NaN. The
        operands broadcast and are promoted to a common dtype, in which the result is
        computed and rounded once; out has it unless another is asked for.

        Args:
            self: Left operand; broadcasts with other. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts with self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Minimum",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def mish(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies Mish.

        out = self * tanh(ln(1 + exp(self))).

        Args:
            self: The argument. float32, float16, bfloat16.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Mish",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def mish_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of Mish with respect to its input.

        With w = tanh(ln(1 + exp(self))) and s = 1 / (1 + exp(-self)):
        grad_input = grad_output * (w + self * s * (1 - w * w)). Empty tensors are
        refused. The tensors broadcast and are promoted to a common dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            self: The forward argument. float32, float16, bfloat16.

        Returns:
            grad_input: Gradient with respect to the forward argument, in the broadcast
                shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "MishBackward",
            {
                "grad_output": grad_output,
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def mm(
        client,
        /,
        self: Any,
        mat2: Any,
        *,
        cube_math_type: Union[int, Literal["keep", "allow_hf32", "use_fp16", "use_hf32"]] = "keep",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Product of two matrices.

        out = self @ mat2, [n, k] by [k, m]. Sums are taken in float32 and rounded once.

        Args:
            self: Left factor, [n, k]. float32, float16, bfloat16.
            mat2: Right factor, [k, m]. float32, float16, bfloat16.
            cube_math_type: Precision of FLOAT products: keep it, allow HFLOAT32, use
                FLOAT16, use HFLOAT32.

        Returns:
            out: The product.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Mm",
            {
                "self": self,
                "mat2": mat2,
            },
            {
                "cube_math_type": cube_math_type,
            },
            Parameters(out, dtype, timeout),
        )

    def mse_loss(
        client,
        /,
        self: Any,
        target: Any,
        *,
        reduction: Union[int, Literal["none", "mean", "sum"]] = "mean",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Mean squared error between two tensors.

        The single loss is (self - target) ** 2. self and target broadcast and are
        promoted to a common dtype; sums are taken in float32 and rounded once.

        Args:
            self: The loss's input. float32, float16, bfloat16.
            target: The loss's target. float32, float16, bfloat16.
            reduction: What becomes of the single losses: none keeps them, mean
                averages, sum adds.

        Returns:
            out: The losses, or the reduced one as a 0-d tensor.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "MseLoss",
            {
                "self": self,
                "target": target,
            },
            {
                "reduction": reduction,
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

    def mul(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Multiplies two tensors.

        out = self * other. The operands broadcast and are promoted to a common dtype,
        in which the result is computed and rounded once; out has it unless another is
        asked for.

        Args:
            self: Left operand; broadcasts with other. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts with self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Mul",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def muls(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Multiplies a tensor by a number.

        out = self * other. The number only lifts the kind of self's dtype (integer to
        floating point); out has that dtype unless another is asked for.

        Args:
            self: The tensor operand. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            other: The number.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Muls",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def multilabel_margin_loss(
        client,
        /,
        self: Any,
        target: Any,
        *,
        reduction: Union[int, Literal["none", "mean", "sum"]] = "mean",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Margin loss for several target classes of each sample.

        For each sample: the sum over its targets t (up to the first -1) and all other
        classes i of max(0, 1 - (self[t] - self[i])) / C. is_target marks the targets.

        Args:
            self: The scores, [N, C] or [C]. float32, float16, bfloat16.
            target: The target classes first, then -1; in self's shape. int32, int64.
            reduction: What becomes of the single losses: none keeps them, mean
                averages, sum adds.

        Returns:
            out: The losses, [N], or the reduced one, 0-d.
            is_target: 1 for targets, else 0.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "MultilabelMarginLoss",
            {
                "self": self,
                "target": target,
            },
            {
                "reduction": reduction,
            },
            Parameters(out, dtype, timeout),
        )

    def mv(
        client,
        /,
        self: Any,
        vec: Any,
        *,
        cube_math_type: Union[int, Literal["keep", "allow_hf32", "use_fp16", "use_hf32"]] = "keep",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Product of a matrix and a vector.

        out = self @ vec, [n, k] by [k]. Sums are taken in float32 and rounded once.

        Args:
            self: The matrix, [n, k]. float32, float16, bfloat16.
            vec: The vector, [k]. float32, float16, bfloat16.
            cube_math_type: Precision of FLOAT products: keep it, allow HFLOAT32, use
                FLOAT16, use HFLOAT32.

        Returns:
            out: The product.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Mv",
            {
                "self": self,
                "vec": vec,
            },
            {
                "cube_math_type": cube_math_type,
            },
            Parameters(out, dtype, timeout),
        )

    def nan_to_num(
        client,
        /,
        self: Any,
        *,
        nan: float = 0.0,
        posinf: float,
        neginf: float,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Replaces NaN and infinities by numbers.

        out = nan where self is NaN, posinf where it is inf, neginf where it is -inf,
        else self. Integers and BOOL stay as they are.

        Args:
            self: Tensor to clean. float32, float16, bfloat16, int8, uint8, int16,
                int32, int64, bool.
            nan: Replacement of NaN.
            posinf: Replacement of inf.
            neginf: Replacement of -inf.

        Returns:
            out: The cleaned tensor, in self's shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "NanToNum",
            {
                "self": self,
            },
            {
                "nan": nan,
                "posinf": posinf,
                "neginf": neginf,
            },
            Parameters(out, dtype, timeout),
        )

    def ne_scalar(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where a tensor is different from a number.

        out = self != other, compared in self's dtype, or FLOAT if self is an integer
        and other a fraction. NaN differs from everything, even from itself. out is
        BOOL, or 1 and 0 in another dtype if that is asked for.

        Args:
            self: The tensor operand. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            other: The number.

        Returns:
            out: Whether it holds, in self's shape. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "NeScalar",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def ne_tensor(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Tells where one tensor is different from another.

        out = self != other, compared in the common dtype of both. NaN differs from
        everything, even from itself. The operands broadcast. out is BOOL, or 1 and 0 in
        another dtype if that is asked for.

        Args:
            self: Left operand; broadcasts with other. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts with self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            out: Whether it holds, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "NeTensor",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def neg(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Negates a tensor.

        out = -self. The smallest integer of a dtype is its own negative.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, int32, int64.

        Returns:
            out: The result, in self's shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Neg",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def nll_loss(
        client,
        /,
        self: Any,
        target: Any,
        weight: Any,
        *,
        reduction: Union[int, Literal["none", "mean", "sum"]] = "mean",
        ignore_index: int = -100,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Negative log likelihood of target classes.

        The single loss is -weight[t] * self at class t, t being the target; ignored
        samples have loss 0. mean divides the sum by that of the weights that were used,
        total_weight_out. Classes outside of the range are undefined.

        Args:
            self: The log-probabilities, [N, C] or [C]. float32, float16, bfloat16.
            target: The class of each sample, [N] or 0-d. uint8, int32, int64.
            weight: A factor for each class. float32, float16, bfloat16.
            reduction: What becomes of the single losses: none keeps them, mean
                averages, sum adds.
            ignore_index: Target class whose samples count for nothing.

        Returns:
            out: The losses in target's shape, or the reduced one in shape [1].
            total_weight_out: Sum of the weights that were used; written unless
                reduction is none.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "NllLoss",
            {
                "self": self,
                "target": target,
                "weight": weight,
            },
            {
                "reduction": reduction,
                "ignore_index": ignore_index,
            },
            Parameters(out, dtype, timeout),
        )

    def nll_loss2d(
        client,
        /,
        self: Any,
        target: Any,
        weight: Any,
        *,
        reduction: Union[int, Literal["none", "mean", "sum"]] = "mean",
        ignore_index: int = -100,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Negative log likelihood of target classes for each point of an image.

        The single loss is -weight[t] * self at class t, t being the target; ignored
        samples have loss 0. mean divides the sum by that of the weights that were used,
        total_weight_out. Classes outside of the range are undefined.

        Args:
            self: The log-probabilities, [N, C, H, W]. float32, float16, bfloat16.
            target: The class of each point, [N, H, W]. uint8, int32, int64.
            weight: A factor for each class. float32, float16, bfloat16.
            reduction: What becomes of the single losses: none keeps them, mean
                averages, sum adds.
            ignore_index: Target class whose samples count for nothing.

        Returns:
            out: The losses in target's shape, or the reduced one in shape [1].
            total_weight_out: Sum of the weights that were used; written unless
                reduction is none.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "NllLoss2d",
            {
                "self": self,
                "target": target,
                "weight": weight,
            },
            {
                "reduction": reduction,
                "ignore_index": ignore_index,
            },
            Parameters(out, dtype, timeout),
        )

    def nll_loss2d_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        target: Any,
        weight: Any,
        total_weight: Any,
        *,
        reduction: Union[int, Literal["none", "mean", "sum"]] = "mean",
        ignore_index: int = -100,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the negative log likelihood for each point of an image with respect to its input.

        out = -weight[t] * grad_output / d at class t of each sample, 0 elsewhere and
        for ignored samples; d is total_weight for mean, else 1.

        Args:
            grad_output: Gradient of the loss; of target's shape for none, else one
                element. float32, float16, bfloat16.
            self: The log-probabilities, [N, C, H, W]. float32, float16, bfloat16.
            target: The class of each point, [N, H, W]. uint8, int32, int64.
            weight: A factor for each class. float32, float16, bfloat16.
            total_weight: total_weight_out of the forward call. float32, float16,
                bfloat16.
            reduction: How the forward loss was reduced.
            ignore_index: Target class whose samples count for nothing.

        Returns:
            out: Gradient with respect to self, in its shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "NllLoss2dBackward",
            {
                "grad_output": grad_output,
                "self": self,
                "target": target,
                "weight": weight,
                "total_weight": total_weight,
            },
            {
                "reduction": reduction,
                "ignore_index": ignore_index,
            },
            Parameters(out, dtype, timeout),
        )

    def nll_loss_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        target: Any,
        weight: Any,
        total_weight: Any,
        *,
        reduction: Union[int, Literal["none", "mean", "sum"]] = "mean",
        ignore_index: int = -100,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the negative log likelihood with respect to its input.

        out = -weight[t] * grad_output / d at class t of each sample, 0 elsewhere and
        for ignored samples; d is total_weight for mean, else 1.

        Args:
            grad_output: Gradient of the loss; of target's shape for none, else one
                element. float32, float16, bfloat16.
            self: The log-probabilities, [N, C] or [C]. float32, float16, bfloat16.
            target: The class of each sample, [N] or 0-d. uint8, int32, int64.
            weight: A factor for each class. float32, float16, bfloat16.
            total_weight: total_weight_out of the forward call. float32, float16,
                bfloat16.
            reduction: How the forward loss was reduced.
            ignore_index: Target class whose samples count for nothing.

        Returns:
            out: Gradient with respect to self, in its shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "NllLossBackward",
            {
                "grad_output": grad_output,
                "self": self,
                "target": target,
                "weight": weight,
                "total_weight": total_weight,
            },
            {
                "reduction": reduction,
                "ignore_index": ignore_index,
            },
            Parameters(out, dtype, timeout),
        )

    def norm(
        client,
        /,
        self: Any,
        *,
        p_scalar: Optional[Scalar] = None,
        dim: Sequence[int],
        keepdim: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Vector norm along axes.

        out = sum(|self| ** p over the axes dim) ** (1 / p). p = inf takes the largest,
        -inf the smallest absolute value, 0 counts what is not 0.

        Args:
            self: The tensor to reduce. float32, float16, bfloat16.
            p_scalar: Order p of the norm; left out: 2. Optional.
            dim: Axes to reduce; negative values count from the end; an empty array
                means all.
            keepdim: Whether the reduced axes stay with extent 1.

        Returns:
            out: The result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Norm",
            {
                "self": self,
            },
            {
                "p_scalar": p_scalar,
                "dim": dim,
                "keepdim": keepdim,
            },
            Parameters(out, dtype, timeout),
        )

    def one_hot(
        client,
        /,
        self: Any,
        on_value: Any,
        off_value: Any,
        *,
        num_classes: int,
        axis: int = -1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Marks classes along a new axis.

        out = on_value where the place along the new axis is the class in self, else
        off_value. Classes outside of the range mark nothing.

        Args:
            self: The classes. uint8, int32, int64.
            on_value: The mark, one element. float32, float16, int8, uint8, int32,
                int64.
            off_value: What is elsewhere, one element, in on_value's dtype. float32,
                float16, int8, uint8, int32, int64.
            num_classes: Number of classes, the extent of the new axis.
            axis: Place of the new axis; -1: the last.

        Returns:
            out: The marks, in on_value's dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "OneHot",
            {
                "self": self,
                "on_value": on_value,
                "off_value": off_value,
            },
            {
                "num_classes": num_classes,
                "axis": axis,
            },
            Parameters(out, dtype, timeout),
        )

    def permute(
        client,
        /,
        self: Any,
        *,
        dims: Sequence[int],
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Reorders axes.

        Axis i of out is axis dims[i] of self; each axis occurs once.

        Args:
            self: The tensor. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.
            dims: The axes of self in the order of out.

        Returns:
            out: The result, in self's dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Permute",
            {
                "self": self,
            },
            {
                "dims": dims,
            },
            Parameters(out, dtype, timeout),
        )

    def pow_scalar_tensor(
        client,
        /,
        exponent: Any,
        *,
        self: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Raises a number to the powers in a tensor.

        out = self ** exponent. 0 to the power 0 is 1; a negative number to a fractional
        power is NaN. Integer powers of integers wrap around; negative exponents of
        integers other than 1 and -1 give 0. The number only lifts the kind of
        exponent's dtype.

        Args:
            exponent: The exponents. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64.
            self: The base.

        Returns:
            out: The powers, in exponent's shape. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "PowScalarTensor",
            {
                "exponent": exponent,
            },
            {
                "self": self,
            },
            Parameters(out, dtype, timeout),
        )

    def pow_tensor_scalar(
        client,
        /,
        self: Any,
        *,
        exponent: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Raises a tensor to the power of a number.

        out = self ** exponent. 0 to the power 0 is 1; a negative number to a fractional
        power is NaN. Integer powers of integers wrap around; negative exponents of
        integers other than 1 and -1 give 0. The number only lifts the kind of self's
        dtype.

        Args:
            self: The bases. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.
            exponent: The exponent.

        Returns:
            out: The powers, in self's shape. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "PowTensorScalar",
            {
                "self": self,
            },
            {
                "exponent": exponent,
            },
            Parameters(out, dtype, timeout),
        )

    def pow_tensor_tensor(
        client,
        /,
        self: Any,
        exponent: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Raises a tensor to the powers in another.

        out = self ** exponent. 0 to the power 0 is 1; a negative number to a fractional
        power is NaN. Integer powers of integers wrap around; negative exponents of
        integers other than 1 and -1 give 0. The operands broadcast and are promoted to
        a common dtype, in which the result is computed and rounded once; out has it
        unless another is asked for.

        Args:
            self: The bases; broadcast with exponent. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            exponent: The exponents; broadcast with self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Returns:
            out: The powers, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "PowTensorTensor",
            {
                "self": self,
                "exponent": exponent,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def prelu(
        client,
        /,
        self: Any,
        weight: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies leaky relu with learnt slopes.

        out = self where self > 0, else weight * self. weight has one element, or as
        many as axis 1 of self has, one for each channel.

        Args:
            self: The argument. float32, float16, bfloat16.
            weight: Slopes for negative elements: one, or one for each channel (axis 1).
                float32, float16, bfloat16.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Prelu",
            {
                "self": self,
                "weight": weight,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def prelu_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        weight: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradients of leaky relu with learnt slopes.

        grad_input = grad_output where self > 0, else weight * grad_output.
        grad_weight = the sum of grad_output * self where self <= 0, over everything
        that shares a slope.
        The sums are taken in float32 and rounded once.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            self: The forward argument. float32, float16, bfloat16.
            weight: Slopes for negative elements: one, or one for each channel (axis 1).
                float32, float16, bfloat16.

        Returns:
            grad_input: Gradient with respect to self.
            grad_weight: Gradient with respect to weight.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "PreluBackward",
            {
                "grad_output": grad_output,
                "self": self,
                "weight": weight,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def prod(
        client,
        /,
        self: Any,
        *,
        dtype: Any,
        out: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Product of all elements.

        out = the product of all elements of self, computed in dtype; 1 for an empty
        tensor.

        Args:
            self: The tensor to reduce. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.
            dtype: The dtype of out, in which it is computed.

        Returns:
            out: The product, 0-d.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Prod",
            {
                "self": self,
            },
            {
                "dtype": dtype,
            },
            Parameters(out, None, timeout),
        )

    def prod_dim(
        client,
        /,
        self: Any,
        *,
        dim: int,
        keep_dim: bool = False,
        dtype: Any,
        out: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Product along an axis.

        out = the product of self along axis dim, computed in dtype; 1 where there is
        nothing to multiply.

        Args:
            self: The tensor to reduce. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.
            dim: Axis to reduce; negative values count from the end.
            keep_dim: Whether the reduced axis stays with extent 1.
            dtype: The dtype of out, in which it is computed.

        Returns:
            out: The products.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ProdDim",
            {
                "self": self,
            },
            {
                "dim": dim,
                "keep_dim": keep_dim,
                "dtype": dtype,
            },
            Parameters(out, None, timeout),
        )

    def reciprocal(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes reciprocals.

        out = 1 / self. 0 gives an infinity of its sign. Integers and BOOL are computed
        as FLOAT; out has the computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Reciprocal",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def reduce_nansum(
        client,
        /,
        self: Any,
        *,
        dim: Sequence[int],
        keep_dim: bool = False,
        dtype: Any,
        out: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Sum along axes that leaves NaN out.

        out = the sum of self over the axes dim, NaN counting as 0, computed in dtype.

        Args:
            self: The tensor to reduce. float32, float16, bfloat16, int8, uint8, int16,
                int32, int64, bool.
            dim: Axes to reduce; negative values count from the end; an empty array
                means all.
            keep_dim: Whether the reduced axes stay with extent 1.
            dtype: The dtype of out, in which it is computed.

        Returns:
            out: The result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ReduceNansum",
            {
                "self": self,
            },
            {
                "dim": dim,
                "keep_dim": keep_dim,
                "dtype": dtype,
            },
            Parameters(out, None, timeout),
        )

    def reduce_sum(
        client,
        /,
        self: Any,
        *,
        dims: Sequence[int],
        keep_dims: bool = False,
        dtype: Any,
        out: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Sum along axes.

        out = the sum of self over the axes dims, computed in dtype. Nothing to add
        gives 0. Floating-point sums are taken in float32 or wider and rounded once.

        Args:
            self: The tensor to reduce. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.
            dims: Axes to reduce; negative values count from the end; an empty array
                means all.
            keep_dims: Whether the reduced axes stay with extent 1.
            dtype: The dtype of out, in which it is computed.

        Returns:
            out: The result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ReduceSum",
            {
                "self": self,
            },
            {
                "dims": dims,
                "keep_dims": keep_dims,
                "dtype": dtype,
            },
            Parameters(out, None, timeout),
        )

    def relu(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Rectifies: keeps positive elements and makes the others zero.

        out = max(self, 0). NaN stays NaN.

        Args:
            self: The argument. float32, float16, bfloat16, int8, uint8, int32, int64.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Relu",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def remainder_scalar_tensor(
        client,
        /,
        other: Any,
        *,
        self: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the remainder of a number and a tensor with the divisor's sign.

        out = self - floor(self / other) * other. An integer modulo zero gives 0. The
        number only lifts the kind of other's dtype; out has that dtype unless another
        is asked for.

        Args:
            other: Divisor. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64.
            self: Dividend.

        Returns:
            out: The result, in other's shape. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "RemainderScalarTensor",
            {
                "other": other,
            },
            {
                "self": self,
            },
            Parameters(out, dtype, timeout),
        )

    def remainder_tensor_scalar(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the remainder of a tensor and a number with the divisor's sign.

        out = self - floor(self / other) * other. An integer modulo zero gives 0. The
        number only lifts the kind of self's dtype (integer to floating point); out has
        that dtype unless another is asked for.

        Args:
            self: Dividend. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64.
            other: Divisor.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "RemainderTensorScalar",
            {
                "self": self,
            },
            {
                "other": other,
            },
            Parameters(out, dtype, timeout),
        )

    def remainder_tensor_tensor(
        client,
        /,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the remainder of two tensors with the divisor's sign.

        out = self - floor(self / other) * other. An integer modulo zero gives 0. The
        operands broadcast and are promoted to a common dtype, in which the result is
        computed and rounded once; out has it unless another is asked for.

        Args:
            self: Dividend; broadcasts with other. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64.
            other: Divisor; broadcasts with self. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "RemainderTensorTensor",
            {
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def renorm(
        client,
        /,
        self: Any,
        *,
        p: Scalar = 2,
        dim: int,
        max_norm: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Limits the norms of slices.

        Each slice of self at one place of axis dim whose p-norm is above max_norm is
        multiplied by max_norm / (norm + 1e-7); the others stay.

        Args:
            self: The tensor, of rank 2 or more. float32, float16, bfloat16.
            p: Order of the norm; above 0.
            dim: Axis whose places are the slices; negative values count from the end.
            max_norm: The limit; not negative.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Renorm",
            {
                "self": self,
            },
            {
                "p": p,
                "dim": dim,
                "max_norm": max_norm,
            },
            Parameters(out, dtype, timeout),
        )

    def repeat(
        client,
        /,
        self: Any,
        *,
        repeats: Sequence[int],
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Repeats a tensor along its axes.

        out = self, repeats[i] times along axis i; leading entries beyond self's rank
        make new axes. At most four axes are repeated.

        Args:
            self: The tensor. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.
            repeats: How often, for each axis of out.

        Returns:
            out: The result, in self's dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Repeat",
            {
                "self": self,
            },
            {
                "repeats": repeats,
            },
            Parameters(out, dtype, timeout),
        )

    def rms_norm(
        client,
        /,
        x: Any,
        gamma: Any,
        *,
        epsilon: float = 1e-06,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Normalisation by the root mean square.

        y_out = x * rstd_out * gamma with rstd_out = 1 / sqrt(mean(x * x) + epsilon),
        the mean over the trailing axes that gamma covers. It is computed in float32.

        Args:
            x: The tensor to normalise. float32, float16, bfloat16.
            gamma: Factor on the normalised elements; its shape is that of the trailing
                axes. float32, float16, bfloat16.
            epsilon: Added to the mean square.

        Returns:
            y_out: The normalised tensor, in x's shape and dtype.
            rstd_out: The factors; x's shape with the normalised axes 1.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "RmsNorm",
            {
                "x": x,
                "gamma": gamma,
            },
            {
                "epsilon": epsilon,
            },
            Parameters(out, dtype, timeout),
        )

    def rms_norm_grad(
        client,
        /,
        dy: Any,
        x: Any,
        rstd: Any,
        gamma: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradients of normalisation by the root mean square.

        With xhat = x * rstd and g = dy * gamma:
        dx_out = rstd * (g - xhat * mean of (g * xhat)), the mean over the normalised
        axes
        dgamma_out = sum of dy * xhat over the leading axes
        Sums are taken in float32.

        Args:
            dy: Gradient of the loss with respect to the forward result. float32,
                float16, bfloat16.
            x: The forward input. float32, float16, bfloat16.
            rstd: rstd_out of the forward call. float32.
            gamma: The forward factor. float32, float16, bfloat16.

        Returns:
            dx_out: Gradient with respect to x.
            dgamma_out: Gradient with respect to gamma.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "RmsNormGrad",
            {
                "dy": dy,
                "x": x,
                "rstd": rstd,
                "gamma": gamma,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def roll(
        client,
        /,
        x: Any,
        *,
        shifts: Sequence[int],
        dims: Sequence[int],
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Moves elements round along axes.

        out = x, moved by shifts[i] places along axis dims[i]; what leaves at the end
        comes in at the start. Without dims x is moved as if it were 1-d.

        Args:
            x: The tensor. float32, float16, bfloat16, int8, uint8, int32, int64, bool.
            shifts: How far; negative values move towards the start.
            dims: The axes, as many as shifts, or none with one shift.

        Returns:
            out: The result, in x's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Roll",
            {
                "x": x,
            },
            {
                "shifts": shifts,
                "dims": dims,
            },
            Parameters(out, dtype, timeout),
        )

    def round(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Rounds to the nearest whole number.

        out = the whole number nearest to self; of two equally near ones the even one.
        Integers stay; so do NaN and infinities.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int32, int64.

        Returns:
            out: The result, in self's shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Round",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def rsqrt(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the reciprocal of the square root.

        out = 1 / sqrt(self). 0 gives inf, negative numbers NaN. Integers and BOOL are
        computed as FLOAT; out has the computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Rsqrt",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def rsub(
        client,
        /,
        self: Any,
        other: Any,
        *,
        alpha: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Subtracts the first tensor from the second.

        out = other - alpha * self. The operands broadcast and are promoted to a common
        dtype, in which the result is computed and rounded once; out has it unless
        another is asked for.

        Args:
            self: Left operand; broadcasts with other. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64.
            other: Right operand; broadcasts with self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64.
            alpha: Factor on self.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Rsub",
            {
                "self": self,
                "other": other,
            },
            {
                "alpha": alpha,
            },
            Parameters(out, dtype, timeout),
        )

    def rsubs(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        alpha: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Subtracts a tensor from a number.

        out = other - alpha * self. The number only lifts the kind of self's dtype
        (integer to floating point); out has that dtype unless another is asked for.

        Args:
            self: The tensor operand. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64.
            other: The number.
            alpha: Factor on self.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Rsubs",
            {
                "self": self,
            },
            {
                "other": other,
                "alpha": alpha,
            },
            Parameters(out, dtype, timeout),
        )

    def s_where(
        client,
        /,
        condition: Any,
        self: Any,
        other: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Chooses between two tensors, element by element.

        out = self where condition holds, else other. All three broadcast; self and
        other are promoted to a common dtype, which out has unless another is asked for.
        A UINT8 condition holds where it is not 0.

        Args:
            condition: Where to take self; broadcasts with the other two. uint8, bool.
            self: Taken where condition holds. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool.
            other: Taken elsewhere. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.

        Returns:
            out: The choice, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "SWhere",
            {
                "condition": condition,
                "self": self,
                "other": other,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def scaled_masked_softmax(
        client,
        /,
        x: Any,
        mask: Any,
        *,
        scale: float = 1.0,
        fixed_triu_mask: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Softmax of scaled and masked logits along the last axis.

        y = softmax of x * scale along the last axis, where masked elements are -10000
        instead. x has shape [B, N, S1, S2]; mask broadcasts on B and N.

        Args:
            x: The logits, [B, N, S1, S2]. float32, float16, bfloat16.
            mask: Elements to leave out; [B or 1, N or 1, S1, S2]. bool.
            scale: Factor on x.
            fixed_triu_mask: Not supported: must be false.

        Returns:
            y: The probabilities, in x's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ScaledMaskedSoftmax",
            {
                "x": x,
                "mask": mask,
            },
            {
                "scale": scale,
                "fixed_triu_mask": fixed_triu_mask,
            },
            Parameters(out, dtype, timeout),
        )

    def scaled_masked_softmax_backward(
        client,
        /,
        grad_output: Any,
        y: Any,
        mask: Any,
        *,
        scale: float = 1.0,
        fix_triu_mask: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the softmax of scaled and masked logits.

        out = scale * y * (grad_output - sum(grad_output * y over the last axis, kept)),
        0 where mask holds.

        Args:
            grad_output: Gradient of the loss with respect to y. float32, float16,
                bfloat16.
            y: Result of the forward softmax, [B, N, S1, S2]. float32, float16,
                bfloat16.
            mask: Elements to leave out; [B or 1, N or 1, S1, S2]. bool.
            scale: The forward factor.
            fix_triu_mask: Not supported: must be false.

        Returns:
            out: Gradient with respect to the logits.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ScaledMaskedSoftmaxBackward",
            {
                "grad_output": grad_output,
                "y": y,
                "mask": mask,
            },
            {
                "scale": scale,
                "fix_triu_mask": fix_triu_mask,
            },
            Parameters(out, dtype, timeout),
        )

    def scatter(
        client,
        /,
        self: Any,
        index: Any,
        src: Any,
        *,
        dim: int,
        reduce: Union[int, Literal["replace", "add", "multiply"]] = "replace",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Writes elements at indices along an axis.

        out = self; then out[index[i][j]][j] = src[i][j] for dim 0, likewise for the
        others. index fits into src, and into self beside dim. reduce adds or multiplies
        instead. Without it equal places get any one of their elements.

        Args:
            self: The tensor that is written over. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool.
            index: The indices. int32, int64.
            src: The elements. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.
            dim: Axis that is indexed; negative values count from the end.
            reduce: What happens to the old element.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Scatter",
            {
                "self": self,
                "index": index,
                "src": src,
            },
            {
                "dim": dim,
                "reduce": reduce,
            },
            Parameters(out, dtype, timeout),
        )

    def scatter_add(
        client,
        /,
        self: Any,
        index: Any,
        src: Any,
        *,
        dim: int,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds elements at indices along an axis.

        out = self; then out[index[i][j]][j] += src[i][j] for dim 0, likewise for the
        others. index fits into src, and into self beside dim. Equal places add up, in
        float32 and a fixed order.

        Args:
            self: The tensor that is added to. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool.
            index: The indices. int32, int64.
            src: The elements. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.
            dim: Axis that is indexed; negative values count from the end.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ScatterAdd",
            {
                "self": self,
                "index": index,
                "src": src,
            },
            {
                "dim": dim,
            },
            Parameters(out, dtype, timeout),
        )

    def scatter_nd_update(
        client,
        /,
        self: Any,
        indices: Any,
        updates: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Writes slices at places that are given by several indices.

        The last axis of indices holds places in the leading axes of self; the slices
        there become those of updates. Equal places get any one of their slices. Indices
        outside of the range are undefined.

        Args:
            self: The tensor to write to. float32, float16, bfloat16, int8, int64, bool.
            indices: The places. int32, int64.
            updates: The slices. float32, float16, bfloat16, int8, int64, bool.

        Returns:
            self: The tensor to write to.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ScatterNdUpdate",
            {
                "self": self,
                "indices": indices,
                "updates": updates,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def scatter_value(
        client,
        /,
        self: Any,
        index: Any,
        *,
        dim: int,
        value: Scalar,
        reduce: Union[int, Literal["replace", "add", "multiply"]] = "replace",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Writes a number at indices along an axis.

        out = self; then out[index[i][j]][j] = value for dim 0, likewise for the others.
        index fits into self beside dim. reduce adds or multiplies instead.

        Args:
            self: The tensor that is written over. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool.
            index: The indices. int32, int64.
            dim: Axis that is indexed; negative values count from the end.
            value: The number.
            reduce: What happens to the old element.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ScatterValue",
            {
                "self": self,
                "index": index,
            },
            {
                "dim": dim,
                "value": value,
                "reduce": reduce,
            },
            Parameters(out, dtype, timeout),
        )

    def selu(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies SELU, the self-normalising exponential linear unit.

        out = s * (self where self > 0, else a * (exp(self) - 1)), with a =
        1.6732632423543772 and s = 1.0507009873554805.

        Args:
            self: The argument. float32, float16, bfloat16, int8, int32.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Selu",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def selu_backward(
        client,
        /,
        grad_output: Any,
        result: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of SELU with respect to its input.

        grad_input = grad_output * (s where result > 0, else result + s * a), with a =
        1.6732632423543772 and s = 1.0507009873554805. The tensors broadcast and are
        promoted to a common dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16, int8, int32.
            result: The forward result. float32, float16, bfloat16, int8, int32.

        Returns:
            grad_input: Gradient with respect to the forward argument, in the broadcast
                shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "SeluBackward",
            {
                "grad_output": grad_output,
                "result": result,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def sigmoid(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies the logistic function.

        out = 1 / (1 + exp(-self)), between 0 and 1. Integers and BOOL are computed as
        FLOAT; out has the computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, int8, uint8, int16, int32,
                int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Sigmoid",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def sigmoid_backward(
        client,
        /,
        grad_output: Any,
        output: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the logistic function with respect to its input.

        grad_input = grad_output * output * (1 - output). The tensors broadcast and are
        promoted to a common dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16, float64.
            output: The forward result. float32, float16, bfloat16, float64.

        Returns:
            grad_input: Gradient with respect to the forward argument, in the broadcast
                shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "SigmoidBackward",
            {
                "grad_output": grad_output,
                "output": output,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def sign(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the sign of each element.

        out = 1, 0 or -1, as self is above, equal to or below zero. NaN gives 0.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int32, int64, bool.

        Returns:
            result: The result, in self's shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Sign",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def silu(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies SiLU, the sigmoid linear unit.

        out = self / (1 + exp(-self)).

        Args:
            self: The argument. float32, float16, bfloat16.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Silu",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def silu_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of SiLU with respect to its input.

        With s = 1 / (1 + exp(-self)):
        grad_input = grad_output * s * (1 + self * (1 - s)). All tensors have one shape
        and dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            self: The forward argument. float32, float16, bfloat16.

        Returns:
            grad_input: Gradient with respect to the forward argument.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "SiluBackward",
            {
                "grad_output": grad_output,
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def sin(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the sine.

        out = sin(self), self in radians. Infinities give NaN. Integers and BOOL are
        computed as FLOAT; out has the computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Sin",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def sinh(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the hyperbolic sine.

        out = sinh(self). Large arguments give infinities. Integers and BOOL are
        computed as FLOAT; out has the computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Sinh",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def slice(
        client,
        /,
        self: Any,
        *,
        dim: int,
        start: int = 0,
        end: int,
        step: int = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Every so many slices of a range along an axis.

        out = self from start up to but not including end, every step-th, along axis
        dim. Negative bounds count from the end; both are moved into the axis.

        Args:
            self: The tensor to read. float32, float16, bfloat16, int8, uint8, int32,
                int64, bool.
            dim: Axis that is indexed; negative values count from the end.
            start: First index.
            end: Index after the last one.
            step: Distance between two indices.

        Returns:
            out: The result, in self's dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Slice",
            {
                "self": self,
            },
            {
                "dim": dim,
                "start": start,
                "end": end,
                "step": step,
            },
            Parameters(out, dtype, timeout),
        )

    def smooth_l1_loss(
        client,
        /,
        self: Any,
        target: Any,
        *,
        reduction: Union[int, Literal["none", "mean", "sum"]] = "mean",
        beta: float = 1.0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """L1 loss that is quadratic for small differences.

        With z = |self - target| the single loss is 0.5 * z * z / beta where z < beta,
        else z - 0.5 * beta. self and target broadcast and are promoted to a common
        dtype; sums are taken in float32 and rounded once.

        Args:
            self: The loss's input. float32, float16, bfloat16.
            target: The loss's target. float32, float16, bfloat16.
            reduction: What becomes of the single losses: none keeps them, mean
                averages, sum adds.
            beta: Where the quadratic part ends; 0 gives the L1 loss.

        Returns:
            result: The losses, or the reduced one in shape [1].

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "SmoothL1Loss",
            {
                "self": self,
                "target": target,
            },
            {
                "reduction": reduction,
                "beta": beta,
            },
            Parameters(out, dtype, timeout),
        )

    def smooth_l1_loss_backward(
        client,
        /,
        grad_out: Any,
        self: Any,
        target: Any,
        *,
        reduction: Union[int, Literal["none", "mean", "sum"]] = "mean",
        beta: float = 1.0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the smooth L1 loss with respect to its input.

        With z = self - target and d the divisor of the reduction:
        grad_input = grad_out / d * (z / beta where |z| < beta, else sign(z))
        in the broadcast shape of all three; nothing is summed.

        Args:
            grad_out: Gradient of the loss; one element if it was reduced. float32,
                float16, bfloat16.
            self: The loss's input. float32, float16, bfloat16.
            target: The loss's target. float32, float16, bfloat16.
            reduction: How the forward loss was reduced; for mean the gradient is
                divided by the number of elements.
            beta: Where the quadratic part ends; 0 gives the L1 loss.

        Returns:
            grad_input: Gradient with respect to self, in the broadcast shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "SmoothL1LossBackward",
            {
                "grad_out": grad_out,
                "self": self,
                "target": target,
            },
            {
                "reduction": reduction,
                "beta": beta,
            },
            Parameters(out, dtype, timeout),
        )

    def soft_margin_loss(
        client,
        /,
        self: Any,
        target: Any,
        *,
        reduction: Union[int, Literal["none", "mean", "sum"]] = "mean",
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Soft margin loss between two tensors.

        The single loss is ln(1 + exp(-target * self)), targets being 1 or -1. self and
        target broadcast and are promoted to a common dtype; sums are taken in float32
        and rounded once.

        Args:
            self: The loss's input. float32, float16, bfloat16.
            target: The loss's target. float32, float16, bfloat16.
            reduction: What becomes of the single losses: none keeps them, mean
                averages, sum adds.

        Returns:
            out: The losses, or the reduced one as a 0-d tensor.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "SoftMarginLoss",
            {
                "self": self,
                "target": target,
            },
            {
                "reduction": reduction,
            },
            Parameters(out, dtype, timeout),
        )

    def soft_margin_loss_backward(
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
        """Gradient of the soft margin loss with respect to its input.

        With z = exp(-target * self) and d the number of elements for mean, else 1:
        out = -target * z / (1 + z) * grad_output / d.

        Args:
            grad_output: Gradient of the loss; one element if it was reduced. float32,
                float16, bfloat16.
            self: The loss's input. float32, float16, bfloat16.
            target: The loss's target. float32, float16, bfloat16.
            reduction: How the forward loss was reduced; for mean the gradient is
                divided by the number of elements.

        Returns:
            out: Gradient with respect to self, in the broadcast shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "SoftMarginLossBackward",
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

    def softmax(
        client,
        /,
        self: Any,
        *,
        dim: int = -1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Softmax along an axis.

        out = exp(self) / sum(exp(self) over axis dim, kept), computed without overflow.
        A row of -inf alone gives NaN.

        Args:
            self: The logits. float32, float16, bfloat16, float64.
            dim: Axis of the softmax; negative values count from the end.

        Returns:
            out: The probabilities, in self's shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Softmax",
            {
                "self": self,
            },
            {
                "dim": dim,
            },
            Parameters(out, dtype, timeout),
        )

    def softmax_backward(
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
        """Gradient of softmax with respect to its input.

        out = output * (grad_output - sum(grad_output * output over axis dim, kept)).
        output is the forward result and is used as given. The sum is taken in float32.

        Args:
            grad_output: Gradient of the loss with respect to output. float32, float16,
                bfloat16.
            output: Result of the forward softmax. float32, float16, bfloat16.
            dim: Axis of the softmax; negative values count from the end.

        Returns:
            out: Gradient with respect to the softmax's input.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "SoftmaxBackward",
            {
                "grad_output": grad_output,
                "output": output,
            },
            {
                "dim": dim,
            },
            Parameters(out, dtype, timeout),
        )

    def softmax_cross_entropy_with_logits(
        client,
        /,
        features: Any,
        labels: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Cross entropy of softmax with a target distribution, and its gradient.

        loss = -sum over classes of labels * log_softmax(features); backprop =
        softmax(features) - labels, the gradient for labels that add up to 1.

        Args:
            features: The logits, [N, C]. float32, float16, bfloat16.
            labels: The target distributions, [N, C]. float32, float16, bfloat16.

        Returns:
            loss: The loss of each sample, [N].
            backprop: The gradient with respect to features.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "SoftmaxCrossEntropyWithLogits",
            {
                "features": features,
                "labels": labels,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def softplus(
        client,
        /,
        self: Any,
        *,
        beta: Scalar = 1,
        threshold: Scalar = 20,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies softplus, a smooth relu.

        out = ln(1 + exp(beta * self)) / beta, or self where beta * self > threshold.

        Args:
            self: The argument. float32, float16, bfloat16.
            beta: Sharpness of the bend; not 0.
            threshold: Where beta * self is above it the function is linear.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Softplus",
            {
                "self": self,
            },
            {
                "beta": beta,
                "threshold": threshold,
            },
            Parameters(out, dtype, timeout),
        )

    def softplus_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        *,
        beta: Scalar = 1,
        threshold: Scalar = 20,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of softplus with respect to its input.

        With z = exp(beta * self):
        grad_input = grad_output * z / (z + 1), or grad_output where beta * self >
        threshold. The tensors broadcast and are promoted to a common dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16, float64.
            self: The forward argument. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.
            beta: Sharpness of the bend; not 0.
            threshold: Where beta * self is above it the function is linear.

        Returns:
            grad_input: Gradient with respect to the forward argument, in the broadcast
                shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "SoftplusBackward",
            {
                "grad_output": grad_output,
                "self": self,
            },
            {
                "beta": beta,
                "threshold": threshold,
            },
            Parameters(out, dtype, timeout),
        )

    def softshrink(
        client,
        /,
        self: Any,
        *,
        lambd: Optional[Scalar] = None,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Moves elements towards zero.

        out = self - lambd where self > lambd, self + lambd where self < -lambd, else 0.

        Args:
            self: The argument. float32, float16, bfloat16.
            lambd: How far elements move; not negative. Default: 0.5 (float32).

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Softshrink",
            {
                "self": self,
            },
            {
                "lambd": lambd,
            },
            Parameters(out, dtype, timeout),
        )

    def softshrink_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        *,
        lambd: Optional[Scalar] = None,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of soft shrinkage with respect to its input.

        grad_input = grad_output where self < -lambd or self > lambd, else 0. The
        tensors broadcast and are promoted to a common dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            self: The forward argument. float32, float16, bfloat16.
            lambd: How far elements move; not negative. Default: 0.5 (float32).

        Returns:
            grad_input: Gradient with respect to the forward argument, in the broadcast
                shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "SoftshrinkBackward",
            {
                "grad_output": grad_output,
                "self": self,
            },
            {
                "lambd": lambd,
            },
            Parameters(out, dtype, timeout),
        )

    def sort(
        client,
        /,
        self: Any,
        *,
        stable: bool = True,
        dim: int = -1,
        descending: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Sorts along an axis.

        values_out = self, sorted along axis dim; indices_out = where each element was.
        NaN counts as largest. stable keeps the order of equal ones.

        Args:
            self: The tensor to sort. float32, float16, bfloat16, int8, uint8, int16,
                int32, int64, bool.
            stable: Whether equal elements keep their order.
            dim: Axis to sort along; negative values count from the end.
            descending: Whether the largest come first.

        Returns:
            values_out: The sorted elements.
            indices_out: Their former positions.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Sort",
            {
                "self": self,
            },
            {
                "stable": stable,
                "dim": dim,
                "descending": descending,
            },
            Parameters(out, dtype, timeout),
        )

    def split_tensor(
        client,
        /,
        self: Any,
        *,
        split_sections: int,
        dim: int = 0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Splits a tensor into equal parts along an axis.

        out[i] = self from i * split_sections on, split_sections long, along axis dim;
        the last part may be shorter.

        Args:
            self: The tensor to split. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            split_sections: Extent of a part along dim.
            dim: Axis to split; negative values count from the end.

        Returns:
            out: The parts. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "SplitTensor",
            {
                "self": self,
            },
            {
                "split_sections": split_sections,
                "dim": dim,
            },
            Parameters(out, dtype, timeout),
        )

    def split_with_size(
        client,
        /,
        self: Any,
        *,
        split_size: Sequence[int],
        dim: int = 0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Splits a tensor into parts of given extents along an axis.

        out[i] = the next split_size[i] slices of self along axis dim; the extents add
        up to the axis'.

        Args:
            self: The tensor to split. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            split_size: Extents of the parts along dim.
            dim: Axis to split; negative values count from the end.

        Returns:
            out: The parts. A list of tensors.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "SplitWithSize",
            {
                "self": self,
            },
            {
                "split_size": split_size,
                "dim": dim,
            },
            Parameters(out, dtype, timeout),
        )

    def sqrt(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the square root.

        out = sqrt(self). Negative numbers give NaN. Integers and BOOL are computed as
        FLOAT; out has the computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Sqrt",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def stack(
        client,
        /,
        tensors: Any,
        *,
        dim: int = 0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Joins tensors along a new axis.

        out = the tensors one after the other along a new axis dim; their shapes agree.
        The dtypes are promoted to a common one.

        Args:
            tensors: The tensors, at least one. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool. A list of tensors.
            dim: Place of the new axis; negative values count from the end of out.

        Returns:
            out: The joined tensors. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Stack",
            {
                "tensors": tensors,
            },
            {
                "dim": dim,
            },
            Parameters(out, dtype, timeout),
        )

    def std(
        client,
        /,
        self: Any,
        *,
        dim: Optional[Sequence[int]] = None,
        correction: int = 1,
        keepdim: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Standard deviation along axes.

        With n the number of elements over the axes dim and mean their mean:
        out = sqrt(sum((self - mean) ** 2) / max(n - correction, 0)).

        Args:
            self: The tensor to reduce. float32, float16, bfloat16.
            dim: Axes to reduce; negative values count from the end; left out or empty:
                all. Optional.
            correction: Subtracted from the number of elements: 1 unbiased, 0 biased.
            keepdim: Whether the reduced axes stay with extent 1.

        Returns:
            out: The result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Std",
            {
                "self": self,
            },
            {
                "dim": dim,
                "correction": correction,
                "keepdim": keepdim,
            },
            Parameters(out, dtype, timeout),
        )

    def std_mean_correction(
        client,
        /,
        self: Any,
        *,
        dim: Optional[Sequence[int]] = None,
        correction: int = 1,
        keepdim: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Standard deviation and mean along axes.

        With n the number of elements over the axes dim and mean their mean:
        std_out = sqrt(sum((self - mean) ** 2) / max(n - correction, 0)), mean_out =
        mean.

        Args:
            self: The tensor to reduce. float32, float16, bfloat16.
            dim: Axes to reduce; negative values count from the end; left out or empty:
                all. Optional.
            correction: Subtracted from the number of elements: 1 unbiased, 0 biased.
            keepdim: Whether the reduced axes stay with extent 1.

        Returns:
            std_out: The deviations.
            mean_out: The means.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "StdMeanCorrection",
            {
                "self": self,
            },
            {
                "dim": dim,
                "correction": correction,
                "keepdim": keepdim,
            },
            Parameters(out, dtype, timeout),
        )

    def sub(
        client,
        /,
        self: Any,
        other: Any,
        *,
        alpha: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Subtracts one tensor from another.

        out = self - alpha * other. The operands broadcast and are promoted to a common
        dtype, in which the result is computed and rounded once; out has it unless
        another is asked for.

        Args:
            self: Left operand; broadcasts with other. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            other: Right operand; broadcasts with self. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.
            alpha: Factor on other.

        Returns:
            out: The result, in the broadcast shape. float32, float16, bfloat16,
                float64, int8, uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Sub",
            {
                "self": self,
                "other": other,
            },
            {
                "alpha": alpha,
            },
            Parameters(out, dtype, timeout),
        )

    def subs(
        client,
        /,
        self: Any,
        *,
        other: Scalar,
        alpha: Scalar = 1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Subtracts a number from a tensor.

        out = self - alpha * other. The number only lifts the kind of self's dtype
        (integer to floating point); out has that dtype unless another is asked for.

        Args:
            self: The tensor operand. float32, float16, bfloat16, float64, int8, uint8,
                int16, int32, int64, bool.
            other: The number.
            alpha: Factor on other.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64, bool.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Subs",
            {
                "self": self,
            },
            {
                "other": other,
                "alpha": alpha,
            },
            Parameters(out, dtype, timeout),
        )

    def sum(
        client,
        /,
        tensors: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Adds the tensors of a list.

        out = tensors[0] + tensors[1] + ...; the tensors broadcast and are promoted to a
        common dtype. This is no reduction along axes: see ReduceSum.

        Args:
            tensors: The summands, at least one. float32, float16, int8, uint8, int32. A
                list of tensors.

        Returns:
            out: The sum, in the broadcast shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Sum",
            {
                "tensors": tensors,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def swi_glu(
        client,
        /,
        x: Any,
        *,
        dim: int = -1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies the linear unit gated by SiLU.

        x is halved along axis dim into a and b: out = silu(a) * b. The axis must have
        an even extent.

        Args:
            x: The argument; gates and values. float32, float16, bfloat16.
            dim: The axis that is halved; negative values count from the end.

        Returns:
            out: The result, half as long along dim.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "SwiGlu",
            {
                "x": x,
            },
            {
                "dim": dim,
            },
            Parameters(out, dtype, timeout),
        )

    def swi_glu_grad(
        client,
        /,
        y_grad: Any,
        x: Any,
        *,
        dim: int = -1,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the linear unit gated by SiLU with respect to its input.

        x is halved along axis dim into a and b; the halves of out are
        y_grad * b * the derivative of SiLU at a and y_grad * silu(a).

        Args:
            y_grad: Gradient of the loss with respect to the forward result. float32,
                float16, bfloat16.
            x: The forward argument. float32, float16, bfloat16.
            dim: The axis that is halved; negative values count from the end.

        Returns:
            out: Gradient with respect to x, in its shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "SwiGluGrad",
            {
                "y_grad": y_grad,
                "x": x,
            },
            {
                "dim": dim,
            },
            Parameters(out, dtype, timeout),
        )

    def swish(
        client,
        /,
        self: Any,
        *,
        beta: Optional[Scalar] = None,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies Swish, a sigmoid linear unit with a factor.

        out = self / (1 + exp(-beta * self)).

        Args:
            self: The argument. float32, float16, bfloat16.
            beta: Factor in the sigmoid; left out: 1. Optional.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Swish",
            {
                "self": self,
            },
            {
                "beta": beta,
            },
            Parameters(out, dtype, timeout),
        )

    def swish_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        *,
        beta: Optional[Scalar] = None,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of Swish with respect to its input.

        With s = 1 / (1 + exp(-beta * self)):
        grad_input = grad_output * s * (1 + beta * self * (1 - s)). All tensors have one
        shape and dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16.
            self: The forward argument. float32, float16, bfloat16.
            beta: Factor in the sigmoid; left out: 1. Optional.

        Returns:
            grad_input: Gradient with respect to the forward argument.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "SwishBackward",
            {
                "grad_output": grad_output,
                "self": self,
            },
            {
                "beta": beta,
            },
            Parameters(out, dtype, timeout),
        )

    def tan(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Takes the tangent.

        out = tan(self), self in radians. Infinities give NaN. Integers and BOOL are
        computed as FLOAT; out has the computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, float64, int8, uint8, int16,
                int32, int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16, float64.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Tan",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def tanh(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Applies the hyperbolic tangent.

        out = tanh(self), between -1 and 1. Integers and BOOL are computed as FLOAT; out
        has the computed dtype unless another is asked for.

        Args:
            self: The argument. float32, float16, bfloat16, int8, uint8, int16, int32,
                int64, bool.

        Returns:
            out: The result, in self's shape. float32, float16, bfloat16.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Tanh",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def tanh_backward(
        client,
        /,
        grad_output: Any,
        output: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of the hyperbolic tangent with respect to its input.

        grad_input = grad_output * (1 - output * output). The tensors broadcast and are
        promoted to a common dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16, float64.
            output: The forward result. float32, float16, bfloat16, float64.

        Returns:
            grad_input: Gradient with respect to the forward argument, in the broadcast
                shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "TanhBackward",
            {
                "grad_output": grad_output,
                "output": output,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def threshold(
        client,
        /,
        self: Any,
        *,
        threshold: Scalar,
        value: Scalar,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Replaces elements that are not above a threshold.

        out = self where self > threshold, else value.

        Args:
            self: The argument. float32, float16, bfloat16, int8, uint8, int16, int32,
                int64.
            threshold: Elements above it are kept.
            value: What the other elements become.

        Returns:
            out: The result, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Threshold",
            {
                "self": self,
            },
            {
                "threshold": threshold,
                "value": value,
            },
            Parameters(out, dtype, timeout),
        )

    def threshold_backward(
        client,
        /,
        grad_output: Any,
        self: Any,
        *,
        threshold: Scalar = 0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of threshold, and of relu, with respect to its input.

        out = grad_output where self > threshold, else 0. With threshold 0 it is the
        gradient of Relu. The tensors broadcast and are promoted to a common dtype.

        Args:
            grad_output: Gradient of the loss with respect to the forward result.
                float32, float16, bfloat16, int8, uint8, int32.
            self: The forward argument. float32, float16, bfloat16, int8, uint8, int32.
            threshold: The forward threshold; 0 for Relu.

        Returns:
            out: Gradient with respect to the forward argument, in the broadcast shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "ThresholdBackward",
            {
                "grad_output": grad_output,
                "self": self,
            },
            {
                "threshold": threshold,
            },
            Parameters(out, dtype, timeout),
        )

    def topk(
        client,
        /,
        self: Any,
        *,
        k: int,
        dim: int = -1,
        largest: bool = True,
        sorted: bool = True,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """The largest or smallest elements along an axis.

        values_out = the k largest (smallest unless largest) elements along axis dim, in
        order; indices_out = their positions. NaN counts as largest; of equal ones the
        first comes first.

        Args:
            self: The tensor to search. float32, float16, bfloat16, float64, int8,
                uint8, int16, int32, int64.
            k: How many to take; not above the axis' extent.
            dim: Axis to search; negative values count from the end.
            largest: Whether the largest are wanted.
            sorted: Must be true.

        Returns:
            values_out: The elements.
            indices_out: Their positions.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Topk",
            {
                "self": self,
            },
            {
                "k": k,
                "dim": dim,
                "largest": largest,
                "sorted": sorted,
            },
            Parameters(out, dtype, timeout),
        )

    def tril(
        client,
        /,
        self: Any,
        *,
        diagonal: int = 0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Keeps the lower triangle of matrices.

        The two last axes are the matrix: elements above the diagonal become 0, the
        others stay. Leading axes are batches.

        Args:
            self: The matrices, of rank 2 or more. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool.
            diagonal: The diagonal that bounds what stays: 0 the main one, positive ones
                above it, negative ones below.

        Returns:
            out: The triangles, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Tril",
            {
                "self": self,
            },
            {
                "diagonal": diagonal,
            },
            Parameters(out, dtype, timeout),
        )

    def triu(
        client,
        /,
        self: Any,
        *,
        diagonal: int = 0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Keeps the upper triangle of matrices.

        The two last axes are the matrix: elements below the diagonal become 0, the
        others stay. Leading axes are batches.

        Args:
            self: The matrices, of rank 2 or more. float32, float16, bfloat16, float64,
                int8, uint8, int16, int32, int64, bool.
            diagonal: The diagonal that bounds what stays: 0 the main one, positive ones
                above it, negative ones below.

        Returns:
            out: The triangles, in self's shape and dtype.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Triu",
            {
                "self": self,
            },
            {
                "diagonal": diagonal,
            },
            Parameters(out, dtype, timeout),
        )

    def trunc(
        client,
        /,
        self: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Rounds towards zero.

        out = self without its fraction. NaN and infinities stay.

        Args:
            self: The argument. float32, float16, bfloat16, float64.

        Returns:
            out: The result, in self's shape.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Trunc",
            {
                "self": self,
            },
            {},
            Parameters(out, dtype, timeout),
        )

    def unfold_grad(
        client,
        /,
        grad_out: Any,
        *,
        input_sizes: Sequence[int],
        dim: int,
        size: int,
        step: int,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of windows along an axis.

        grad_in has shape input_sizes; each element is the sum of grad_out over the
        windows that hold it. Windows of size elements start every step elements along
        axis dim and lie along the last axis of grad_out.

        Args:
            grad_out: Gradient of the loss with respect to the windows. float32,
                float16, bfloat16.
            input_sizes: Shape of the forward input.
            dim: Axis of the windows, the last one or the one before it.
            size: Elements in a window.
            step: Distance between two windows.

        Returns:
            grad_in: Gradient with respect to the input.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "UnfoldGrad",
            {
                "grad_out": grad_out,
            },
            {
                "input_sizes": input_sizes,
                "dim": dim,
                "size": size,
                "step": step,
            },
            Parameters(out, dtype, timeout),
        )

    def upsample_bilinear2d(
        client,
        /,
        self: Any,
        *,
        output_size: Sequence[int],
        align_corners: bool = False,
        scales_h: float = 0.0,
        scales_w: float = 0.0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Resizes images by bilinear interpolation.

        Each element of the result lies between four of the image and is their mean,
        weighted by nearness. Its place is y * (H - 1) / (output_size[0] - 1) with
        align_corners, else max((y + 0.5) * H / output_size[0] - 0.5, 0), likewise for
        the width. Factors above 0 take the place of the quotients without
        align_corners.

        Args:
            self: The images, [N, C, H, W]. float32, float16, bfloat16.
            output_size: Height and width of the result.
            align_corners: Whether the corners of both images coincide, rather than
                their edges.
            scales_h: Factor of the height; 0: the quotient of the extents.
            scales_w: Factor of the width; 0: the quotient of the extents.

        Returns:
            out: The resized images.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "UpsampleBilinear2d",
            {
                "self": self,
            },
            {
                "output_size": output_size,
                "align_corners": align_corners,
                "scales_h": scales_h,
                "scales_w": scales_w,
            },
            Parameters(out, dtype, timeout),
        )

    def upsample_bilinear2d_backward(
        client,
        /,
        grad_out: Any,
        *,
        output_size: Sequence[int],
        input_size: Sequence[int],
        align_corners: bool = False,
        scales_h: float = 0.0,
        scales_w: float = 0.0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of resizing images by bilinear interpolation.

        out = the sum of grad_out over the places that took each element, multiplied by
        the forward weights.

        Args:
            grad_out: Gradient of the loss with respect to the forward result. float32,
                float16, bfloat16.
            output_size: Height and width of the result.
            input_size: Shape of the forward images, [N, C, H, W].
            align_corners: Whether the corners of both images coincide, rather than
                their edges.
            scales_h: Factor of the height; 0: the quotient of the extents.
            scales_w: Factor of the width; 0: the quotient of the extents.

        Returns:
            out: Gradient with respect to the images.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "UpsampleBilinear2dBackward",
            {
                "grad_out": grad_out,
            },
            {
                "output_size": output_size,
                "input_size": input_size,
                "align_corners": align_corners,
                "scales_h": scales_h,
                "scales_w": scales_w,
            },
            Parameters(out, dtype, timeout),
        )

    def upsample_nearest2d(
        client,
        /,
        self: Any,
        *,
        output_size: Sequence[int],
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Resizes images by nearest elements.

        out[y, x] = self[min(floor(y * s), H - 1), ...] with s = H / output_size[0],
        likewise for the width.

        Args:
            self: The images, [N, C, H, W]. float32, float16, bfloat16, float64, uint8.
            output_size: Height and width of the result.

        Returns:
            out: The resized images.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "UpsampleNearest2d",
            {
                "self": self,
            },
            {
                "output_size": output_size,
            },
            Parameters(out, dtype, timeout),
        )

    def upsample_nearest2d_backward(
        client,
        /,
        grad_out: Any,
        *,
        output_size: Sequence[int],
        input_size: Sequence[int],
        scales_h: float = 0.0,
        scales_w: float = 0.0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Gradient of resizing images by nearest elements.

        grad_input = the sum of grad_out over the places that took each element.

        Args:
            grad_out: Gradient of the loss with respect to the forward result. float32,
                float16, bfloat16.
            output_size: Height and width of the result.
            input_size: Shape of the forward images, [N, C, H, W].
            scales_h: Factor of the height; 0: the quotient of the extents.
            scales_w: Factor of the width; 0: the quotient of the extents.

        Returns:
            grad_input: Gradient with respect to the images.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "UpsampleNearest2dBackward",
            {
                "grad_out": grad_out,
            },
            {
                "output_size": output_size,
                "input_size": input_size,
                "scales_h": scales_h,
                "scales_w": scales_w,
            },
            Parameters(out, dtype, timeout),
        )

    def upsample_nearest2d_v2(
        client,
        /,
        self: Any,
        *,
        output_size: Sequence[int],
        scales_h: float = 0.0,
        scales_w: float = 0.0,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Resizes images by nearest elements, with given factors.

        out[y, x] = self[min(floor(y * s), H - 1), ...] with s = H / output_size[0],
        likewise for the width, or 1 / scales_h if that is above 0.

        Args:
            self: The images, [N, C, H, W]. float32, float16, bfloat16, float64, uint8.
            output_size: Height and width of the result.
            scales_h: Factor of the height; 0: the quotient of the extents.
            scales_w: Factor of the width; 0: the quotient of the extents.

        Returns:
            out: The resized images.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "UpsampleNearest2dV2",
            {
                "self": self,
            },
            {
                "output_size": output_size,
                "scales_h": scales_h,
                "scales_w": scales_w,
            },
            Parameters(out, dtype, timeout),
        )

    def var(
        client,
        /,
        self: Any,
        *,
        dim: Optional[Sequence[int]] = None,
        unbiased: bool = True,
        keepdim: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Variance along axes.

        With n the number of elements over the axes dim and mean their mean:
        out = sum((self - mean) ** 2) / (n - 1 if unbiased, else n).

        Args:
            self: The tensor to reduce. float32, float16, bfloat16.
            dim: Axes to reduce; negative values count from the end; left out or empty:
                all. Optional.
            unbiased: Whether it is divided by n - 1.
            keepdim: Whether the reduced axes stay with extent 1.

        Returns:
            out: The result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "Var",
            {
                "self": self,
            },
            {
                "dim": dim,
                "unbiased": unbiased,
                "keepdim": keepdim,
            },
            Parameters(out, dtype, timeout),
        )

    def var_correction(
        client,
        /,
        self: Any,
        *,
        dim: Optional[Sequence[int]] = None,
        correction: int = 1,
        keepdim: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Variance along axes with a correction.

        With n the number of elements over the axes dim and mean their mean:
        out = sum((self - mean) ** 2) / max(n - correction, 0).

        Args:
            self: The tensor to reduce. float32, float16, bfloat16.
            dim: Axes to reduce; negative values count from the end; left out or empty:
                all. Optional.
            correction: Subtracted from the number of elements: 1 unbiased, 0 biased.
            keepdim: Whether the reduced axes stay with extent 1.

        Returns:
            out: The result.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "VarCorrection",
            {
                "self": self,
            },
            {
                "dim": dim,
                "correction": correction,
                "keepdim": keepdim,
            },
            Parameters(out, dtype, timeout),
        )

    def var_mean(
        client,
        /,
        self: Any,
        *,
        dim: Optional[Sequence[int]] = None,
        correction: int = 1,
        keepdim: bool = False,
        out: Any = None,
        dtype: Any = None,
        timeout: Optional[float] = None,
    ) -> R:
        """Variance and mean along axes.

        With n the number of elements over the axes dim and mean their mean:
        var_out = sum((self - mean) ** 2) / max(n - correction, 0), mean_out = mean.

        Args:
            self: The tensor to reduce. float32, float16.
            dim: Axes to reduce; negative values count from the end; left out or empty:
                all. Optional.
            correction: Subtracted from the number of elements: 1 unbiased, 0 biased.
            keepdim: Whether the reduced axes stay with extent 1.

        Returns:
            var_out: The variances.
            mean_out: The means.

        Raises:
            InvalidArgumentError: shapes, dtypes or attributes that do not go together;
                it names the argument (aclnn_status 161002).
        """
        return client._call_operator(
            "VarMean",
            {
                "self": self,
            },
            {
                "dim": dim,
                "correction": correction,
                "keepdim": keepdim,
            },
            Parameters(out, dtype, timeout),
        )


OPERATORS: dict[str, OperatorInfo] = {
    "Abs": OperatorInfo(
        "Abs",
        "abs",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Acos": OperatorInfo(
        "Acos",
        "acos",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Acosh": OperatorInfo(
        "Acosh",
        "acosh",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Add": OperatorInfo(
        "Add",
        "add",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"alpha": "scalar"},
        (OutputInfo("out"),),
    ),
    "AddLayerNorm": OperatorInfo(
        "AddLayerNorm",
        "add_layer_norm",
        {
            "x1": ("float32", "float16", "bfloat16"),
            "x2": ("float32", "float16", "bfloat16"),
            "gamma": ("float32", "float16", "bfloat16"),
            "beta": ("float32", "float16", "bfloat16"),
            "bias": ("float32", "float16", "bfloat16"),
        },
        {"epsilon": "float", "additional_output": "bool"},
        (
            OutputInfo("y_out", is_dtype_fixed=True),
            OutputInfo("mean_out", is_dtype_fixed=True),
            OutputInfo("rstd_out", is_dtype_fixed=True),
            OutputInfo("x_out", is_dtype_fixed=True),
        ),
    ),
    "AddLayerNormGrad": OperatorInfo(
        "AddLayerNormGrad",
        "add_layer_norm_grad",
        {
            "dy": ("float32", "float16", "bfloat16"),
            "x1": ("float32", "float16", "bfloat16"),
            "x2": ("float32", "float16", "bfloat16"),
            "rstd": ("float32",),
            "mean": ("float32",),
            "gamma": ("float32", "float16", "bfloat16"),
            "dsum": ("float32", "float16", "bfloat16"),
        },
        {},
        (
            OutputInfo("dx_out", is_dtype_fixed=True),
            OutputInfo("dgamma_out", is_dtype_fixed=True),
            OutputInfo("dbeta_out", is_dtype_fixed=True),
        ),
    ),
    "AddRmsNorm": OperatorInfo(
        "AddRmsNorm",
        "add_rms_norm",
        {
            "x1": ("float32", "float16", "bfloat16"),
            "x2": ("float32", "float16", "bfloat16"),
            "gamma": ("float32", "float16", "bfloat16"),
        },
        {"epsilon": "float"},
        (
            OutputInfo("y_out", is_dtype_fixed=True),
            OutputInfo("rstd_out", is_dtype_fixed=True),
            OutputInfo("x_out", is_masked=True, is_dtype_fixed=True),
        ),
    ),
    "Addbmm": OperatorInfo(
        "Addbmm",
        "addbmm",
        {
            "self": ("float32", "float16", "bfloat16"),
            "batch1": ("float32", "float16", "bfloat16"),
            "batch2": ("float32", "float16", "bfloat16"),
        },
        {"beta": "scalar", "alpha": "scalar", "cube_math_type": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Addcdiv": OperatorInfo(
        "Addcdiv",
        "addcdiv",
        {
            "self": ("float32", "float16", "bfloat16", "float64", "int64"),
            "tensor1": ("float32", "float16", "bfloat16", "float64", "int64"),
            "tensor2": ("float32", "float16", "bfloat16", "float64", "int64"),
        },
        {"value": "scalar"},
        (OutputInfo("out"),),
    ),
    "Addcmul": OperatorInfo(
        "Addcmul",
        "addcmul",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int32",
                "int64",
            ),
            "tensor1": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int32",
                "int64",
            ),
            "tensor2": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int32",
                "int64",
            ),
        },
        {"value": "scalar"},
        (OutputInfo("out"),),
    ),
    "Addmm": OperatorInfo(
        "Addmm",
        "addmm",
        {
            "self": ("float32", "float16", "bfloat16"),
            "mat1": ("float32", "float16", "bfloat16"),
            "mat2": ("float32", "float16", "bfloat16"),
        },
        {"beta": "scalar", "alpha": "scalar", "cube_math_type": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Addmv": OperatorInfo(
        "Addmv",
        "addmv",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "mat": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "vec": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"alpha": "scalar", "beta": "scalar", "cube_math_type": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Adds": OperatorInfo(
        "Adds",
        "adds",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar", "alpha": "scalar"},
        (OutputInfo("out"),),
    ),
    "All": OperatorInfo(
        "All",
        "all",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dim": "ints", "keepdim": "bool"},
        (OutputInfo("out"),),
    ),
    "Amax": OperatorInfo(
        "Amax",
        "amax",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dim": "ints", "keep_dim": "bool"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Amin": OperatorInfo(
        "Amin",
        "amin",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dim": "ints", "keep_dim": "bool"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "AmpUpdateScale": OperatorInfo(
        "AmpUpdateScale",
        "amp_update_scale",
        {
            "current_scale": ("float32", "float16", "bfloat16"),
            "growth_tracker": ("int32",),
            "found_inf": ("float32", "float16", "bfloat16"),
        },
        {"growth_factor": "float", "backoff_factor": "float", "growth_interval": "int"},
        (
            OutputInfo("updated_scale", is_dtype_fixed=True),
            OutputInfo("updated_growth_tracker", is_dtype_fixed=True),
        ),
    ),
    "Any": OperatorInfo(
        "Any",
        "any",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dim": "ints", "keepdim": "bool"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "ApplyAdamWV2": OperatorInfo(
        "ApplyAdamWV2",
        "apply_adam_wv2",
        {
            "var": ("float32", "float16", "bfloat16"),
            "m": ("float32", "float16", "bfloat16"),
            "v": ("float32", "float16", "bfloat16"),
            "max_grad_norm": ("float32", "float16", "bfloat16"),
            "grad": ("float32", "float16", "bfloat16"),
            "step": ("float32", "int64"),
        },
        {
            "lr": "float",
            "beta1": "float",
            "beta2": "float",
            "weight_decay": "float",
            "eps": "float",
            "amsgrad": "bool",
            "maximize": "bool",
        },
        (
            OutputInfo("var", is_dtype_fixed=True),
            OutputInfo("m", is_dtype_fixed=True),
            OutputInfo("v", is_dtype_fixed=True),
            OutputInfo("max_grad_norm", is_dtype_fixed=True),
        ),
    ),
    "ApplyFusedEmaAdam": OperatorInfo(
        "ApplyFusedEmaAdam",
        "apply_fused_ema_adam",
        {
            "grad": ("float32", "float16", "bfloat16"),
            "var": ("float32", "float16", "bfloat16"),
            "m": ("float32", "float16", "bfloat16"),
            "v": ("float32", "float16", "bfloat16"),
            "s": ("float32", "float16", "bfloat16"),
            "step": ("int64",),
        },
        {
            "lr": "float",
            "ema_decay": "float",
            "beta1": "float",
            "beta2": "float",
            "eps": "float",
            "mode": "int",
            "bias_correction": "bool",
            "weight_decay": "float",
        },
        (
            OutputInfo("var", is_dtype_fixed=True),
            OutputInfo("m", is_dtype_fixed=True),
            OutputInfo("v", is_dtype_fixed=True),
            OutputInfo("s", is_dtype_fixed=True),
        ),
    ),
    "Arange": OperatorInfo(
        "Arange",
        "arange",
        {},
        {"start": "scalar", "end": "scalar", "step": "scalar"},
        (OutputInfo("out"),),
    ),
    "ArgMax": OperatorInfo(
        "ArgMax",
        "arg_max",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"dim": "int", "keepdim": "bool"},
        (OutputInfo("out"),),
    ),
    "ArgMin": OperatorInfo(
        "ArgMin",
        "arg_min",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"dim": "int", "keepdim": "bool"},
        (OutputInfo("out"),),
    ),
    "Asin": OperatorInfo(
        "Asin",
        "asin",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Asinh": OperatorInfo(
        "Asinh",
        "asinh",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Atan": OperatorInfo(
        "Atan",
        "atan",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Atan2": OperatorInfo(
        "Atan2",
        "atan2",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Atanh": OperatorInfo(
        "Atanh",
        "atanh",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "AvgPool2d": OperatorInfo(
        "AvgPool2d",
        "avg_pool2d",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {
            "kernel_size": "ints",
            "strides": "ints",
            "paddings": "ints",
            "ceil_mode": "bool",
            "count_include_pad": "bool",
            "divisor_override": "int",
            "cube_math_type": "int",
        },
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "AvgPool2dBackward": OperatorInfo(
        "AvgPool2dBackward",
        "avg_pool2d_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
        },
        {
            "kernel_size": "ints",
            "stride": "ints",
            "padding": "ints",
            "ceil_mode": "bool",
            "count_include_pad": "bool",
            "divisor_override": "int",
            "cube_math_type": "int",
        },
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "Baddbmm": OperatorInfo(
        "Baddbmm",
        "baddbmm",
        {
            "self": ("float32", "float16", "bfloat16"),
            "batch1": ("float32", "float16", "bfloat16"),
            "batch2": ("float32", "float16", "bfloat16"),
        },
        {"beta": "scalar", "alpha": "scalar", "cube_math_type": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "BatchMatMul": OperatorInfo(
        "BatchMatMul",
        "batch_mat_mul",
        {
            "self": ("float32", "float16", "bfloat16"),
            "mat2": ("float32", "float16", "bfloat16"),
        },
        {"cube_math_type": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "BatchNorm": OperatorInfo(
        "BatchNorm",
        "batch_norm",
        {
            "input": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
            "bias": ("float32", "float16", "bfloat16"),
            "running_mean": ("float32", "float16", "bfloat16"),
            "running_var": ("float32", "float16", "bfloat16"),
        },
        {"training": "bool", "momentum": "float", "eps": "float"},
        (
            OutputInfo("running_mean", is_dtype_fixed=True),
            OutputInfo("running_var", is_dtype_fixed=True),
            OutputInfo("output", is_dtype_fixed=True),
            OutputInfo("save_mean", is_dtype_fixed=True),
            OutputInfo("save_invstd", is_dtype_fixed=True),
        ),
    ),
    "BatchNormBackward": OperatorInfo(
        "BatchNormBackward",
        "batch_norm_backward",
        {
            "grad_out": ("float32", "float16", "bfloat16"),
            "input": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
            "running_mean": ("float32", "float16", "bfloat16"),
            "running_var": ("float32", "float16", "bfloat16"),
            "save_mean": ("float32", "float16", "bfloat16"),
            "save_invstd": ("float32", "float16", "bfloat16"),
        },
        {"training": "bool", "eps": "float"},
        (
            OutputInfo("grad_input", is_masked=True, is_dtype_fixed=True),
            OutputInfo("grad_weight", is_masked=True, is_dtype_fixed=True),
            OutputInfo("grad_bias", is_masked=True, is_dtype_fixed=True),
        ),
    ),
    "BatchNormElemt": OperatorInfo(
        "BatchNormElemt",
        "batch_norm_elemt",
        {
            "input": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
            "bias": ("float32", "float16", "bfloat16"),
            "mean": ("float32", "float16", "bfloat16"),
            "invstd": ("float32", "float16", "bfloat16"),
        },
        {"eps": "float"},
        (OutputInfo("output", is_dtype_fixed=True),),
    ),
    "BatchNormElemtBackward": OperatorInfo(
        "BatchNormElemtBackward",
        "batch_norm_elemt_backward",
        {
            "grad_out": ("float32", "float16", "bfloat16"),
            "input": ("float32", "float16", "bfloat16"),
            "mean": ("float32", "float16", "bfloat16"),
            "invstd": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
            "sum_dy": ("float32", "float16", "bfloat16"),
            "sum_dy_xmu": ("float32", "float16", "bfloat16"),
            "counter": ("float32", "float16", "int32"),
        },
        {},
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "BatchNormReduceBackward": OperatorInfo(
        "BatchNormReduceBackward",
        "batch_norm_reduce_backward",
        {
            "grad_out": ("float32", "float16", "bfloat16"),
            "input": ("float32", "float16", "bfloat16"),
            "mean": ("float32", "float16", "bfloat16"),
            "invstd": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
        },
        {"input_g": "bool", "weight_g": "bool", "bias_g": "bool"},
        (
            OutputInfo("sum_dy", is_masked=True, is_dtype_fixed=True),
            OutputInfo("sum_dy_xmu", is_masked=True, is_dtype_fixed=True),
            OutputInfo("grad_weight", is_masked=True, is_dtype_fixed=True),
            OutputInfo("grad_bias", is_masked=True, is_dtype_fixed=True),
        ),
    ),
    "BatchNormStats": OperatorInfo(
        "BatchNormStats",
        "batch_norm_stats",
        {
            "input": ("float32", "float16"),
        },
        {"eps": "float"},
        (
            OutputInfo("mean", is_dtype_fixed=True),
            OutputInfo("invstd", is_dtype_fixed=True),
        ),
    ),
    "BinaryCrossEntropy": OperatorInfo(
        "BinaryCrossEntropy",
        "binary_cross_entropy",
        {
            "self": ("float32", "float16", "bfloat16"),
            "target": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
        },
        {"reduction": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "BinaryCrossEntropyBackward": OperatorInfo(
        "BinaryCrossEntropyBackward",
        "binary_cross_entropy_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
            "target": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
        },
        {"reduction": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "BinaryCrossEntropyWithLogits": OperatorInfo(
        "BinaryCrossEntropyWithLogits",
        "binary_cross_entropy_with_logits",
        {
            "self": ("float32", "float16", "bfloat16"),
            "target": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
            "pos_weight": ("float32", "float16", "bfloat16"),
        },
        {"reduction": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "BinaryCrossEntropyWithLogitsBackward": OperatorInfo(
        "BinaryCrossEntropyWithLogitsBackward",
        "binary_cross_entropy_with_logits_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
            "target": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
            "pos_weight": ("float32", "float16", "bfloat16"),
        },
        {"reduction": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "BinaryCrossEntropyWithLogitsTargetBackward": OperatorInfo(
        "BinaryCrossEntropyWithLogitsTargetBackward",
        "binary_cross_entropy_with_logits_target_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
            "target": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
            "pos_weight": ("float32", "float16", "bfloat16"),
        },
        {"reduction": "int"},
        (OutputInfo("grad_target", is_dtype_fixed=True),),
    ),
    "BitwiseAndScalar": OperatorInfo(
        "BitwiseAndScalar",
        "bitwise_and_scalar",
        {
            "self": ("int8", "uint8", "int16", "int32", "int64", "bool"),
        },
        {"other": "scalar"},
        (OutputInfo("out"),),
    ),
    "BitwiseAndTensor": OperatorInfo(
        "BitwiseAndTensor",
        "bitwise_and_tensor",
        {
            "self": ("int8", "uint8", "int16", "int32", "int64", "bool"),
            "other": ("int8", "uint8", "int16", "int32", "int64", "bool"),
        },
        {},
        (OutputInfo("out"),),
    ),
    "BitwiseNot": OperatorInfo(
        "BitwiseNot",
        "bitwise_not",
        {
            "self": ("int8", "uint8", "int16", "int32", "int64", "bool"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "BitwiseOrScalar": OperatorInfo(
        "BitwiseOrScalar",
        "bitwise_or_scalar",
        {
            "self": ("int8", "uint8", "int16", "int32", "int64", "bool"),
        },
        {"other": "scalar"},
        (OutputInfo("out"),),
    ),
    "BitwiseOrTensor": OperatorInfo(
        "BitwiseOrTensor",
        "bitwise_or_tensor",
        {
            "self": ("int8", "uint8", "int16", "int32", "int64", "bool"),
            "other": ("int8", "uint8", "int16", "int32", "int64", "bool"),
        },
        {},
        (OutputInfo("out"),),
    ),
    "BitwiseXorScalar": OperatorInfo(
        "BitwiseXorScalar",
        "bitwise_xor_scalar",
        {
            "self": ("int8", "uint8", "int16", "int32", "int64", "bool"),
        },
        {"other": "scalar"},
        (OutputInfo("out"),),
    ),
    "BitwiseXorTensor": OperatorInfo(
        "BitwiseXorTensor",
        "bitwise_xor_tensor",
        {
            "self": ("int8", "uint8", "int16", "int32", "int64", "bool"),
            "other": ("int8", "uint8", "int16", "int32", "int64", "bool"),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Cast": OperatorInfo(
        "Cast",
        "cast",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dtype": "dtype"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Cat": OperatorInfo(
        "Cat",
        "cat",
        {
            "tensors": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dim": "int"},
        (OutputInfo("out"),),
        ("tensors",),
    ),
    "Ceil": OperatorInfo(
        "Ceil",
        "ceil",
        {
            "self": ("float32", "float16", "bfloat16", "float64"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Celu": OperatorInfo(
        "Celu",
        "celu",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {"alpha": "scalar"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Clamp": OperatorInfo(
        "Clamp",
        "clamp",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"clip_value_min": "scalar", "clip_value_max": "scalar"},
        (OutputInfo("out"),),
    ),
    "ClampMax": OperatorInfo(
        "ClampMax",
        "clamp_max",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"clip_value_max": "scalar"},
        (OutputInfo("out"),),
    ),
    "ClampMaxTensor": OperatorInfo(
        "ClampMaxTensor",
        "clamp_max_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
            "clip_value_max": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "ClampMin": OperatorInfo(
        "ClampMin",
        "clamp_min",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"clip_value_min": "scalar"},
        (OutputInfo("out"),),
    ),
    "ClampMinTensor": OperatorInfo(
        "ClampMinTensor",
        "clamp_min_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
            "clip_value_min": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "ClampTensor": OperatorInfo(
        "ClampTensor",
        "clamp_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
            "clip_value_min": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "clip_value_max": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "ConstantPadNd": OperatorInfo(
        "ConstantPadNd",
        "constant_pad_nd",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"pad": "ints", "value": "scalar"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Convolution": OperatorInfo(
        "Convolution",
        "convolution",
        {
            "input": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
            "bias": ("float32", "float16", "bfloat16"),
        },
        {
            "stride": "ints",
            "padding": "ints",
            "dilation": "ints",
            "transposed": "bool",
            "output_padding": "ints",
            "groups": "int",
            "cube_math_type": "int",
        },
        (OutputInfo("output", is_dtype_fixed=True),),
    ),
    "ConvolutionBackward": OperatorInfo(
        "ConvolutionBackward",
        "convolution_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "input": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
        },
        {
            "bias_sizes": "ints",
            "stride": "ints",
            "padding": "ints",
            "dilation": "ints",
            "transposed": "bool",
            "output_padding": "ints",
            "groups": "int",
            "cube_math_type": "int",
        },
        (
            OutputInfo("grad_input", is_masked=True, is_dtype_fixed=True),
            OutputInfo("grad_weight", is_masked=True, is_dtype_fixed=True),
            OutputInfo("grad_bias", is_masked=True, is_dtype_fixed=True),
        ),
    ),
    "Cos": OperatorInfo(
        "Cos",
        "cos",
        {
            "input": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Cosh": OperatorInfo(
        "Cosh",
        "cosh",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "CrossEntropyLoss": OperatorInfo(
        "CrossEntropyLoss",
        "cross_entropy_loss",
        {
            "input": ("float32", "float16", "bfloat16"),
            "target": ("int32", "int64"),
            "weight": ("float32",),
        },
        {
            "reduction": "text",
            "ignore_index": "int",
            "label_smoothing": "float",
            "lse_square_scale_for_zloss": "float",
            "return_zloss": "bool",
        },
        (
            OutputInfo("loss_out", is_dtype_fixed=True),
            OutputInfo("log_prob_out", is_dtype_fixed=True),
            OutputInfo("zloss_out", is_dtype_fixed=True),
            OutputInfo("lse_for_zloss_out", is_dtype_fixed=True),
        ),
    ),
    "CrossEntropyLossGrad": OperatorInfo(
        "CrossEntropyLossGrad",
        "cross_entropy_loss_grad",
        {
            "grad_loss": ("float32", "float16", "bfloat16"),
            "log_prob": ("float32", "float16", "bfloat16"),
            "target": ("int64",),
            "weight": ("float32",),
            "grad_zloss": ("float32", "float16", "bfloat16"),
            "lse_for_zloss": ("float32", "float16", "bfloat16"),
        },
        {
            "reduction": "text",
            "ignore_index": "int",
            "label_smoothing": "float",
            "lse_square_scale_for_zloss": "float",
        },
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Cumprod": OperatorInfo(
        "Cumprod",
        "cumprod",
        {
            "input": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"dim": "scalar", "dtype": "dtype"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Cumsum": OperatorInfo(
        "Cumsum",
        "cumsum",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"dim": "int", "dtype": "dtype"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "CumsumV2": OperatorInfo(
        "CumsumV2",
        "cumsum_v2",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"dim": "int", "exclusive": "bool", "reverse": "bool"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "DeepNorm": OperatorInfo(
        "DeepNorm",
        "deep_norm",
        {
            "x": ("float32", "float16", "bfloat16"),
            "gx": ("float32", "float16", "bfloat16"),
            "beta": ("float32", "float16", "bfloat16"),
            "gamma": ("float32", "float16", "bfloat16"),
        },
        {"alpha": "float", "epsilon": "float"},
        (
            OutputInfo("mean_out", is_dtype_fixed=True),
            OutputInfo("rstd_out", is_dtype_fixed=True),
            OutputInfo("y_out", is_dtype_fixed=True),
        ),
    ),
    "DeepNormGrad": OperatorInfo(
        "DeepNormGrad",
        "deep_norm_grad",
        {
            "dy": ("float32", "float16", "bfloat16"),
            "x": ("float32", "float16", "bfloat16"),
            "gx": ("float32", "float16", "bfloat16"),
            "gamma": ("float32", "float16", "bfloat16"),
            "mean": ("float32",),
            "rstd": ("float32",),
        },
        {"alpha": "float"},
        (
            OutputInfo("dx_out", is_dtype_fixed=True),
            OutputInfo("dgx_out", is_dtype_fixed=True),
            OutputInfo("dbeta_out", is_dtype_fixed=True),
            OutputInfo("dgamma_out", is_dtype_fixed=True),
        ),
    ),
    "Div": OperatorInfo(
        "Div",
        "div",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "DivMod": OperatorInfo(
        "DivMod",
        "div_mod",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"mode": "int"},
        (OutputInfo("out"),),
    ),
    "DivMods": OperatorInfo(
        "DivMods",
        "div_mods",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar", "mode": "int"},
        (OutputInfo("out"),),
    ),
    "Divs": OperatorInfo(
        "Divs",
        "divs",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("out"),),
    ),
    "Dot": OperatorInfo(
        "Dot",
        "dot",
        {
            "self": ("float32", "float16", "bfloat16", "int8", "uint8", "int32"),
            "tensor": ("float32", "float16", "bfloat16", "int8", "uint8", "int32"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Dropout": OperatorInfo(
        "Dropout",
        "dropout",
        {
            "input": ("float32", "float16", "bfloat16"),
        },
        {"p": "float", "train": "bool", "seed": "int", "offset": "int"},
        (
            OutputInfo("out", is_dtype_fixed=True),
            OutputInfo("mask_out", is_dtype_fixed=True),
        ),
    ),
    "DropoutBackward": OperatorInfo(
        "DropoutBackward",
        "dropout_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "mask": ("uint8",),
        },
        {"scale": "float"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "DropoutDoMask": OperatorInfo(
        "DropoutDoMask",
        "dropout_do_mask",
        {
            "self": ("float32", "float16", "bfloat16"),
            "mask": ("uint8",),
        },
        {"prob": "float"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "DropoutGenMask": OperatorInfo(
        "DropoutGenMask",
        "dropout_gen_mask",
        {},
        {"shape": "ints", "prob": "float", "seed": "int", "offset": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Elu": OperatorInfo(
        "Elu",
        "elu",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {"alpha": "scalar", "scale": "scalar", "input_scale": "scalar"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "EluBackward": OperatorInfo(
        "EluBackward",
        "elu_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self_or_result": ("float32", "float16", "bfloat16"),
        },
        {
            "alpha": "scalar",
            "scale": "scalar",
            "input_scale": "scalar",
            "is_result": "bool",
        },
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "Embedding": OperatorInfo(
        "Embedding",
        "embedding",
        {
            "weight": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "indices": ("int32", "int64"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "EmbeddingBag": OperatorInfo(
        "EmbeddingBag",
        "embedding_bag",
        {
            "weight": ("float32", "float16", "bfloat16"),
            "indices": ("int32", "int64"),
            "offsets": ("int32", "int64"),
            "per_sample_weights": ("float32", "float16", "bfloat16"),
        },
        {
            "scale_grad_by_freq": "bool",
            "mode": "int",
            "sparse": "bool",
            "include_last_offset": "bool",
            "padding_idx": "int",
        },
        (
            OutputInfo("output", is_dtype_fixed=True),
            OutputInfo("offset2bag", is_dtype_fixed=True),
            OutputInfo("bag_size", is_dtype_fixed=True),
            OutputInfo("max_indices", is_dtype_fixed=True),
        ),
    ),
    "EmbeddingDenseBackward": OperatorInfo(
        "EmbeddingDenseBackward",
        "embedding_dense_backward",
        {
            "grad": ("float32", "float16", "bfloat16"),
            "indices": ("int8", "uint8", "int16", "int32", "int64"),
        },
        {"num_weights": "int", "padding_idx": "int", "scale_grad_by_freq": "bool"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "EqScalar": OperatorInfo(
        "EqScalar",
        "eq_scalar",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("out"),),
    ),
    "EqTensor": OperatorInfo(
        "EqTensor",
        "eq_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Erf": OperatorInfo(
        "Erf",
        "erf",
        {
            "self": ("float32", "float16", "bfloat16", "float64", "int64", "bool"),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Erfc": OperatorInfo(
        "Erfc",
        "erfc",
        {
            "self": ("float32", "float16", "bfloat16", "float64", "int64", "bool"),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Exp": OperatorInfo(
        "Exp",
        "exp",
        {
            "self": ("float32", "float16", "bfloat16", "float64", "int64", "bool"),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Exp2": OperatorInfo(
        "Exp2",
        "exp2",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Expand": OperatorInfo(
        "Expand",
        "expand",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "int8",
                "uint8",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"size": "ints"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Expm1": OperatorInfo(
        "Expm1",
        "expm1",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Eye": OperatorInfo(
        "Eye",
        "eye",
        {},
        {"n": "int", "m": "int"},
        (OutputInfo("out"),),
    ),
    "FastGelu": OperatorInfo(
        "FastGelu",
        "fast_gelu",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "FastGeluBackward": OperatorInfo(
        "FastGeluBackward",
        "fast_gelu_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "FastLayerNorm": OperatorInfo(
        "FastLayerNorm",
        "fast_layer_norm",
        {
            "input": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
            "bias": ("float32", "float16", "bfloat16"),
        },
        {"normalized_shape": "ints", "eps": "float"},
        (
            OutputInfo("out", is_dtype_fixed=True),
            OutputInfo("mean_out", is_masked=True),
            OutputInfo("rstd_out", is_masked=True),
        ),
    ),
    "Flip": OperatorInfo(
        "Flip",
        "flip",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dims": "ints"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Floor": OperatorInfo(
        "Floor",
        "floor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "FloorDivide": OperatorInfo(
        "FloorDivide",
        "floor_divide",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "FloorDivides": OperatorInfo(
        "FloorDivides",
        "floor_divides",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("out"),),
    ),
    "FmodScalar": OperatorInfo(
        "FmodScalar",
        "fmod_scalar",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("out"),),
    ),
    "FmodTensor": OperatorInfo(
        "FmodTensor",
        "fmod_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "ForeachAddList": OperatorInfo(
        "ForeachAddList",
        "foreach_add_list",
        {
            "x1": ("float32", "float16", "bfloat16", "int8", "uint8", "int16", "int32"),
            "x2": ("float32", "float16", "bfloat16", "int8", "uint8", "int16", "int32"),
            "alpha": ("float32", "float16", "int32"),
        },
        {},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x1", "x2"),
    ),
    "ForeachAddListV2": OperatorInfo(
        "ForeachAddListV2",
        "foreach_add_list_v2",
        {
            "x1": ("float32", "float16", "bfloat16", "int8", "uint8", "int16", "int32"),
            "x2": ("float32", "float16", "bfloat16", "int8", "uint8", "int16", "int32"),
        },
        {"alpha": "scalar"},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x1", "x2"),
    ),
    "ForeachAddScalar": OperatorInfo(
        "ForeachAddScalar",
        "foreach_add_scalar",
        {
            "x": ("float32", "float16", "bfloat16", "int8", "uint8", "int16", "int32"),
            "scalar": ("float32", "float16", "int32"),
        },
        {},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x",),
    ),
    "ForeachAddScalarList": OperatorInfo(
        "ForeachAddScalarList",
        "foreach_add_scalar_list",
        {
            "x": ("float32", "float16", "bfloat16", "int32"),
        },
        {"scalars": "floats"},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x",),
    ),
    "ForeachAddScalarV2": OperatorInfo(
        "ForeachAddScalarV2",
        "foreach_add_scalar_v2",
        {
            "x": ("float32", "float16", "bfloat16", "int8", "uint8", "int16", "int32"),
        },
        {"scalar": "scalar"},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x",),
    ),
    "ForeachAddcdivScalar": OperatorInfo(
        "ForeachAddcdivScalar",
        "foreach_addcdiv_scalar",
        {
            "x1": ("float32", "float16", "bfloat16"),
            "x2": ("float32", "float16", "bfloat16"),
            "x3": ("float32", "float16", "bfloat16"),
            "scalar": ("float32", "float16"),
        },
        {},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x1", "x2", "x3"),
    ),
    "ForeachAddcdivScalarList": OperatorInfo(
        "ForeachAddcdivScalarList",
        "foreach_addcdiv_scalar_list",
        {
            "x1": ("float32", "float16", "bfloat16"),
            "x2": ("float32", "float16", "bfloat16"),
            "x3": ("float32", "float16", "bfloat16"),
            "scalars": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x1", "x2", "x3"),
    ),
    "ForeachAddcdivScalarV2": OperatorInfo(
        "ForeachAddcdivScalarV2",
        "foreach_addcdiv_scalar_v2",
        {
            "x1": ("float32", "float16", "bfloat16"),
            "x2": ("float32", "float16", "bfloat16"),
            "x3": ("float32", "float16", "bfloat16"),
        },
        {"scalar": "scalar"},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x1", "x2", "x3"),
    ),
    "ForeachAddcmulScalar": OperatorInfo(
        "ForeachAddcmulScalar",
        "foreach_addcmul_scalar",
        {
            "x1": ("float32", "float16", "bfloat16", "int32"),
            "x2": ("float32", "float16", "bfloat16", "int32"),
            "x3": ("float32", "float16", "bfloat16", "int32"),
            "scalar": ("float32", "float16", "int32"),
        },
        {},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x1", "x2", "x3"),
    ),
    "ForeachAddcmulScalarV2": OperatorInfo(
        "ForeachAddcmulScalarV2",
        "foreach_addcmul_scalar_v2",
        {
            "x1": ("float32", "float16", "bfloat16", "int32"),
            "x2": ("float32", "float16", "bfloat16", "int32"),
            "x3": ("float32", "float16", "bfloat16", "int32"),
        },
        {"scalar": "scalar"},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x1", "x2", "x3"),
    ),
    "ForeachCopy": OperatorInfo(
        "ForeachCopy",
        "foreach_copy",
        {
            "x": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out", is_list=True),),
        ("x",),
    ),
    "ForeachDivScalar": OperatorInfo(
        "ForeachDivScalar",
        "foreach_div_scalar",
        {
            "x": ("float32", "float16", "bfloat16"),
            "scalar": ("float32", "float16"),
        },
        {},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x",),
    ),
    "ForeachLerpScalar": OperatorInfo(
        "ForeachLerpScalar",
        "foreach_lerp_scalar",
        {
            "x1": ("float32", "float16", "bfloat16"),
            "x2": ("float32", "float16", "bfloat16"),
        },
        {"weight": "scalar"},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x1", "x2"),
    ),
    "ForeachMaximumList": OperatorInfo(
        "ForeachMaximumList",
        "foreach_maximum_list",
        {
            "x1": ("float32", "float16", "bfloat16", "int32"),
            "x2": ("float32", "float16", "bfloat16", "int32"),
        },
        {},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x1", "x2"),
    ),
    "ForeachMulList": OperatorInfo(
        "ForeachMulList",
        "foreach_mul_list",
        {
            "x1": ("float32", "float16", "bfloat16", "int8", "uint8", "int16", "int32"),
            "x2": ("float32", "float16", "bfloat16", "int8", "uint8", "int16", "int32"),
        },
        {},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x1", "x2"),
    ),
    "ForeachMulScalar": OperatorInfo(
        "ForeachMulScalar",
        "foreach_mul_scalar",
        {
            "x": ("float32", "float16", "bfloat16", "int32"),
            "scalar": ("float32", "float16", "int32"),
        },
        {},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x",),
    ),
    "ForeachMulScalarList": OperatorInfo(
        "ForeachMulScalarList",
        "foreach_mul_scalar_list",
        {
            "x": ("float32", "float16", "bfloat16", "int32"),
        },
        {"scalars": "floats"},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x",),
    ),
    "ForeachMulScalarV2": OperatorInfo(
        "ForeachMulScalarV2",
        "foreach_mul_scalar_v2",
        {
            "x": ("float32", "float16", "bfloat16", "int32"),
        },
        {"scalar": "scalar"},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x",),
    ),
    "ForeachNeg": OperatorInfo(
        "ForeachNeg",
        "foreach_neg",
        {
            "x": ("float32", "float16", "bfloat16", "int8", "uint8", "int16", "int32"),
        },
        {},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x",),
    ),
    "ForeachNonFiniteCheckAndUnscale": OperatorInfo(
        "ForeachNonFiniteCheckAndUnscale",
        "foreach_non_finite_check_and_unscale",
        {
            "scaled_grads": ("float32", "float16", "bfloat16"),
            "found_inf": ("float32",),
            "inv_scale": ("float32",),
        },
        {},
        (
            OutputInfo("scaled_grads", is_list=True, is_dtype_fixed=True),
            OutputInfo("found_inf", is_dtype_fixed=True),
        ),
        ("scaled_grads",),
    ),
    "ForeachNorm": OperatorInfo(
        "ForeachNorm",
        "foreach_norm",
        {
            "x": ("float32", "float16", "bfloat16"),
        },
        {"scalar": "scalar"},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x",),
    ),
    "ForeachPowScalar": OperatorInfo(
        "ForeachPowScalar",
        "foreach_pow_scalar",
        {
            "x": ("float32", "float16", "bfloat16", "int32"),
            "scalar": ("float32", "float16", "int32"),
        },
        {},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x",),
    ),
    "ForeachReciprocal": OperatorInfo(
        "ForeachReciprocal",
        "foreach_reciprocal",
        {
            "x": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x",),
    ),
    "ForeachSqrt": OperatorInfo(
        "ForeachSqrt",
        "foreach_sqrt",
        {
            "x": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
        ("x",),
    ),
    "ForeachZeroInplace": OperatorInfo(
        "ForeachZeroInplace",
        "foreach_zero_inplace",
        {
            "x": ("float32", "float16", "bfloat16", "int16", "int32"),
        },
        {},
        (OutputInfo("x", is_list=True, is_dtype_fixed=True),),
        ("x",),
    ),
    "Frac": OperatorInfo(
        "Frac",
        "frac",
        {
            "self": ("float32", "float16", "bfloat16", "float64"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "FusedAdamw": OperatorInfo(
        "FusedAdamw",
        "fused_adamw",
        {
            "params": ("float32", "float16", "bfloat16"),
            "grads": ("float32", "float16", "bfloat16"),
            "exp_avgs": ("float32", "float16", "bfloat16"),
            "exp_avg_sqs": ("float32", "float16", "bfloat16"),
            "max_exp_avg_sqs": ("float32", "float16", "bfloat16"),
            "state_steps": ("float32", "int64"),
            "grad_scale": ("float32",),
            "found_inf": ("float32",),
        },
        {
            "lr": "float",
            "beta1": "float",
            "beta2": "float",
            "weight_decay": "float",
            "eps": "float",
            "amsgrad": "bool",
            "maximize": "bool",
        },
        (
            OutputInfo("params", is_list=True, is_dtype_fixed=True),
            OutputInfo("exp_avgs", is_list=True, is_dtype_fixed=True),
            OutputInfo("exp_avg_sqs", is_list=True, is_dtype_fixed=True),
            OutputInfo("max_exp_avg_sqs", is_list=True, is_dtype_fixed=True),
        ),
        (
            "params",
            "grads",
            "exp_avgs",
            "exp_avg_sqs",
            "max_exp_avg_sqs",
            "state_steps",
        ),
    ),
    "FusedSgd": OperatorInfo(
        "FusedSgd",
        "fused_sgd",
        {
            "params": ("float32", "float16", "bfloat16"),
            "grads": ("float32", "float16", "bfloat16"),
            "momentum_buffers": ("float32", "float16", "bfloat16"),
            "grad_scale": ("float32", "float16", "bfloat16"),
        },
        {
            "weight_decay": "float",
            "momentum": "float",
            "lr": "float",
            "dampening": "float",
            "nesterov": "bool",
            "maximize": "bool",
            "is_first_step": "bool",
        },
        (
            OutputInfo("params", is_list=True, is_dtype_fixed=True),
            OutputInfo("grads", is_list=True, is_dtype_fixed=True),
            OutputInfo("momentum_buffers", is_list=True, is_dtype_fixed=True),
        ),
        ("params", "grads", "momentum_buffers"),
    ),
    "Gather": OperatorInfo(
        "Gather",
        "gather",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "index": ("int32", "int64"),
        },
        {"dim": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "GatherNd": OperatorInfo(
        "GatherNd",
        "gather_nd",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "int8",
                "uint8",
                "int32",
                "int64",
                "bool",
            ),
            "indices": ("int32", "int64"),
        },
        {"negative_index_support": "bool"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "GatherV2": OperatorInfo(
        "GatherV2",
        "gather_v2",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "index": ("int32", "int64"),
        },
        {"dim": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "GeGlu": OperatorInfo(
        "GeGlu",
        "ge_glu",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {"dim": "int", "approximate": "int"},
        (
            OutputInfo("out", is_dtype_fixed=True),
            OutputInfo("out_gelu", is_dtype_fixed=True),
        ),
    ),
    "GeGluBackward": OperatorInfo(
        "GeGluBackward",
        "ge_glu_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
            "gelu": ("float32", "float16", "bfloat16"),
        },
        {"dim": "int", "approximate": "int"},
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "GeScalar": OperatorInfo(
        "GeScalar",
        "ge_scalar",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("out"),),
    ),
    "GeTensor": OperatorInfo(
        "GeTensor",
        "ge_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Gelu": OperatorInfo(
        "Gelu",
        "gelu",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "GeluBackward": OperatorInfo(
        "GeluBackward",
        "gelu_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "GeluBackwardV2": OperatorInfo(
        "GeluBackwardV2",
        "gelu_backward_v2",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
        },
        {"approximate": "text"},
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "GeluV2": OperatorInfo(
        "GeluV2",
        "gelu_v2",
        {
            "x": ("float32", "float16", "bfloat16"),
        },
        {"approximate": "int"},
        (OutputInfo("y", is_dtype_fixed=True),),
    ),
    "Gemm": OperatorInfo(
        "Gemm",
        "gemm",
        {
            "a": ("float32", "float16", "bfloat16"),
            "b": ("float32", "float16", "bfloat16"),
            "c": ("float32", "float16", "bfloat16"),
        },
        {
            "alpha": "float",
            "beta": "float",
            "trans_a": "int",
            "trans_b": "int",
            "cube_math_type": "int",
        },
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Ger": OperatorInfo(
        "Ger",
        "ger",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "vec2": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Glu": OperatorInfo(
        "Glu",
        "glu",
        {
            "self": ("float32", "float16", "bfloat16", "float64"),
        },
        {"dim": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "GluBackward": OperatorInfo(
        "GluBackward",
        "glu_backward",
        {
            "grad_out": ("float32", "float16", "bfloat16", "float64"),
            "self": ("float32", "float16", "bfloat16", "float64"),
        },
        {"dim": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "GroupNorm": OperatorInfo(
        "GroupNorm",
        "group_norm",
        {
            "self": ("float32", "float16", "bfloat16"),
            "gamma": ("float32", "float16", "bfloat16"),
            "beta": ("float32", "float16", "bfloat16"),
        },
        {"n": "int", "c": "int", "hxw": "int", "group": "int", "eps": "float"},
        (
            OutputInfo("out", is_dtype_fixed=True),
            OutputInfo("mean_out", is_dtype_fixed=True),
            OutputInfo("rstd_out", is_dtype_fixed=True),
        ),
    ),
    "GroupNormBackward": OperatorInfo(
        "GroupNormBackward",
        "group_norm_backward",
        {
            "grad_out": ("float32", "float16", "bfloat16"),
            "input": ("float32", "float16", "bfloat16"),
            "mean": ("float32", "float16", "bfloat16"),
            "rstd": ("float32", "float16", "bfloat16"),
            "gamma": ("float32", "float16", "bfloat16"),
        },
        {"n": "int", "c": "int", "hxw": "int", "group": "int"},
        (
            OutputInfo("grad_input", is_masked=True, is_dtype_fixed=True),
            OutputInfo("grad_gamma_out", is_masked=True, is_dtype_fixed=True),
            OutputInfo("grad_beta_out", is_masked=True, is_dtype_fixed=True),
        ),
    ),
    "GtScalar": OperatorInfo(
        "GtScalar",
        "gt_scalar",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("out"),),
    ),
    "GtTensor": OperatorInfo(
        "GtTensor",
        "gt_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Hardshrink": OperatorInfo(
        "Hardshrink",
        "hardshrink",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {"lambd": "scalar"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "HardshrinkBackward": OperatorInfo(
        "HardshrinkBackward",
        "hardshrink_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
        },
        {"lambd": "scalar"},
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "Hardsigmoid": OperatorInfo(
        "Hardsigmoid",
        "hardsigmoid",
        {
            "self": ("float32", "float16", "bfloat16", "int32"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "HardsigmoidBackward": OperatorInfo(
        "HardsigmoidBackward",
        "hardsigmoid_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Hardswish": OperatorInfo(
        "Hardswish",
        "hardswish",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "HardswishBackward": OperatorInfo(
        "HardswishBackward",
        "hardswish_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "HardswishBackwardV2": OperatorInfo(
        "HardswishBackwardV2",
        "hardswish_backward_v2",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Hardtanh": OperatorInfo(
        "Hardtanh",
        "hardtanh",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"clip_value_min": "scalar", "clip_value_max": "scalar"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "HardtanhBackward": OperatorInfo(
        "HardtanhBackward",
        "hardtanh_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
        },
        {"min": "scalar", "max": "scalar"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Index": OperatorInfo(
        "Index",
        "index",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "indices": ("int32", "int64"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
        ("indices",),
    ),
    "IndexAdd": OperatorInfo(
        "IndexAdd",
        "index_add",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "index": ("int32", "int64"),
            "source": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dim": "int", "alpha": "scalar"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "IndexPutImpl": OperatorInfo(
        "IndexPutImpl",
        "index_put_impl",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "indices": ("int32", "int64"),
            "values": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"accumulate": "bool", "unsafe": "bool"},
        (OutputInfo("self", is_dtype_fixed=True),),
        ("indices",),
    ),
    "IndexSelect": OperatorInfo(
        "IndexSelect",
        "index_select",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "index": ("int32", "int64"),
        },
        {"dim": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "InplaceAdd": OperatorInfo(
        "InplaceAdd",
        "inplace_add",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"alpha": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceAddcdiv": OperatorInfo(
        "InplaceAddcdiv",
        "inplace_addcdiv",
        {
            "self": ("float32", "float16", "bfloat16", "float64", "int64"),
            "tensor1": ("float32", "float16", "bfloat16", "float64", "int64"),
            "tensor2": ("float32", "float16", "bfloat16", "float64", "int64"),
        },
        {"value": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceAddcmul": OperatorInfo(
        "InplaceAddcmul",
        "inplace_addcmul",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int32",
                "int64",
            ),
            "tensor1": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int32",
                "int64",
            ),
            "tensor2": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int32",
                "int64",
            ),
        },
        {"value": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceAddmm": OperatorInfo(
        "InplaceAddmm",
        "inplace_addmm",
        {
            "self": ("float32", "float16", "bfloat16"),
            "mat1": ("float32", "float16", "bfloat16"),
            "mat2": ("float32", "float16", "bfloat16"),
        },
        {"beta": "scalar", "alpha": "scalar", "cube_math_type": "int"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceAdds": OperatorInfo(
        "InplaceAdds",
        "inplace_adds",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar", "alpha": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceBaddbmm": OperatorInfo(
        "InplaceBaddbmm",
        "inplace_baddbmm",
        {
            "self": ("float32", "float16", "bfloat16"),
            "batch1": ("float32", "float16", "bfloat16"),
            "batch2": ("float32", "float16", "bfloat16"),
        },
        {"beta": "scalar", "alpha": "scalar", "cube_math_type": "int"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceCeil": OperatorInfo(
        "InplaceCeil",
        "inplace_ceil",
        {
            "self": ("float32", "float16", "bfloat16", "float64"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceCelu": OperatorInfo(
        "InplaceCelu",
        "inplace_celu",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {"alpha": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceClampMax": OperatorInfo(
        "InplaceClampMax",
        "inplace_clamp_max",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"clip_value_max": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceClampMaxTensor": OperatorInfo(
        "InplaceClampMaxTensor",
        "inplace_clamp_max_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
            "clip_value_max": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceClampMinTensor": OperatorInfo(
        "InplaceClampMinTensor",
        "inplace_clamp_min_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
            "clip_value_min": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceCopy": OperatorInfo(
        "InplaceCopy",
        "inplace_copy",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "src": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceCos": OperatorInfo(
        "InplaceCos",
        "inplace_cos",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceDiv": OperatorInfo(
        "InplaceDiv",
        "inplace_div",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceDivMod": OperatorInfo(
        "InplaceDivMod",
        "inplace_div_mod",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"mode": "int"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceDivMods": OperatorInfo(
        "InplaceDivMods",
        "inplace_div_mods",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar", "mode": "int"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceDivs": OperatorInfo(
        "InplaceDivs",
        "inplace_divs",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceElu": OperatorInfo(
        "InplaceElu",
        "inplace_elu",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {"alpha": "scalar", "scale": "scalar", "input_scale": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceEqScalar": OperatorInfo(
        "InplaceEqScalar",
        "inplace_eq_scalar",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceEqTensor": OperatorInfo(
        "InplaceEqTensor",
        "inplace_eq_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceErf": OperatorInfo(
        "InplaceErf",
        "inplace_erf",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceExp": OperatorInfo(
        "InplaceExp",
        "inplace_exp",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceFillScalar": OperatorInfo(
        "InplaceFillScalar",
        "inplace_fill_scalar",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"value": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceFillTensor": OperatorInfo(
        "InplaceFillTensor",
        "inplace_fill_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "value": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceFloor": OperatorInfo(
        "InplaceFloor",
        "inplace_floor",
        {
            "self": ("float32", "float16", "bfloat16", "float64"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceGeScalar": OperatorInfo(
        "InplaceGeScalar",
        "inplace_ge_scalar",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceGeTensor": OperatorInfo(
        "InplaceGeTensor",
        "inplace_ge_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceGtScalar": OperatorInfo(
        "InplaceGtScalar",
        "inplace_gt_scalar",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceGtTensor": OperatorInfo(
        "InplaceGtTensor",
        "inplace_gt_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceHardsigmoid": OperatorInfo(
        "InplaceHardsigmoid",
        "inplace_hardsigmoid",
        {
            "self": ("float32", "float16", "bfloat16", "int32"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceHardswish": OperatorInfo(
        "InplaceHardswish",
        "inplace_hardswish",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceHardtanh": OperatorInfo(
        "InplaceHardtanh",
        "inplace_hardtanh",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"clip_value_min": "scalar", "clip_value_max": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceLeScalar": OperatorInfo(
        "InplaceLeScalar",
        "inplace_le_scalar",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceLeTensor": OperatorInfo(
        "InplaceLeTensor",
        "inplace_le_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceLeakyRelu": OperatorInfo(
        "InplaceLeakyRelu",
        "inplace_leaky_relu",
        {
            "self": ("float32", "float16", "bfloat16", "float64"),
        },
        {"negative_slope": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceLerp": OperatorInfo(
        "InplaceLerp",
        "inplace_lerp",
        {
            "self": ("float32", "float16", "bfloat16"),
            "end": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceLerps": OperatorInfo(
        "InplaceLerps",
        "inplace_lerps",
        {
            "self": ("float32", "float16", "bfloat16"),
            "end": ("float32", "float16", "bfloat16"),
        },
        {"weight": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceLog": OperatorInfo(
        "InplaceLog",
        "inplace_log",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceLogicalAnd": OperatorInfo(
        "InplaceLogicalAnd",
        "inplace_logical_and",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceLogicalNot": OperatorInfo(
        "InplaceLogicalNot",
        "inplace_logical_not",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceLogicalOr": OperatorInfo(
        "InplaceLogicalOr",
        "inplace_logical_or",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceLtScalar": OperatorInfo(
        "InplaceLtScalar",
        "inplace_lt_scalar",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceLtTensor": OperatorInfo(
        "InplaceLtTensor",
        "inplace_lt_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceMaskedFillScalar": OperatorInfo(
        "InplaceMaskedFillScalar",
        "inplace_masked_fill_scalar",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "int8",
                "int32",
                "int64",
                "bool",
            ),
            "mask": ("bool",),
        },
        {"value": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceMaskedFillTensor": OperatorInfo(
        "InplaceMaskedFillTensor",
        "inplace_masked_fill_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "int8",
                "int32",
                "int64",
                "bool",
            ),
            "mask": ("bool",),
            "value": (
                "float32",
                "float16",
                "bfloat16",
                "int8",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceMaskedScatter": OperatorInfo(
        "InplaceMaskedScatter",
        "inplace_masked_scatter",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "mask": ("uint8", "bool"),
            "source": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceMish": OperatorInfo(
        "InplaceMish",
        "inplace_mish",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceMul": OperatorInfo(
        "InplaceMul",
        "inplace_mul",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceMuls": OperatorInfo(
        "InplaceMuls",
        "inplace_muls",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceNeScalar": OperatorInfo(
        "InplaceNeScalar",
        "inplace_ne_scalar",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceNeTensor": OperatorInfo(
        "InplaceNeTensor",
        "inplace_ne_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceNeg": OperatorInfo(
        "InplaceNeg",
        "inplace_neg",
        {
            "self": ("float32", "float16", "bfloat16", "float64"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceOne": OperatorInfo(
        "InplaceOne",
        "inplace_one",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplacePowTensorScalar": OperatorInfo(
        "InplacePowTensorScalar",
        "inplace_pow_tensor_scalar",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"exponent": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplacePowTensorTensor": OperatorInfo(
        "InplacePowTensorTensor",
        "inplace_pow_tensor_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "exponent": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceReciprocal": OperatorInfo(
        "InplaceReciprocal",
        "inplace_reciprocal",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceRelu": OperatorInfo(
        "InplaceRelu",
        "inplace_relu",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "int8",
                "uint8",
                "int32",
                "int64",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceRound": OperatorInfo(
        "InplaceRound",
        "inplace_round",
        {
            "self": ("float32", "float16", "bfloat16", "float64"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceRsqrt": OperatorInfo(
        "InplaceRsqrt",
        "inplace_rsqrt",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceScatter": OperatorInfo(
        "InplaceScatter",
        "inplace_scatter",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "index": ("int32", "int64"),
            "src": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dim": "int", "reduce": "int"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceScatterUpdate": OperatorInfo(
        "InplaceScatterUpdate",
        "inplace_scatter_update",
        {
            "data": ("float32", "float16", "bfloat16", "int8", "uint8", "int32"),
            "indices": ("int32", "int64"),
            "updates": ("float32", "float16", "bfloat16", "int8", "uint8", "int32"),
        },
        {"axis": "int"},
        (OutputInfo("data", is_dtype_fixed=True),),
    ),
    "InplaceScatterValue": OperatorInfo(
        "InplaceScatterValue",
        "inplace_scatter_value",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "index": ("int32", "int64"),
        },
        {"dim": "int", "value": "scalar", "reduce": "int"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceSelu": OperatorInfo(
        "InplaceSelu",
        "inplace_selu",
        {
            "self": ("float32", "float16", "bfloat16", "int8", "int32"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceSigmoid": OperatorInfo(
        "InplaceSigmoid",
        "inplace_sigmoid",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceSin": OperatorInfo(
        "InplaceSin",
        "inplace_sin",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceSqrt": OperatorInfo(
        "InplaceSqrt",
        "inplace_sqrt",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceSub": OperatorInfo(
        "InplaceSub",
        "inplace_sub",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"alpha": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceSubs": OperatorInfo(
        "InplaceSubs",
        "inplace_subs",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar", "alpha": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceTanh": OperatorInfo(
        "InplaceTanh",
        "inplace_tanh",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceThreshold": OperatorInfo(
        "InplaceThreshold",
        "inplace_threshold",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"threshold": "scalar", "value": "scalar"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceTril": OperatorInfo(
        "InplaceTril",
        "inplace_tril",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"diagonal": "int"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceTriu": OperatorInfo(
        "InplaceTriu",
        "inplace_triu",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"diagonal": "int"},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceTrunc": OperatorInfo(
        "InplaceTrunc",
        "inplace_trunc",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "InplaceZero": OperatorInfo(
        "InplaceZero",
        "inplace_zero",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "IsFinite": OperatorInfo(
        "IsFinite",
        "is_finite",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "IsInf": OperatorInfo(
        "IsInf",
        "is_inf",
        {
            "x": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "IsNegInf": OperatorInfo(
        "IsNegInf",
        "is_neg_inf",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "IsPosInf": OperatorInfo(
        "IsPosInf",
        "is_pos_inf",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "KlDiv": OperatorInfo(
        "KlDiv",
        "kl_div",
        {
            "self": ("float32", "float16", "bfloat16"),
            "target": ("float32", "float16", "bfloat16"),
        },
        {"reduction": "int", "log_target": "bool"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
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
    "L1Loss": OperatorInfo(
        "L1Loss",
        "l1_loss",
        {
            "self": ("float32", "float16", "bfloat16", "int64"),
            "target": ("float32", "float16", "bfloat16", "int64"),
        },
        {"reduction": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
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
    "LayerNorm": OperatorInfo(
        "LayerNorm",
        "layer_norm",
        {
            "input": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
            "bias": ("float32", "float16", "bfloat16"),
        },
        {"normalized_shape": "ints", "eps": "float"},
        (
            OutputInfo("out", is_dtype_fixed=True),
            OutputInfo("mean_out", is_masked=True),
            OutputInfo("rstd_out", is_masked=True),
        ),
    ),
    "LayerNormBackward": OperatorInfo(
        "LayerNormBackward",
        "layer_norm_backward",
        {
            "grad_out": ("float32", "float16", "bfloat16"),
            "input": ("float32", "float16", "bfloat16"),
            "mean": ("float32", "float16", "bfloat16"),
            "rstd": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
            "bias": ("float32", "float16", "bfloat16"),
        },
        {"normalized_shape": "ints"},
        (
            OutputInfo("grad_input_out", is_masked=True, is_dtype_fixed=True),
            OutputInfo("grad_weight_out", is_masked=True, is_dtype_fixed=True),
            OutputInfo("grad_bias_out", is_masked=True, is_dtype_fixed=True),
        ),
    ),
    "LayerNormWithImplMode": OperatorInfo(
        "LayerNormWithImplMode",
        "layer_norm_with_impl_mode",
        {
            "input": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
            "bias": ("float32", "float16", "bfloat16"),
        },
        {"normalized_shape": "ints", "eps": "float", "impl_mode": "int"},
        (
            OutputInfo("out", is_dtype_fixed=True),
            OutputInfo("mean_out", is_masked=True),
            OutputInfo("rstd_out", is_masked=True),
        ),
    ),
    "LeScalar": OperatorInfo(
        "LeScalar",
        "le_scalar",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("out"),),
    ),
    "LeTensor": OperatorInfo(
        "LeTensor",
        "le_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "LeakyRelu": OperatorInfo(
        "LeakyRelu",
        "leaky_relu",
        {
            "self": ("float32", "float16", "bfloat16", "float64"),
        },
        {"negative_slope": "scalar"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "LeakyReluBackward": OperatorInfo(
        "LeakyReluBackward",
        "leaky_relu_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16", "float64"),
            "self": ("float32", "float16", "bfloat16", "float64"),
        },
        {"negative_slope": "scalar", "self_is_result": "bool"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Lerp": OperatorInfo(
        "Lerp",
        "lerp",
        {
            "self": ("float32", "float16", "bfloat16"),
            "end": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Lerps": OperatorInfo(
        "Lerps",
        "lerps",
        {
            "self": ("float32", "float16", "bfloat16"),
            "end": ("float32", "float16", "bfloat16"),
        },
        {"weight": "scalar"},
        (OutputInfo("out"),),
    ),
    "LinalgVectorNorm": OperatorInfo(
        "LinalgVectorNorm",
        "linalg_vector_norm",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {"ord": "scalar", "dims": "ints", "keep_dims": "bool", "dtype": "dtype"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Linspace": OperatorInfo(
        "Linspace",
        "linspace",
        {},
        {"start": "scalar", "end": "scalar", "steps": "int"},
        (OutputInfo("out"),),
    ),
    "Log": OperatorInfo(
        "Log",
        "log",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Log10": OperatorInfo(
        "Log10",
        "log10",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Log1p": OperatorInfo(
        "Log1p",
        "log1p",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Log2": OperatorInfo(
        "Log2",
        "log2",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "LogSigmoid": OperatorInfo(
        "LogSigmoid",
        "log_sigmoid",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "LogSigmoidBackward": OperatorInfo(
        "LogSigmoidBackward",
        "log_sigmoid_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
            "buffer": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "LogSigmoidForward": OperatorInfo(
        "LogSigmoidForward",
        "log_sigmoid_forward",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (
            OutputInfo("out", is_dtype_fixed=True),
            OutputInfo("buffer", is_dtype_fixed=True),
        ),
    ),
    "LogSoftmax": OperatorInfo(
        "LogSoftmax",
        "log_softmax",
        {
            "self": ("float32", "float16", "bfloat16", "float64"),
        },
        {"dim": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
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
    "LogSumExp": OperatorInfo(
        "LogSumExp",
        "log_sum_exp",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dim": "ints", "keep_dim": "bool"},
        (OutputInfo("out"),),
    ),
    "LogicalAnd": OperatorInfo(
        "LogicalAnd",
        "logical_and",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "LogicalNot": OperatorInfo(
        "LogicalNot",
        "logical_not",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "LogicalOr": OperatorInfo(
        "LogicalOr",
        "logical_or",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "LogicalXor": OperatorInfo(
        "LogicalXor",
        "logical_xor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Logit": OperatorInfo(
        "Logit",
        "logit",
        {
            "input": ("float32", "float16", "bfloat16"),
        },
        {"eps": "float"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "LogitGrad": OperatorInfo(
        "LogitGrad",
        "logit_grad",
        {
            "x": ("float32", "float16", "bfloat16"),
            "dy": ("float32", "float16", "bfloat16"),
        },
        {"eps": "float"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "LtScalar": OperatorInfo(
        "LtScalar",
        "lt_scalar",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("out"),),
    ),
    "LtTensor": OperatorInfo(
        "LtTensor",
        "lt_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Matmul": OperatorInfo(
        "Matmul",
        "matmul",
        {
            "self": ("float32", "float16", "bfloat16"),
            "mat2": ("float32", "float16", "bfloat16"),
        },
        {"cube_math_type": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Max": OperatorInfo(
        "Max",
        "max",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "MaxDim": OperatorInfo(
        "MaxDim",
        "max_dim",
        {
            "self": ("float32", "float16", "bfloat16", "int64", "bool"),
        },
        {"dim": "int", "keepdim": "bool"},
        (OutputInfo("out", is_dtype_fixed=True), OutputInfo("indices")),
    ),
    "MaxPool2dWithIndices": OperatorInfo(
        "MaxPool2dWithIndices",
        "max_pool2d_with_indices",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {
            "kernel_size": "ints",
            "stride": "ints",
            "padding": "ints",
            "dilation": "ints",
            "ceil_mode": "bool",
        },
        (OutputInfo("out", is_dtype_fixed=True), OutputInfo("indices")),
    ),
    "MaxPool2dWithIndicesBackward": OperatorInfo(
        "MaxPool2dWithIndicesBackward",
        "max_pool2d_with_indices_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
            "indices": ("int32", "int64"),
        },
        {
            "kernel_size": "ints",
            "stride": "ints",
            "padding": "ints",
            "dilation": "ints",
            "ceil_mode": "bool",
        },
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "Maximum": OperatorInfo(
        "Maximum",
        "maximum",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Mean": OperatorInfo(
        "Mean",
        "mean",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"dim": "ints", "keep_dim": "bool", "dtype": "dtype"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "MeanV2": OperatorInfo(
        "MeanV2",
        "mean_v2",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"dim": "ints", "keep_dim": "bool", "noop_with_empty_axes": "bool"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Min": OperatorInfo(
        "Min",
        "min",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "MinDim": OperatorInfo(
        "MinDim",
        "min_dim",
        {
            "self": ("float32", "float16", "bfloat16", "int64", "bool"),
        },
        {"dim": "int", "keepdim": "bool"},
        (
            OutputInfo("out", is_dtype_fixed=True),
            OutputInfo("indices", is_dtype_fixed=True),
        ),
    ),
    "Minimum": OperatorInfo(
        "Minimum",
        "minimum",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Mish": OperatorInfo(
        "Mish",
        "mish",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "MishBackward": OperatorInfo(
        "MishBackward",
        "mish_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "Mm": OperatorInfo(
        "Mm",
        "mm",
        {
            "self": ("float32", "float16", "bfloat16"),
            "mat2": ("float32", "float16", "bfloat16"),
        },
        {"cube_math_type": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "MseLoss": OperatorInfo(
        "MseLoss",
        "mse_loss",
        {
            "self": ("float32", "float16", "bfloat16"),
            "target": ("float32", "float16", "bfloat16"),
        },
        {"reduction": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
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
    "Mul": OperatorInfo(
        "Mul",
        "mul",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Muls": OperatorInfo(
        "Muls",
        "muls",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("out"),),
    ),
    "MultilabelMarginLoss": OperatorInfo(
        "MultilabelMarginLoss",
        "multilabel_margin_loss",
        {
            "self": ("float32", "float16", "bfloat16"),
            "target": ("int32", "int64"),
        },
        {"reduction": "int"},
        (
            OutputInfo("out", is_dtype_fixed=True),
            OutputInfo("is_target", is_dtype_fixed=True),
        ),
    ),
    "Mv": OperatorInfo(
        "Mv",
        "mv",
        {
            "self": ("float32", "float16", "bfloat16"),
            "vec": ("float32", "float16", "bfloat16"),
        },
        {"cube_math_type": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "NanToNum": OperatorInfo(
        "NanToNum",
        "nan_to_num",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"nan": "float", "posinf": "float", "neginf": "float"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "NeScalar": OperatorInfo(
        "NeScalar",
        "ne_scalar",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("out"),),
    ),
    "NeTensor": OperatorInfo(
        "NeTensor",
        "ne_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Neg": OperatorInfo(
        "Neg",
        "neg",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "int32",
                "int64",
            ),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "NllLoss": OperatorInfo(
        "NllLoss",
        "nll_loss",
        {
            "self": ("float32", "float16", "bfloat16"),
            "target": ("uint8", "int32", "int64"),
            "weight": ("float32", "float16", "bfloat16"),
        },
        {"reduction": "int", "ignore_index": "int"},
        (
            OutputInfo("out", is_dtype_fixed=True),
            OutputInfo("total_weight_out", is_dtype_fixed=True),
        ),
    ),
    "NllLoss2d": OperatorInfo(
        "NllLoss2d",
        "nll_loss2d",
        {
            "self": ("float32", "float16", "bfloat16"),
            "target": ("uint8", "int32", "int64"),
            "weight": ("float32", "float16", "bfloat16"),
        },
        {"reduction": "int", "ignore_index": "int"},
        (
            OutputInfo("out", is_dtype_fixed=True),
            OutputInfo("total_weight_out", is_dtype_fixed=True),
        ),
    ),
    "NllLoss2dBackward": OperatorInfo(
        "NllLoss2dBackward",
        "nll_loss2d_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
            "target": ("uint8", "int32", "int64"),
            "weight": ("float32", "float16", "bfloat16"),
            "total_weight": ("float32", "float16", "bfloat16"),
        },
        {"reduction": "int", "ignore_index": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "NllLossBackward": OperatorInfo(
        "NllLossBackward",
        "nll_loss_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
            "target": ("uint8", "int32", "int64"),
            "weight": ("float32", "float16", "bfloat16"),
            "total_weight": ("float32", "float16", "bfloat16"),
        },
        {"reduction": "int", "ignore_index": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Norm": OperatorInfo(
        "Norm",
        "norm",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {"p_scalar": "scalar", "dim": "ints", "keepdim": "bool"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "OneHot": OperatorInfo(
        "OneHot",
        "one_hot",
        {
            "self": ("uint8", "int32", "int64"),
            "on_value": ("float32", "float16", "int8", "uint8", "int32", "int64"),
            "off_value": ("float32", "float16", "int8", "uint8", "int32", "int64"),
        },
        {"num_classes": "int", "axis": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Permute": OperatorInfo(
        "Permute",
        "permute",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dims": "ints"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "PowScalarTensor": OperatorInfo(
        "PowScalarTensor",
        "pow_scalar_tensor",
        {
            "exponent": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"self": "scalar"},
        (OutputInfo("out"),),
    ),
    "PowTensorScalar": OperatorInfo(
        "PowTensorScalar",
        "pow_tensor_scalar",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"exponent": "scalar"},
        (OutputInfo("out"),),
    ),
    "PowTensorTensor": OperatorInfo(
        "PowTensorTensor",
        "pow_tensor_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "exponent": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Prelu": OperatorInfo(
        "Prelu",
        "prelu",
        {
            "self": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "PreluBackward": OperatorInfo(
        "PreluBackward",
        "prelu_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
            "weight": ("float32", "float16", "bfloat16"),
        },
        {},
        (
            OutputInfo("grad_input", is_dtype_fixed=True),
            OutputInfo("grad_weight", is_dtype_fixed=True),
        ),
    ),
    "Prod": OperatorInfo(
        "Prod",
        "prod",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dtype": "dtype"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "ProdDim": OperatorInfo(
        "ProdDim",
        "prod_dim",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dim": "int", "keep_dim": "bool", "dtype": "dtype"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Reciprocal": OperatorInfo(
        "Reciprocal",
        "reciprocal",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "ReduceNansum": OperatorInfo(
        "ReduceNansum",
        "reduce_nansum",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dim": "ints", "keep_dim": "bool", "dtype": "dtype"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "ReduceSum": OperatorInfo(
        "ReduceSum",
        "reduce_sum",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dims": "ints", "keep_dims": "bool", "dtype": "dtype"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Relu": OperatorInfo(
        "Relu",
        "relu",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "int8",
                "uint8",
                "int32",
                "int64",
            ),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "RemainderScalarTensor": OperatorInfo(
        "RemainderScalarTensor",
        "remainder_scalar_tensor",
        {
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"self": "scalar"},
        (OutputInfo("out"),),
    ),
    "RemainderTensorScalar": OperatorInfo(
        "RemainderTensorScalar",
        "remainder_tensor_scalar",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"other": "scalar"},
        (OutputInfo("out"),),
    ),
    "RemainderTensorTensor": OperatorInfo(
        "RemainderTensorTensor",
        "remainder_tensor_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Renorm": OperatorInfo(
        "Renorm",
        "renorm",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {"p": "scalar", "dim": "int", "max_norm": "scalar"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Repeat": OperatorInfo(
        "Repeat",
        "repeat",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"repeats": "ints"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "RmsNorm": OperatorInfo(
        "RmsNorm",
        "rms_norm",
        {
            "x": ("float32", "float16", "bfloat16"),
            "gamma": ("float32", "float16", "bfloat16"),
        },
        {"epsilon": "float"},
        (
            OutputInfo("y_out", is_dtype_fixed=True),
            OutputInfo("rstd_out", is_dtype_fixed=True),
        ),
    ),
    "RmsNormGrad": OperatorInfo(
        "RmsNormGrad",
        "rms_norm_grad",
        {
            "dy": ("float32", "float16", "bfloat16"),
            "x": ("float32", "float16", "bfloat16"),
            "rstd": ("float32",),
            "gamma": ("float32", "float16", "bfloat16"),
        },
        {},
        (
            OutputInfo("dx_out", is_dtype_fixed=True),
            OutputInfo("dgamma_out", is_dtype_fixed=True),
        ),
    ),
    "Roll": OperatorInfo(
        "Roll",
        "roll",
        {
            "x": (
                "float32",
                "float16",
                "bfloat16",
                "int8",
                "uint8",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"shifts": "ints", "dims": "ints"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Round": OperatorInfo(
        "Round",
        "round",
        {
            "self": ("float32", "float16", "bfloat16", "float64", "int32", "int64"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Rsqrt": OperatorInfo(
        "Rsqrt",
        "rsqrt",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Rsub": OperatorInfo(
        "Rsub",
        "rsub",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"alpha": "scalar"},
        (OutputInfo("out"),),
    ),
    "Rsubs": OperatorInfo(
        "Rsubs",
        "rsubs",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"other": "scalar", "alpha": "scalar"},
        (OutputInfo("out"),),
    ),
    "SWhere": OperatorInfo(
        "SWhere",
        "s_where",
        {
            "condition": ("uint8", "bool"),
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "ScaledMaskedSoftmax": OperatorInfo(
        "ScaledMaskedSoftmax",
        "scaled_masked_softmax",
        {
            "x": ("float32", "float16", "bfloat16"),
            "mask": ("bool",),
        },
        {"scale": "float", "fixed_triu_mask": "bool"},
        (OutputInfo("y", is_dtype_fixed=True),),
    ),
    "ScaledMaskedSoftmaxBackward": OperatorInfo(
        "ScaledMaskedSoftmaxBackward",
        "scaled_masked_softmax_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "y": ("float32", "float16", "bfloat16"),
            "mask": ("bool",),
        },
        {"scale": "float", "fix_triu_mask": "bool"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Scatter": OperatorInfo(
        "Scatter",
        "scatter",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "index": ("int32", "int64"),
            "src": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dim": "int", "reduce": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "ScatterAdd": OperatorInfo(
        "ScatterAdd",
        "scatter_add",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "index": ("int32", "int64"),
            "src": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dim": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "ScatterNdUpdate": OperatorInfo(
        "ScatterNdUpdate",
        "scatter_nd_update",
        {
            "self": ("float32", "float16", "bfloat16", "int8", "int64", "bool"),
            "indices": ("int32", "int64"),
            "updates": ("float32", "float16", "bfloat16", "int8", "int64", "bool"),
        },
        {},
        (OutputInfo("self", is_dtype_fixed=True),),
    ),
    "ScatterValue": OperatorInfo(
        "ScatterValue",
        "scatter_value",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "index": ("int32", "int64"),
        },
        {"dim": "int", "value": "scalar", "reduce": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Selu": OperatorInfo(
        "Selu",
        "selu",
        {
            "self": ("float32", "float16", "bfloat16", "int8", "int32"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "SeluBackward": OperatorInfo(
        "SeluBackward",
        "selu_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16", "int8", "int32"),
            "result": ("float32", "float16", "bfloat16", "int8", "int32"),
        },
        {},
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "Sigmoid": OperatorInfo(
        "Sigmoid",
        "sigmoid",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "SigmoidBackward": OperatorInfo(
        "SigmoidBackward",
        "sigmoid_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16", "float64"),
            "output": ("float32", "float16", "bfloat16", "float64"),
        },
        {},
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "Sign": OperatorInfo(
        "Sign",
        "sign",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("result", is_dtype_fixed=True),),
    ),
    "Silu": OperatorInfo(
        "Silu",
        "silu",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "SiluBackward": OperatorInfo(
        "SiluBackward",
        "silu_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
        },
        {},
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "Sin": OperatorInfo(
        "Sin",
        "sin",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Sinh": OperatorInfo(
        "Sinh",
        "sinh",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Slice": OperatorInfo(
        "Slice",
        "slice",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "int8",
                "uint8",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dim": "int", "start": "int", "end": "int", "step": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "SmoothL1Loss": OperatorInfo(
        "SmoothL1Loss",
        "smooth_l1_loss",
        {
            "self": ("float32", "float16", "bfloat16"),
            "target": ("float32", "float16", "bfloat16"),
        },
        {"reduction": "int", "beta": "float"},
        (OutputInfo("result", is_dtype_fixed=True),),
    ),
    "SmoothL1LossBackward": OperatorInfo(
        "SmoothL1LossBackward",
        "smooth_l1_loss_backward",
        {
            "grad_out": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
            "target": ("float32", "float16", "bfloat16"),
        },
        {"reduction": "int", "beta": "float"},
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "SoftMarginLoss": OperatorInfo(
        "SoftMarginLoss",
        "soft_margin_loss",
        {
            "self": ("float32", "float16", "bfloat16"),
            "target": ("float32", "float16", "bfloat16"),
        },
        {"reduction": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "SoftMarginLossBackward": OperatorInfo(
        "SoftMarginLossBackward",
        "soft_margin_loss_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
            "target": ("float32", "float16", "bfloat16"),
        },
        {"reduction": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Softmax": OperatorInfo(
        "Softmax",
        "softmax",
        {
            "self": ("float32", "float16", "bfloat16", "float64"),
        },
        {"dim": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "SoftmaxBackward": OperatorInfo(
        "SoftmaxBackward",
        "softmax_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "output": ("float32", "float16", "bfloat16"),
        },
        {"dim": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "SoftmaxCrossEntropyWithLogits": OperatorInfo(
        "SoftmaxCrossEntropyWithLogits",
        "softmax_cross_entropy_with_logits",
        {
            "features": ("float32", "float16", "bfloat16"),
            "labels": ("float32", "float16", "bfloat16"),
        },
        {},
        (
            OutputInfo("loss", is_dtype_fixed=True),
            OutputInfo("backprop", is_dtype_fixed=True),
        ),
    ),
    "Softplus": OperatorInfo(
        "Softplus",
        "softplus",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {"beta": "scalar", "threshold": "scalar"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "SoftplusBackward": OperatorInfo(
        "SoftplusBackward",
        "softplus_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16", "float64"),
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"beta": "scalar", "threshold": "scalar"},
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "Softshrink": OperatorInfo(
        "Softshrink",
        "softshrink",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {"lambd": "scalar"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "SoftshrinkBackward": OperatorInfo(
        "SoftshrinkBackward",
        "softshrink_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
        },
        {"lambd": "scalar"},
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "Sort": OperatorInfo(
        "Sort",
        "sort",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"stable": "bool", "dim": "int", "descending": "bool"},
        (
            OutputInfo("values_out", is_dtype_fixed=True),
            OutputInfo("indices_out", is_dtype_fixed=True),
        ),
    ),
    "SplitTensor": OperatorInfo(
        "SplitTensor",
        "split_tensor",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"split_sections": "int", "dim": "int"},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
    ),
    "SplitWithSize": OperatorInfo(
        "SplitWithSize",
        "split_with_size",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"split_size": "ints", "dim": "int"},
        (OutputInfo("out", is_list=True, is_dtype_fixed=True),),
    ),
    "Sqrt": OperatorInfo(
        "Sqrt",
        "sqrt",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Stack": OperatorInfo(
        "Stack",
        "stack",
        {
            "tensors": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"dim": "int"},
        (OutputInfo("out"),),
        ("tensors",),
    ),
    "Std": OperatorInfo(
        "Std",
        "std",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {"dim": "ints", "correction": "int", "keepdim": "bool"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "StdMeanCorrection": OperatorInfo(
        "StdMeanCorrection",
        "std_mean_correction",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {"dim": "ints", "correction": "int", "keepdim": "bool"},
        (
            OutputInfo("std_out", is_dtype_fixed=True),
            OutputInfo("mean_out", is_dtype_fixed=True),
        ),
    ),
    "Sub": OperatorInfo(
        "Sub",
        "sub",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
            "other": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"alpha": "scalar"},
        (OutputInfo("out"),),
    ),
    "Subs": OperatorInfo(
        "Subs",
        "subs",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"other": "scalar", "alpha": "scalar"},
        (OutputInfo("out"),),
    ),
    "Sum": OperatorInfo(
        "Sum",
        "sum",
        {
            "tensors": ("float32", "float16", "int8", "uint8", "int32"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
        ("tensors",),
    ),
    "SwiGlu": OperatorInfo(
        "SwiGlu",
        "swi_glu",
        {
            "x": ("float32", "float16", "bfloat16"),
        },
        {"dim": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "SwiGluGrad": OperatorInfo(
        "SwiGluGrad",
        "swi_glu_grad",
        {
            "y_grad": ("float32", "float16", "bfloat16"),
            "x": ("float32", "float16", "bfloat16"),
        },
        {"dim": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Swish": OperatorInfo(
        "Swish",
        "swish",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {"beta": "scalar"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "SwishBackward": OperatorInfo(
        "SwishBackward",
        "swish_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16"),
            "self": ("float32", "float16", "bfloat16"),
        },
        {"beta": "scalar"},
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "Tan": OperatorInfo(
        "Tan",
        "tan",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "Tanh": OperatorInfo(
        "Tanh",
        "tanh",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {},
        (OutputInfo("out"),),
    ),
    "TanhBackward": OperatorInfo(
        "TanhBackward",
        "tanh_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16", "float64"),
            "output": ("float32", "float16", "bfloat16", "float64"),
        },
        {},
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "Threshold": OperatorInfo(
        "Threshold",
        "threshold",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"threshold": "scalar", "value": "scalar"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "ThresholdBackward": OperatorInfo(
        "ThresholdBackward",
        "threshold_backward",
        {
            "grad_output": ("float32", "float16", "bfloat16", "int8", "uint8", "int32"),
            "self": ("float32", "float16", "bfloat16", "int8", "uint8", "int32"),
        },
        {"threshold": "scalar"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Topk": OperatorInfo(
        "Topk",
        "topk",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
            ),
        },
        {"k": "int", "dim": "int", "largest": "bool", "sorted": "bool"},
        (
            OutputInfo("values_out", is_dtype_fixed=True),
            OutputInfo("indices_out", is_dtype_fixed=True),
        ),
    ),
    "Tril": OperatorInfo(
        "Tril",
        "tril",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"diagonal": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Triu": OperatorInfo(
        "Triu",
        "triu",
        {
            "self": (
                "float32",
                "float16",
                "bfloat16",
                "float64",
                "int8",
                "uint8",
                "int16",
                "int32",
                "int64",
                "bool",
            ),
        },
        {"diagonal": "int"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Trunc": OperatorInfo(
        "Trunc",
        "trunc",
        {
            "self": ("float32", "float16", "bfloat16", "float64"),
        },
        {},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "UnfoldGrad": OperatorInfo(
        "UnfoldGrad",
        "unfold_grad",
        {
            "grad_out": ("float32", "float16", "bfloat16"),
        },
        {"input_sizes": "ints", "dim": "int", "size": "int", "step": "int"},
        (OutputInfo("grad_in", is_dtype_fixed=True),),
    ),
    "UpsampleBilinear2d": OperatorInfo(
        "UpsampleBilinear2d",
        "upsample_bilinear2d",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {
            "output_size": "ints",
            "align_corners": "bool",
            "scales_h": "float",
            "scales_w": "float",
        },
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "UpsampleBilinear2dBackward": OperatorInfo(
        "UpsampleBilinear2dBackward",
        "upsample_bilinear2d_backward",
        {
            "grad_out": ("float32", "float16", "bfloat16"),
        },
        {
            "output_size": "ints",
            "input_size": "ints",
            "align_corners": "bool",
            "scales_h": "float",
            "scales_w": "float",
        },
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "UpsampleNearest2d": OperatorInfo(
        "UpsampleNearest2d",
        "upsample_nearest2d",
        {
            "self": ("float32", "float16", "bfloat16", "float64", "uint8"),
        },
        {"output_size": "ints"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "UpsampleNearest2dBackward": OperatorInfo(
        "UpsampleNearest2dBackward",
        "upsample_nearest2d_backward",
        {
            "grad_out": ("float32", "float16", "bfloat16"),
        },
        {
            "output_size": "ints",
            "input_size": "ints",
            "scales_h": "float",
            "scales_w": "float",
        },
        (OutputInfo("grad_input", is_dtype_fixed=True),),
    ),
    "UpsampleNearest2dV2": OperatorInfo(
        "UpsampleNearest2dV2",
        "upsample_nearest2d_v2",
        {
            "self": ("float32", "float16", "bfloat16", "float64", "uint8"),
        },
        {"output_size": "ints", "scales_h": "float", "scales_w": "float"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "Var": OperatorInfo(
        "Var",
        "var",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {"dim": "ints", "unbiased": "bool", "keepdim": "bool"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "VarCorrection": OperatorInfo(
        "VarCorrection",
        "var_correction",
        {
            "self": ("float32", "float16", "bfloat16"),
        },
        {"dim": "ints", "correction": "int", "keepdim": "bool"},
        (OutputInfo("out", is_dtype_fixed=True),),
    ),
    "VarMean": OperatorInfo(
        "VarMean",
        "var_mean",
        {
            "self": ("float32", "float16"),
        },
        {"dim": "ints", "correction": "int", "keepdim": "bool"},
        (
            OutputInfo("var_out", is_dtype_fixed=True),
            OutputInfo("mean_out", is_dtype_fixed=True),
        ),
    ),
}
