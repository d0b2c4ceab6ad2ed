"""GPU tests: kernels, precision and device placement."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.explain import attention_maps, rise
from keras_attn.explain.perturbations import TokenMasks
from keras_attn.models import GPT, TransformerXL, XLNet
from keras_attn.ops import (
    PositionBias,
    Visibility,
    attend,
    attention_plan,
    positions_from_mask,
)
from keras_attn.training import SequenceCrossentropy
from tests.helpers.gradients import gradient
from tests.helpers.tiny_models import (
    LABELS,
    SOURCE,
    TARGET,
    tiny_transformer,
    untrained_transformer,
)

# test_across_backends has a reference in PyTorch.
pytest.importorskip("torch")

from tests.test_across_backends import (
    assert_same_numbers,
    computed,
    stored_numbers,
)

pytestmark = pytest.mark.gpu


def test_same_numbers_as_on_the_cpu():
    # Matrix products may run in TensorFloat-32, which keeps ten bits: on an
    # H100, a gradient on JAX differs by 1.4e-3.
    assert_same_numbers(computed(), stored_numbers(), 3e-3, 3e-3)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_learns_in_mixed_precision(policy):
    model = untrained_transformer(dtype=policy)
    model.compile(keras.optimizers.Adam(0.02), SequenceCrossentropy())
    history = model.fit((SOURCE, TARGET), LABELS, epochs=40, verbose=0)
    losses = history.history["loss"]
    assert np.isfinite(losses).all()
    assert losses[-1] < losses[0] / 4
    decoded = model.generate(SOURCE, max_new_tokens=4)
    np.testing.assert_array_equal(decoded.tokens[:, 0, :3], LABELS)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_padding_changes_nothing_in_half_precision(dtype):
    model = tiny_transformer(dtype=f"mixed_{dtype}")
    logits, padded = (
        ops.convert_to_numpy(ops.cast(model((source, target)), "float32"))
        for source, target in (
            (SOURCE[:1], TARGET[:1]),
            (np.pad(SOURCE, ((0, 0), (4, 0))), TARGET),
        )
    )
    np.testing.assert_allclose(padded[:1], logits, atol=0.05)


def far(slopes, query, key):
    gap = query[:, None, :, None] - key[:, None, None, :]
    return slopes[None, :, None, None] * ops.cast(ops.abs(gap), "float32")


LENGTH = 70
RNG = np.random.default_rng(0)
QUERY, KEY, VALUE = RNG.normal(size=(3, 2, LENGTH, 4, 16))
BIAS = RNG.normal(size=(1, 4, LENGTH, LENGTH)).astype("float32")
SLOPES = -np.array([0.5, 0.25, 0.1, 0.0], "float32")


def visibility(name):
    mask = np.arange(LENGTH) < np.array([[LENGTH], [LENGTH // 3]])
    positions = positions_from_mask(ops.convert_to_tensor(mask))
    return {
        "causal": Visibility(causal=True),
        "window": Visibility(causal=True, window=7),
        "padded": Visibility(
            query_positions=positions, key_positions=positions, padding="right"
        ),
    }[name]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("window", [7, 130, 300])
def test_sliding_window_blocks(window, dtype):
    """Windows that span several blocks, values and gradients."""
    arrays = RNG.normal(size=(3, 2, 700, 4, 16)).astype("float32")
    cotangent = RNG.normal(size=arrays.shape[1:]).astype("float32")
    causal_window = Visibility(causal=True, window=window)

    def found(kernel):
        def loss(*tensors):
            tensors = [ops.cast(x, dtype) for x in tensors]
            output = attend(*tensors, causal_window, kernel=kernel)
            return ops.sum(ops.multiply(ops.cast(output, "float32"), cotangent))

        tensors = [ops.cast(x, dtype) for x in arrays]
        output = ops.cast(
            attend(*tensors, causal_window, kernel=kernel), "float32"
        )
        return ops.convert_to_numpy(output), *gradient(loss, *arrays)

    for one, other in zip(found(None), found("plain"), strict=True):
        np.testing.assert_allclose(one, other, atol=0.1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("bias", [None, BIAS, PositionBias(far, SLOPES)])
@pytest.mark.parametrize("name", ["causal", "window", "padded"])
def test_every_kernel_matches_the_plain_kernel(name, bias, dtype):
    tensors = [ops.cast(x, dtype) for x in (QUERY, KEY, VALUE)]
    exact = [ops.cast(x, "float32") for x in tensors]
    expected = attend(*exact, visibility(name), bias=bias, kernel="plain")
    served = 0
    for kernel in ("fused", "blockwise", "plain", None):
        try:
            attention_plan(*tensors[:2], visibility(name), bias, kernel=kernel)
        except ValueError:
            continue
        served += 1
        found = attend(*tensors, visibility(name), bias=bias, kernel=kernel)
        np.testing.assert_allclose(
            ops.convert_to_numpy(ops.cast(found, "float32")),
            ops.convert_to_numpy(expected),
            # TensorFloat-32 and half precision keep at least eight bits.
            atol=0.03,
            err_msg=str(kernel),
        )
    assert served >= 3


@pytest.mark.parametrize("kind", [GPT, TransformerXL, XLNet])
def test_language_models_generate_and_explain(kind):
    more = {"max_sequence_length": 16} if kind is GPT else {}
    model = kind(12, num_layers=2, num_heads=2, hidden_dim=8, **more)
    prompts = ops.convert_to_tensor(np.int32([[5, 6, 7], [8, 9, 10]]))
    decoded = model.generate(prompts, 3, verbose=0)
    maps = attention_maps(model, prompts, decoded=decoded)
    for one in maps:
        total = one.weights.sum(-1)
        np.testing.assert_allclose(total[total > 0], 1, atol=1e-3)
    ids = np.int32([5, 6, 7])
    found = rise(
        lambda ids: model(ids.astype("int32"))[:, -1, :3],
        ids,
        TokenMasks(mask_id=3),
        64,
        verbose=0,
    )
    assert found.shape == (3, 3) and np.isfinite(found).all()


def test_stateful_memory():
    model = TransformerXL(
        12,
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        memory_length=4,
        stateful_batch_size=2,
    )
    model.compile(keras.optimizers.Adam(0.01), SequenceCrossentropy(pad_id=-1))
    ids = np.random.default_rng(0).integers(3, 12, (2, 6)).astype("int32")
    starts = np.int32([[1, 0, 0, 0, 0, 0]] * 2)
    inputs = {"token_ids": ids, "document_starts": starts}
    losses = [model.train_on_batch(inputs, ids) for _ in range(20)]
    assert np.isfinite(losses).all() and losses[-1] < losses[0]
