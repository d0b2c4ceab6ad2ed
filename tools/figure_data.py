"""Writes the data of the interactive figures that show a trained model.

    make translate
    .venv/bin/python -m tools.figure_data runs/translate
    .venv/bin/python -m tools.figure_data --gpt

The first command writes those of a trained translator. The second trains a GPT
over characters; on one CPU core, which it shared, that took 19 minutes.

The files are in `docs/assets/js/figures/data`, one per figure. They are
scripts, because a page that was opened from disk cannot read other files.
"""

import argparse
import base64
import datetime
import json
import pathlib
import types

import keras
import numpy as np

from examples.translate import Translator
from keras_attn.decoding import BeamSearch
from keras_attn.explain import attention_maps
from tools import character_gpt

ROOT = pathlib.Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "assets" / "js" / "figures" / "data"
READ = (
    "this cat is very large",
    "she wants to buy two red shirts",
    "the old house is near the river",
)
SEARCHED = (
    "a cat runs to the large village",
    "this girl who eats a sweet cake is very sad",
)
# A source, and how many tokens of its translation come before.
SAMPLED = (
    ("their young aunts lost two small clocks last year", 6),
    ("my intelligent actress ate five german eggs yesterday", 12),
    ("a cat runs to the large village because their car is blue", 10),
)
KINDS = {
    "encoder": r"encoder_block_\d+/",
    "decoder": r"decoder_block_\d+/self_attention",
    "cross": "cross",
}
BEAMS = (1, 2, 3, 4, 5)
PENALTIES = (0.0, 0.6, 1.0, 2.0)
# Each step looks at twice as many continuations as there are beams.
CONTINUATIONS = 2 * max(BEAMS)
LENGTH = 20


def log_probs(model, source, prefixes):
    """Returns the log-probabilities after prefixes of a translation.

    Args:
        model: `Transformer`.
        source: list of int.
        prefixes: list of lists of int, without the start token.

    Returns:
        float32 (number of prefixes, V).
    """
    lengths = [len(prefix) for prefix in prefixes]
    target = np.full((len(prefixes), 1 + max(lengths)), model.pad_id, "int32")
    target[:, 0] = model.start_id
    for row, prefix in zip(target, prefixes, strict=True):
        row[1 : 1 + len(prefix)] = prefix
    rows = np.tile(np.array([source], "int32"), (len(prefixes), 1))
    logits = keras.ops.log_softmax(model((rows, target), training=False))
    logits = keras.ops.convert_to_numpy(logits)
    return logits[np.arange(len(prefixes)), lengths]


def search(strategy, spec, log_probs_after):
    """Runs a search of one source by the strategy's own steps.

    Args:
        strategy: `BeamSearch`.
        spec: has `pad_id`, `end_ids` and `max_new_tokens`.
        log_probs_after: function from a list of prefixes, tuples of int, to
            their float32 (number, V).

    Returns:
        Pair: the tuples of the prefixes that were extended, and the `Decoded`
        result.
    """
    state = strategy.init_state(1, spec.max_new_tokens, spec)
    seen = []
    for step in range(spec.max_new_tokens):
        tokens = keras.ops.convert_to_numpy(state.tokens)[0, :, :step]
        active = keras.ops.convert_to_numpy(strategy.is_active(state))[0]
        if not active.any():
            break
        prefixes = [tuple(row.tolist()) for row in tokens]
        seen += [p for p, on in zip(prefixes, active, strict=True) if on]
        scores = log_probs_after(prefixes)[None]
        number = keras.ops.convert_to_tensor(step, "int32")
        state = strategy.choose(
            state, number, keras.ops.convert_to_tensor(scores), None, spec
        ).search_state
    return seen, strategy.finalize(state, spec)


