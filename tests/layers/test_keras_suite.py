"""Keras's tests of `MultiHeadAttention`, run on our layer.

The test file of the installed Keras is imported at run time. Only the class it
uses as `layers.MultiHeadAttention` is replaced.
"""

import importlib.util
import inspect
import types
import unittest

import keras
import pytest

import keras_attn

SUITE = "keras.src.layers.attention.multi_head_attention_test"

# Skipped tests of private members of Keras's layer, with the reasons.
SKIPPED = {
    "test_causal_only_skipped_for_subclass": (
        "overrides `_compute_attention`; our layer calls "
        "`keras_attn.ops.attend` instead"
    ),
    "test_compute_attention_combines_causal_and_explicit_mask_fused_fallback": (
        "calls `_compute_attention`"
    ),
    "test_compute_attention_combines_causal_and_explicit_mask_manual_path": (
        "calls `_compute_attention`"
    ),
    "test_flash_attention_with_errors": (
        "reads `_flash_attention`; with `flash_attention=True` our layer "
        "raises when the kernel is chosen"
    ),
}


def _suite():
    """Returns the module of Keras's tests, with our layer in `layers`."""
    spec = importlib.util.find_spec(SUITE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ours = types.ModuleType("layers")
    ours.__dict__.update(vars(module.layers))
    ours.MultiHeadAttention = keras_attn.layers.MultiHeadAttention
    module.layers = ours
    return module


MODULE = _suite()

# Keras's layer gives the same warnings in these tests: about input names, and
# about optimizer variables that are not saved with LoRA.
pytestmark = [
    pytest.mark.filterwarnings("ignore:When providing `inputs` as a dict"),
    pytest.mark.filterwarnings(
        "ignore:Skipping variable loading for optimizer"
    ),
]

KERAS_TESTS = {
    name: test
    for name, test in vars(MODULE.MultiHeadAttentionTest).items()
    if name.startswith("test")
}

TestOurs = type(
    "TestOurs",
    (MODULE.MultiHeadAttentionTest,),
    {
        name: unittest.skip(reason)(lambda self: None)
        for name, reason in SKIPPED.items()
    },
)


@pytest.fixture(autouse=True)
def restore_traceback_filtering():
    """Restores traceback filtering, which Keras's tests disable."""
    yield
    keras.config.enable_traceback_filtering()


def test_suite_uses_our_layer():
    assert len(KERAS_TESTS) >= 50
    assert MODULE.layers.MultiHeadAttention is (
        keras_attn.layers.MultiHeadAttention
    )
    assert keras.layers.MultiHeadAttention is not (
        keras_attn.layers.MultiHeadAttention
    )


def test_skipped_tests_use_private_members():
    assert len(SKIPPED) <= 4
    for name in SKIPPED:
        test = inspect.unwrap(KERAS_TESTS[name])
        source = inspect.getsource(test)
        assert "_compute_attention" in source or "_flash_attention" in source
