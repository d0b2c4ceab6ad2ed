"""Keras's own tests of `MultiHeadAttention`, run against ours.

The file is that of the installed Keras, found and read at run time. Nothing in
it is changed but the class that it looks up as `layers.MultiHeadAttention`.
"""

import importlib.util
import inspect
import types
import unittest

import keras
import pytest

import keras_attn

SUITE = "keras.src.layers.attention.multi_head_attention_test"

# The tests of what is private to Keras's layer, and why ours cannot have it.
LEFT_OUT = {
    "test_causal_only_skipped_for_subclass": (
        "overrides `_compute_attention`; ours has no such method: what it "
        "would do is one call of `keras_attn.ops.attend`"
    ),
    "test_compute_attention_combines_causal_and_explicit_mask_fused_fallback": (
        "calls `_compute_attention`"
    ),
    "test_compute_attention_combines_causal_and_explicit_mask_manual_path": (
        "calls `_compute_attention`"
    ),
    "test_flash_attention_with_errors": (
        "reads `_flash_attention`; with `flash_attention=True` ours raises "
        "where the kernel is chosen"
    ),
}


def _suite():
    """Returns a module of Keras's tests in which `layers` holds our layer."""
    spec = importlib.util.find_spec(SUITE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ours = types.ModuleType("layers")
    ours.__dict__.update(vars(module.layers))
    ours.MultiHeadAttention = keras_attn.layers.MultiHeadAttention
    module.layers = ours
    return module


MODULE = _suite()

# Keras's own layer warns of the same in these tests: of the names of inputs,
# and of an optimizer with LoRA, whose variables its files do not hold.
pytestmark = [
    pytest.mark.filterwarnings("ignore:When providing `inputs` as a dict"),
    pytest.mark.filterwarnings(
        "ignore:Skipping variable loading for optimizer"
    ),
]

ITS_TESTS = {
    name: test
    for name, test in vars(MODULE.MultiHeadAttentionTest).items()
    if name.startswith("test")
}

TestOurs = type(
    "TestOurs",
    (MODULE.MultiHeadAttentionTest,),
    {
        name: unittest.skip(reason)(lambda self: None)
        for name, reason in LEFT_OUT.items()
    },
)


@pytest.fixture(autouse=True)
def tracebacks_as_before():
    """Keras's tests switch it off, for all that the process does later."""
    yield
    keras.config.enable_traceback_filtering()


def test_the_suite_is_there_and_uses_our_layer():
    assert len(ITS_TESTS) >= 50
    assert MODULE.layers.MultiHeadAttention is (
        keras_attn.layers.MultiHeadAttention
    )
    assert keras.layers.MultiHeadAttention is not (
        keras_attn.layers.MultiHeadAttention
    )


def test_what_is_left_out_is_private_to_keras():
    assert len(LEFT_OUT) <= 4
    for name in LEFT_OUT:
        test = inspect.unwrap(ITS_TESTS[name])
        source = inspect.getsource(test)
        assert "_compute_attention" in source or "_flash_attention" in source
