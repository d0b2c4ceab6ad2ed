"""Choice of the kernel, and its reasons."""

import importlib

import keras
import pytest
from keras import ops

from keras_attn.ops import (
    AttentionPlan,
    PositionBias,
    Visibility,
    WeightDropout,
    attend,
    attention_plan,
)
from tests.helpers import reference
from tests.helpers.ops_cases import (
    CASES,
    KERNELS,
    LENGTH,
    assert_close,
    inputs,
    spread,
    values,
    visibility,
)

pytestmark = pytest.mark.every_backend

FUSED = "fused" in KERNELS
QUERY = keras.KerasTensor((2, 5, 4, 8))


def plan(see=None, key=QUERY, **kwargs):
    return attention_plan(QUERY, key, see or Visibility(), **kwargs)


def test_fused_kernel_is_preferred():
    chosen = plan()
    assert chosen.kernel == ("fused" if FUSED else "plain")
    if not FUSED:
        assert "no fused attention" in dict(chosen.rejected)["fused"]


@pytest.mark.parametrize(
    "request_", [{"return_weights": True}, {"dropout": abs}]
)
def test_weights_and_custom_dropout_need_plain_kernel(request_):
    chosen = plan(**request_)
    assert chosen.kernel == "plain"
    why = dict(chosen.rejected)
    if FUSED:
        word = next(iter(request_)).removeprefix("return_")
        assert word in why["fused"]
    for kernel in ("fused", "blockwise"):
        with pytest.raises(ValueError, match=f"{kernel} kernel was forced, b"):
            plan(kernel=kernel, **request_)


def test_plain_can_be_forced():
    assert plan(kernel="plain") == AttentionPlan("plain", "it was asked for")


def test_forcing_fused_runs_it_or_raises():
    arrays = [ops.convert_to_tensor(array) for array in inputs()]
    if FUSED:
        assert plan(kernel="fused").kernel == "fused"
        attend(*arrays, kernel="fused")
        return
    with pytest.raises(ValueError, match=r"forced, but .* no fused attention"):
        plan(kernel="fused")
    with pytest.raises(ValueError, match=r"forced, but .* no fused attention"):
        attend(*arrays, kernel="fused")


LONG = keras.KerasTensor((8, 4096, 4, 8))


def long(see=None, **kwargs):
    return attention_plan(LONG, LONG, see or Visibility(), **kwargs)


def test_long_sequences_do_not_use_plain_kernel():
    chosen = long()
    assert chosen.kernel == ("fused" if FUSED else "blockwise")
    assert long(Visibility(causal=True)).kernel == chosen.kernel
    windowed = long(Visibility(window=256))
    assert windowed.kernel == "blockwise"
    if FUSED:
        assert "a mask of 4,096 x 4,096" in dict(windowed.rejected)["fused"]
    assert long(Visibility(causal=True, window=256)).kernel == chosen.kernel
    seed = keras.random.SeedGenerator(1).next()
    assert long(dropout=WeightDropout(0.1, seed)).kernel == "blockwise"
    bias = PositionBias(lambda parameters, query, key: None)
    assert long(bias=bias).kernel == "blockwise"
    assert plan(bias=bias).kernel == plan().kernel


def test_step_of_many_hypotheses_does_not_run_blockwise():
    """The mask over all their slots exists already."""
    query = keras.KerasTensor((2, 130, 4, 8))
    key = keras.KerasTensor((2, 130 * 64, 4, 8))
    mask = keras.KerasTensor((2, 1, 130, 130 * 64), "bool")
    chosen = attention_plan(
        query, key, Visibility(causal=True, attention_mask=mask)
    )
    assert chosen.kernel == ("fused" if FUSED else "plain")
    more = keras.KerasTensor((2, 512, 4, 8))
    mask = keras.KerasTensor((2, 1, 512, 130 * 64), "bool")
    chosen = attention_plan(
        more, key, Visibility(causal=True, attention_mask=mask)
    )
    assert chosen.kernel == ("fused" if FUSED else "blockwise")


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="on other backends the plain kernel is slower on long sequences",
)
@pytest.mark.parametrize(
    "shape, kernel",
    [
        # Up to one GiB of float32 scores, and more.
        ((1, 8192, 4, 8), "plain"),
        ((2, 4096, 8, 8), "plain"),
        ((None, 8192, 4, 8), "plain"),
        ((1, 8192, 8, 8), "blockwise"),
        ((2, 8192, 4, 8), "blockwise"),
        # One GiB of scores in a single head.
        ((1, 16384, 1, 8), "blockwise"),
    ],
)
def test_plain_kernel_up_to_one_gib_of_scores_on_tensorflow(shape, kernel):
    x = keras.KerasTensor(shape)
    assert attention_plan(x, x, Visibility()).kernel == kernel
    see = Visibility(causal=True)
    assert attention_plan(x, x, see).kernel == "blockwise"


