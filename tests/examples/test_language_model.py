"""examples/language_model.py: generation, evaluation, bad input."""

import keras
import numpy as np
import pytest

from keras_attn import pretrained
from keras_attn.text import SubwordTokenizer
from tests.helpers.programs import run

pytestmark = pytest.mark.one_backend

CONTEXT = 16  # of --quick
TEXT = "".join(f"é line {i}: the cat sat, {i * i} times.\n" for i in range(99))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a quick training on synthetic documents, and its output."""
    out = tmp_path_factory.mktemp("gpt")
    return out, run("language_model", "train", "--quick", "--out", out)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A text file, the second line of which is bad."""
    path = tmp_path_factory.mktemp("data") / "text.txt"
    first, rest = TEXT.encode().split(b"\n", 1)
    path.write_bytes(first + b"\nbad \xff\n" + rest)
    return path


def loaded(out):
    """Returns the model and the tokenizer of a folder."""
    model = keras.saving.load_model(out / "model.keras", compile=False)
    return model, SubwordTokenizer.load(out / "tokenizer.model")


def log_probabilities(model, ids):
    """Returns log p of every next token: float (T, V)."""
    logits = model(np.array([ids]))
    return keras.ops.convert_to_numpy(keras.ops.log_softmax(logits))[0]


def test_evaluation_equals_the_loss_of_blocks(trained, tmp_path):
    out, done = trained
    again = run("language_model", "evaluate", "--out", out).stdout
    assert again in done.stdout
    text = (out / "test.txt").read_text("utf-8")
    model, tokenizer = loaded(out)
    ids, nats = tokenizer.encode(text), 0
    for start in range(0, len(ids) - 1, CONTEXT):
        block = ids[start : start + CONTEXT + 1]
        log_p = log_probabilities(model, block[:-1])
        nats -= log_p[np.arange(len(block) - 1), block[1:]].sum()
    bits = nats / np.log(2) / len(text)
    assert f"bits per character {bits:.4f}\n" in again
    no_memory = run(
        "language_model", "evaluate", "--memory", 8, "--out", out, status=1
    )
    assert "`--memory` needs a Transformer-XL" in no_memory.stderr


def test_generation_continues_prompts_beyond_the_context(trained, tmp_path):
    out, _ = trained
    options = ("--top-k", 1, "--max-new-tokens", 21, "--out", out)
    found = run("language_model", "generate", "--prompt", "the é", *options)
    model, tokenizer = loaded(out)
    ids, half = tokenizer.encode("\nthe é"), CONTEXT // 2
    first = len(ids)
    for i in range(21):
        # Each half of the context is generated from the half before it.
        start = max(0, first + i // half * half - half)
        log_p = log_probabilities(model, ids[start:])
        log_p[-1, [*range(10 + 4), *range(10 + 5, 260)]] = -np.inf
        ids.append(int(log_p[-1].argmax()))
    assert found.stdout == tokenizer.decode(ids)[1:] + "\n\n"
    # The same from a file and from standard input, with samples.
    lines = tmp_path / "lines.txt"
    lines.write_text("the é\n\nA", "utf-8")
    options = ("--top-p", 0.9, "--seed", 5, "--max-new-tokens", 9, "--out", out)
    from_file = run("language_model", "generate", "--input", lines, *options)
    typed = run("language_model", "generate", *options, stdin=lines.read_text())
    assert from_file.stdout == typed.stdout
    texts = from_file.stdout.split("\n\n")
    assert texts[0].startswith("the é") and len(texts[0]) == 5 + 9


def test_subwords_and_bad_lines(data, tmp_path):
    options = ("--data", data, "--subwords", 320, "--quick", "--out", tmp_path)
    done = run("language_model", "train", *options)
    assert f"{data}, line 2: expected UTF-8" in done.stderr
    assert "Skipped 1 bad line." in done.stderr
    _, tokenizer = loaded(tmp_path)
    assert len(tokenizer.encode(TEXT)) < len(TEXT) / 2
    strict = run("language_model", "train", *options, "--strict", status=1)
    assert f"language_model.py: {data}, line 2: expected" in strict.stderr


def test_a_llama_can_be_saved_as_one(tmp_path):
    options = ("--model", "llama", "--quick", "--steps", 2, "--out", tmp_path)
    run("language_model", "train", *options)
    model, _ = loaded(tmp_path)
    assert (model.num_heads, model.num_key_value_heads) == (4, 1)
    pretrained.save(model, tmp_path / "llama", model_type="llama")
    again = pretrained.load(tmp_path / "llama")
    found, expected = (
        log_probabilities(m, [20, 30, 40]) for m in (again, model)
    )
    np.testing.assert_array_equal(found, expected)
