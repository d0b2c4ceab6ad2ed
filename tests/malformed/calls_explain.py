"""Malformed calls of the explain package."""

import numpy as np

from keras_attn import explain
from keras_attn.explain import AttentionMap
from tests.malformed.calls import Call, kinds
from tests.malformed.calls_models import IDS, gpt
from tests.malformed.values import (
    ENDLESS,
    NAN,
    Kind,
    choice,
    count,
    flag,
    floats,
    function,
    ids,
    instance,
    limited,
    lines,
    number,
    path,
    title,
)

WEIGHTS = np.full((1, 2, 3, 3), 1 / 3, "float32")
TEXT = [list("abc")]


def _map():
    return AttentionMap("encoder", 0, (0, 1), WEIGHTS, TEXT)


def _weights():
    holed, infinite = WEIGHTS.copy(), np.full_like(WEIGHTS, np.inf)
    holed[0, 0, 1, 1] = NAN
    kind = floats(WEIGHTS, batch=False, width=False)
    return kind.plus(negative=-WEIGHTS, holed=holed, infinite=infinite).accepts(
        "weights of 0 and 1 are weights", "integers", "bools"
    )


def _index():
    return count(0, 0).plus(outside=1, past_int32=2**31)


def _pattern():
    kind = title(None).optional().plus(open="(", star=["a", "*"], other="other")
    return kind.plus(nones=[None])


def _names():
    return Kind(
        None,
        {
            "text": "abc",
            "number": 3,
            "flat": ["a"],
            "short": [["a"]],
            "numbers": [3],
            "nones": [None],
            "scalar": np.array(1),
            "dict": {"a": 1},
        },
    )


def _maps(folder):
    model = gpt()
    kind = ids(IDS, 12).named("token_ids").without("ragged", "rank_less")
    yield Call(
        "explain.attention_maps",
        explain.attention_maps,
        kinds(
            model=instance(model),
            inputs=kind,
            layers=_pattern(),
            heads=instance(None)
            .without("own_type", "none", "function")
            .plus(
                negative=-1, outside=2, bools=[True], nans=[NAN], giant=2**40
            ),
            tokens=_names().plus(function=lambda token_ids: None),
            decoded=instance(None).without("own_type", "none", "function"),
            vectors=flag(False),
        ),
    )


def _attention_map(folder):
    yield Call("explain.AttentionMap.of", _map().of, kinds(row=_index()))


def _view(folder):
    made = explain.AttentionView("", "")
    yield Call(
        "explain.AttentionView",
        explain.AttentionView,
        kinds(html=title(""), title=title("")),
    )
    yield Call(
        "explain.AttentionView.save",
        made.save,
        kinds(path=path(folder / "view.html")),
    )
    yield Call(
        "explain.view_attention",
        explain.view_attention,
        kinds(maps=_list_of_maps(), row=_index(), title=title("a")),
    )


def _list_of_maps():
    kind = instance([_map()]).without("list", "own_type")
    return kind.plus(one=_map(), arrays=[WEIGHTS], nones=[None], texts=["a"])


def _view_function(folder):
    return [c for c in _view(folder) if c.name == "explain.view_attention"]


def _view_class(folder):
    return [c for c in _view(folder) if c.name != "explain.view_attention"]


def _masks(name):
    def calls(folder):
        yield Call(
            f"explain.{name}",
            getattr(explain, name),
            kinds(
                grid=count(3),
                probability=number(0.5, 0, 1).plus(zero=0.0, one=1.0),
                baseline=number(0.0).accepts(
                    "an array of the image's shape", "array", "list"
                ),
            ),
        )
        made = getattr(explain, name)(2)
        shape = (4, 4, 1) if name == "PatchMasks" else (4, 3)
        yield from _drawn(name, made, shape)

    return calls


def _drawn(name, made, shape):
    yield Call(
        f"explain.{name}.draw",
        made.draw,
        kinds(
            random=instance(np.random.default_rng(0)).without("own_type"),
            shape=Kind(
                shape,
                {
                    "none": None,
                    "number": 3,
                    "text": "abc",
                    "empty": (),
                    "texts": ("a",),
                    "negative": (-1,) * len(shape),
                    "fractions": (1.5,) * len(shape),
                },
            ),
            count=limited(2),
        ),
    )


def _token_masks(folder):
    made = explain.TokenMasks(1)
    yield Call(
        "explain.TokenMasks",
        explain.TokenMasks,
        kinds(
            mask_id=count(1, 0),
            probability=number(0.5, 0, 1).plus(zero=0.0, one=1.0),
            keep_ids=Kind(
                (0,),
                {
                    "none": None,
                    "number": 0,
                    "text": "0",
                    "fractions": [1.5],
                    "bools": [True],
                    "nones": [None],
                    "nested": [[0]],
                    "dict": {"a": 1},
                },
            ),
        ),
    )
    yield from _drawn("TokenMasks", made, (3,))


