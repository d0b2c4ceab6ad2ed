"""Malformed calls of training."""

import io

import keras
import numpy as np

from keras_attn import training
from tests.malformed.calls import Call, kinds
from tests.malformed.calls_models import encoder
from tests.malformed.values import (
    NAN,
    Kind,
    count,
    flag,
    floats,
    function,
    ids,
    instance,
    number,
    of_keras,
    path,
    positive,
    rate,
    size,
    title,
)

LOGITS = np.random.default_rng(0).normal(size=(2, 3, 5)).astype("float32")
LABELS = np.array([[3, 4, 2], [1, 2, 0]], "int32")


def _pad_id():
    return count(0, 0).accepts("any integer", "below", "negative")


def _labels():
    kind = ids(LABELS, 5, batch=True, length=True)
    return kind.accepts(
        "documented: any other label makes the loss NaN",
        *("negative", "list_negative", "outside", "list_outside"),
    )


def _logits():
    kind = floats(LOGITS, width=False, length=True).named("y_true")
    # A narrow output has fewer classes than the labels.
    return kind.plus(narrow=LOGITS[..., :2]).accepts(
        "documented: the loss of a class that is missing is NaN", "narrow"
    )


def _weights():
    kind = floats(np.ones((2, 3), "float32"), width=True).accepts(
        "weights may be integers; the default is None",
        *("none", "integers", "bools"),
    )
    return kind.without("scalar", "rank_less")


def _loss(folder):
    made = training.SequenceCrossentropy()
    yield Call(
        "training.SequenceCrossentropy",
        training.SequenceCrossentropy,
        kinds(
            label_smoothing=rate(0.1),
            pad_id=_pad_id().optional(),
            reduction=of_keras("sum"),
            name="loss",
            class_weight=instance({0: 1.0})
            .without("own_type", "list", "array")
            .optional()
            .plus(
                negative={0: -1.0},
                nan_weight={0: NAN},
                text_weight={0: "a"},
                text_class={"a": 1.0},
                negative_class={-1: 1.0},
                fraction_class={0.5: 1.0},
                nested=[[1.0]],
                list_of_text=["a"],
            ),
        ),
    )
    yield Call(
        "training.SequenceCrossentropy.call",
        made,
        kinds(y_true=_labels(), y_pred=_logits(), sample_weight=_weights()),
    )


def _metric(name):
    def calls(folder):
        made = getattr(training, name)()
        yield Call(
            f"training.{name}",
            getattr(training, name),
            kinds(
                pad_id=_pad_id().optional(),
                name=title("metric").optional(),
                dtype=of_keras(None),
            ),
        )
        yield Call(
            f"training.{name}.update_state",
            made.update_state,
            kinds(y_true=_labels(), y_pred=_logits(), sample_weight=_weights()),
        )

    return calls


def _warmup(folder):
    made = training.WarmupSchedule(8)
    yield Call(
        "training.WarmupSchedule",
        training.WarmupSchedule,
        kinds(hidden_dim=size(8), warmup_steps=size(10), scale=positive(1.0)),
    )
    yield Call(
        "training.WarmupSchedule.call",
        made,
        kinds(
            step=Kind(
                3,
                {
                    "none": None,
                    "text": "a",
                    "negative": -5,
                    "nan": NAN,
                    "complex": 1j,
                    "dict": {"a": 1},
                    "object": object(),
                    "list_of_text": ["a"],
                },
            )
        ),
    )


def _pattern(valid=""):
    return title(valid).plus(open="(", star="*")


def _freezing(name):
    def calls(folder):
        yield Call(
            f"training.{name}",
            getattr(training, name),
            kinds(
                model=instance(encoder()),
                pattern=_pattern().plus(unknown="no such layer"),
            ),
        )

    return calls


def _lora(folder):
    def enable(**given):
        return training.enable_lora(**given)

    yield Call(
        "training.enable_lora",
        enable,
        kinds(
            model=instance(encoder()),
            rank=count(2).plus(past_int32=2**31, giant=2**40),
            pattern=_pattern("/(query|value)$").plus(unknown="no such layer"),
            also_train=_pattern(None).optional().plus(unknown="no such layer"),
        ),
        valid=False,
    )


