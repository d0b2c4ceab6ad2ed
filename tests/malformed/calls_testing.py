"""Malformed calls of the testing package."""

import numpy as np

from keras_attn import blocks, layers, testing
from tests.malformed.calls import Call, kinds
from tests.malformed.calls_models import gpt
from tests.malformed.values import (
    ENDLESS,
    NAN,
    Kind,
    count,
    flag,
    function,
    instance,
    positive,
)

NAMES = "a tuple of the names of the checks"


def _names(valid):
    return Kind(
        valid,
        {
            "number": 3,
            "nan": NAN,
            "bool": True,
            "text": "causality",
            "bytes": b"causality",
            "dict": {"causality": True},
            "object": object(),
            "type": list,
            "function": len,
            "unknown": ["causal"],
            "unknown_too": [*valid, "padding"],
            "numbers": [1],
            "nones": [None],
            "nested": [["causality"]],
            "array": np.ones(2),
            "scalar": np.array("causality"),
            "endless": ENDLESS,
        },
    )


def _options():
    return {
        "only": _names(("batch_invariance",)).plus(empty=[]),
        "except_for": _names(()).plus(none=None),
        "hidden_dim": count(8).plus(
            past_most=2**16 + 1, past_int32=2**31, past_int64=2**70
        ),
        "causal": flag(True),
        "decode": function(None).optional(),
        "tolerance": positive(1e-5),
    }


def _layer(folder):
    yield Call(
        "testing.check_attention_layer",
        testing.check_attention_layer,
        kinds(
            layer=instance(layers.MultiHeadAttention(2, 4)),
            **_options(),
        ),
        also={
            "a check that does not apply": (
                {"only": ["cached_decoding"]},
                ("only",),
            )
        },
    )


def _block(folder):
    block = blocks.DecoderBlock(num_heads=2, intermediate_dim=4)
    yield Call(
        "testing.check_block",
        testing.check_block,
        kinds(block=instance(block), memory=flag(False), **_options()),
    )


def _model(folder):
    options = _options()
    yield Call(
        "testing.check_generative_model",
        testing.check_generative_model,
        kinds(
            model=instance(gpt()),
            only=options["only"],
            except_for=options["except_for"],
            tolerance=options["tolerance"],
            vocabulary_size=count(12).optional().plus(few=4, past_int64=2**70),
            full_pass=function(None).optional(),
            inputs=Kind(
                None,
                {
                    "number": 3,
                    "text": "abc",
                    "object": object(),
                    "nones": [None],
                    "empty": [],
                    "scalar": np.array(1),
                    "one_row": np.ones((1, 3), "int32"),
                    "rows_differ": [np.ones((2, 3)), np.ones((3, 3))],
                },
            ),
        ),
    )


def _host_reads(folder):
    def host_reads(**arguments):
        with testing.host_reads(**arguments):
            pass

    yield Call(
        "testing.host_reads",
        host_reads,
        kinds(
            folders=Kind(
                None,
                {
                    "number": 3,
                    "text": "folder",
                    "dict": {"folder": 1},
                    "object": object(),
                    "numbers": [1],
                    "nones": [None],
                    "empty_path": [""],
                    "endless": ENDLESS,
                },
            )
        ),
    )


CALLS = {
    "ATTENTION_LAYER_CHECKS": NAMES,
    "BLOCK_CHECKS": NAMES,
    "CheckFailure": "an error that the checks raise",
    "GENERATIVE_MODEL_CHECKS": NAMES,
    "check_attention_layer": _layer,
    "check_block": _block,
    "check_generative_model": _model,
    "host_reads": _host_reads,
}