def _insertion(folder):
    yield Call(
        "explain.deletion_and_insertion",
        explain.deletion_and_insertion,
        kinds(
            function=function(lambda token_ids: token_ids.sum(axis=1)),
            inputs=_row(),
            saliency=floats(np.ones(3, "float32"))
            .without("rank_less")
            .accepts("numbers", "integers", "bools"),
            masks=_some_masks().named("inputs"),
            steps=count(2).optional().plus(too_many=4, huge=10**9),
            batch_size=count(2),
        ),
    )


def _row():
    # One row of tokens, without a batch.
    kind = ids(np.array([5, 6, 0], "int32"))
    return kind.without("rank_less").plus(empty_array=np.zeros(0, "int32"))


def _some_masks():
    return instance(explain.TokenMasks(1)).plus(of_images=explain.PatchMasks())


def _rise(folder):
    yield Call(
        "explain.rise",
        explain.rise,
        kinds(
            function=function(lambda token_ids: token_ids.sum(axis=1)),
            inputs=_row(),
            masks=_some_masks().named("inputs"),
            num_masks=count(2).plus(giant=2**40),
            batch_size=count(2),
            seed=count(0, 0),
            verbose=choice(0).accepts("a bool", "bool").plus(two=2),
        ),
    )


def _doctor(folder):
    model = gpt()
    yield Call(
        "explain.doctor",
        explain.doctor,
        kinds(
            model=instance(model),
            inputs=ids(IDS, 12).named("token_ids").without("ragged"),
            mask=Kind(
                None,
                {
                    "text": "abc",
                    "number": 3.5,
                    "floats": np.ones((2, 3)),
                    "additive": np.full((2, 4), -1e9),
                    "empty": [],
                    "dict": {},
                    "nones": [None],
                    "deep": [[[[[1]]]]],
                },
            ),
            pad_id=count(0, 0).named("inputs"),
            tolerance=number(None, 0, 1).plus(one=1.0).optional(),
        ),
    )


def _measure(name):
    def calls(folder):
        given = {"weights": _weights()}
        if name == "padding_attention":
            given["padding_mask"] = Kind(
                np.array([[True, True, False]]),
                {
                    "none": None,
                    "text": "abc",
                    "flat": np.ones(3),
                    "additive": np.full((1, 3), -1e9),
                    "long": np.ones((1, 4)),
                    "batch": np.ones((3, 3)),
                    "object": object(),
                },
            )
        yield Call(f"explain.{name}", getattr(explain, name), kinds(**given))

    return calls


def _plot(folder):
    def plot(**given):
        from matplotlib import pyplot

        try:
            return explain.plot_attention(**given)
        finally:
            pyplot.close("all")

    yield Call(
        "explain.plot_attention",
        plot,
        kinds(
            weights=_weights().accepts("the heads of one row", "rank_less"),
            query_tokens=_names(),
            key_tokens=_names(),
            head=count(0, 0).optional().plus(outside=2),
            title=title(None).optional(),
            ax=instance(None).without("none", "own_type"),
            cmap=title("gray").plus(unknown="no such map"),
            vmax=number(1.0, 0).optional().plus(zero=0.0),
            row=_index(),
        ),
    )


def _plot_beam(folder):
    items = list(gpt().stream(IDS, 2))

    def plot(**given):
        from matplotlib import pyplot

        try:
            return explain.plot_beam(**given)
        finally:
            pyplot.close("all")

    yield Call(
        "explain.plot_beam",
        plot,
        kinds(
            items=instance(items).without("own_type", "list"),
            token_names=instance(None).without(
                "none", "own_type", "function", "type"
            ),
            row=_index().plus(outside=2),
            title=title(None).optional(),
        ),
    )


def _plot_image(folder):
    images = np.full((2, 4, 8, 3), 7.0, "float32")
    weights = np.full((2, 3, 1, 2), 0.5, "float32")
    tokens = [["a", "b"], ["c"]]
    yield Call(
        "explain.plot_image_attention",
        explain.plot_image_attention,
        kinds(
            images=floats(images)
            .plus(no_rows=images[:0], dark=-images, bright=100 * images)
            .accepts("pixels may be integers", "integers", "bools"),
            weights=floats(weights, width=False)
            .plus(negative=-weights, infinite=np.full_like(weights, np.inf))
            .accepts("weights of 0 and 1 are weights", "integers", "bools"),
            tokens=instance(tokens)
            .without("own_type")
            .plus(flat=["a", "b"], short=[["a"]], long=[["a"] * 4, []]),
        ),
    )


def _plot_confusion(folder):
    yield Call(
        "explain.plot_confusion",
        explain.plot_confusion,
        kinds(
            references=lines(["a", "b"]).plus(shorter=["a"], empty=[]),
            predictions=lines(["a", "a"]).plus(endless=ENDLESS),
        ),
    )


