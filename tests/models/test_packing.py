"""Packed rows: each sentence is computed as if it were alone."""

import keras
import numpy as np
import pytest

from keras_attn.layers import ALiBiPosition, RotaryPosition
from keras_attn.models import (
    GPT,
    Bert,
    BertPretrainer,
    Encoder,
    SequenceClassifier,
    SpanExtractor,
    TokenClassifier,
    Transformer,
    TransformerXL,
)
from keras_attn.training import SequenceCrossentropy
from tests.helpers.arrays import to_numpy
from tests.helpers.cases import once
from tests.helpers.contract import randomize
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

SIZE = 11
# Three sentences in two rows; the padding is inside and at the end.
ALONE = [[7, 8, 9], [5, 6], [4, 10, 3, 8]]
IDS = np.array([[7, 8, 9, 0, 5, 6, 0], [4, 10, 3, 8, 0, 0, 0]], "int32")
PACKING = np.array([[1, 1, 1, 0, 2, 2, 0], [1, 1, 1, 1, 0, 0, 0]], "int32")
PLACES = [(0, slice(0, 3)), (0, slice(4, 6)), (1, slice(0, 4))]
TARGETS = [[1, 4], [1, 9, 3], [1, 6, 5]]
TARGET = np.array([[1, 4, 1, 9, 3, 0], [1, 6, 5, 0, 0, 0]], "int32")
TARGET_PACKING = np.array([[1, 1, 2, 2, 2, 0], [1, 1, 1, 0, 0, 0]], "int32")
TARGET_PLACES = [(0, slice(0, 2)), (0, slice(2, 5)), (1, slice(0, 3))]
SIZES = {
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 16,
    "dropout": 0.0,
    "max_sequence_length": 8,
}


def made(model):
    randomize(model)
    return model


def rotary():
    # Two blocks: the second must know the sentences, too.
    return {
        "num_layers": 2,
        "position_embedding": None,
        "attention_position": RotaryPosition(),
    }


def alibi():
    return {"position_embedding": None, "attention_position": ALiBiPosition(2)}


def packed_dict(ids, packing):
    return {"token_ids": ids, "packing_ids": packing}


def hidden(model, inputs):
    found = model(inputs)
    return found["sequence_output"] if isinstance(found, dict) else found


GPTS = {
    "learned": dict,
    "rotary": rotary,
    "ALiBi": alibi,
    "no padding id": lambda: {"pad_id": None},
    "window": lambda: {"sliding_window": 2},
}
ENCODERS = {
    "sinusoidal": lambda: Encoder(SIZE, **SIZES),
    "rotary": lambda: Encoder(SIZE, **(SIZES | rotary())),
    "BERT": lambda: Bert(SIZE, **SIZES, attention_dropout=0.0),
}


def gpt(form="learned"):
    options = SIZES | {"attention_dropout": 0.0} | GPTS[form]()
    return made(GPT(SIZE, **options))


def transformer(**options):
    return made(Transformer(SIZE, **(SIZES | options)))


def compare(model, packed, alone, places, call=hidden):
    """Compares outputs and gradients of packed rows with sentences alone.

    The loss weights all features of all tokens differently, so that no error
    cancels out.
    """
    rng = np.random.default_rng(0)
    weights = [
        rng.standard_normal((part.stop - part.start, SIZE)).astype("float32")
        for _, part in places
    ]

    def loss_of_packed():
        found = call(model, packed)
        return sum(
            weighted_sum(found[row, part], w[:, : found.shape[-1]])
            for (row, part), w in zip(places, weights, strict=True)
        )

    def loss_of_alone():
        total = 0
        for one, w in zip(alone, weights, strict=True):
            found = call(model, one)[0]
            total += weighted_sum(found, w[:, : found.shape[-1]])
        return total

    found = to_numpy(call(model, packed))
    for one, (row, part) in zip(alone, places, strict=True):
        expected = to_numpy(call(model, one))[0]
        np.testing.assert_allclose(found[row, part], expected, atol=1e-5)
    grown, expected = (
        layer_gradients(model, loss)[1]
        for loss in (loss_of_packed, loss_of_alone)
    )
    assert any(np.abs(one).max() > 1e-2 for one in expected.values())
    for name, one in expected.items():
        np.testing.assert_allclose(
            grown[name], one, atol=1e-4, rtol=1e-4, err_msg=name
        )


@pytest.mark.every_backend
@pytest.mark.parametrize("form", ["learned", *once([*GPTS][1:])])
def test_gpt_computes_each_sentence_alone(form):
    rows = [np.array([one], "int32") for one in ALONE]
    compare(gpt(form), packed_dict(IDS, PACKING), rows, PLACES)