def attention_data(translator, sentence):
    """Returns the weights of all heads while a sentence is translated."""
    rows = translator.encode([sentence])
    decoded = translator.generate(rows)
    data = {"source": translator.tokenizer.pieces(rows[0]), "weights": {}}
    for kind, pattern in KINDS.items():
        maps = attention_maps(
            translator.model,
            rows,
            layers=pattern,
            tokens=translator.tokenizer.pieces,
            decoded=decoded,
        )
        found = [one.of(0) for one in maps]
        # In ten-thousandths.
        data["weights"][kind] = [
            np.rint(1e4 * weights).astype(int).tolist()
            for weights, _, _ in found
        ]
        data["target"] = found[0][1]
    return data


def beam_data(translator, sentence):
    """Returns the continuations of all prefixes that searches look at."""
    model, tokenizer = translator.model, translator.tokenizer
    (source,) = translator.encode([sentence])
    spec = types.SimpleNamespace(
        pad_id=model.pad_id,
        end_ids=(tokenizer.end_id,),
        max_new_tokens=LENGTH,
    )
    known = {}

    def after(prefixes):
        new = sorted({p for p in prefixes if p not in known})
        if new:
            found = log_probs(model, source, [list(p) for p in new])
            known.update(zip(new, found, strict=True))
        return np.stack([known[prefix] for prefix in prefixes])

    extended = set()
    for width in BEAMS:
        for penalty in PENALTIES:
            strategy = BeamSearch(width, length_penalty=penalty)
            extended |= set(search(strategy, spec, after)[0])
    nodes, used = {}, set()
    for prefix in sorted(extended):
        best = np.argsort(-known[prefix], kind="stable")[:CONTINUATIONS]
        used |= {*prefix, *best.tolist()}
        nodes[" ".join(map(str, prefix))] = [
            [int(token), round(float(known[prefix][token]), 5)]
            for token in best
        ]
    names = dict(zip(sorted(used), tokenizer.pieces(sorted(used)), strict=True))
    return {
        "source": sentence,
        "end": tokenizer.end_id,
        "length": LENGTH,
        "names": names,
        "nodes": nodes,
    }


def sampling_data(translator, sentence, count):
    """Returns the log-probabilities of all tokens after some of them."""
    (source,) = translator.encode([sentence])
    tokens = translator.generate([source]).tokens[0, 0, :count].tolist()
    found = log_probs(translator.model, source, [tokens])[0]
    return {
        "source": sentence,
        "prefix": "".join(translator.tokenizer.pieces(tokens)),
        "logProbs": base64.b64encode(found.astype("<f4").tobytes()).decode(),
    }


def data_of(translator):
    """Returns the data of each figure by name."""
    size = translator.tokenizer.vocabulary_size
    return {
        "attention_heads": [attention_data(translator, s) for s in READ],
        "beam_search": [beam_data(translator, s) for s in SEARCHED],
        "sampling": {
            "names": " ".join(translator.tokenizer.pieces(range(size))),
            "contexts": [sampling_data(translator, *one) for one in SAMPLED],
        },
    }


def write(name, data, origin):
    """Writes the data of one figure; `origin` tells where it is from."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.js"
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    today = datetime.date.today().isoformat()
    path.write_text(
        f"// Written by `python -m tools.figure_data {origin[0]}` on\n"
        f"// {today}, {origin[1]}.\n"
        f"figures.data.{name} = {text};\n",
        encoding="utf-8",
    )
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


def main():
    """Runs the command."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.figure_data", description=__doc__.split("\n")[0]
    )
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument(
        "run", type=pathlib.Path, nargs="?", help="folder of a training"
    )
    model.add_argument(
        "--gpt", action="store_true", help="train a GPT over characters"
    )
    options = parser.parse_args()
    if options.gpt:
        data = character_gpt.train(character_gpt.prose())
        backend = keras.backend.backend()
        write("character_gpt", data, ("--gpt", f"with {backend}"))
        return
    translator = Translator.load(options.run, num_beams=4)
    for name, data in data_of(translator).items():
        write(name, data, ("runs/translate", "after `make translate`"))


if __name__ == "__main__":
    main()
