"""Contestants with the shape of Llama train and decode alike."""

import importlib

import keras
import numpy as np
import pytest

from benchmarks.llama_decoding import plan as decoding
from benchmarks.llama_decoding import task as decoding_task
from benchmarks.llama_training import plan, task

BACKEND = keras.backend.backend()
CASE = {**plan.QUICK_CASES[0], "rows": 3, "length": 6}
PROMPTS = {**decoding.QUICK_CASES[0], "rows": 3, "new": 6}
PEERS = {"hugging_face": "transformers", "keras_hub": "keras_hub"}


def module(table, name):
    if name in PEERS:
        pytest.importorskip(PEERS[name])
    return importlib.import_module(f"benchmarks.{table}.{name}")


def peers():
    """The peers of this backend."""
    return [name for name in PEERS if BACKEND == "torch" or name == "keras_hub"]


@pytest.fixture(scope="module")
def tokens():
    return module("llama_decoding", "ours").decoder(PROMPTS)(
        decoding_task.prompts(PROMPTS)[0]
    )


@pytest.mark.every_backend
@pytest.mark.parametrize("name", peers())
def test_the_same_tokens(name, tokens):
    peer = module("llama_decoding", name)
    found = peer.decoder(PROMPTS)(decoding_task.prompts(PROMPTS)[0])
    np.testing.assert_array_equal(found, tokens)
    # Not one token again and again.
    assert len(np.unique(tokens)) > len(tokens)


@pytest.mark.parametrize("name", peers())
def test_the_same_losses(name):
    peer = module("llama_training", name)
    ours = module("llama_training", "ours").prepare(CASE)
    theirs = peer.prepare(CASE)
    for steps in 1, 2:
        assert theirs(steps) == pytest.approx(ours(steps), rel=1e-4)


@pytest.mark.one_backend("torch")
def test_flops_match_those_counted_by_pytorch():
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    model = module("llama_training", "hugging_face").model(CASE)
    ids = torch.from_numpy(task.batches(CASE)[0][0]).long()
    with FlopCounterMode(display=False) as counter:
        logits = model(input_ids=ids, use_cache=False).logits
        logits.sum().backward()
    assert counter.get_total_flops() == pytest.approx(task.flops(CASE), rel=0.1)
    # A prompt, and one token after it, whose logits alone are computed.
    forward = task.flops(CASE) / 3
    one = decoding_task.flops(CASE | {"new": 1})
    output = 2 * CASE["rows"] * CASE["width"] * CASE["vocabulary"]
    assert forward < one + output * (CASE["length"] - 1) < 1.5 * forward
