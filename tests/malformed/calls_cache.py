"""Malformed calls of the key-value cache."""

import dataclasses

import keras
import numpy as np

from keras_attn import cache
from tests.malformed.calls import Call, kinds
from tests.malformed.calls_layers import MASK
from tests.malformed.values import (
    choice,
    count,
    floats,
    ids,
    instance,
    limited,
    mask,
    positions,
)

TOKENS = np.ones((2, 1, 2, 4), "float32")


def _made():
    return cache.empty(2, 4, 1, 2, 4, 4, "float32")


def _cache():
    return instance(_made())


def _count(valid, least=1):
    return count(valid, least)


def _size(valid, least):
    # 10**9 of one size need less than the memory that is allowed.
    return limited(valid, least).without("huge")


def _empty(folder):
    yield Call(
        "cache.empty",
        cache.empty,
        kinds(
            rows=_size(2, 0),
            length=_size(4, 0),
            layers=limited(1),
            heads=_size(2, 1),
            key_dim=_size(4, 1),
            value_dim=_size(4, 1),
            dtype=choice("float32").plus(integers="int32"),
            sliding_window=count(2)
            .optional()
            .without("list")
            .plus(layers=[2, 2], zero_inside=[0]),
        ),
        also={
            "too large": ({"rows": 10**6, "length": 10**6}, ("rows", "length"))
        },
    )


def _from_projections(folder):
    kind = instance([TOKENS]).without("list")
    places = np.zeros((2, 1), "int32")
    kind = kind.plus(
        mixed=[TOKENS, None],
        number_inside=[3],
        rank=[TOKENS[0]],
        batch=[TOKENS[:1]],
        integers=[TOKENS.astype("int32")],
        two=[TOKENS] * 2,
    )
    yield Call(
        "cache.from_projections",
        cache.from_projections,
        kinds(
            keys=kind.named("values"),
            values=kind.named("keys"),
            positions=positions(places)
            .plus(none=None)
            .without("long", "short")
            .named("keys"),
        ),
    )


def _of_a_cache(name):
    def calls(folder):
        yield Call(f"cache.{name}", getattr(cache, name), kinds(cache=_cache()))

    return calls


def _open_slots(folder):
    yield Call(
        "cache.open_slots",
        lambda **given: cache.open_slots(**given),
        kinds(
            cache=_cache(),
            count=_count(4).plus(too_many=5, giant=2**40),
            token_mask=mask(MASK).optional(),
        ),
    )


def _append(folder):
    yield Call(
        "cache.append",
        cache.append,
        kinds(
            cache=_cache(),
            layer=count(0, 0).plus(outside=1, giant=2**40),
            keys=floats(TOKENS),
            values=floats(TOKENS),
        ),
    )


def _read(folder):
    yield Call(
        "cache.read",
        cache.read,
        kinds(
            cache=_cache(),
            layer=count(0, 0).plus(outside=1, giant=2**40),
            heads=count(2).plus(other=3, giant=2**40),
        ),
    )


def _counted(name):
    def calls(folder):
        given = {"cache": _cache(), "count": _count(1, 0)}
        yield Call(f"cache.{name}", getattr(cache, name), kinds(**given))

    return calls


def _beam_mask(folder):
    yield Call(
        "cache.beam_mask",
        cache.beam_mask,
        kinds(
            cache=_cache(),
            count=_count(1, 0),
            layer=count(0, 0).optional().plus(outside=1, giant=2**40),
        ),
    )


def _expand(folder):
    yield Call(
        "cache.expand_beams",
        cache.expand_beams,
        kinds(
            hypothesis=instance({"tokens": np.ones((2, 1), "int32")})
            .without("list", "array", "own_type")
            .accepts("a nest without tensors", "empty"),
            width=_count(2).plus(giant=2**40),
        ),
    )


def _reorder(folder):
    rows = keras.ops.convert_to_tensor(np.array([1, 0], "int32"))
    rows = dataclasses.replace(
        ids(np.array([1, 0], "int32")).without("rank_less"), valid=rows
    )
    yield Call(
        "cache.reorder",
        cache.reorder,
        kinds(
            hypothesis=instance({"tokens": np.ones((2, 1), "int32")})
            .without("list", "array", "own_type")
            .accepts("a nest without tensors", "empty"),
            rows=rows,
        ),
    )


def _crop(folder):
    yield Call(
        "cache.crop",
        lambda **given: cache.crop(**given),
        kinds(
            cache=_cache(),
            count=ids(np.array([1, 0], "int32"))
            .without("rank_less")
            .accepts("one for all rows", "scalar"),
        ),
    )


def _grown(folder):
    def grown(hypothesis, count):
        # A cache is consumed.
        return cache.grown((hypothesis, _made()), count)

    yield Call(
        "cache.grown",
        grown,
        kinds(hypothesis="anything", count=_count(1, 0).plus(giant=2**40)),
    )


def _quantized(folder):
    yield Call(
        "cache.quantized",
        # A cache is consumed.
        lambda hypothesis: cache.quantized(
            _made() if isinstance(hypothesis, cache.KVCache) else hypothesis
        ),
        kinds(hypothesis=instance(_made()).without("list")),
    )


CALLS = {
    "DecodingStep": "a plain tuple of tensors",
    "KVCache": "a plain tuple of tensors, made by `empty`",
    "append": _append,
    "beam_mask": _beam_mask,
    "close_slots": _counted("close_slots"),
    "crop": _crop,
    "empty": _empty,
    "expand_beams": _expand,
    "free_slots": _of_a_cache("free_slots"),
    "from_projections": _from_projections,
    "grown": _grown,
    "open_slots": _open_slots,
    "quantized": _quantized,
    "read": _read,
    "reorder": _reorder,
    "slots": _of_a_cache("slots"),
    "sources": _of_a_cache("sources"),
}