def _agreement(folder):
    yield Call(
        "training.check_processes_agree",
        training.check_processes_agree,
        kinds(
            model=instance(encoder()).optional(),
            data=instance(None).without("none", "own_type"),
            settings=instance({})
            .without("own_type", "list", "dict")
            .optional(),
        ),
    )


def _multipliers(folder):
    yield Call(
        "training.layerwise_lr_multipliers",
        training.layerwise_lr_multipliers,
        kinds(
            model=instance(encoder()), decay=number(0.9, 0, 1).plus(zero=0.0)
        ),
    )


def _rates(folder):
    def make(**given):
        if isinstance(given["optimizer"], keras.optimizers.Optimizer):
            given["optimizer"] = keras.optimizers.SGD()
        made = training.LayerwiseLearningRates(**given)
        made.build(model.trainable_variables)
        return made

    model = encoder()

    yield Call(
        "training.LayerwiseLearningRates",
        make,
        kinds(
            optimizer=instance(keras.optimizers.SGD()).without("own_type"),
            multipliers=instance({"block_0": 0.5})
            .without("own_type", "dict", "empty", "list")
            .plus(
                empty_dict={},
                negative={"a": -1.0},
                nan={"a": NAN},
                text={"a": "b"},
                pattern={"(": 0.5},
                number_key={3: 0.5},
                none_value={"a": None},
                boolean={"a": True},
            ),
            name=title("rates").optional(),
        ),
        valid=False,
    )


def _average(folder):
    model = encoder()
    yield Call(
        "training.CheckpointAverage",
        training.CheckpointAverage,
        kinds(
            num_checkpoints=count(2),
            save_freq=count("epoch"),
            directory=path(folder / "average").optional(),
            validate=flag(False),
        ),
    )
    saved = str(folder / "one.weights.h5")
    model.save_weights(saved)
    damaged = folder / "damaged.weights.h5"
    damaged.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    yield Call(
        "training.CheckpointAverage.average_weights",
        training.CheckpointAverage.average_weights,
        kinds(
            model=instance(model),
            paths=Kind(
                [saved],
                {
                    "none": None,
                    "number": 3,
                    "text": saved,
                    "empty": [],
                    "numbers": [3],
                    "nones": [None],
                    "missing": [str(folder / "none.weights.h5")],
                    "damaged": [str(damaged)],
                    "folder": [str(folder)],
                    "dict": {"a": 1},
                    "bytes": [b"x"],
                },
            ),
        ),
        errors=(OSError,),
    )


def _backup(folder):
    yield Call(
        "training.TrainingBackup",
        training.TrainingBackup,
        kinds(
            directory=path(folder / "backup"),
            callbacks=instance(())
            .without("own_type", "array", "empty")
            .plus(
                mixed=[keras.callbacks.Callback(), 3],
            ),
            save_freq=count("epoch"),
            data=instance(None).without("none", "own_type", "function"),
            settings=instance({})
            .without("own_type", "list", "dict")
            .optional(),
            resume=flag(True),
        ),
    )


def _progress(folder):
    yield Call(
        "training.TrainingProgress",
        training.TrainingProgress,
        kinds(
            minutes=positive(1.0).optional(),
            tokens_per_epoch=count(1000).optional(),
            file=instance(io.StringIO()).without("own_type").optional(),
        ),
    )


def _buckets(folder):
    yield Call(
        "training.BucketedDataset",
        training.BucketedDataset,
        kinds(
            records=instance([1, 2])
            .without("own_type", "list", "array")
            .named("lengths"),
            lengths=instance([3, 4]).without("own_type").named("lengths[0]"),
            encode=function(lambda *_: None),
            batch_size=count(2),
            num_buckets=count(2),
            shuffle=flag(True),
            seed=count(0, least=0),
            curriculum_epochs=count(0, least=0),
        ),
    )


CALLS = {
    "BucketedDataset": _buckets,
    "CheckpointAverage": _average,
    "LayerwiseLearningRates": _rates,
    "Perplexity": _metric("Perplexity"),
    "SequenceCrossentropy": _loss,
    "TokenAccuracy": _metric("TokenAccuracy"),
    "TrainingBackup": _backup,
    "TrainingProgress": _progress,
    "WarmupSchedule": _warmup,
    "check_processes_agree": _agreement,
    "enable_lora": _lora,
    "freeze": _freezing("freeze"),
    "layerwise_lr_multipliers": _multipliers,
    "unfreeze": _freezing("unfreeze"),
}
