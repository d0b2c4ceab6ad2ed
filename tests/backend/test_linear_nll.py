"""`linear_nll`, its gradients, and its token scores."""

import importlib

import numpy as np
import pytest
from keras import ops

from keras_attn.backend import linear_nll
from tests.helpers.arrays import to_numpy
from tests.helpers.gradients import gradient

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
ROWS, WIDTH, SIZE = 10, 5, 9
HIDDEN = RNG.normal(size=(ROWS, WIDTH)).astype("float32")
MATRIX = 3 * RNG.normal(size=(SIZE, WIDTH)).astype("float32")
BIAS = RNG.normal(size=SIZE).astype("float32")
LABELS = RNG.integers(SIZE, size=ROWS).astype("int32")
VISIBLE = np.arange(ROWS) % 4 != 2
WEIGHTS = RNG.uniform(0, 2, ROWS).astype("float32")
WEIGHTS[3] = 0
CLASS_WEIGHTS = RNG.uniform(0, 2, SIZE).astype("float32")


def by_torch(smoothing, class_weights, bias):
    """Returns the total, its gradients, -log p and hits, by PyTorch."""
    inputs = [
        torch.tensor(x, dtype=torch.float64, requires_grad=True)
        for x in (HIDDEN, MATRIX, BIAS)
    ]
    logits = inputs[0] @ inputs[1].T + (inputs[2] if bias else 0)
    labels = torch.tensor(LABELS).long()
    losses = torch.nn.functional.cross_entropy(
        logits,
        labels,
        None if class_weights is None else torch.tensor(class_weights).double(),
        label_smoothing=smoothing,
        reduction="none",
    )
    total = (losses * torch.tensor(WEIGHTS) * torch.tensor(VISIBLE)).sum()
    slopes = torch.autograd.grad(total, inputs[: 3 if bias else 2])
    nats = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    found = total, *slopes, nats, logits.argmax(-1) == labels
    return [x.detach().numpy() for x in found]


@pytest.fixture(params=[4, 256])
def chunk(request, monkeypatch):
    """Several chunks, the last one with padding, or a single one."""
    module = importlib.import_module("keras_attn.backend.linear_nll")
    monkeypatch.setattr(module, "CHUNK", request.param)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    "smoothing, class_weights, bias",
    [(0.0, None, True), (0.1, None, False), (0.1, CLASS_WEIGHTS, True)],
)
def test_equals_torch(chunk, smoothing, class_weights, bias, transposed):
    expected = by_torch(smoothing, class_weights, bias)
    inputs = [HIDDEN, MATRIX.T if transposed else MATRIX, BIAS]
    inputs = inputs[: 3 if bias else 2]

    def scores(*inputs):
        hidden, matrix, *rest = inputs
        return linear_nll(
            hidden,
            matrix,
            rest[0] if rest else None,
            ops.convert_to_tensor(LABELS),
            ops.convert_to_tensor(VISIBLE),
            ops.convert_to_tensor(WEIGHTS),
            smoothing,
            None
            if class_weights is None
            else ops.convert_to_tensor(class_weights),
            transposed,
        )

    found = scores(*map(ops.convert_to_tensor, inputs))
    slopes = gradient(lambda *x: 3 * scores(*x)[0], *inputs)
    slopes = [to_numpy(x) / 3 for x in slopes]
    if transposed:
        slopes[1] = slopes[1].T
    found = [to_numpy(found[0]), *slopes, *map(to_numpy, found[1:])]
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-5)
