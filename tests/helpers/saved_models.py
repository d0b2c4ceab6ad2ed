"""One small model of every class, for files that travel between backends."""

import keras
import numpy as np

from keras_attn.layers import RotaryPosition
from keras_attn.models import (
    GPT,
    Bert,
    BertPretrainer,
    Encoder,
    ImageCaptioner,
    MultipleChoice,
    RecurrentSeq2Seq,
    SequenceClassifier,
    SpanExtractor,
    SpeechTransformer,
    TokenClassifier,
    TransformerXL,
    XLNet,
)
from tests.helpers.arrays import to_numpy
from tests.helpers.contract import randomize
from tests.helpers.tiny_models import SOURCE, TARGET

SIZES = {
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 8,
    "dropout": 0.0,
}
IDS = np.array([[3, 4, 5, 6], [7, 8, 0, 0]], "int32")
FRAMES = np.random.default_rng(0).normal(size=(2, 9, 5)).astype("float32")
IMAGES = np.arange(180, dtype="float32").reshape(2, 5, 6, 3)
CHOICES = np.stack([IDS, IDS[::-1]], axis=1)  # (B, C, T)


def bert():
    """A BERT of one block."""
    return Bert(9, **SIZES, max_sequence_length=8, attention_dropout=0.0)


# Name: a function that makes the model, and its inputs.
MODELS = {
    "encoder": (lambda: Encoder(9, **SIZES, gated=True), IDS),
    "bert": (bert, IDS),
    "bert_pretrainer": (lambda: BertPretrainer(bert()), IDS),
    "sequence_classifier": (lambda: SequenceClassifier(bert(), 3), IDS),
    "token_classifier": (lambda: TokenClassifier(bert(), 3), IDS),
    "span_extractor": (lambda: SpanExtractor(bert()), IDS),
    "multiple_choice": (
        lambda: MultipleChoice(SequenceClassifier(bert(), 1)),
        CHOICES,
    ),
    "gpt": (
        lambda: GPT(
            9,
            **SIZES,
            position_embedding=None,
            attention_position=RotaryPosition(),
            attention_dropout=0.0,
            max_sequence_length=None,
        ),
        IDS,
    ),
    "transformer_xl": (
        lambda: TransformerXL(
            9, **SIZES, memory_length=4, attention_dropout=0.0
        ),
        IDS,
    ),
    "xlnet": (lambda: XLNet(9, **SIZES, attention_dropout=0.0), IDS),
    "recurrent_seq2seq": (
        lambda: RecurrentSeq2Seq(13, hidden_dim=8, dropout=0.0),
        (SOURCE, TARGET),
    ),
    "image_captioner": (
        lambda: ImageCaptioner(
            13, (5, 6, 3), hidden_dim=8, filters=2, dropout=0.0
        ),
        (IMAGES, TARGET),
    ),
    "speech_transformer": (
        lambda: SpeechTransformer(
            13, 5, 2, **SIZES, num_decoder_layers=1, end_id=3
        ),
        (FRAMES, TARGET),
    ),
}


def random_model(name):
    """Makes the model of a name, with random weights."""
    model = MODELS[name][0]()
    model(MODELS[name][1])
    return randomize(model)


def outputs_of(model, name):
    """The outputs of a model on the inputs of a name, as a list of arrays."""
    outputs = keras.tree.flatten(model(MODELS[name][1]))
    return [to_numpy(output) for output in outputs]
