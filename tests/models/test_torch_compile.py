"""`torch.compile` makes one program of every layer and model.

The exceptions are in Keras itself: `SPLITS` lists them with file and line, each
with a layer of Keras alone as control, and docs/guides/backends.md explains
them.
"""

import inspect
import re
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import ops, tree
from keras.src.backend.common.keras_tensor import any_symbolic_tensors

from keras_attn import blocks, layers, models
from keras_attn.backend import reduce_max, reduce_min
from keras_attn.layers import dropout_seed
from keras_attn.models.speech_front_end import SpeechFrontEnd
from keras_attn.ops import attend, capture, positions_from_mask, sinusoid
from keras_attn.ops.visibility import Visibility
from keras_attn.training import SequenceCrossentropy
from tests.test_host_reads import (
    BLOCK,
    CASES,
    FRAMES,
    IDS,
    MASK,
    SIZES,
    X,
    tensors,
)

pytestmark = [
    pytest.mark.one_backend("torch"),
    # Dynamo warns about calls of cached functions, which it inlines.
    pytest.mark.filterwarnings("ignore::UserWarning:torch._dynamo"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
if keras.backend.backend() != "torch":
    pytest.skip("PyTorch's compiler", allow_module_level=True)
import torch

# Keras's recurrent layers, CTC loss and remat scope split programs: `SPLITS`.
SPLIT = (
    "ImageCaptioner",
    "RecurrentSeq2Seq",
    "SpeechTransformer",
    "EncoderBlock, rematerialized",
)


class Table(keras.layers.Layer):
    """An encoder that looks up a vector for each token."""

    hidden_dim, activation = 8, staticmethod(keras.activations.relu)

    def __init__(self):
        super().__init__()
        self.table = layers.TokenEmbedding(11, 8)
        self.table.build()
        self.built = True

    def check_inputs(self, inputs):
        return inputs

    def encode(self, inputs, training=None):
        ids = inputs["token_ids"] if isinstance(inputs, dict) else inputs
        return self.table(ids), positions_from_mask(ids != 0)


# Layers and models with other paths than those of `CASES`.
MORE = {
    "MultiHeadAttention, grouped": (
        lambda: layers.MultiHeadAttention(4, 2, num_key_value_heads=2),
        (X, X),
        {"attention_mask": MASK[:, None]},
    ),
    "ALiBiPosition, three heads": (
        lambda: layers.MultiHeadAttention(
            3, 4, attention_position=layers.ALiBiPosition(3), causal=True
        ),
        (X, X),
        {},
    ),
    "T5Position, causal": (
        lambda: layers.MultiHeadAttention(
            2,
            4,
            attention_position=layers.T5Position(2, 8, 6, bidirectional=False),
        ),
        (X, X),
        {"use_causal_mask": True},
    ),
    "GPT, padded": (
        lambda: models.GPT(11, max_sequence_length=12, **SIZES),
        ({"token_ids": IDS, "padding_mask": MASK},),
        {},
    ),
    # The rest of a SpeechTransformer without CTC loss is that of a Transformer.
    "SpeechFrontEnd": (lambda: SpeechFrontEnd(5, 2, 8, 1e-5), (FRAMES,), {}),
    # Heads without the blocks of an encoder.
    "MultipleChoice": (
        lambda: models.MultipleChoice(models.SequenceClassifier(Table(), 1)),
        (IDS[None],),
        {},
    ),
    "ReplacedTokenDetector": (
        lambda: models.ReplacedTokenDetector(Table()),
        (IDS,),
        {},
    ),
    "SpanExtractor": (lambda: models.SpanExtractor(Table()), (IDS,), {}),
    "TokenClassifier": (lambda: models.TokenClassifier(Table(), 3), (IDS,), {}),
}
WHOLE = {
    name: case for name, case in (CASES | MORE).items() if name not in SPLIT
}


@pytest.fixture(autouse=True)
def _forget_programs():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()


def whole(function):
    """Compiles a function; raises if Dynamo cannot make it one program."""
    # `eager` runs the traced program as it is: only tracing can split it.
    return torch.compile(function, fullgraph=True, backend="eager")


def soon_whole(function):
    """As `whole`, in 60 % of the time.

    Most of it goes into two functions of Keras, which Dynamo traces for each
    operation. One looks for symbolic tensors among the arguments: here there
    are none. The other returns the name of a dtype: a constant. The layers
    and models in `AS_USERS` are traced with them.
    """
    compiled = whole(function)
    none = (lambda args=None, kwargs=None: False).__code__

    def call(*args, **kwargs):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(any_symbolic_tensors, "__code__", none)
            name = keras.backend.standardize_dtype
            patch.setattr(name, "_dynamo_marked_constant", True, raising=False)
            return compiled(*args, **kwargs)

    return call


def built(name):
    """Returns a layer of `WHOLE` and the tensors it is called with."""
    make, args, kwargs = WHOLE[name]
    # A list: Keras splits a program at a tuple of tensors.
    args = [list(arg) if isinstance(arg, tuple) else arg for arg in args]
    args, kwargs = tensors((args, kwargs))
    layer = make()
    if not layer.built:
        layer(*args, **kwargs)
    return layer, args, kwargs


def programs():
    """Returns the number of programs since the start of the test."""
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def arrays(outputs):
    return [
        ops.convert_to_numpy(x) for x in tree.flatten(outputs) if x is not None
    ]


# These also run with other lengths.
OF_LENGTHS = (
    "GPT, padded",
    "MultiHeadAttention, window",
    "T5Position",
)
# Models that add a head to another one, whose training is traced.
EXTENDED = (
    "BertPretrainer",
    "MultipleChoice",
    "ReplacedTokenDetector",
    "SpanExtractor",
    "TokenClassifier",
)
# Layers that these models, `TransformerXL` and `XLNet` contain.
INNER = (
    *("EncoderBlock", "SegmentBlock"),
    *("Dropout", "FeedForward", "Residual", "TokenEmbedding"),
    *("TransformerXLPosition", "XLNetPosition"),
)
# Traced with the functions that `soon_whole` replaces.
AS_USERS = "MultipleChoice", "SpeechFrontEnd", "MultiHeadAttention, grouped"
# Without those that others contain, or that are attention with a position.
CONTAINED = (
    *("Bert", "Encoder", "Roberta", "SequenceClassifier", "VisionTransformer"),
    *("GPT", "GPT, padded", "Transformer"),
    *("DecoderBlock", "TwoStreamBlock"),
    *("MultiHeadAttention", "ScoredAttention"),
)
TRAINED = [
    name
    for name, (make, _, _) in WHOLE.items()
    if "training" in inspect.signature(make().call).parameters
    and name not in (*CONTAINED, *EXTENDED, *INNER)
    and "Position" not in name
]
# Training covers the rest; `test_two_streams_of_other_lengths` also the
# inference of XLNet.
INFERRED = [
    name
    for name, (make, _, _) in WHOLE.items()
    if not isinstance(make(), keras.Model)
    and "Block" not in name
    and name not in (*OF_LENGTHS, *INNER, *TRAINED)
] + [*EXTENDED, "VisionTransformer"]


@pytest.mark.parametrize("name", INFERRED)
def test_inference_is_one_program(name):
    layer, args, kwargs = built(name)
    # The memory of a stateful model changes with every call.
    state = [variable.numpy() for variable in layer.variables]
    with torch.no_grad():
        expected = arrays(layer(*args, **kwargs))
        for variable, value in zip(layer.variables, state, strict=True):
            variable.assign(value)
        compile = whole if name in AS_USERS else soon_whole
        compiled = compile(layer)
        found = arrays(compiled(*args, **kwargs))
        # New tensors of the same shapes need no other program.
        fresh = tree.map_structure(
            lambda x: x.clone() if isinstance(x, torch.Tensor) else x,
            (args, kwargs),
        )
        compiled(*fresh[0], **fresh[1])
    # None for an identity.
    assert programs() <= 1
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


def of_length(length, nest):
    """Returns the tensors of a nest with another length than 4.

    Dynamo raises if a program that is traced with them fixes their length.
    """

    def longer(x):
        if isinstance(x, torch.Tensor):
            x = torch.cat([x] * 3, dim=1)[:, :length].clone()
            torch._dynamo.mark_dynamic(x, 1)
        return x

    return tree.map_structure(longer, nest)


@pytest.mark.parametrize("name", OF_LENGTHS)
def test_one_program_for_all_lengths(name):
    layer, args, kwargs = built(name)
    compiled = soon_whole(layer)
    for length in (12, 11):
        cut_args, cut_kwargs = of_length(length, (args, kwargs))
        with torch.no_grad():
            # Keras changes a layer when it is first called.
            expected, found = (
                f(*cut_args, **cut_kwargs) for f in (layer, compiled)
            )
        np.testing.assert_allclose(
            *arrays([found, expected]), rtol=1e-4, atol=1e-5
        )
    assert programs() == 1


def test_two_streams_of_other_lengths():
    model = models.XLNet(11, **SIZES)
    compiled = soon_whole(model)
    for length in (12, 11):
        ids = of_length(length, torch.from_numpy(IDS))
        with torch.no_grad():
            expected, found = model(ids), compiled(ids)
        np.testing.assert_allclose(
            *arrays([found, expected]), rtol=1e-4, atol=1e-5
        )
    assert programs() == 1


def test_memories_of_other_lengths():
    block = blocks.SegmentBlock(**BLOCK)
    x = torch.from_numpy(X)
    block.build(x.shape)
    compiled = soon_whole(lambda x, past: block(x, past=past))
    for length in (7, 6):
        past = of_length(length, x + 1)
        with torch.no_grad():
            found, expected = compiled(x, past), block(x, past=past)
        np.testing.assert_allclose(
            *arrays([found, expected]), rtol=1e-4, atol=1e-5
        )
    assert programs() == 1


def test_starts_of_other_lengths():
    model = MORE["GPT, padded"][0]()
    start = soon_whole(
        lambda ids: model.start_decoding(ids, 2).hypothesis.keys[0]
    )
    for length in (8, 7):
        ids = torch.from_numpy(np.tile(IDS, 2)[:, :length])
        with torch.no_grad():
            expected = model.start_decoding(ids, 2).hypothesis.keys[0]
            np.testing.assert_allclose(
                *arrays([start(ids), expected]), rtol=1e-4, atol=1e-5
            )


def test_the_first_scope_of_a_thread_traces_nothing_again(monkeypatch):
    layer, args, kwargs = built("MultiHeadAttention, grouped")
    for module in capture, dropout_seed:
        # As in a new thread.
        monkeypatch.setattr(module, "_state", type(module._state)())
    compiled = soon_whole(layer)
    for _ in range(2):
        compiled(*args, training=True, **kwargs)
        with capture.capture_weights(), dropout_seed.dropout_seed(1):
            pass
    assert programs() == 1


@pytest.mark.parametrize("reduce", [reduce_max, reduce_min])
def test_equal_extrema_share_the_gradient(reduce):
    x = torch.tensor([[1.0, 1.0, 0.0, 0.0]])
    gradients = []
    for function in (reduce, whole(reduce)):
        leaf = x.clone().requires_grad_()
        function(leaf, -1).sum().backward()
        gradients.append(leaf.grad)
    np.testing.assert_array_equal(*arrays(gradients))
    assert gradients[0].max() == 0.5


@pytest.mark.parametrize("name", TRAINED)
def test_training_with_dropout_is_one_program(name):
    layer, args, kwargs = built(name)
    for inner in layer._flatten_layers():
        if isinstance(inner, layers.MixtureOfExperts):
            # `test_keras_compiles_a_program_for_each_added_loss`.
            inner.router_aux_loss_coef = 0.0

    def loss(function):
        layer.zero_grad()
        outputs = tree.flatten(function(*args, training=True, **kwargs))
        total = sum(x.square().mean() for x in outputs if x.requires_grad)
        if isinstance(total, torch.Tensor):
            total.backward()
        return [v.path for v in layer.variables if v.value.grad is not None]

    expected = loss(layer)
    compile = whole if name in AS_USERS else soon_whole
    assert loss(compile(layer)) == expected
    for variable in layer.variables:
        if variable.path in expected:
            assert torch.isfinite(variable.value.grad).all()


def test_losses_are_one_program():
    labels, logits = tensors((IDS % 8, X))
    for loss in (
        SequenceCrossentropy(),
        SequenceCrossentropy(label_smoothing=0.1),
        SequenceCrossentropy(class_weight=[1.0] * 7 + [2.0]),
    ):
        torch._dynamo.reset()
        np.testing.assert_allclose(
            float(whole(loss)(labels, logits)),
            float(loss(labels, logits)),
            1e-6,
        )


@pytest.mark.parametrize("seed", [None, 3])
def test_dropout_in_a_program(seed):
    drop = layers.Dropout(0.25, seed=seed)
    twin = layers.Dropout(0.25, seed=seed)
    ones = torch.ones(64, 1024)
    call = whole(lambda x: drop(x, training=True))
    first, second = arrays([call(ones), call(ones)])
    rate = (first == 0).mean()
    assert abs(rate - 0.25) < 5 * np.sqrt(0.25 * 0.75 / first.size)
    np.testing.assert_allclose(first[first != 0], 1 / 0.75, rtol=1e-4)
    both = ((first == 0) & (second == 0)).mean()
    assert abs(both - 0.0625) < 5 * np.sqrt(0.0625 / first.size)
    if seed is None:
        return
    # The program moves the seed on as Keras does.
    for _ in range(2):
        twin(ones, training=True)
    state, expected = (x.seed_generator.state for x in (drop, twin))
    np.testing.assert_array_equal(*arrays([state.value, expected.value]))
    again = layers.Dropout(0.25, seed=seed)
    call = whole(lambda x: again(x, training=True))
    np.testing.assert_array_equal(arrays(call(ones))[0], first)


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_sinusoids_in_a_program(layout):
    positions = torch.tensor([[0, 1, 255, 256, 8192, 131_071, -1]])
    expected = ops.convert_to_numpy(sinusoid(positions, 64, layout))
    found = whole(lambda p: sinusoid(p, 64, layout))(positions)
    np.testing.assert_allclose(
        ops.convert_to_numpy(found), expected, rtol=0, atol=2e-7
    )
    too_large = whole(lambda p: sinusoid(p, 64, layout))(positions + 131_072)
    assert torch.isnan(too_large[0, :6]).any(-1).all()


@pytest.mark.parametrize(
    "rule",
    [
        {"causal": True},
        {"window": 4},
        {"query_positions": True},
        {"causal": True, "window": 4, "query_positions": True},
    ],
    ids=str,
)
def test_blockwise_attention_is_one_program(rule, monkeypatch):
    # Smaller blocks than any real call has, and one with padding.
    monkeypatch.setattr("keras_attn.ops.blockwise.BLOCK", 4)
    monkeypatch.setattr("keras_attn.ops.blockwise._SMALLEST", 1)
    x = torch.from_numpy(
        np.random.default_rng(1).normal(size=(2, 11, 2, 4)).astype("float32")
    )
    positions = torch.arange(11)[None].repeat(2, 1)
    positions[1, 8:] = -1
    rule = dict(rule)
    if rule.pop("query_positions", False):
        rule |= {"query_positions": positions, "key_positions": positions}
    see = Visibility(**rule)
    expected = attend(x, x, x, see, kernel="plain")
    found = whole(lambda x: attend(x, x, x, see, kernel="blockwise"))(x)
    np.testing.assert_allclose(*arrays([found, expected]), rtol=1e-4, atol=1e-5)


class Pair(keras.layers.Layer):
    """The sum of a pair of tensors."""

    def call(self, inputs):
        return inputs[0] + inputs[1]


class CTC(keras.layers.Layer):
    """The CTC loss of the tokens 1, 2."""

    def call(self, x):
        tokens = ops.ones((2, 2), "int32") * ops.arange(1, 3)
        sizes = ops.ones((2,), "int32")
        return ops.ctc_loss(tokens, x, 2 * sizes, 4 * sizes)


def rematerialized():
    with keras.RematScope("full"):
        return keras.layers.Bidirectional(keras.layers.LSTM(4))


# Name: file and line in Keras 3.15.1, constructor, arguments of a call.
SPLITS = {
    "ops.max": (
        "backend/torch/numpy.py:214",
        keras.layers.GlobalMaxPooling1D,
        (X,),
        {},
    ),
    "seeded dropout": (
        "backend/torch/random.py:154",
        lambda: keras.layers.Dropout(0.5, seed=1),
        (X,),
        {"training": True},
    ),
    "an operation that is created in a call": (
        "layers/layer.py:1883",
        lambda: keras.Sequential(
            [keras.layers.ZeroPadding1D(1), keras.layers.Dense(3)]
        ),
        (X,),
        {},
    ),
    "a tuple of tensors": ("tree/torchtree_impl.py:39", Pair, ((X, X),), {}),
    "a masked recurrent layer": (
        "tree/torchtree_impl.py:39",
        lambda: keras.layers.LSTM(4),
        (X,),
        {"mask": MASK},
    ),
    "the CTC loss": ("backend/torch/nn.py:1046", CTC, (X,), {}),
    "a remat scope": (
        "backend/common/name_scope.py:52",
        rematerialized,
        (X,),
        {},
    ),
    "MultiHeadAttention of Keras": (
        "backend/torch/nn.py:1406",
        lambda: keras.layers.MultiHeadAttention(2, 4),
        (X, X),
        {},
    ),
}


@pytest.mark.parametrize("name", SPLITS)
def test_keras_alone_splits(name):
    place, make, args, kwargs = SPLITS[name]
    layer = make()
    args, kwargs = tensors((args, kwargs))
    layer(*args, **kwargs)
    with pytest.raises(torch._dynamo.exc.Unsupported) as error:
        whole(layer)(*args, **kwargs)
    assert place in places(error.value)


# A loss of the last call is no leaf of its graph.
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
def test_keras_compiles_a_program_for_each_added_loss():
    """Dynamo compares the ids of the losses of the last call."""
    layer = keras.layers.Dense(3, activity_regularizer="l2")
    layer.build(X.shape)
    compiled = whole(layer)
    for _ in range(3):
        compiled(torch.from_numpy(X))
    assert programs() == 3


def places(error):
    """Returns the lines of Keras that a program was traced through."""
    found = re.findall(r'File "([^"]+)", line (\d+)', str(error))
    return [
        f"{path.partition('/keras/src/')[2]}:{line}"
        for path, line in found
        if "/keras/src/" in Path(path).as_posix()
    ]
