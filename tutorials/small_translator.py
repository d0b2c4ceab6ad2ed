"""A small translator, trained in one call, for tutorials about what follows.

How it is built and trained is the subject of `translate.py`, whose settings
these are. Here the number of epochs is fixed, not the time, so that the same
seed gives the same model on a slow machine; and there is no backup.
"""

from typing import Any, NamedTuple

import keras
import translate_settings
from phrase_grammar import phrase_splits

from keras_attn.models import Transformer
from keras_attn.text import SubwordTokenizer, token_batches
from keras_attn.training import (
    SequenceCrossentropy,
    TokenAccuracy,
    WarmupSchedule,
)


class Translator(NamedTuple):
    """Holds a trained model, and what it was not trained on.

    Args:
        model: `keras_attn.models.Transformer`.
        tokenizer: `keras_attn.text.SubwordTokenizer`.
        test: list of (English, Spanish), none of which was trained on.
        quick: bool. It was trained for a few steps only: QUICK=1.
    """

    model: Any
    tokenizer: Any
    test: list
    quick: bool


def train_translator(epochs, quick=False, sentences=20_000, tests=300):
    """Trains on sentences of the phrase grammar.

    Args:
        epochs: int >= 1. Passes over the sentences; fewer leave it less sure.
        quick: bool. A few steps of a smaller model. Default False.
        sentences: int. Pairs to train on. Default 20,000.
        tests: int. Pairs to keep for tests. Default 300.

    Returns:
        A `Translator`.
    """
    run = translate_settings.read_settings({"QUICK": "1" if quick else "0"})
    keras.utils.set_random_seed(run.seed)
    if quick:
        epochs, sentences, tests = run.epochs, 300, 4
    splits = phrase_splits(sentences, 0, tests)
    tokenizer = SubwordTokenizer.train_from_lines(
        (sentence for pair in splits.train for sentence in pair),
        vocabulary_size=run.vocabulary,
    )
    batches = token_batches(
        [english for english, _ in splits.train],
        [spanish for _, spanish in splits.train],
        tokenizer,
        tokens_per_batch=run.tokens,
        max_length=run.longest,
        buckets=run.buckets,
        seed=run.seed,
    )
    model = Transformer(
        tokenizer.vocabulary_size,
        num_layers=run.layers,
        num_heads=max(1, run.width // 64),
        hidden_dim=run.width,
        intermediate_dim=4 * run.width,
        dropout=run.dropout,
        pad_id=tokenizer.pad_id,
        start_id=tokenizer.start_id,
        end_id=tokenizer.end_id,
    )
    schedule = WarmupSchedule(run.width, run.warmup, run.scale)
    model.compile(
        optimizer=keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9),
        loss=SequenceCrossentropy(label_smoothing=0.1),
        metrics=[TokenAccuracy()],
    )
    # The batches are shuffled already.
    model.fit(batches, epochs=epochs, shuffle=False, verbose=2)
    return Translator(model, tokenizer, splits.test, quick)