def _plot_training(folder):
    curve = Kind(
        [2.0, 1.5, 1.2],
        {
            "none": None,
            "number": 2.0,
            "empty": [],
            "text": "abc",
            "texts": ["a", "b", "c"],
            "rows": [[1.0], [2.0], [3.0]],
            "nones": [None] * 3,
            "dict": {"a": 1.0},
            "object": object(),
        },
    )
    yield Call(
        "explain.plot_training",
        explain.plot_training,
        kinds(
            losses=curve,
            validation=Kind(
                [(1, 2.0), (3, 1.4)],
                {
                    "none": None,
                    "number": 2.0,
                    "numbers": [1, 2],
                    "triples": [(1, 2.0, 3.0)],
                    "texts": [("a", "b")],
                    "nones": [(None, None)],
                    "object": object(),
                },
            ),
            learning_rates=Kind([0.1, 0.2, 0.3], curve.wrong).optional(),
            ylabel=title("loss"),
        ),
    )


def _rollout(folder):
    yield Call(
        "explain.rollout",
        explain.rollout,
        kinds(
            maps=instance([WEIGHTS])
            .without("list", "own_type")
            .plus(one=_map(), nones=[None], texts=["a"]),
            residual=number(0.5, 0, 1),
        ),
    )


def _stack():
    return (
        choice(None).optional().plus(unknown="both", of_another_model="encoder")
    )


def _hidden_states(folder):
    kind = ids(IDS, 12).named("token_ids").without("ragged", "rank_less")
    yield Call(
        "explain.hidden_states",
        explain.hidden_states,
        kinds(model=instance(gpt()), inputs=kind, stack=_stack()),
    )


def _logit_lens(folder):
    kind = ids(IDS, 12).named("token_ids").without("ragged", "rank_less")
    yield Call(
        "explain.logit_lens",
        explain.logit_lens,
        kinds(model=instance(gpt()), inputs=kind),
    )


def _patch(folder):
    def one():
        kind = ids(IDS[:1], 12).named("token_ids", "inputs")
        return kind.without("ragged", "rank_less")

    yield Call(
        "explain.patch",
        explain.patch,
        kinds(
            model=instance(gpt()),
            clean=one(),
            corrupted=one(),
            score=function(lambda logits: logits[:, -1, 3]),
            stack=_stack(),
            batch_size=count(32, 1),
        ),
    )


def _patch_scores(folder):
    scores = floats(np.zeros((3, 4), "float32"), batch=False, width=False)
    scores = scores.accepts("scores may be whole", "integers", "bools")
    yield Call(
        "explain.PatchScores",
        lambda **given: explain.plot_patch(explain.PatchScores(**given)),
        kinds(
            scores=scores,
            clean=number(1.0),
            corrupted=number(0.0).plus(same=1.0),
        ),
    )


def _labels(length):
    return lines(list("abcd")[:length]).optional().plus(short=["a"])


def _plot_patch(folder):
    patched = explain.PatchScores(np.zeros((3, 4), "float32"), 1.0, 0.0)
    yield Call(
        "explain.plot_patch",
        explain.plot_patch,
        kinds(
            patched=instance(patched),
            tokens=_labels(4),
            title=title(None).optional(),
            ax=instance(None).without("none", "own_type"),
            cmap=title("PuOr").plus(unknown="no such map"),
        ),
    )


def _plot_logit_lens(folder):
    logits = np.zeros((3, 1, 4, 5), "float32")
    logits = floats(logits, batch=False, width=False)
    logits = logits.accepts("logits may be whole", "integers", "bools")
    yield Call(
        "explain.plot_logit_lens",
        explain.plot_logit_lens,
        kinds(
            logits=logits,
            tokens=_labels(4),
            names=function(lambda ids: [str(i) for i in ids]).optional(),
            row=_index(),
            title=title(None).optional(),
            ax=instance(None).without("none", "own_type"),
            cmap=title("gray").plus(unknown="no such map"),
        ),
    )


CALLS = {
    "AttentionMap": _attention_map,
    "AttentionView": _view_class,
    "DeletionInsertion": "a plain tuple that `deletion_and_insertion` returns",
    "FrameMasks": _masks("FrameMasks"),
    "Leak": "plain data that `doctor` returns",
    "PatchMasks": _masks("PatchMasks"),
    "PatchScores": _patch_scores,
    "Probe": "plain data that `doctor` returns",
    "Report": "plain data that `doctor` returns",
    "TokenMasks": _token_masks,
    "attention_maps": _maps,
    "deletion_and_insertion": _insertion,
    "doctor": _doctor,
    "head_distance": _measure("head_distance"),
    "head_entropy": _measure("head_entropy"),
    "hidden_states": _hidden_states,
    "logit_lens": _logit_lens,
    "padding_attention": _measure("padding_attention"),
    "patch": _patch,
    "plot_logit_lens": _plot_logit_lens,
    "plot_patch": _plot_patch,
    "plot_attention": _plot,
    "plot_beam": _plot_beam,
    "plot_confusion": _plot_confusion,
    "plot_image_attention": _plot_image,
    "plot_training": _plot_training,
    "rise": _rise,
    "rollout": _rollout,
    "view_attention": _view_function,
}
