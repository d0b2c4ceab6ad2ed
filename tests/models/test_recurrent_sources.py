"""A RecurrentSeq2Seq subclass whose sources are vectors, not token ids."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.models import RecurrentSeq2Seq
from keras_attn.models.input_checks import check_ids
from keras_attn.ops import positions_from_mask
from tests.helpers import torch_twin
from tests.helpers.arrays import to_numpy
from tests.helpers.contract import randomize
from tests.helpers.tiny_models import TARGET
from tests.models.torch_recurrent import TorchRecurrent

V, D, S = 13, 8, 5


@keras.saving.register_keras_serializable(package="tests")
class OfVectors(RecurrentSeq2Seq):
    """Takes float (B, S, D) as the memory; its first rows are the states."""

    def __init__(self, **kwargs):
        super().__init__(
            None, V, **({"hidden_dim": D, "dropout": 0.0} | kwargs)
        )

    def encode(self, vectors, training=None):
        token_mask = ops.ones(ops.shape(vectors)[:2], "bool")
        states = tuple(
            (vectors[:, 2 * layer], vectors[:, 2 * layer + 1])
            for layer in range(self.num_layers)
        )
        return (vectors, positions_from_mask(token_mask)), states

    def read_sources(self, vectors):
        return np.asarray(vectors)

    def check_inputs(self, inputs):
        vectors, target = inputs
        return vectors, check_ids("target_ids", target, V)

    def get_config(self):
        config = super().get_config()
        del config["source_vocabulary_size"], config["target_vocabulary_size"]
        return config


class TorchOfVectors(TorchRecurrent):
    """PyTorch reference whose sources are vectors."""

    def _encode(self, vectors):
        memory = torch_twin.tensor(vectors)
        return memory, [
            (memory[2 * layer], memory[2 * layer + 1])
            for layer in range(self.model.num_layers)
        ]


VECTORS = np.random.default_rng(0).normal(size=(2, S, D)).astype("float32")


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "form",
    [{}, {"attention": None}, {"num_layers": 2, "input_feeding": True}],
    ids=["additive", "no attention", "feeding"],
)
def test_equals_torch(form):
    model = OfVectors(**form)
    randomize(model, scale=0.6)
    twin = TorchOfVectors(model)
    found = to_numpy(model((VECTORS, TARGET)))
    assert found.shape == (*TARGET.shape, V)
    for row, vectors, target in zip(found, VECTORS, TARGET, strict=True):
        logits = twin(vectors, list(target))[0].detach().numpy()
        np.testing.assert_allclose(row, logits, atol=1e-5)


@pytest.mark.parametrize("attention", ["general", None])
def test_generates_and_aligns(attention):
    model = OfVectors(attention=attention)
    randomize(model, scale=0.6)
    decoded = model.generate(
        VECTORS, 4, "beam", return_weights=attention is not None
    )
    for row, tokens in enumerate(decoded.tokens):
        alone = model.generate(VECTORS[row : row + 1], 4, "beam")
        np.testing.assert_array_equal(
            alone.tokens[0], tokens[:, : alone.tokens.shape[2]]
        )
    if attention is not None:
        sums = decoded.weights.sum(-1)[0, 0, 0, 0]
        np.testing.assert_allclose(sums[: decoded.lengths[0, 0]], 1, atol=1e-5)


def test_file_round_trip(tmp_path):
    model = OfVectors(num_layers=2)
    randomize(model, scale=0.6)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert isinstance(loaded, OfVectors)
    np.testing.assert_array_equal(
        to_numpy(loaded((VECTORS, TARGET))), to_numpy(model((VECTORS, TARGET)))
    )
    assert not [w.path for w in loaded.weights if "encoder" in w.path]


def test_special_ids_must_lie_in_the_target_vocabulary():
    with pytest.raises(ValueError, match=r"`pad_id` must lie in \[0, 13\)"):
        OfVectors(pad_id=13)
    with pytest.raises(ValueError, match="target_vocabulary_size"):
        RecurrentSeq2Seq(None)
    with pytest.raises(ValueError, match="source_vocabulary_size"):
        RecurrentSeq2Seq(0, 5)
