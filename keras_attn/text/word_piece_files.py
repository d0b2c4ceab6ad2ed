"""Files of a WordPiece tokenizer in Hugging Face's format."""

import json

from keras_attn import checks
from keras_attn.atomic_files import whole_file, writable_folder
from keras_attn.text.vocabulary_files import (
    read_json_object,
    read_text,
    vocabulary_folder,
)

VOCABULARY, _CONFIG = "vocab.txt", "tokenizer_config.json"
_EXPECTED = {bool: "bool", int: "int >= 1", str: "str, not empty"}
# Keys of tokenizer_config.json, with argument names and types.
_KEYS = {
    "do_lower_case": ("lowercase", bool),
    "strip_accents": ("strip_accents", bool),
    "tokenize_chinese_chars": ("split_chinese", bool),
    "max_input_chars_per_word": ("max_word_length", int),
    "pad_token": ("pad", str),
    "unk_token": ("unknown", str),
    "cls_token": ("cls", str),
    "sep_token": ("sep", str),
    "mask_token": ("mask", str),
}


def read_word_pieces(directory):
    """Reads `vocab.txt` and, if present, `tokenizer_config.json`.

    Args:
        directory: path of a folder.

    Returns:
        List of str, the pieces; and a dict of the other arguments.

    Raises:
        ValueError: a file is missing or corrupt.
    """
    folder = vocabulary_folder(directory, [VOCABULARY])
    text = read_text(folder / VOCABULARY)
    # Trailing white space is dropped, as in `transformers`; a line of nothing
    # but white space is kept, so that the ids of the other pieces are right.
    lines = [
        line.rstrip() or line.removesuffix("\r") for line in text.split("\n")
    ]
    # The final newline does not start another line.
    pieces = lines[:-1] if lines[-1] == "" else lines
    return pieces, _configured(folder / _CONFIG)


def write_word_pieces(directory, pieces, options):
    """Writes the files that `read_word_pieces` and `transformers` read.

    Args:
        directory: path of a folder; created if missing. A failed write leaves
            the old files.
        pieces: list of str.
        options: dict of the constructor's other arguments.

    Raises:
        OSError: the files cannot be written.
        ValueError: `directory` is not a folder that can be written to.
    """
    checks.path("directory", directory)
    folder = writable_folder("directory", directory)
    config = {key: options[name] for key, (name, _) in _KEYS.items()}
    config["tokenizer_class"] = "BertTokenizer"
    with (
        whole_file(folder / VOCABULARY) as vocabulary,
        whole_file(folder / _CONFIG) as settings,
    ):
        vocabulary.write_bytes("".join(p + "\n" for p in pieces).encode())
        settings.write_text(json.dumps(config, indent=2), encoding="utf-8")


def _configured(path):
    """Returns the arguments that a tokenizer_config.json sets."""
    if not path.is_file():
        return {}
    config = read_json_object(path)
    found = {}
    for key, (name, kind) in _KEYS.items():
        value = config.get(key)
        if isinstance(value, dict):  # a serialized `AddedToken`
            value = value.get("content")
        if value is None:
            continue
        valid = type(value) is kind and (
            kind is bool or (len(value) if kind is str else value) > 0
        )
        if not valid:
            raise ValueError(
                f"`{key}` of {path.name} must be {_EXPECTED[kind]}. "
                f"Received: {checks.shown(value)}"
            )
        found[name] = value
    return found
