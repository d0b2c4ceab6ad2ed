"""Malformed calls of the training package name the argument."""

import keras
import numpy as np
import pytest

from keras_attn import models, training

pytestmark = pytest.mark.one_backend

NAN = float("nan")
LABELS = np.array([[3, 4, 0], [5, 0, 0]])
LOGITS = np.linspace(-1, 1, 42, dtype="float32").reshape(2, 3, 7)
DEEP = {}
for _ in range(10_000):
    DEEP = {"a": DEEP}


@pytest.fixture(scope="module")
def given():
    """Functions, with valid arguments of each."""
    model = models.Encoder(
        9, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4
    )
    step = {"y_true": LABELS, "y_pred": LOGITS}
    return {
        "CheckpointAverage": (training.CheckpointAverage, {}),
        "average_weights": (
            training.CheckpointAverage.average_weights,
            {"model": model, "paths": ["1.weights.h5"]},
        ),
        "LayerwiseLearningRates": (
            training.LayerwiseLearningRates,
            {
                "optimizer": keras.optimizers.SGD(),
                "multipliers": {"block_0/": 0.5},
            },
        ),
        "Perplexity": (training.Perplexity, {}),
        "Perplexity.update": (training.Perplexity().update_state, step),
        "SequenceCrossentropy": (training.SequenceCrossentropy, {}),
        "SequenceCrossentropy.call": (training.SequenceCrossentropy(), step),
        "TokenAccuracy": (training.TokenAccuracy, {}),
        "TokenAccuracy.update": (training.TokenAccuracy().update_state, step),
        "TrainingBackup": (training.TrainingBackup, {"directory": "backup"}),
        "WarmupSchedule": (training.WarmupSchedule, {"hidden_dim": 8}),
        "WarmupSchedule.call": (training.WarmupSchedule(8), {"step": 3}),
        "enable_lora": (training.enable_lora, {"model": model, "rank": 2}),
        "freeze": (training.freeze, {"model": model}),
        "unfreeze": (training.unfreeze, {"model": model}),
        "layerwise_lr_multipliers": (
            training.layerwise_lr_multipliers,
            {"model": model, "decay": 0.5},
        ),
    }


NO_COUNT = (0, -1, 1.5, True, None, "4", NAN)
NO_NUMBER = (0, -1, NAN, float("inf"), None, "1", True, 1j)
NO_MODEL = (None, "gpt", 3, len, models.GPT, keras.optimizers.SGD())
NO_PATTERN = (3, b"x", ["a"], "(", "no such path")
NO_PAD = (1.5, True, None, "0", NAN, 2**31, -(2**40))
NO_NAME = (3, b"x", ["a"])
NO_DTYPE = (3, "float", "int32", "no such type")
NO_LABELS = (
    *(None, "abc", 3, LABELS[:1], LABELS[:, :2], LABELS[0], LABELS[..., None]),
    *(LABELS + 0.5, LABELS + 1j, [["a"] * 3] * 2, [[3, 4], [5]]),
    [[True] * 3] * 2,
)
NO_LOGITS = (
    *(None, "abc", 3, LOGITS[0], LOGITS[:, :2], LOGITS[..., :0], LOGITS + 1j),
    LABELS,
)
NO_WEIGHTS = (
    *("abc", np.ones((2, 2)), np.ones(3), np.ones((2, 3, 7)), 1j),
    [["a"] * 3] * 2,
)
NO_CLASSES = (
    *(3, "abc", [], [[1.0]], [-1.0], [NAN], [None], ["a"], {-1: 1.0}),
    *({0: -1.0}, {0: NAN}, {0.5: 1.0}, {"a": 1.0}, {0: None}, {True: 1.0}),
)

