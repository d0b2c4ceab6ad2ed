"""Folders of tokenizers: atomic writes, and folders that are not trusted."""

import base64
import hashlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

from keras_attn.text import (
    BytePairTokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
    load_tokenizer,
)
from tests.helpers.full_disk import full_disk
from tests.text.samples import SCRIPTS

pytestmark = pytest.mark.one_backend

LINES = ["the cat sat on the mat", "the dog sat on the cat"] * 5


def make(kind, size=None):
    sizes = {WordPieceTokenizer: 60, BytePairTokenizer: 280}
    return kind.train_from_lines(LINES, size or sizes.get(kind, 40))


KINDS = [WordPieceTokenizer, BytePairTokenizer, UnigramTokenizer]
# Each change of the tokenizer.json of a T5 tokenizer, with the error.
TABLE = base64.b64encode((1024).to_bytes(4, "little") + b"\xff" * 1024 + b"a\0")
BROKEN = {
    "no model": ({"model": None}, "`model` in tokenizer.json"),
    "no type": ({"model": {"type": 3}}, "must have a `type` of str"),
    "word level": (
        {"model": {"type": "WordLevel", "vocab": {}, "unk_token": "a"}},
        "with one of these models: WordPiece, BPE, Unigram",
    ),
    "dropout": (
        {"model": {"type": "BPE", "vocab": {}, "merges": [], "dropout": 0.1}},
        "`dropout` in tokenizer.json of `directory` must be null",
    ),
    # tokenizers 0.23.3 panics at a merge whose result is not in the vocabulary.
    "merges": (
        {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "a"]]}},
        "must be pairs of the vocabulary",
    ),
    "scores": (
        {"model": {"type": "Unigram", "vocab": [["a", "b"]], "unk_id": 0}},
        "must contain a valid tokenizer.json",
    ),
    "unknown id": (
        {"model": {"type": "Unigram", "vocab": [["a", 0]], "unk_id": 7}},
        "must contain a valid tokenizer.json",
    ),
    "word piece": (
        {
            "model": {
                "type": "WordPiece",
                "vocab": {"a": 0},
                "unk_token": "[UNK]",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
            }
        },
        "must contain the token `unk_token`",
    ),
    "table": (
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AA"}},
        "must be a table of sentencepiece",
    ),
    "pattern": (
        {
            "pre_tokenizer": {
                "type": "Split",
                "pattern": {"Regex": "(" * 5000},
                "behavior": "Isolated",
                "invert": False,
            }
        },
        "patterns of at most 4096",
    ),
    "normalizer": ({"normalizer": {"type": "Never"}}, "must contain a valid"),
    "added": ({"added_tokens": [3]}, "must be a token"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_write_leaves_the_old_files(kind, tmp_path):
    old = make(kind)
    old.save(tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    new = kind.train_from_lines([*LINES, "quick brown foxes"] * 3, 290)
    with full_disk(100), pytest.raises(OSError):
        new.save(tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_definition_raises(name, tmp_path, capfd):
    change, message = BROKEN[name]
    make(UnigramTokenizer).save(tmp_path)
    path = tmp_path / "tokenizer.json"
    values = json.loads(path.read_text("utf-8"))
    values["added_tokens"] = []
    path.write_text(json.dumps({**values, **change}), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "PreTrainedTokenizerFast"}', encoding="utf-8"
    )
    with pytest.raises(ValueError, match=message) as info:
        load_tokenizer(tmp_path)
    assert "\n" not in str(info.value) and len(str(info.value)) < 500
    assert "panicked" not in capfd.readouterr().err


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$"])
def test_a_slow_pattern_raises(pattern, tmp_path):
    make(BytePairTokenizer).save(tmp_path)
    path = tmp_path / "tokenizer.json"
    values = json.loads(path.read_text("utf-8"))
    values["pre_tokenizer"] = {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": "Isolated",
        "invert": False,
    }
    path.write_text(json.dumps(values), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text("{}", encoding="utf-8")
    tokenizer = load_tokenizer(tmp_path)
    with pytest.raises(ValueError, match="`text` must be text that it can"):
        tokenizer.encode("a" * 60 + "b")


def test_a_table_that_points_outside_itself_raises(tmp_path):
    make(UnigramTokenizer).save(tmp_path)
    path = tmp_path / "tokenizer.json"
    values = json.loads(path.read_text("utf-8"))
    values["normalizer"] = {
        "type": "Precompiled",
        "precompiled_charsmap": TABLE.decode(),
    }
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(ValueError, match="Received: "):
        load_tokenizer(tmp_path).encode("abc")


def test_links_do_not_leave_the_folder(tmp_path):
    folder, other = tmp_path / "model", tmp_path / "other"
    make(WordPieceTokenizer).save(folder)
    make(WordPieceTokenizer).save(other)
    path = folder / "tokenizer.json"
    path.unlink()
    path.symlink_to(other / "tokenizer.json")
    with pytest.raises(ValueError, match="a link to a file outside the folder"):
        load_tokenizer(folder)
    # The cache of Hugging Face links to its `blobs`.
    cached = tmp_path / "hub" / "snapshots" / "abc"
    blobs = tmp_path / "hub" / "blobs"
    make(WordPieceTokenizer).save(cached)
    blobs.mkdir()
    for path in [*cached.iterdir()]:
        os.replace(path, blobs / path.name)
        path.symlink_to(blobs / path.name)
    assert load_tokenizer(cached).encode("the cat")


def test_names_in_a_config_open_no_file(tmp_path):
    tokenizer = make(WordPieceTokenizer)
    tokenizer.save(tmp_path / "model")
    path = tmp_path / "model" / "tokenizer_config.json"
    values = json.loads(path.read_text("utf-8"))
    values["vocab_file"] = values["tokenizer_file"] = "../../etc/passwd"
    path.write_text(json.dumps(values), encoding="utf-8")
    assert load_tokenizer(tmp_path / "model").vocabulary == tokenizer.vocabulary


def test_added_tokens_with_other_ids_raise(tmp_path):
    make(WordPieceTokenizer).save(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    values = json.loads(path.read_text("utf-8"))
    values["added_tokens_decoder"]["900"] = {"content": "<a>"}
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(ValueError, match="'<a>' with id 900 instead of"):
        load_tokenizer(tmp_path)


def digest():
    """Returns a digest of three vocabularies learned from many scripts."""
    lines = [line for part in SCRIPTS.values() for line in part] * 3
    found = [
        WordPieceTokenizer.train_from_lines(lines, 700),
        BytePairTokenizer.train_from_lines(lines, 500),
        UnigramTokenizer.train_from_lines(lines, 420),
    ]
    values = "".join(tokenizer._engine.to_str() for tokenizer in found)
    return hashlib.sha256(values.encode()).hexdigest()


def test_training_is_deterministic():
    program = "from tests.text import test_tokenizer_folders as test"
    found = subprocess.run(
        [sys.executable, "-c", f"{program}; print(test.digest())"],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        cwd=pathlib.Path(__file__).parents[2],
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    assert found.strip() == digest()
