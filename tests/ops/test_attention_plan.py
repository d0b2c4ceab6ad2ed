"""Which kernel runs, and the reason given for it."""

import importlib

import keras
import pytest
from keras import ops

from keras_attn.ops import (
    AttentionPlan,
    Visibility,
    attend,
    attention_plan,
    visible,
)
from tests import reference
from tests.ops.cases import (
    CASES,
    KERNELS,
    LENGTH,
    assert_close,
    inputs,
    spread,
    values,
    visibility,
)

FUSED = "fused" in KERNELS
QUERY = keras.KerasTensor((2, 5, 4, 8))


def plan(see=None, key=QUERY, **kwargs):
    return attention_plan(QUERY, key, see or Visibility(), **kwargs)


def test_the_fused_kernel_runs_where_there_is_one():
    chosen = plan()
    assert chosen.kernel == ("fused" if FUSED else "plain")
    if not FUSED:
        assert keras.backend.backend() in chosen.reason


@pytest.mark.parametrize(
    "request_", [{"return_weights": True}, {"dropout": abs}, {"bias": QUERY}]
)
def test_some_calls_need_the_plain_kernel(request_):
    chosen = plan(**request_)
    assert chosen.kernel == "plain"
    if FUSED:
        word = next(iter(request_)).removeprefix("return_")
        assert word in chosen.reason
    with pytest.raises(ValueError, match="fused kernel was forced, but"):
        plan(kernel="fused", **request_)


def test_plain_can_be_forced():
    assert plan(kernel="plain") == AttentionPlan("plain", "it was asked for")


def test_fused_can_be_forced_or_says_why_not():
    arrays = [ops.convert_to_tensor(array) for array in inputs()]
    if FUSED:
        assert plan(kernel="fused").kernel == "fused"
        attend(*arrays, kernel="fused")
        return
    name = keras.backend.backend()
    with pytest.raises(ValueError, match=f"forced, but the {name} backend"):
        plan(kernel="fused")
    with pytest.raises(ValueError, match=f"forced, but the {name} backend"):
        attend(*arrays, kernel="fused")


def test_other_kernels_are_refused():
    with pytest.raises(ValueError, match="`kernel` must be one of"):
        plan(kernel="flash")


@pytest.fixture
def fused_calls(monkeypatch):
    """Gives every backend a fused kernel, and the list of its calls."""
    module = importlib.import_module("keras_attn.ops.attend")
    calls = []

    def fused(query, key, value, mask=None, causal=False, scale=1.0):
        calls.append({"mask": mask, "causal": causal})
        if causal:
            mask = visible(Visibility(causal=True), LENGTH, LENGTH)
        see = Visibility(attention_mask=mask)
        return attend(query, key, value, see, scale=scale, kernel="plain")

    monkeypatch.setattr(module, "fused_obstacle", lambda **facts: None)
    monkeypatch.setattr(module, "fused_attention", fused)
    return calls


@pytest.mark.parametrize("name", CASES)
def test_the_kernels_own_causal_switch(name, fused_calls):
    """It stands for the mask where tokens stand in order from slot 0 on."""
    case, arrays = CASES[name], inputs()
    output = attend(
        *(ops.convert_to_tensor(array) for array in arrays), visibility(case)
    )
    (call,) = fused_calls
    expected = name in ("causal", "causal, right padding")
    assert call["causal"] is expected
    assert (call["mask"] is None) is expected
    assert_close(
        values(output), reference.scaled_dot_attention(*arrays, spread(case))[0]
    )


def test_no_causal_switch_between_different_lengths(fused_calls):
    see = Visibility(causal=True)
    shorter = keras.KerasTensor((2, 4, 4, 8))
    unknown = keras.KerasTensor((2, None, 4, 8))
    assert plan(see).causal_only
    assert not plan(see, key=shorter).causal_only
    assert not attention_plan(unknown, unknown, see).causal_only


def test_the_plan_is_what_runs(fused_calls):
    arrays = [ops.convert_to_tensor(array) for array in inputs()]
    attend(*arrays, kernel="plain")
    attend(*arrays, return_weights=True, kernel="plain")
    assert not fused_calls
    attend(*arrays)
    attend(*arrays, kernel="fused")
    assert len(fused_calls) == 2
