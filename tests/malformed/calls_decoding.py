"""Malformed calls of decoding."""

import numpy as np

from keras_attn import decoding
from tests.malformed.calls import Call, kinds
from tests.malformed.calls_models import IDS, V, gpt, prefix, transformer
from tests.malformed.values import (
    Kind,
    choice,
    count,
    flag,
    ids,
    instance,
    limited,
    number,
    seed,
)


def _tokens():
    return Kind(
        (3,),
        {
            "none": None,
            "text": "abc",
            "bytes": b"a",
            "number": 3,
            "fraction": 1.5,
            "bool": True,
            "dict": {"a": 1},
            "object": object(),
            "fractions": [1.5],
            "negative": [-1],
            "list_of_text": ["a"],
            "list_of_none": [None],
            "bools": [True],
            "nested": [[1]],
            "floats": np.ones(2),
        },
    )


def _options():
    return kinds(suppress_tokens=_tokens(), min_new_tokens=count(0, 0))


def _greedy(folder):
    yield Call("decoding.GreedySearch", decoding.GreedySearch, _options())


def _beam(folder):
    yield Call(
        "decoding.BeamSearch",
        decoding.BeamSearch,
        {
            **_options(),
            **kinds(
                num_beams=limited(2),
                num_return_sequences=limited(1),
                length_penalty=number(0.6).plus(giant=2**2000),
                length_penalty_type=choice("gnmt"),
                early_stopping=flag(False).accepts(
                    "a flag of 0 or 1", "zero", "one"
                ),
            ),
        },
        also={
            "more sequences than beams": (
                {"num_return_sequences": 3},
                ("num_return_sequences", "num_beams"),
            )
        },
    )


def _sampling(folder):
    yield Call(
        "decoding.Sampling",
        decoding.Sampling,
        {
            **_options(),
            **kinds(
                temperature=number(1.0, 0).plus(zero=0.0, giant=2**2000),
                top_k=count(2).optional(),
                top_p=number(0.5, 0, 1).plus(zero=0.0).optional(),
                seed=seed(0),
                num_return_sequences=limited(1),
            ),
        },
    )


class _NoMethods(decoding.Strategy):
    """A strategy that defines nothing."""


class _NoToken(decoding.SingleSequenceStrategy):
    """A strategy without `get_next_token`."""


def _strategy(folder):
    yield Call("decoding.Strategy", decoding.Strategy, _options())
    yield _generate_with("decoding.Strategy, no methods", _NoMethods)


def _single(folder):
    yield Call(
        "decoding.SingleSequenceStrategy",
        decoding.SingleSequenceStrategy,
        _options(),
    )
    yield _generate_with("decoding.SingleSequenceStrategy, no method", _NoToken)


def _generate_with(name, strategy):
    model = transformer()
    return Call(
        name,
        lambda strategy: model.generate(IDS, 2, strategy),
        kinds(strategy="greedy"),
        also={
            "undefined methods": (
                {"strategy": strategy()},
                ("init_state", "get_next_token"),
            ),
            "the class": ({"strategy": strategy}, "strategy"),
        },
        errors=(NotImplementedError,),
    )


def _arguments(model):
    inputs = ids(IDS, V).without("ragged", "rank_less")
    return kinds(
        model=instance(model),
        inputs=inputs.named("token_ids", "source_ids"),
        max_new_tokens=limited(1),
        strategy=choice("greedy").plus(of_type=decoding.GreedySearch),
        # The function does not know the size of the vocabulary.
        prefix=prefix().accepts("an id of some vocabulary", "giant"),
    )


def _generate(folder):
    for name, model in {"transformer": transformer(), "gpt": gpt()}.items():
        given = _arguments(model)
        given |= kinds(
            batch_size=count(2), return_weights=flag(False), verbose=choice(0)
        )
        given["verbose"] = given["verbose"].accepts("a bool", "bool")
        yield Call(f"decoding.generate, {name}", decoding.generate, given)


def _stream(folder):
    model = transformer()
    yield Call(
        "decoding.stream",
        lambda **given: list(decoding.stream(**given)),
        _arguments(model),
    )


CALLS = {
    "ActiveHypotheses": "a plain tuple of tensors",
    "BeamSearch": _beam,
    "Choice": "a plain tuple of tensors",
    "Decoded": "a plain tuple of arrays",
    "DecodingState": "a plain tuple of tensors",
    "GreedySearch": _greedy,
    "Sampling": _sampling,
    "SearchSpec": "a plain tuple that `generate` makes",
    "SingleSequenceStrategy": _single,
    "Strategy": _strategy,
    "StreamedToken": "a plain tuple of arrays",
    "generate": _generate,
    "stream": _stream,
}
