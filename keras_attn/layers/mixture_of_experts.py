"""Mixture of feed-forward networks."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
from keras import ops

from keras_attn import checks
from keras_attn.backend import (
    bool_mask,
    gather_rows,
    known_size,
    reduce_max,
    take_along_axis,
)
from keras_attn.layers.added_losses import add_loss
from keras_attn.layers.expert_dense import ExpertDense
from keras_attn.layers.position_wise_network import PositionWiseNetwork
from keras_attn.typing import Activation, Initializer, Shape, Tensor, TensorLike

# Up to so many tokens, all experts are applied to all tokens if gathering the
# kernels would copy more.
_FEW = 32


@keras.saving.register_keras_serializable(package="keras_attn")
class MixtureOfExperts(PositionWiseNetwork):
    """Applies a few of many feed-forward networks to each position.

        h = x W_r + b_r
        g = softmax(h_i for i in top_k(h))
        MoE(x) = sum_i g_i FFN_i(x)

    The router W_r chooses k of the E experts for each token, as in Mixtral
    (Jiang et al. 2024, https://arxiv.org/abs/2401.04088) and gpt-oss (OpenAI
    2025, https://arxiv.org/abs/2508.10925), after Shazeer et al. 2017
    (https://arxiv.org/abs/1701.06538). Each FFN_i is a network like
    `FeedForward`. No expert has a capacity, so no token is dropped.

    In training, the layer adds a load-balancing loss (Fedus et al. 2021, eq. 4,
    https://arxiv.org/abs/2101.03961):

        loss = coef E sum_i f_i P_i

    f_i is the number of tokens that expert i gets, P_i the sum of its
    probabilities softmax(h)_i, each divided by the number of tokens. Padding
    does not count. With equal loads the loss is coef k, its least value.

    The router is computed in float32 under mixed precision, and it is never
    quantized.

    Args:
        intermediate_dim: int >= 1. Width of the hidden layer of each expert.
        num_experts: int >= 1. E.
        num_experts_per_tok: int in [1, E]. k. Default 2.
        activation: name or callable, f. Default `"relu"`.
        gated: bool. Use the gated form. Default False.
        gate_limit: float > 0. Limit of the gated form, as in `FeedForward`.
            Default None.
        dropout: float in [0, 1). Dropout probability of the hidden features.
            Default 0.0.
        use_bias: bool. Biases of the router and the experts. Default True.
        router_aux_loss_coef: float >= 0. Factor of the load-balancing loss; 0
            adds none. Default 0.01, as in the Switch Transformer.
        kernel_initializer: initializer of the kernels.
        bias_initializer: initializer of the biases.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        inputs: float (..., D).
        mask: bool (...), True for tokens, False for padding; default: the
            implicit Keras mask. It only excludes tokens from the loss.
        training: bool. Whether to apply dropout and to add the loss.

    Returns:
        Float (..., D).

    Raises:
        ValueError: an argument is out of range; a mask of another shape.

    Cost:
        In multiples of one network for one token: at most 2 k T for T tokens,
        in groups of tokens of equal size, and copies of the kernels of less
        than 2 E experts. For the few tokens of a decoding step k T, with as
        many copies, or E T without copies.

    Examples:
        >>> layer = keras_attn.layers.MixtureOfExperts(
        ...     32, num_experts=4, activation="silu", gated=True)
        >>> tuple(layer(keras.ops.ones((2, 3, 8))).shape)
        (2, 3, 8)
    """

    _tensors = ("inputs", "mask")

    def __init__(
        self,
        intermediate_dim: int,
        num_experts: int,
        num_experts_per_tok: int = 2,
        activation: Activation = "relu",
        gated: bool = False,
        dropout: float = 0.0,
        use_bias: bool = True,
        router_aux_loss_coef: float = 0.01,
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        gate_limit: float | None = None,
        **kwargs: Any,
    ) -> None:
        checks.positive_int("num_experts", num_experts)
        check_experts(num_experts, num_experts_per_tok, router_aux_loss_coef)
        super().__init__(
            intermediate_dim,
            activation,
            gated,
            dropout,
            use_bias,
            kernel_initializer,
            bias_initializer,
            gate_limit,
            **kwargs,
        )
        self.num_experts = num_experts
        self.num_experts_per_tok = num_experts_per_tok
        self.router_aux_loss_coef = router_aux_loss_coef

    def build(self, inputs_shape: Shape) -> None:
        """Creates the router and the dense layers of the experts."""
        self._router = keras.layers.Dense(
            self.num_experts,
            use_bias=self.use_bias,
            kernel_initializer=self.kernel_initializer.clone(),
            bias_initializer=self.bias_initializer.clone(),
            dtype=keras.backend.result_type(self.compute_dtype, "float32"),
            name="router",
        )
        self._router.keeps_float = True
        self._router.build((None, inputs_shape[-1]))
        super().build(inputs_shape)

    def _dense(self, name, fan_in, fan_out):
        dense = ExpertDense(
            self.num_experts,
            fan_out,
            self.use_bias,
            self.kernel_initializer.clone(),
            self.bias_initializer.clone(),
            dtype=self.dtype_policy,
            name=f"{name}_experts",
        )
        dense.build((None, None, fan_in))
        return dense

    def call(
        self,
        inputs: TensorLike,
        mask: TensorLike | None = None,
        training: bool | None = None,
    ) -> Tensor:
        """Applies the layer; the class docstring lists the arguments."""
        checks.floats("inputs", inputs)
        checks.width("inputs", inputs.shape, self._width)
        if mask is not None:
            if not checks.fits(mask.shape, inputs.shape[:-1]):
                raise ValueError(
                    "`mask` must have the shape of `inputs` without features, "
                    f"{tuple(inputs.shape[:-1])}. Received: mask of shape "
                    f"{tuple(mask.shape)}"
                )
            mask = bool_mask("mask", mask)
        sizes = [known_size(size) for size in inputs.shape[:-1]]
        tokens = None if None in sizes else math.prod(sizes)
        x = ops.reshape(inputs, (-1, self._width))
        logits = self._router(x)
        # Not `top_k`, which reads values on PyTorch.
        order = ops.argsort(-ops.stop_gradient(logits), axis=-1)
        experts = ops.cast(order[:, : self.num_experts_per_tok], "int32")
        if training and self.router_aux_loss_coef:
            add_loss(self, self._balance(logits, experts, mask))
        weights = _softmax(take_along_axis(logits, experts))
        outputs = self._of_experts(x, experts, tokens, training)
        weights = ops.cast(weights[..., None], outputs.dtype)
        outputs = ops.sum(weights * outputs, axis=1)
        return ops.reshape(outputs, ops.shape(inputs))

    if TYPE_CHECKING:
        __call__ = call

    def _balance(self, logits, experts, mask):
        """Returns the load-balancing loss.

        Args:
            logits: float32 (T, E).
            experts: int32 (T, k).
            mask: bool, T entries, or None.
        """
        # `ops.one_hot` reads the largest one (as of Keras 3.15.1, PyTorch).
        ids = ops.arange(self.num_experts, dtype="int32")
        chosen = ops.cast(experts[..., None] == ids, logits.dtype)
        chosen, shares = ops.sum(chosen, axis=1), _softmax(logits)
        if mask is None:
            is_token = ops.ones_like(logits[:, :1])
        else:
            is_token = ops.cast(ops.reshape(mask, (-1, 1)), logits.dtype)
        count = ops.maximum(ops.sum(is_token), 1)
        load = ops.sum(chosen * is_token, axis=0) / count
        probability = ops.sum(shares * is_token, axis=0) / count
        loss = self.num_experts * ops.sum(load * probability)
        return self.router_aux_loss_coef * loss

    def _of_experts(self, x, experts, tokens, training):
        """Returns the outputs of the chosen experts, float (T, k, D).

        Args:
            x: float (T, D).
            experts: int32 (T, k).
            tokens: int. T, or None if it is not known.
            training: bool. Whether to apply dropout.
        """
        chosen = experts.shape[1]
        flat = ops.reshape(experts, (-1,))
        plan = plan_experts(tokens, chosen, self.num_experts)
        if plan == "gather":
            rows = ops.repeat(x, chosen, axis=0)[:, None]
            outputs = self._apply(rows, flat, training)
        elif plan == "all":
            outputs = self._apply(x[None], None, training)
            rows = ops.arange(ops.shape(x)[0], dtype="int32")[:, None]
            index = experts * ops.shape(x)[0] + rows
            outputs = ops.reshape(outputs, (-1, self._width))
            outputs = gather_rows(outputs, ops.reshape(index, (-1,)))
        else:
            known = None if tokens is None else tokens * chosen
            groups = _group(flat, self.num_experts, known)
            rows = gather_rows(x, groups.assignments // chosen)
            count = groups.experts.shape[0]
            rows = ops.reshape(rows, (count, -1, self._width))
            outputs = self._apply(rows, groups.experts, training)
            outputs = ops.reshape(outputs, (-1, self._width))
            outputs = gather_rows(outputs, groups.slots)
        return ops.reshape(outputs, (-1, chosen, self._width))

    def _apply(self, rows, experts, training):
        # Not `__call__`, which looks for methods of quantized Keras layers.
        return self._network(
            lambda layer, x: layer.call(x, experts), rows, training
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "num_experts": self.num_experts,
            "num_experts_per_tok": self.num_experts_per_tok,
            "router_aux_loss_coef": self.router_aux_loss_coef,
        }


def check_experts(
    num_experts: Any, num_experts_per_tok: Any, router_aux_loss_coef: Any
) -> None:
    """Raises ValueError for arguments that are out of range.

    Args:
        num_experts: int >= 1, or None: no experts.
        num_experts_per_tok: int in [1, num_experts].
        router_aux_loss_coef: float >= 0.
    """
    if num_experts is not None:
        checks.positive_int("num_experts", num_experts)
    checks.positive_int("num_experts_per_tok", num_experts_per_tok)
    if num_experts is not None and num_experts_per_tok > num_experts:
        raise ValueError(
            "`num_experts_per_tok` must be at most `num_experts`. Received: "
            f"num_experts_per_tok={num_experts_per_tok}, "
            f"num_experts={num_experts}"
        )
    checks.real("router_aux_loss_coef", router_aux_loss_coef)
    if router_aux_loss_coef < 0:
        raise ValueError(
            "`router_aux_loss_coef` must be at least 0. "
            f"Received: router_aux_loss_coef={router_aux_loss_coef}"
        )


def _softmax(x):
    # That of Keras warns about a single expert (as of Keras 3.15.1).
    x = ops.exp(x - ops.stop_gradient(reduce_max(x, -1, True)))
    return x / ops.sum(x, axis=-1, keepdims=True)


def plan_experts(tokens: int | None, chosen: int, num_experts: int) -> str:
    """Returns how to compute the outputs.

    Args:
        tokens: int. T, or None if it is not known.
        chosen: int. k.
        num_experts: int. E.

    Returns:
        `"gather"`: with the kernels of each token's experts; `"all"`: all
        experts for all tokens; or `"groups"`: in groups of tokens of one expert
        each.
    """
    if tokens is not None:
        if tokens * chosen <= num_experts // 2:
            return "gather"
        if tokens <= _FEW:
            return "all"
    return "all" if 2 * chosen >= num_experts else "groups"


class _Groups(NamedTuple):
    """Assignments of tokens to experts, in groups of one expert each.

    Args:
        experts: int32 (J,). The expert of each group.
        assignments: int32 (J M,). The assignment in each slot of the groups, an
            arbitrary one in an empty slot.
        slots: int32 (A,). The slot of each assignment.
    """

    experts: Tensor
    assignments: Tensor
    slots: Tensor


def _group(experts, num_experts, known):
    """Returns `_Groups` of a number and a size that the router cannot change.

    An expert with n assignments has ceil(n / M) groups, the last one partly
    empty. With M > A / E, these are less than 2 E groups.

    Args:
        experts: int32 (A,). The experts of the assignments.
        num_experts: int. E.
        known: int. A, or None if it is not known.
    """
    if known is None:
        total = ops.shape(experts)[0]
        # At least 2: a program of PyTorch that merges axes is limited to those
        # whose sizes are not 1 (as of PyTorch 2.13.0).
        size, count = total // num_experts + 2, 2 * num_experts - 1
    else:
        total, size = known, known // num_experts + 1
        count = (known + num_experts * (size - 1)) // size
    order = ops.argsort(experts)
    ids = ops.arange(num_experts, dtype="int32")
    loads = ops.sum(ops.cast(experts[:, None] == ids, "int32"), axis=0)
    first = ops.cumsum(loads) - loads
    sizes = (loads + size - 1) // size
    ends = ops.cumsum(sizes)
    starts = ends - sizes
    groups = ops.arange(count, dtype="int32")
    found = ops.sum(ops.cast(groups[:, None] >= ends, "int32"), axis=1)
    found = ops.minimum(found, num_experts - 1)
    rank = (groups - gather_rows(starts, found)) * size
    rank = rank + gather_rows(first, found)
    ranks = rank[:, None] + ops.arange(size, dtype="int32")
    # A bound would be converted to an int, which a program fixes on PyTorch.
    ranks = ops.reshape(ranks % total, (-1,))
    within = ops.argsort(order) - gather_rows(first, experts)
    return _Groups(
        found,
        gather_rows(order, ranks),
        gather_rows(starts, experts) * size + within,
    )
