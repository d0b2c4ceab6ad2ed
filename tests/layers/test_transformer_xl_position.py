"""TransformerXLPosition compared with the paper and XLNet's attention."""

import hypothesis
import keras
import numpy as np
import pytest
from hypothesis import strategies as st
from keras import ops

from keras_attn.layers import MultiHeadAttention, TransformerXLPosition
from keras_attn.ops import Visibility, attend, relative_shift
from keras_attn.ops.relative import relative_sinusoids
from keras_attn.ops.visibility import make_visibility
from tests.helpers.contract import randomize
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.reference import transformer_xl_scores
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

torch = pytest.importorskip("torch")

from transformers import XLNetConfig
from transformers.models.xlnet.modeling_xlnet import XLNetRelativeAttention

pytestmark = pytest.mark.every_backend

N, H, D = 3, 4, 10


def drawn(heads=N, width=H, waves=D):
    return randomize(TransformerXLPosition(heads, width, waves))


def scores_of(position, query, key, visibility):
    """Computes the scores before the softmax."""
    query, bias = position.relate(
        ops.convert_to_tensor(query), visibility, key.shape[1]
    )
    content = np.einsum("btnh,bsnh->bnts", values(query), key)
    return content * query.shape[-1] ** -0.5 + values(bias)


def test_relative_sinusoids():
    distances = np.int32([-70_000, -3, 0, 1, 2, 100_000])
    rates = 10_000.0 ** (-np.arange(0, 8, 2) / 8)
    angles = distances[:, None].astype("float64") * rates
    expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
    found = relative_sinusoids(ops.convert_to_tensor(distances), 8)
    assert_close(values(found), expected)


@hypothesis.given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 3))
@hypothesis.settings(deadline=None, max_examples=20)
def test_relative_shift(queries, keys, more):
    count = keys + queries - 1 + more
    scores = normal(2, 3, queries, count, seed=1)
    found = values(relative_shift(ops.convert_to_tensor(scores), keys))
    for row in range(queries):
        start = queries - 1 - row
        expected = scores[:, :, row, start : start + keys]
        np.testing.assert_array_equal(found[:, :, row], expected)


@pytest.mark.parametrize("memory", [0, 2, 5])
@pytest.mark.parametrize("causal", [False, True])
def test_the_four_terms(memory, causal):
    """By index and by position, with and without keys of a memory."""
    queries, keys = 4, 4 + memory
    position = drawn()
    query = normal(2, queries, N, H, seed=2)
    key = normal(2, keys, N, H, seed=3)
    query_positions = np.tile(np.arange(queries) + memory, (2, 1))
    key_positions = np.tile(np.arange(keys), (2, 1))
    expected = transformer_xl_scores(
        query,
        key,
        *map(
            values,
            (position.kernel, position.content_bias, position.distance_bias),
        ),
        query_positions,
        key_positions,
    )
    position_ids = [
        ops.convert_to_tensor(x.astype("int32"))
        for x in (query_positions, key_positions)
    ]
    visible = (query_positions[:, :, None] >= key_positions[:, None])[:, None]
    visible = np.broadcast_to(visible | (not causal), expected.shape)
    for offset in (None, memory):
        visibility = Visibility(*position_ids, causal=causal, offset=offset)
        found = scores_of(position, query, key, visibility)
        assert_close(found[visible], expected[visible])
    if memory:
        # Another offset changes the distances.
        visibility = Visibility(*position_ids, causal=causal, offset=0)
        assert_differs(
            scores_of(position, query, key, visibility)[visible],
            expected[visible],
        )


def test_permuted_order():
    """Keys after the query are visible, at negative distances."""
    position = drawn()
    x = normal(1, 4, N, H, seed=2)
    order = ops.convert_to_tensor(np.int32([[3, 1, 0, 2]]))
    visibility = {"causal": True, "query_order": order, "key_order": order}
    position_ids = ops.convert_to_tensor(np.arange(4, dtype="int32")[None])
    by_slots = scores_of(position, x, x, Visibility(**visibility))
    exact = scores_of(
        position, x, x, Visibility(position_ids, position_ids, **visibility)
    )
    assert_close(by_slots, exact)


def twin_of(layer, width):
    """Returns XLNet's attention layer with the weights of a layer."""
    config = XLNetConfig(
        d_model=width,
        n_head=layer.num_heads,
        d_inner=4,
        dropout=0.0,
        n_layer=1,
        vocab_size=8,
    )
    twin = XLNetRelativeAttention(config)
    position = layer.attention_position
    heads = layer.query_dense, layer.key_dense, layer.value_dense
    for name, array in (
        *zip("qkv", (dense.kernel for dense in heads), strict=True),
        ("o", ops.transpose(layer.output_dense.kernel, (2, 0, 1))),
        ("r", position.kernel),
        ("r_w_bias", position.content_bias),
        ("r_r_bias", position.distance_bias),
    ):
        getattr(twin, name).data = torch.tensor(values(array))
    return twin.eval()