@pytest.mark.every_backend
@pytest.mark.parametrize("form", ["BERT", *once([*ENCODERS][:-1])])
def test_encoder_computes_each_sentence_alone(form):
    model = made(ENCODERS[form]())
    packed = packed_dict(IDS, PACKING)
    rows = [{"token_ids": np.array([one], "int32")} for one in ALONE]
    if form == "BERT":
        # Segments of BERT are independent of the sentences of a row.
        segments = np.array([[0, 0, 1, 0, 0, 1, 0], [0, 1, 1, 0, 0, 0, 0]])
        packed["segment_ids"] = segments.astype("int32")
        for one, (row, part) in zip(rows, PLACES, strict=True):
            one["segment_ids"] = segments[row : row + 1, part].astype("int32")
    compare(model, packed, rows, PLACES)


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "options",
    [
        dict,
        *once(
            [
                lambda: {
                    "num_layers": 2,
                    "position_embedding": None,
                    "encoder_attention_position": RotaryPosition(),
                    "decoder_attention_position": RotaryPosition(),
                },
                lambda: {"pad_id": 0, "start_id": 0},
            ]
        ),
    ],
)
def test_transformer_computes_each_pair_alone(options):
    model = transformer(**options())
    # With the id of padding, the start of a sentence is a token all the same.
    target = np.where(TARGET == 1, model.start_id, TARGET)
    packed = packed_dict(IDS, PACKING), packed_dict(target, TARGET_PACKING)
    alone = [
        (
            np.array([source], "int32"),
            np.array([[model.start_id, *rest]], "int32"),
        )
        for source, (_, *rest) in zip(ALONE, TARGETS, strict=True)
    ]
    compare(model, packed, alone, TARGET_PLACES)


def test_a_mask_hides_more_tokens():
    model = gpt()
    mask = IDS != 9
    packed = packed_dict(IDS, PACKING) | {"padding_mask": mask}
    found = to_numpy(model(packed))
    expected = to_numpy(model(np.array([[7, 8]], "int32")))
    np.testing.assert_allclose(found[0, :2], expected[0], atol=1e-5)


@pytest.mark.every_backend
def test_fit_on_packed_rows_takes_the_step_of_padded_rows():
    rows = [[(*pair, 0, 0)[:4] for pair in side] for side in (ALONE, TARGETS)]
    padded = [np.array(side, "int32") for side in rows]
    labels = np.array([[4, 2, 0], [9, 3, 2], [6, 5, 2]], "int32")
    packed_labels = np.array([[4, 2, 9, 3, 2, 0], [6, 5, 2, 0, 0, 0]], "int32")
    losses, weights = [], []
    for x, y in (
        ((padded[0], padded[1][:, :3]), labels),
        (
            (packed_dict(IDS, PACKING), packed_dict(TARGET, TARGET_PACKING)),
            packed_labels,
        ),
    ):
        model = Transformer(SIZE, **SIZES)
        keras.utils.set_random_seed(0)
        randomize(model)
        model.compile(keras.optimizers.SGD(0.1), SequenceCrossentropy(pad_id=0))
        history = model.fit(x, y, batch_size=4, shuffle=False, verbose=0)
        losses.append(history.history["loss"][0])
        weights.append(model.get_weights())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_heads():
    bert = Bert(SIZE, **SIZES, attention_dropout=0.0)
    packed = packed_dict(IDS, PACKING)
    assert set(bert(packed)) == {"sequence_output"}
    shapes = {name: one.shape for name, one in packed.items()}
    assert bert.compute_output_shape(shapes) == {"sequence_output": (2, 7, 8)}
    model = made(BertPretrainer(bert, next_sentence=False))
    everywhere = to_numpy(model(packed)["token_logits"])
    places = np.array([[4, 1], [3, 0]], "int32")
    found = model({**packed, "mask_positions": places})["token_logits"]
    rows = np.arange(2)[:, None]
    np.testing.assert_allclose(
        to_numpy(found), everywhere[rows, places], atol=1e-5
    )
    tags = made(TokenClassifier(bert, 3))
    alone = to_numpy(tags(np.array([ALONE[1]], "int32")))[0]
    np.testing.assert_allclose(to_numpy(tags(packed))[0, 4:6], alone, atol=1e-5)
    for one, reason in (
        (BertPretrainer(bert), "next-sentence prediction is one per row"),
        (SequenceClassifier(bert, 2), "there is one class per row"),
        (SpanExtractor(bert), "there is one answer per row"),
    ):
        with pytest.raises(ValueError, match=f"must be left out, .*{reason}"):
            one(packed)


def test_invalid_packing_ids_raise():
    model, pair = gpt(), transformer()
    short = packed_dict(IDS, PACKING[:, :3])
    packed = packed_dict(IDS, PACKING)
    with pytest.raises(ValueError, match=r"an id for each token of \(2, 7"):
        model(short)
    with pytest.raises(ValueError, match=r"`packing_ids` must lie in \[0, "):
        model(packed_dict(IDS, PACKING - 1))
    with pytest.raises(ValueError, match="`packing_ids` must hold integers"):
        model(packed_dict(IDS, PACKING.astype("float32")))
    with pytest.raises(ValueError, match="each prompt is a row"):
        model.start_decoding(packed, 2)
    with pytest.raises(ValueError, match="`inputs` must contain"):
        model.generate(packed, max_new_tokens=2)
    xl = TransformerXL(SIZE, 1, 2, 8)
    with pytest.raises(ValueError, match="`inputs` must contain"):
        xl(packed)
    for inputs in (
        (packed, TARGET),
        (IDS, packed_dict(TARGET, TARGET_PACKING)),
        (packed, {"token_ids": TARGET}),
    ):
        with pytest.raises(ValueError, match="pair of dicts of token_ids and"):
            pair(inputs)
    with pytest.raises(ValueError, match="`source_packing_ids` must have an"):
        pair((short, packed_dict(TARGET, TARGET_PACKING)))
    with pytest.raises(ValueError, match="`inputs`"):
        pair.generate(packed, max_new_tokens=2)