def test_weights_and_custom_dropout_are_plain_at_any_length():
    for kwargs in ({"return_weights": True}, {"dropout": abs}):
        chosen = long(**kwargs)
        assert chosen.kernel == "plain"
        assert [name for name, _ in chosen.rejected] == [
            "fused",
            "blockwise",
        ]


def test_unknown_length_rejects_blockwise():
    unknown = keras.KerasTensor((2, None, 4, 8))
    with pytest.raises(ValueError, match="lengths are not known"):
        attention_plan(unknown, unknown, Visibility(), kernel="blockwise")


def test_plan_as_text():
    text = str(plan(return_weights=True))
    assert text.startswith("plain: no other kernel serves\nnot fused: ")
    assert "\nnot blockwise: a blockwise kernel never holds" in text


def test_invalid_visibility_raises():
    x = ops.ones((1, 4, 1, 8))
    with pytest.raises(ValueError, match=r"must be a `Visibility`.*by name"):
        attention_plan(x, x, x)
    everything = attention_plan(x, x, Visibility(), value=x)
    assert attention_plan(x, x, value=x) == everything


def test_unknown_kernel_raises():
    with pytest.raises(ValueError, match="`kernel` must be one of"):
        plan(kernel="flash")


@pytest.fixture
def fused_calls(monkeypatch):
    """Mocks a fused kernel on every backend; returns the list of its calls."""
    module = importlib.import_module("keras_attn.ops.attend")
    calls = []

    def fused(
        query, key, value, mask, fully_masked, *, causal, scale, bias, window
    ):
        calls.append({"mask": mask, "causal": causal, "window": window})
        if causal:
            see = Visibility(causal=True, window=window)
            mask = see.to_mask(LENGTH, LENGTH)
        see = Visibility(attention_mask=mask)
        return attend(query, key, value, see, scale=scale, kernel="plain")

    monkeypatch.setattr(
        "keras_attn.ops.plan.fused_obstacle", lambda *args, **metadata: None
    )
    monkeypatch.setattr(module, "fused_attention", fused)
    return calls


@pytest.mark.parametrize("name", CASES)
def test_causal_flag_replaces_mask(name, fused_calls):
    """Only if tokens are in order from slot 0."""
    case, arrays = CASES[name], inputs()
    output = attend(
        *(ops.convert_to_tensor(array) for array in arrays), visibility(case)
    )
    (call,) = fused_calls
    windowed = name.startswith("causal window")
    expected = windowed or name in ("causal", "causal, right padding")
    assert call["causal"] is expected
    assert (call["mask"] is None) is expected
    assert call["window"] == (2 if windowed else None)
    assert_close(
        values(output), reference.scaled_dot_attention(*arrays, spread(case))[0]
    )


def test_no_causal_flag_for_different_lengths(fused_calls):
    see = Visibility(causal=True)
    shorter = keras.KerasTensor((2, 4, 4, 8))
    unknown = keras.KerasTensor((2, None, 4, 8))
    assert plan(see).causal_only is True
    assert plan(Visibility(causal=0)).causal_only is False
    assert not plan(see, key=shorter).causal_only
    assert not attention_plan(unknown, unknown, see).causal_only


def test_attend_follows_plan(fused_calls):
    arrays = [ops.convert_to_tensor(array) for array in inputs()]
    attend(*arrays, kernel="plain")
    attend(*arrays, return_weights=True, kernel="plain")
    assert not fused_calls
    attend(*arrays)
    attend(*arrays, kernel="fused")
    assert len(fused_calls) == 2