@pytest.mark.parametrize("causal", [False, True])
def test_equals_the_attention_of_xlnet(causal):
    """Values and gradients of inputs and all weights."""
    batch, length, width = 2, 7, N * H
    layer = MultiHeadAttention(
        N,
        H,
        use_bias=False,
        causal=causal,
        attention_position=TransformerXLPosition(N, H),
    )
    layer.build((None, None, width), (None, None, width))
    randomize(layer)
    twin = twin_of(layer, width)
    x = normal(batch, length, width, seed=4)
    upstream = normal(batch, length, width, seed=5)
    tensor = torch.tensor(np.swapaxes(x, 0, 1).copy(), requires_grad=True)
    waves = relative_sinusoids(
        ops.convert_to_tensor(np.arange(length, -length, -1, dtype="int32")),
        width,
    )
    waves = torch.tensor(values(waves))[:, None].expand(-1, batch, -1)
    blocked = None
    if causal:
        blocked = torch.tensor(1.0 - np.tri(length, dtype="float32"))
        blocked = blocked[:, :, None, None].expand(-1, -1, batch, 1)
    heads = [
        torch.einsum("ibh,hnd->ibnd", tensor, getattr(twin, n)) for n in "qkv"
    ]
    relative = torch.einsum("ibh,hnd->ibnd", waves, twin.r)
    mixed = twin.rel_attn_core(*heads, relative, attn_mask=blocked)
    expected = torch.einsum("ibnd,hnd->bih", mixed, twin.o)
    (expected * torch.tensor(upstream)).sum().backward()

    assert_close(values(layer(x, x)), expected.detach().numpy())
    (at_x,), at_weights = layer_gradients(
        layer, lambda x: weighted_sum(layer(x, x), upstream), x
    )
    assert_close(at_x, np.swapaxes(tensor.grad.numpy(), 0, 1), 2e-5)
    theirs = {
        "query/kernel": twin.q,
        "key/kernel": twin.k,
        "value/kernel": twin.v,
        "attention_output/kernel": twin.o,
    }
    for name, parameter in theirs.items():
        gradient = parameter.grad.numpy()
        if "output" in name:
            gradient = gradient.transpose(1, 2, 0)
        assert_close(at_weights[name], gradient, 2e-5)
    for name, parameter in (
        ("/kernel", twin.r),
        ("content_bias", twin.r_w_bias),
        ("distance_bias", twin.r_r_bias),
    ):
        (found,) = [
            array
            for path, array in at_weights.items()
            if path.endswith(name) and path not in theirs
        ]
        assert_close(found, parameter.grad.numpy(), 2e-5)
        assert np.abs(found).max() > 0.01


def test_gradients_by_index_and_by_position_are_equal():
    position = drawn()
    x = normal(2, 5, N, H, seed=6)
    upstream = normal(2, 5, N, H, seed=7)
    position_ids = np.arange(5, dtype="int32")[None]
    found = []
    for visibility in (
        make_visibility(5, 5, causal=True),
        make_visibility(
            5,
            5,
            causal=True,
            query_positions=position_ids,
            key_positions=position_ids,
        ),
    ):

        def loss(x, visibility=visibility):
            query, bias = position.relate(x, visibility, 5)
            return weighted_sum(
                attend(query, x, x, visibility, bias=bias), upstream
            )

        (at_x,), at_weights = layer_gradients(position, loss, x)
        found.append([at_x, *at_weights.values()])
    assert len(found[0]) == 4
    for one, other in zip(*found, strict=True):
        assert_close(one, other, 2e-5)
        assert np.abs(one).max() > 0.01


def test_half_precision_scores_are_float32():
    layer = MultiHeadAttention(
        N,
        H,
        attention_position=TransformerXLPosition(N, H),
        dtype="mixed_bfloat16",
    )
    exact = MultiHeadAttention(
        N, H, attention_position=TransformerXLPosition(N, H)
    )
    for one in (layer, exact):
        one.build((None, None, N * H), (None, None, N * H))
        randomize(one)
    x = normal(1, 6, N * H, seed=8)
    found = layer(x, x)
    assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
    assert_close(values(ops.cast(found, "float32")), values(exact(x, x)), 0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2, 4, 5), "`hidden_dim` must be even"),
        ((0, 4), "`num_heads`"),
        ((2, 0), "`key_dim`"),
        ((2, 4, 0), "`hidden_dim`"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        TransformerXLPosition(*arguments)


@pytest.mark.parametrize(
    ("sizes", "message"), [((3, 4), "2 heads"), ((2, 6), "`key_dim` of the")]
)
def test_mismatched_attention_raises(sizes, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(
            2, 4, attention_position=TransformerXLPosition(*sizes)
        )


def _largest(jaxpr):
    """Returns the size of the largest intermediate value of a jaxpr."""
    sizes = [0]
    for equation in jaxpr.eqns:
        sizes += [var.aval.size for var in equation.outvars]
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else [value]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    sizes.append(_largest(inner))
    return max(sizes)


@pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="inspects the jaxpr"
)
@pytest.mark.parametrize("padded", [False, True])
def test_no_tensor_of_size_queries_times_keys_times_width(padded):
    import jax

    length, width = 24, 64
    layer = MultiHeadAttention(
        2, 32, causal=True, attention_position=TransformerXLPosition(2, 32)
    )
    x = normal(1, length, width)
    layer.build(x.shape, x.shape)
    mask = np.arange(length)[None] < length - padded * 3

    def loss(x):
        return keras.ops.sum(
            layer(x, x, query_mask=mask, value_mask=mask)
            if padded
            else layer(x, x)
        )

    closed_jaxpr = jax.make_jaxpr(jax.value_and_grad(loss))(x)
    largest = _largest(closed_jaxpr.jaxpr)
    assert 2 * length**2 <= largest < length**2 * width / 4
