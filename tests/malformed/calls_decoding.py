"""Malformed calls of decoding."""

import numpy as np

from keras_attn import decoding
from tests.malformed.calls import Call, kinds
from tests.malformed.calls_models import (
    IDS,
    V,
    cache_dtype,
    gpt,
    prefix,
    stop_strings,
    tokenizer,
    transformer,
)
from tests.malformed.values import (
    INF,
    NAN,
    Kind,
    choice,
    count,
    flag,
    ids,
    instance,
    limited,
    number,
    seed,
    size,
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
    return kinds(
        suppress_tokens=_tokens(), min_new_tokens=count(0, 0), rules=_rules()
    )


def _rules():
    rule = decoding.MinP(0.5)
    return Kind(
        [rule],
        {
            "none": None,
            "text": "abc",
            "number": 3,
            "bool": True,
            "dict": {"a": rule},
            "rule": rule,
            "class": [decoding.MinP],
            "list_of_text": ["min_p"],
            "list_of_none": [None],
            "nested": [[rule]],
            "functions": [len],
        },
    )


def _sequences():
    return Kind(
        [[3, 4], [5]],
        {
            "none": None,
            "text": "abc",
            "number": 3,
            "bool": True,
            "empty": [],
            "empty_sequence": [[]],
            "flat": [3, 4],
            "list_of_text": ["ab"],
            "fractions": [[1.5]],
            "bools": [[True]],
            "negative": [[-1]],
            "giant": [[2**40]],
            "nested": [[[3]]],
        },
    )


def _one(name, **arguments):
    """Returns the calls of a rule."""

    def calls(folder):
        yield Call(
            f"decoding.{name}", getattr(decoding, name), kinds(**arguments)
        )

    return calls


def _float32(valid, least=-INF):
    return number(valid, least).plus(giant=2**2000, past_float32=1e39)


def _bias():
    return Kind(
        {3: 1.0, (4, 5): -1.0},
        {
            "none": None,
            "text": "abc",
            "number": 3,
            "bool": True,
            "list": [3],
            "empty": {},
            "no_tokens": {(): 1.0},
            "text_key": {"a": 1.0},
            "bool_key": {True: 1.0},
            "fraction_key": {1.5: 1.0},
            "negative": {-1: 1.0},
            "giant": {2**40: 1.0},
            "twice": {3: 1.0, (3,): 2.0},
            "text_value": {3: "a"},
            "none_value": {3: None},
            "bool_value": {3: True},
            "nan": {3: NAN},
            "inf": {3: INF},
            "past_float32": {3: 1e39},
        },
    )


def _function():
    return Kind(
        lambda tokens, step, spec, size: tokens[..., -1:] > 0,
        {"none": None, "text": "a", "number": 3, "list": [], "class": int},
    )


def _rule(folder):
    model = transformer()

    def call(function):
        rule = decoding.AllowedTokens(function)
        model.generate(IDS, 2, decoding.GreedySearch(rules=[rule]))

    yield Call(
        "decoding.LogitsRule, undefined",
        lambda rules: decoding.GreedySearch(rules=rules),
        kinds(rules=_rules()),
        also={
            "undefined apply": ({"rules": [decoding.LogitsRule()]}, ("apply",))
        },
        errors=(NotImplementedError,),
    )
    yield Call(
        "decoding.AllowedTokens, results",
        call,
        kinds(function=_function().valid),
        also={
            "numbers": ({"function": lambda *args: 1.0}, "function"),
            "floats": ({"function": lambda t, *args: t * 1.0}, "function"),
            "a shape": ({"function": lambda t, *args: t > 0}, "function"),
        },
    )
    for name in ("AllowedSequences", "ForcedWords"):
        rule = getattr(decoding, name)
        argument = "words" if name == "ForcedWords" else "sequences"
        yield Call(
            f"decoding.{name}, in a search",
            lambda ids, rule=rule: model.generate(
                IDS, 2, decoding.GreedySearch(rules=[rule(ids)])
            ),
            kinds(ids=[[4]]),
            also={
                "an id out of range": ({"ids": [[99]]}, argument),
                "the end token": ({"ids": [[2]]}, argument),
            },
        )


def _words(folder):
    yield from _one("ForcedWords", words=_sequences())(folder)
    model = transformer()
    yield Call(
        "decoding.ForcedWords, room",
        lambda words: model.generate(
            IDS,
            2,
            decoding.GreedySearch(rules=[decoding.ForcedWords(words)]),
        ),
        kinds(words=[[4]]),
        also={"too many": ({"words": [[3, 4], [4]]}, "words")},
    )


def _greedy(folder):
    yield Call("decoding.GreedySearch", decoding.GreedySearch, _options())


def _beam_options():
    return {
        **_options(),
        **kinds(
            num_beams=limited(2),
            num_return_sequences=limited(1),
            length_penalty=number(0.6).plus(giant=2**2000),
            length_penalty_type=choice("gnmt"),
            early_stopping=flag(False).accepts(
                "a flag of 0 or 1", "zero", "one"
            ),
            coverage_penalty=_float32(0.2, 0),
        ),
    }


def _constrained(folder):
    yield Call(
        "decoding.ConstrainedBeamSearch",
        decoding.ConstrainedBeamSearch,
        {**_beam_options(), **kinds(words=_sequences())},
    )


def _diverse(folder):
    yield Call(
        "decoding.DiverseBeamSearch",
        decoding.DiverseBeamSearch,
        {
            **_beam_options(),
            **kinds(
                num_beam_groups=limited(2), diversity_penalty=_float32(0.5, 0)
            ),
        },
        also={
            "groups of different sizes": (
                {"num_beams": 3},
                ("num_beam_groups", "num_beams"),
            )
        },
    )


def _beam(folder):
    yield Call(
        "decoding.BeamSearch",
        decoding.BeamSearch,
        _beam_options(),
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


def _lookup(folder):
    yield Call(
        "decoding.PromptLookup",
        decoding.PromptLookup,
        kinds(
            prompt_lookup_num_tokens=limited(2),
            max_matching_ngram_size=limited(2),
            strategy=choice("greedy").plus(of_type=decoding.GreedySearch),
        ),
    )


def _speculative(folder):
    yield Call(
        "decoding.SpeculativeDecoding",
        decoding.SpeculativeDecoding,
        kinds(
            assistant_model=instance(gpt()),
            num_speculative_tokens=limited(2),
            strategy=choice("greedy").plus(of_type=decoding.GreedySearch),
        ),
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
        stop_strings=stop_strings(),
        tokenizer=tokenizer(),
        cache_dtype=cache_dtype(),
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
    "AllowedSequences": _one("AllowedSequences", sequences=_sequences()),
    "AllowedTokens": _one("AllowedTokens", function=_function()),
    "BeamSearch": _beam,
    "Choice": "a plain tuple of tensors",
    "ConstrainedBeamSearch": _constrained,
    "Decoded": "a plain tuple of arrays",
    "DecodingState": "a plain tuple of tensors",
    "DiverseBeamSearch": _diverse,
    "EpsilonCutoff": _one(
        "EpsilonCutoff", epsilon=number(0.1, 0, 1).plus(zero=0.0, one=1.0)
    ),
    "ForcedWords": _words,
    "FrequencyPenalty": _one("FrequencyPenalty", penalty=_float32(0.5)),
    "GreedySearch": _greedy,
    "LogitBias": _one("LogitBias", bias=_bias()),
    "LogitsRule": _rule,
    "MinP": _one("MinP", min_p=number(0.1, 0, 1)),
    "NoRepeatNGram": _one("NoRepeatNGram", ngram_size=size(2)),
    "PresencePenalty": _one("PresencePenalty", penalty=_float32(0.5)),
    "PromptLookup": _lookup,
    "RepetitionPenalty": _one(
        "RepetitionPenalty", penalty=_float32(1.2, 0).plus(zero=0.0)
    ),
    "Sampling": _sampling,
    "SearchSpec": "a plain tuple that `generate` makes",
    "SingleSequenceStrategy": _single,
    "SpeculativeCounts": "a plain tuple of arrays",
    "SpeculativeDecoding": _speculative,
    "Strategy": _strategy,
    "StreamedToken": "a plain tuple of arrays",
    "Temperature": _one(
        "Temperature", temperature=_float32(1.0, 0).plus(zero=0.0)
    ),
    "TypicalP": _one(
        "TypicalP", typical_p=number(0.9, 0, 1).plus(zero=0.0, one=1.0)
    ),
    "generate": _generate,
    "stream": _stream,
}