# Function, argument, wrong values.
WRONG = [
    ("CheckpointAverage", "num_checkpoints", NO_COUNT),
    ("CheckpointAverage", "save_freq", (*NO_COUNT, "batch", np.ones(2), DEEP)),
    ("CheckpointAverage", "directory", (3, b"x", "", ["x"], "a\0b")),
    ("average_weights", "model", NO_MODEL),
    ("average_weights", "paths", (None, 3, "a", [], [3], [None])),
    ("LayerwiseLearningRates", "optimizer", (None, "sgd", 3, len)),
    (
        "LayerwiseLearningRates",
        "multipliers",
        (
            *(None, 3, "a", {}, ["a"], {"a": 0}, {"a": NAN}, {"a": "1"}),
            *({3: 0.5}, {"(": 0.5}, {"a": True}, {"a": float("inf")}),
        ),
    ),
    ("LayerwiseLearningRates", "name", NO_NAME),
    ("Perplexity", "pad_id", NO_PAD),
    ("Perplexity", "name", NO_NAME),
    ("Perplexity", "dtype", NO_DTYPE),
    ("Perplexity.update", "y_true", NO_LABELS),
    ("Perplexity.update", "y_pred", NO_LOGITS),
    ("Perplexity.update", "sample_weight", NO_WEIGHTS),
    ("SequenceCrossentropy", "pad_id", NO_PAD),
    (
        "SequenceCrossentropy",
        "label_smoothing",
        (-0.1, 1, 1.5, NAN, None, "0", True),
    ),
    ("SequenceCrossentropy", "class_weight", NO_CLASSES),
    ("SequenceCrossentropy", "reduction", (3, "total", ["sum"], NAN)),
    ("SequenceCrossentropy", "name", NO_NAME),
    ("SequenceCrossentropy.call", "y_true", NO_LABELS),
    ("SequenceCrossentropy.call", "y_pred", NO_LOGITS),
    ("SequenceCrossentropy.call", "sample_weight", NO_WEIGHTS),
    ("TokenAccuracy", "pad_id", NO_PAD),
    ("TokenAccuracy", "name", NO_NAME),
    ("TokenAccuracy", "dtype", NO_DTYPE),
    ("TokenAccuracy.update", "y_true", NO_LABELS),
    ("TokenAccuracy.update", "y_pred", NO_LOGITS),
    ("TokenAccuracy.update", "sample_weight", NO_WEIGHTS),
    ("TrainingBackup", "directory", (None, 3, b"x", "", ["x"], "a\0b")),
    ("TrainingBackup", "callbacks", (None, 3, "a", [3], [None], {"a": 1})),
    ("TrainingBackup", "save_freq", (*NO_COUNT, "batch", np.ones(2), DEEP)),
    ("TrainingBackup", "data", (3, "a", [1])),
    ("TrainingBackup", "settings", (3, "a", [1], {"a": len}, {"a": NAN}, DEEP)),
    ("TrainingBackup", "resume", (None, 0, 1, "yes")),
    ("WarmupSchedule", "hidden_dim", (*NO_COUNT, 2**70)),
    ("WarmupSchedule", "warmup_steps", (*NO_COUNT, 2**70)),
    ("WarmupSchedule", "scale", NO_NUMBER),
    (
        "WarmupSchedule.call",
        "step",
        (-5, 1.5, NAN, None, "3", True, [3], 1j, np.array(["a"])),
    ),
    ("enable_lora", "model", NO_MODEL),
    ("enable_lora", "rank", (*NO_COUNT, 5, 10**9, 2**40)),
    ("enable_lora", "pattern", (*NO_PATTERN, None)),
    ("enable_lora", "also_train", NO_PATTERN),
    ("freeze", "model", NO_MODEL),
    ("freeze", "pattern", (*NO_PATTERN, None)),
    ("unfreeze", "model", NO_MODEL),
    ("unfreeze", "pattern", (*NO_PATTERN, None)),
    ("layerwise_lr_multipliers", "model", NO_MODEL),
    (
        "layerwise_lr_multipliers",
        "decay",
        (0, -1, 1.5, NAN, None, "0.5", True, 1j),
    ),
]
CALLS = [
    pytest.param(function, name, value, id=f"{function}-{name}-{number}")
    for function, name, values in WRONG
    for number, value in enumerate(values)
]


@pytest.mark.parametrize("function, name, value", CALLS)
def test_wrong_arguments_raise(function, name, value, given):
    call, arguments = given[function]
    with pytest.raises(ValueError) as error:
        call(**(arguments | {name: value}))
    message = str(error.value)
    assert f"`{name}`" in message and "Received: " in message, message
    assert "\n" not in message and len(message) < 400


@pytest.mark.parametrize("config", [None, 3, "abc", []])
def test_configs_must_be_dicts(config):
    for cls in (training.SequenceCrossentropy, training.LayerwiseLearningRates):
        with pytest.raises(ValueError, match="`config` must be a dict"):
            cls.from_config(config)
    with pytest.raises(ValueError, match="`config` must have the key"):
        training.LayerwiseLearningRates.from_config({})


def test_the_valid_arguments_are_accepted(given):
    for name, (call, arguments) in given.items():
        if name not in ("average_weights", "enable_lora"):
            call(**arguments)
