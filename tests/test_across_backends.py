"""Equal numbers on every backend, and files that load on every backend.

Each backend compares its results with the arrays in `data/across_backends.npz`,
computed by PyTorch and NumPy in float64, and loads the `.keras` files of a
Transformer written by every backend, and a file of every other model, written
by one of them. To regenerate the files, run this module as a program:

    for backend in tensorflow jax torch; do
        KERAS_BACKEND=$backend python -m tests.test_across_backends
    done
"""

import os
import pathlib
import zipfile

import keras
import numpy as np
import pytest

from keras_attn.layers import MultiHeadAttention
from keras_attn.training import (
    SequenceCrossentropy,
    TokenAccuracy,
    WarmupSchedule,
)
from tests.helpers import reference
from tests.helpers.arrays import named_arrays, to_numpy
from tests.helpers.brute_force import greedy
from tests.helpers.contract import randomize
from tests.helpers.saved_models import MODELS, outputs_of, random_model
from tests.helpers.tiny_models import (
    LABELS,
    SOURCE,
    TARGET,
    talkative_transformer,
    tiny_transformer,
)
from tests.helpers.torch_transformer import TorchTransformer
from tests.helpers.torch_twin import tensor
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

pytestmark = pytest.mark.every_backend

torch = pytest.importorskip("torch")

BACKENDS = ("tensorflow", "jax", "torch")
DATA = pathlib.Path(__file__).parent / "data"
NUMBERS = DATA / "across_backends.npz"

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 4, 8)).astype("float32")
UPSTREAM = RNG.normal(size=X.shape).astype("float32")
MASK = np.array([[1, 1, 1, 1], [0, 1, 1, 0]], "bool")


def attention():
    """An attention layer with two query heads on one key head."""
    layer = MultiHeadAttention(
        2, 4, num_key_value_heads=1, causal=True, sliding_window=2
    )
    layer.build(X.shape, X.shape)
    return randomize(layer)


def translator():
    """A model whose translations depend on the source."""
    return talkative_transformer(seed=8, num_layers=2)


def computed():
    """Computes all the numbers on the current backend."""
    layer, model = attention(), tiny_transformer()
    measure = SequenceCrossentropy(label_smoothing=0.1)
    output, weights = layer(
        X, X, query_mask=MASK, value_mask=MASK, return_attention_scores=True
    )
    (at_x,), at_weights = layer_gradients(
        layer,
        lambda x: weighted_sum(
            layer(x, x, query_mask=MASK, value_mask=MASK), UPSTREAM
        ),
        X,
    )
    numbers = {
        "attention/output": to_numpy(output),
        "attention/weights": to_numpy(weights),
        "attention/gradient/x": at_x,
    }
    for name, gradient in at_weights.items():
        numbers[f"attention/gradient/{name}"] = gradient
    logits = model((SOURCE, TARGET))
    numbers["transformer/logits"] = to_numpy(logits)[TARGET != 0]
    numbers["transformer/loss"] = to_numpy(measure(LABELS, logits))
    _, gradients = layer_gradients(
        model, lambda: measure(LABELS, model((SOURCE, TARGET)))
    )
    laid_out = TorchTransformer(model).in_torch_layout(gradients)
    for name, gradient in laid_out.items():
        numbers[f"transformer/gradient/{name}"] = gradient
    decoded = translator().generate(SOURCE, max_new_tokens=5)
    numbers["translation/tokens"] = decoded.tokens[:, 0]
    numbers["translation/scores"] = decoded.scores[:, 0]
    return numbers


def expected():
    """Computes the same numbers in float64, without this library."""
    return {
        **_expected_attention(),
        **_expected_transformer(),
        **_expected_translation(),
    }


def _expected_attention():
    layer = attention()
    arrays = named_arrays(layer)
    leaves = {name: tensor(a, requires_grad=True) for name, a in arrays.items()}
    x = tensor(X, requires_grad=True)
    positions = reference.positions_from_mask(MASK)
    seen = tensor(
        reference.visible(
            *(2, 4, 4), positions, positions, causal=True, window=2
        )
    )
    query, key, value = (
        torch.einsum("btd,dnh->btnh", x, leaves[f"{part}/kernel"])
        + leaves[f"{part}/bias"]
        for part in ("query", "key", "value")
    )
    scores = torch.einsum("btnh,bskh->bnts", query, key) / 4**0.5
    # Tokens see themselves, so only padding is fully masked.
    weights = scores.masked_fill(~seen, -1e30).softmax(-1) * seen
    heads = torch.einsum("bnts,bskh->btnh", weights, value)
    output = torch.einsum(
        "btnh,nhd->btd", heads, leaves["attention_output/kernel"]
    )
    output = output + leaves["attention_output/bias"]
    output = output * tensor(MASK)[..., None]
    (output * tensor(UPSTREAM)).sum().backward()
    numbers = {
        "attention/output": output.detach().numpy(),
        "attention/weights": weights.detach().numpy(),
        "attention/gradient/x": x.grad.numpy(),
    }
    for name, leaf in leaves.items():
        numbers[f"attention/gradient/{name}"] = leaf.grad.numpy()
    return numbers


def _expected_transformer():
    twin = TorchTransformer(tiny_transformer())
    logits = twin(SOURCE, TARGET)
    loss = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1),
        tensor(LABELS.reshape(-1).astype("int64")),
        ignore_index=0,
        label_smoothing=0.1,
    )
    loss.backward()
    numbers = {
        "transformer/logits": logits.detach().numpy()[TARGET != 0],
        "transformer/loss": loss.detach().numpy(),
    }
    for name, gradient in twin.gradients().items():
        numbers[f"transformer/gradient/{name}"] = gradient
    return numbers


