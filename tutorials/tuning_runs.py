"""Trainings of an encoder with a head, and the search for their rate."""

import time

import keras
from length_batches import LengthBatches
from tuning_data import share_of

from keras_attn.training import LayerwiseLearningRates, layerwise_lr_multipliers


def fresh(encoder):
    """Returns an encoder of the same shape with weights of its own."""
    return type(encoder).from_config(encoder.get_config())


def copied(encoder):
    """Returns an encoder of the same shape with the same weights."""
    twin = fresh(encoder)
    twin.set_weights(encoder.get_weights())
    return twin


def train(model, data, examples, tokenizer, run, rate, passes, seed, decay=1.0):
    """Trains a model on a task.

    AdamW, a tenth of the steps up to the rate, then half a cosine down to 0.

    Args:
        model: the model of a task.
        data: `TuningData`.
        examples: list of its examples to learn from.
        tokenizer: `WordPieceTokenizer`.
        run: settings, with `batch` and `length`.
        rate: float.
        passes: int.
        seed: int. Of the order and of dropout.
        decay: float in (0, 1]. Of the rate, from block to block.

    Returns:
        Float, seconds.
    """
    inputs, labels = data.task.encode(examples, tokenizer, run.length)
    ids = inputs["token_ids"]

    def make(rows, length, draw):
        cut = {name: x[rows, :length] for name, x in inputs.items()}
        one_a_piece = labels.shape == ids.shape
        return cut, labels[rows, :length] if one_a_piece else labels[rows]

    batches = LengthBatches(
        list(range(len(examples))),
        (ids != tokenizer.pad_id).sum(axis=1).tolist(),
        min(run.batch, len(examples)),
        make,
        seed=seed,
    )
    steps = passes * len(batches)
    rise = max(1, steps // 10)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, max(1, steps - rise), warmup_target=rate, warmup_steps=rise
    )
    optimizer = keras.optimizers.AdamW(
        schedule, beta_2=0.98, weight_decay=0.01, global_clipnorm=1.0
    )
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    if decay < 1:
        optimizer = LayerwiseLearningRates(
            optimizer, layerwise_lr_multipliers(model, decay)
        )
    keras.utils.set_random_seed(seed)
    model.compile(optimizer, data.task.loss)
    start = time.monotonic()
    model.fit(batches, epochs=passes, shuffle=False, verbose=0)
    return time.monotonic() - start


def compare(data, encoder, tokenizer, run, share, passes, rates, models=None):
    """Fine-tunes two encoders alike: as it is, and with weights of its own.

    Args:
        data: `TuningData`.
        encoder: `Bert`, pre-trained.
        tokenizer: `WordPieceTokenizer`.
        run: settings, with `batch`, `length`, `most` and `seeds`.
        share: float. Share of the examples to learn from.
        passes: int.
        rates: list of float.
        models: as for `compare_arms`.

    Returns:
        As `compare_arms`, for "pre-trained" and "from nothing".
    """
    arms = {
        "pre-trained": lambda: copied(encoder),
        "from nothing": lambda: fresh(encoder),
    }
    return compare_arms(
        data, arms, tokenizer, run, share, passes, rates, models
    )


def compare_arms(data, arms, tokenizer, run, share, passes, rates, models=None):
    """Fine-tunes several encoders alike.

    Of each the rate is the one that is best on the validation examples; then
    come trainings with that rate, each with another seed.

    Args:
        data: `TuningData`.
        arms: dict of name to a function that returns an encoder to train.
        tokenizer: `WordPieceTokenizer`.
        run: settings, with `batch`, `length`, `most` and `seeds`.
        share: float. Share of the examples to learn from.
        passes: int.
        rates: list of float.
        models: dict to be filled with the last model of each arm, by its name.
            Default None: none is kept.

    Returns:
        Dict of name to a dict: "rate", "scores" of the test, a seed each,
        "seconds" of a training, "tried", a dict of rate to the score on the
        validation examples.
    """
    results = {}
    for arm, start in arms.items():
        tried = {}
        if len(rates) > 1:
            for rate in rates:
                model, _ = _trained(
                    start, data, tokenizer, run, share, passes, rate, 0
                )
                tried[rate] = data.task.score(
                    model, data.validation, tokenizer, run.length
                )
        best = max(tried, key=tried.get) if tried else rates[0]
        scores = []
        for seed in range(1, run.seeds + 1):
            model, seconds = _trained(
                start, data, tokenizer, run, share, passes, best, seed
            )
            scores.append(
                data.task.score(model, data.test, tokenizer, run.length)
            )
            print(
                f"  {arm:<12} {share:4.0%}, rate {best:g}, seed {seed}: "
                f"{data.task.measure} {scores[-1]:.1%} ({seconds:.0f} s)",
                flush=True,
            )
        if models is not None:
            models[arm] = model
        results[arm] = {
            "rate": best,
            "scores": scores,
            "seconds": seconds,
            "tried": {f"{rate:g}": score for rate, score in tried.items()},
        }
    return results


def _trained(start, data, tokenizer, run, share, passes, rate, seed):
    keras.utils.set_random_seed(1000 + seed)
    model = data.task.model(start())
    examples = share_of(data.train, share, data.task, seed)
    if run.most:
        examples = examples[: run.most]
    seconds = train(model, data, examples, tokenizer, run, rate, passes, seed)
    return model, seconds
