"""Decoding contestants are the same model and generate the same tokens."""

import importlib
import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from benchmarks.decoding import plan, task, weights
from benchmarks.harness import race

ROOT = race.ROOT
BACKEND = keras.backend.backend()
# More rows and steps than a quick run, some rows padded.
SMALL = {**plan.QUICK_CASES[1], "rows": 4, "new": 12}
BARE = {"torch": "bare_torch", "jax": "bare_jax"}.get(BACKEND)
OF_BACKEND = {
    "torch": ["bare_torch", "hugging_face", "ctranslate2", "keras_hub"],
    "jax": ["bare_jax", "keras_hub"],
    "tensorflow": ["tensorflow_tutorial", "keras_hub"],
}[BACKEND]
OPTIONS = [
    ("keras_hub", {"lean": False}),
    ("keras_hub", {"xla": False}),
    ("tensorflow_tutorial", {"growing": False}),
]


def module(name):
    pytest.importorskip(
        {"hugging_face": "transformers"}.get(name, name)
        if name in ("hugging_face", "keras_hub", "ctranslate2")
        else "keras"
    )
    return importlib.import_module(f"benchmarks.decoding.{name}")


def found(name, case, seed, count=2, **options):
    decode = module(name).decoder(case, weights.draw(case, seed), **options)
    batches = task.sources(case, count, seed)
    return np.concatenate([np.asarray(decode(batch)) for batch in batches])


@pytest.fixture(scope="module")
def ours():
    """Tokens of this library by beams and seed, computed once."""
    cached = {}

    def find(beams, seed):
        if (beams, seed) not in cached:
            cached[beams, seed] = found("ours", SMALL | {"beams": beams}, seed)
        return cached[beams, seed]

    return find


def _pairs():
    for name in OF_BACKEND:
        for options in [{}, *(o for n, o in OPTIONS if n == name)]:
            if "xla" in options and BACKEND != "tensorflow":
                continue
            for beams in (1, 4):
                if (name, beams) != ("tensorflow_tutorial", 4):
                    yield name, beams, options


@pytest.mark.parametrize("name, beams, options", list(_pairs()))
@pytest.mark.parametrize("seed", [0, 1])
def test_same_weights_give_the_same_tokens(ours, name, beams, options, seed):
    expected = ours(beams, seed)
    tokens = found(name, SMALL | {"beams": beams}, seed, **options)
    np.testing.assert_array_equal(tokens, expected)


@pytest.mark.parametrize("beams, seed", [(1, 0), (4, 0), (4, 1)])
def test_sequences_are_full_and_differ(ours, beams, seed):
    tokens = ours(beams, seed)
    assert tokens.shape == (2 * SMALL["rows"], SMALL["new"])
    assert not np.isin(tokens, (task.PAD, task.START, task.END)).any()
    assert len({tuple(row) for row in tokens}) > SMALL["rows"]


def test_beam_search_differs_from_greedy_search(ours):
    assert (ours(1, 0) != ours(4, 0)).any()


@pytest.mark.skipif(BARE is None, reason=f"no bare loop on {BACKEND}")
@pytest.mark.parametrize("beams, seed", [(1, 0), (4, 0), (4, 3)])
def test_bare_loops_end_sequences_like_keras_attn(beams, seed):
    case = SMALL | {"beams": beams, "vocabulary": 9, "ends": True}
    tokens = found(BARE, case, seed, count=8)
    np.testing.assert_array_equal(tokens, found("ours", case, seed, count=8))
    lengths = (tokens != task.PAD).sum(1)
    assert len(set(lengths)) > 1


def test_all_models_have_the_same_parameters():
    case = plan.CASES[0]
    drawn = weights.draw(case)
    expected = weights.count(drawn)
    assert expected == _by_hand(case)
    ours = module("ours").model(case, drawn)
    # In the other models, the logits bias is a constant, not a parameter.
    assert ours.count_params() == expected + case["vocabulary"]
    if "hugging_face" in OF_BACKEND:
        theirs = module("hugging_face").model(case, drawn)
        trained = [p for p in theirs.parameters() if p.requires_grad]
        assert sum(p.numel() for p in trained) == expected
    if "tensorflow_tutorial" in OF_BACKEND:
        theirs = module("tensorflow_tutorial").Transformer(case, drawn)
        assert theirs.count_params() == expected
    theirs = module("keras_hub").Translator(case, drawn, lean=True)
    assert theirs.count_params() == expected


def _by_hand(case):
    width, inner = case["width"], case["inner"]
    norm = 2 * width
    attention = 4 * (width * width + width) + norm
    network = 2 * width * inner + inner + width + norm
    layers = 3 * attention + 2 * network
    return case["vocabulary"] * width + case["layers"] * layers


def test_sources_match_the_notes():
    sources = task.sources(plan.CASES[2])
    assert sources.shape == (4, 32, 32)
    padded = (sources == task.PAD).any(-1)
    assert padded.mean() == 0.5
    assert not (task.sources(plan.CASES[0]) == task.PAD).any()
    np.testing.assert_array_equal((sources == task.END).sum(-1), 1)


def test_flops_match_the_matrix_products():
    case = plan.CASES[3]
    parameters = weights.count(weights.draw(case))
    products = case["rows"] * case["beams"] * case["new"]
    # A parameter of the decoder is used once for each token; biases, norms,
    # encoder and attention itself are the rest.
    decoder = parameters - case["layers"] * 5 * case["width"] ** 2
    assert task.flops(case) == pytest.approx(2 * products * decoder, rel=0.25)


# On JAX, with the fewest contestants: each process takes seconds to start.
@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A quick run of the table with this backend's contestants."""
    folder = tmp_path_factory.mktemp("bench")
    command = [sys.executable, "-m", "benchmarks", "decoding"]
    subprocess.run(
        [*command, "--only", BACKEND, "--out", str(folder)],
        cwd=ROOT,
        env={**os.environ, "QUICK": "1"},
        check=True,
    )
    return json.loads((folder / "decoding.json").read_text("utf-8"))


@pytest.mark.one_backend("jax")
def test_quick_run_measures_every_contestant(quick):
    for result, case in zip(quick["results"], plan.QUICK_CASES, strict=True):
        assert [entry["name"] for entry in result["contestants"]] == [
            one.name
            for one in plan.CONTESTANTS
            if one.backend == BACKEND
            and one.needs not in quick["absent"]
            and (not one.cases or case["name"] in one.cases)
        ]
        for entry in result["contestants"]:
            rate = entry["tokens_per_second"] * entry["median_seconds"]
            assert rate == pytest.approx(case["rows"] * case["new"])


@pytest.mark.one_backend("jax")
def test_report_shows_that_tokens_are_equal(quick):
    for result in quick["results"]:
        means = {entry["loss"] for entry in result["contestants"]}
        assert len(means) == 1