def _expected_translation():
    twin = TorchTransformer(translator())

    def log_probs(source, prefix):
        with torch.no_grad():
            logits = twin(source[None], np.array([[1, *prefix]]))[0, -1]
        return logits.log_softmax(-1).numpy()

    results = [
        greedy(lambda prefix, s=s: log_probs(s, prefix), 5, 0, 1, 2)
        for s in SOURCE
    ]
    return {
        "translation/tokens": np.array([tokens for tokens, _, _ in results]),
        "translation/scores": np.array([score for _, score, _ in results]),
    }


def assert_same_numbers(found, stored, rtol, atol):
    """Compares two dicts of arrays, element by element."""
    assert set(found) == set(stored)
    for name, array in stored.items():
        np.testing.assert_allclose(
            found[name], array, rtol=rtol, atol=atol, err_msg=name
        )


def stored_numbers():
    """Returns the committed arrays, without those for the files."""
    with np.load(NUMBERS) as arrays:
        return {
            name: array
            for name, array in arrays.items()
            if not name.startswith("file/")
        }


def test_same_numbers_on_every_backend():
    assert_same_numbers(computed(), stored_numbers(), 1e-5, 1e-5)


def test_the_stored_numbers_are_the_references():
    assert_same_numbers(expected(), stored_numbers(), 1e-9, 1e-9)


# Files


def expected_of_file(backend):
    """Returns the expected arrays of a backend's file, by name."""
    with np.load(NUMBERS) as arrays:
        start = f"file/{backend}/"
        return {
            name.removeprefix(start): array
            for name, array in arrays.items()
            if name.startswith(start)
        }


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_file_of_any_backend_loads(backend, compiled):
    model = keras.saving.load_model(
        DATA / f"transformer_{backend}.keras", compile=compiled
    )
    assert model.compiled == compiled
    np.testing.assert_allclose(
        to_numpy(model((SOURCE, TARGET))),
        expected_of_file(backend)["logits"],
        rtol=1e-5,
        atol=1e-5,
    )
    if not compiled:
        return
    # The optimizer has the current backend's class, and its saved state.
    own = type(keras.optimizers.Adam())
    assert type(model.optimizer) is own
    assert int(model.optimizer.iterations) == 2
    assert isinstance(model.loss, SequenceCrossentropy)
    assert model.loss.label_smoothing == 0.1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_weights_file_of_any_backend_loads(backend, tmp_path):
    with zipfile.ZipFile(DATA / f"transformer_{backend}.keras") as archive:
        path = archive.extract("model.weights.h5", tmp_path)
    model = tiny_transformer(random=False)
    model.load_weights(path)
    np.testing.assert_allclose(
        to_numpy(model((SOURCE, TARGET))),
        expected_of_file(backend)["logits"],
        rtol=1e-5,
        atol=1e-5,
    )


def test_training_continues_on_another_backend():
    # PyTorch has its own optimizer classes; JAX compiles by default.
    current = keras.backend.backend()
    other = "jax" if current == "torch" else "torch"
    model = keras.saving.load_model(DATA / f"transformer_{other}.keras")
    history = model.fit((SOURCE, TARGET), LABELS, verbose=0).history
    expected = expected_of_file(other)
    np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-5)
    np.testing.assert_allclose(
        to_numpy(model((SOURCE, TARGET))),
        expected["logits after one more step"],
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("name", MODELS)
def test_a_file_of_every_model_loads(name):
    model = keras.saving.load_model(DATA / f"{name}.keras")
    with np.load(NUMBERS) as arrays:
        for i, output in enumerate(outputs_of(model, name)):
            np.testing.assert_allclose(
                output,
                arrays[f"file/{name}/{i}"],
                rtol=1e-5,
                atol=1e-5,
            )


def write_models(backend):
    """Writes the files of a third of the models; returns their outputs."""
    numbers = {}
    for name in list(MODELS)[BACKENDS.index(backend) :: len(BACKENDS)]:
        model = random_model(name)
        path = DATA / f"{name}.keras"
        model.save(path)
        _compress(path)
        for i, output in enumerate(outputs_of(model, name)):
            numbers[f"file/{name}/{i}"] = output
    return numbers


def write_file(backend):
    """Trains for two steps, saves, trains on; returns the numbers."""
    model = tiny_transformer()
    model.compile(
        keras.optimizers.Adam(WarmupSchedule(8, 10)),
        SequenceCrossentropy(label_smoothing=0.1),
        weighted_metrics=[TokenAccuracy()],
    )
    model.fit((SOURCE, TARGET), LABELS, epochs=2, verbose=0)
    path = DATA / f"transformer_{backend}.keras"
    model.save(path)
    _compress(path)
    start = f"file/{backend}"
    numbers = {f"{start}/logits": to_numpy(model((SOURCE, TARGET)))}
    history = model.fit((SOURCE, TARGET), LABELS, verbose=0).history
    numbers[f"{start}/loss"] = np.array(history["loss"])
    after = to_numpy(model((SOURCE, TARGET)))
    numbers[f"{start}/logits after one more step"] = after
    return numbers


def _compress(path):
    """Compresses a `.keras` file, which Keras writes without compression."""
    packed = path.with_suffix(".packed")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(packed, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name), zipfile.ZIP_DEFLATED)
    os.replace(packed, path)


def main():
    """Writes the reference numbers and the current backend's file."""
    DATA.mkdir(exist_ok=True)
    numbers = {}
    if NUMBERS.exists():
        with np.load(NUMBERS) as arrays:
            numbers = {
                name: array
                for name, array in arrays.items()
                if name.startswith("file/")
            }
    backend = keras.backend.backend()
    numbers |= expected() | write_file(backend) | write_models(backend)
    np.savez_compressed(NUMBERS, **numbers)


if __name__ == "__main__":
    main()
