"""Loading copies one tensor at a time, and shows its progress."""

import tracemalloc

import pytest

from keras_attn import models, pretrained
from keras_attn.pretrained import weights


@pytest.mark.one_backend("torch")
def test_one_tensor_at_a_time_is_copied(tmp_path):
    model = models.GPT(
        500,
        num_layers=8,
        num_heads=2,
        hidden_dim=192,
        intermediate_dim=768,
        max_sequence_length=32,
    )
    pretrained.save(model, tmp_path)
    pretrained.load(tmp_path)
    # NumPy reports its arrays to tracemalloc, also the weights: PyTorch uses
    # their memory.
    tracemalloc.start()
    pretrained.load(tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.3 * 4 * model.count_params()


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_progress_of_a_long_load(seconds, tmp_path, monkeypatch, capsys):
    model = models.GPT(11, num_layers=1, num_heads=2, hidden_dim=8)
    pretrained.save(model, tmp_path)
    monkeypatch.setattr(weights, "_SECONDS", seconds)
    pretrained.load(tmp_path)
    shown = capsys.readouterr().out
    total = len(model.weights)
    assert (f"{total}/{total}" in shown) == (seconds == 0.0)
