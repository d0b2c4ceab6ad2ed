"""TokenizerFolder: the settings of a folder in Hugging Face's layout."""

import base64
import binascii
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from keras_attn import checks
from keras_attn.text import arguments, packages
from keras_attn.text.chat_template import template_of
from keras_attn.text.vocabulary_files import (
    read_bytes,
    read_json_object,
    read_text,
)
from keras_attn.typing import PathLike, TensorLike

CONFIG, DEFINITION = "tokenizer_config.json", "tokenizer.json"
_ADDED, _SPECIAL_MAP = "added_tokens.json", "special_tokens_map.json"
_TEMPLATE = "chat_template.jinja"
# In the order in which transformers 5 adds them to a vocabulary.
SPECIAL_TOKENS = (
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
)
# Classes of transformers whose vocabulary, normalizer and template are built
# from tokenizer_config.json. Every other class is read from tokenizer.json.
REBUILT = {
    "BertTokenizer",
    "DistilBertTokenizer",
    "GPT2Tokenizer",
    "MarianTokenizer",
    "RobertaTokenizer",
    "T5Tokenizer",
    "XLNetTokenizer",
}
# Other names of these classes in transformers 5.
_SAME_CLASS = {
    "BartTokenizer": "RobertaTokenizer",
    "ElectraTokenizer": "BertTokenizer",
    "LayoutLMTokenizer": "BertTokenizer",
    "LongformerTokenizer": "RobertaTokenizer",
    "MobileBertTokenizer": "BertTokenizer",
}
_CLASS_OF_MODEL_TYPE = {
    "bart": "RobertaTokenizer",
    "bert": "BertTokenizer",
    "distilbert": "DistilBertTokenizer",
    "electra": "BertTokenizer",
    "gpt2": "GPT2Tokenizer",
    "gpt_neo": "GPT2Tokenizer",
    "marian": "MarianTokenizer",
    "mt5": "T5Tokenizer",
    "roberta": "RobertaTokenizer",
    "t5": "T5Tokenizer",
    "xlnet": "XLNetTokenizer",
}
# Keys that would change ids, with the values that do not.
_REFUSED = {
    "do_basic_tokenize": (True,),
    "never_split": ([], None),
    "max_input_chars_per_word": (None, 100),
    "keep_accents": (None, False),
    "remove_space": (None, True),
    "separate_vocabs": (None, False),
    "sp_model_kwargs": (None, {}),
    "auto_map": (None,),
}
_TYPES = {
    "add_bos_token": bool,
    "add_eos_token": bool,
    "add_prefix_space": bool,
    "clean_up_tokenization_spaces": bool,
    "do_lower_case": bool,
    "extra_ids": int,
    "split_special_tokens": bool,
    "strip_accents": bool,
    "tokenize_chinese_chars": bool,
    "trim_offsets": bool,
    "unk_id": int,
}
_SIDES = {
    "padding_side": ("left", "right"),
    "truncation_side": ("left", "right"),
}
_ADDED_FLAGS = "single_word", "lstrip", "rstrip", "normalized", "special"
MOST_IDS = 2**24
_MOST_EXTRA_IDS = 2**16
# Regular expressions of published tokenizers have a few hundred characters.
_LONGEST_PATTERN = 4096


class TokenizerFolder:
    """The settings of a tokenizer, read as transformers 5 reads them.

    Args:
        directory: path of the folder.

    Raises:
        ValueError: a file is corrupt, or has a setting that changes ids and is
            not supported.

    Attributes:
        path: pathlib.Path.
        name: str. Class of transformers, without "Fast"; None if the folder
            does not tell.
        config: dict. tokenizer_config.json, merged with
            special_tokens_map.json.
        added: {id: AddedToken}.
        definition: dict. tokenizer.json, None without this file.
    """

    def __init__(self, directory: PathLike) -> None:
        self.path: pathlib.Path = pathlib.Path(
            checks.path("directory", directory)
        )
        config = self._json(CONFIG) or {}
        self.definition: dict[str, Any] | None = self._json(DEFINITION)
        if self.has(_TEMPLATE):
            # transformers 5 writes a file of its own.
            config["chat_template"] = read_text(self.path / _TEMPLATE)
        self.name: str | None = self._class_name(config)
        _check_config(config, self.name)
        for key in SPECIAL_TOKENS:
            if config.get(key) is not None:
                config[key] = added_token(
                    f"`{key}` in {CONFIG} of `directory`", config[key]
                )
        additional = config.get("additional_special_tokens")
        if "additional_special_tokens" in config and not config.get(
            "extra_special_tokens"
        ):
            del config["additional_special_tokens"]
            config["extra_special_tokens"] = additional
        self.added: dict[str, Any] = {}
        decoder = config.pop("added_tokens_decoder", None)
        if decoder is not None:
            self._read_added_decoder(decoder)
        else:
            self._read_legacy_files(config)
        self.config = config
        self._check_added()

    def has(self, name: str) -> bool:
        """Whether the folder has a file of this name."""
        return (self.path / name).is_file()

    def require(self, *names: Any) -> None:
        """Raises ValueError unless the folder has these files."""
        for name in names:
            if not self.has(name):
                raise ValueError(
                    f"`directory` must be a folder that contains {name}. "
                    f"Received: directory={str(self.path)!r}"
                )

    def check_class(self, names: Any) -> None:
        """Raises ValueError if the folder is one of another class."""
        if self.name not in (None, *names):
            raise ValueError(
                "`tokenizer_class` of `directory` must be one of "
                f"{', '.join(names)} if there is no {DEFINITION}. "
                f"Received: {self.name}"
            )

    def read(self, name: str) -> bytes:
        """Returns the bytes of a file."""
        self.require(name)
        return read_bytes(self.path / name)

    def special(self, defaults: dict[Any, Any]) -> dict[str, Any]:
        """Returns the named special tokens.

        Args:
            defaults: dict of the class's defaults.

        Returns:
            Dict of str or AddedToken, in the order in which transformers adds
            them to the vocabulary.
        """
        found = {}
        own = [k for k in self.config if self._is_own_token(k)]
        for key in (*SPECIAL_TOKENS, *own):
            value = self.config.get(key, defaults.get(key))
            if value is None:
                continue
            value = added_token(f"`{key}` in {CONFIG} of `directory`", value)
            by_content = {str_of(t): t for t in self.added.values()}
            if key in self.config:
                value = by_content.get(str_of(value), value)
            found[key] = value
        named = self.config.get("extra_special_tokens")
        if isinstance(named, dict):
            for key, value in named.items():
                name = f"`extra_special_tokens` in {CONFIG} of `directory`"
                found.setdefault(key, added_token(name, value))
        return found

    def _is_own_token(self, key):
        return (
            key.endswith("_token")
            and key not in SPECIAL_TOKENS
            and isinstance(self.config[key], str)
        )

    def extra(self, default: Any = ()) -> list[Any]:
        """Returns `extra_special_tokens`, a list of str or AddedToken.

        Args:
            default: list. The tokens if the config has no such key.
        """
        if "extra_special_tokens" in self.config:
            tokens = self.config["extra_special_tokens"]
        else:
            tokens = self.config.get("additional_special_tokens", default)
        if tokens is None or isinstance(tokens, dict):
            return []
        if not isinstance(tokens, (list, tuple)):
            raise ValueError(
                f"`extra_special_tokens` in {CONFIG} of `directory` must be "
                f"a list of str. Received: {checks.shown(tokens)}"
            )
        name = f"`extra_special_tokens` in {CONFIG} of `directory`"
        return [added_token(name, token) for token in tokens]

    def option(self, name: str, default: Any) -> Any:
        """Returns a setting of tokenizer_config.json."""
        value = self.config.get(name)
        return default if value is None else value

    def _json(self, name):
        path = self.path / name
        return read_json_object(path) if path.is_file() else None

    def _class_name(self, config):
        name = config.get("tokenizer_class")
        if name is None:
            model = self._json("config.json") or {}
            name = model.get("tokenizer_class")
            kind = model.get("model_type")
            if name is None and isinstance(kind, str):
                name = _CLASS_OF_MODEL_TYPE.get(kind)
        if name is None:
            return None
        if not isinstance(name, str):
            raise ValueError(
                f"`tokenizer_class` in {CONFIG} of `directory` must be a str. "
                f"Received: {checks.shown(name)}"
            )
        if name.endswith("TokenizerFast"):
            name = name.removesuffix("Fast")
        return _SAME_CLASS.get(name, name)

    def _read_added_decoder(self, decoder):
        name = f"`added_tokens_decoder` in {CONFIG} of `directory`"
        if not isinstance(decoder, dict):
            raise ValueError(
                f"{name} must be an object. Received: {checks.shown(decoder)}"
            )
        for key, token in decoder.items():
            self.added[_id(name, key)] = added_token(name, token)

    def _read_legacy_files(self, config):
        """Reads the files that transformers 4 wrote next to the vocabulary."""
        for key, value in (self._json(_SPECIAL_MAP) or {}).items():
            if key == "extra_special_tokens" and isinstance(value, list):
                value = [*(config.get(key) or []), *value]
            elif isinstance(value, dict) and key != "extra_special_tokens":
                name = f"`{key}` in {_SPECIAL_MAP} of `directory`"
                value = added_token(name, {**value, "special": True})
            if key in SPECIAL_TOKENS and value is not None:
                value = added_token(
                    f"`{key}` in {_SPECIAL_MAP} of `directory`", value
                )
            config[key] = value
        extra = config.get("extra_special_tokens")
        special = {
            str_of(config[key]) for key in SPECIAL_TOKENS if config.get(key)
        }
        if isinstance(extra, list):
            name = f"`extra_special_tokens` in {_SPECIAL_MAP} of `directory`"
            special |= {str_of(added_token(name, token)) for token in extra}
        for token, number in (self._json(_ADDED) or {}).items():
            flag = token in special
            self.added[_id(f"{_ADDED} of `directory`", number)] = added_token(
                f"{_ADDED} of `directory`",
                {"content": token, "normalized": not flag, "special": flag},
            )
        definition = self.definition or {}
        for token in definition.get("added_tokens") or []:
            if not isinstance(token, dict):
                raise _not_a_token(
                    f"`added_tokens` in {DEFINITION} of `directory`", token
                )
            name = f"`added_tokens` in {DEFINITION} of `directory`"
            self.added[_id(name, token.get("id"))] = added_token(name, token)

    def _check_added(self):
        contents = [str_of(token) for token in self.added.values()]
        if len({*contents}) < len(contents):
            raise ValueError(
                "`directory` must have each added token once. Received: "
                f"{len(contents) - len({*contents})} duplicates in {self.path}"
            )


def checked_vocabulary(name: str, vocab: Iterable[str]) -> dict[str, Any]:
    """Converts a vocabulary to a dict {token: id}, or raises ValueError.

    Args:
        name: str. For error messages.
        vocab: iterable of str, or a dict of str and int.

    Returns:
        Dict.
    """
    if isinstance(vocab, Mapping):
        ids = dict(vocab)
    else:
        tokens = arguments.text_list(
            name.strip("`"), vocab, "an iterable of str or a dict {token: id}"
        )
        ids = {}
        for number, token in enumerate(tokens):
            if isinstance(token, str) and token in ids:
                raise ValueError(
                    f"{name} must not have duplicates. "
                    f"Received: {checks.shown(token)} several times"
                )
            if not isinstance(token, str):
                raise _not_text(name, token)
            ids[token] = number
    for token, number in ids.items():
        if not isinstance(token, str):
            raise _not_text(name, token)
        if type(number) is not int or not 0 <= number < MOST_IDS:
            raise ValueError(
                f"{name} must have ids in [0, 2**24). "
                f"Received: {checks.shown(number)}"
            )
    if len({*ids.values()}) < len(ids):
        raise ValueError(
            f"{name} must have a different id for each token. Received: "
            f"{len(ids)} tokens with {len({*ids.values()})} ids"
        )
    try:
        "".join(ids).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(
            f"{name} must have valid Unicode text, without lone surrogates. "
            "Received: a token with one"
        ) from None
    return ids


def _not_text(name, token):
    return ValueError(
        f"{name} must have tokens of type str. Received: {checks.shown(token)}"
    )


def _id(name, value):
    try:
        number = int(value) if isinstance(value, str) else value
    except ValueError:
        number = None
    if type(number) is not int or not 0 <= number < MOST_IDS:
        raise ValueError(
            f"{name} must have ids in [0, 2**24). "
            f"Received: {checks.shown(value)}"
        )
    return number


def _check_config(config, name):
    """Raises ValueError at a setting of another type or without support."""
    template_of(config.get("chat_template"))
    for key, kind in _TYPES.items():
        value = config.get(key)
        if value is not None and type(value) is not kind:
            raise ValueError(
                f"`{key}` in {CONFIG} of `directory` must be {kind.__name__}. "
                f"Received: {checks.shown(value)}"
            )
    for key, valid in _SIDES.items():
        if config.get(key, valid[0]) not in valid:
            raise ValueError(
                f"`{key}` in {CONFIG} of `directory` must be one of "
                f"{', '.join(valid)}. Received: {checks.shown(config[key])}"
            )
    for key, valid in _REFUSED.items():
        if key in config and config[key] not in valid:
            raise ValueError(
                f"`{key}` in {CONFIG} of `directory` must be {valid[-1]!r}, "
                "because other values change the ids and are not supported. "
                f"Received: {checks.shown(config[key])}"
            )
    extra = config.get("extra_ids")
    if extra is not None and not 0 <= extra <= _MOST_EXTRA_IDS:
        raise ValueError(
            f"`extra_ids` in {CONFIG} of `directory` must lie in [0, "
            f"{_MOST_EXTRA_IDS}]. Received: {checks.shown(extra)}"
        )
    if name == "MarianTokenizer" and config.get("split_special_tokens"):
        raise ValueError(
            f"`split_special_tokens` in {CONFIG} of `directory` must be "
            "False for a MarianTokenizer. Received: True"
        )


def str_of(token: Any) -> str:
    """Returns the content of a str or an AddedToken."""
    return token if isinstance(token, str) else token.content


def added_token(name: str, value: TensorLike) -> str:
    """Converts a value of a JSON file to a str or an AddedToken.

    Args:
        name: str. For error messages.
        value: str, dict or AddedToken.

    Returns:
        str for a str, else a `tokenizers.AddedToken`.

    Raises:
        ValueError: another type, an empty content or an unknown flag.
    """
    kind = packages.tokenizers().AddedToken
    if isinstance(value, kind):
        return value
    content = value.get("content") if isinstance(value, dict) else value
    if not isinstance(content, str) or not content:
        raise _not_a_token(name, value)
    try:
        content.encode("utf-8")
    except UnicodeEncodeError:
        raise _not_a_token(name, value) from None
    if isinstance(value, str):
        return value
    flags = {key: value[key] for key in _ADDED_FLAGS if key in value}
    if not {*map(type, flags.values())} <= {bool}:
        raise _not_a_token(name, value)
    return kind(content, **flags)


def _not_a_token(name, value):
    return ValueError(
        f"{name} must be a token: a str, or an object with `content`. "
        f"Received: {checks.shown(value)}"
    )


def check_definition(definition: dict[str, Any]) -> None:
    """Raises ValueError for a tokenizer.json that the library cannot run.

    `tokenizers` ends with a panic, not an error, for some of these.

    Args:
        definition: dict.
    """
    model = definition.get("model")
    if not isinstance(model, dict):
        raise ValueError(
            f"`model` in {DEFINITION} of `directory` must be an object. "
            f"Received: {checks.shown(model)}"
        )
    if model.get("dropout") not in (None, 0):
        raise ValueError(
            f"`dropout` in {DEFINITION} of `directory` must be null, because "
            "it makes the ids "
            f"random. Received: {checks.shown(model['dropout'])}"
        )
    _check_model(model)
    for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        _check_part(part, definition.get(part))


def _check_model(model):
    name, vocab = f"in {DEFINITION} of `directory`", model.get("vocab")
    if not isinstance(vocab, dict):
        return
    checked_vocabulary(f"`vocab` {name}", vocab)
    unknown = model.get("unk_token")
    if model.get("type") == "WordPiece" and unknown not in vocab:
        raise ValueError(
            f"`vocab` {name} must contain the token `unk_token`. "
            f"Received: no {checks.shown(unknown)} among {len(vocab)}"
        )
    merges = model.get("merges") or []
    prefix = len(model.get("continuing_subword_prefix") or "")
    for pair in merges if isinstance(merges, list) else [merges]:
        parts = pair.split(" ") if isinstance(pair, str) else pair
        if (
            not isinstance(parts, list)
            or len(parts) != 2
            or not all(isinstance(p, str) and p in vocab for p in parts)
            or parts[0] + parts[1][prefix:] not in vocab
        ):
            raise ValueError(
                f"`merges` {name} must be pairs of the vocabulary, whose "
                f"concatenation is in it too. Received: {checks.shown(pair)}"
            )


def _check_part(name, part):
    parts = [part]
    while parts:
        value = parts.pop()
        if isinstance(value, list):
            parts += value
        elif isinstance(value, dict):
            parts += value.values()
            pattern = value.get("Regex")
            if isinstance(pattern, str) and len(pattern) > _LONGEST_PATTERN:
                raise ValueError(
                    f"`{name}` in {DEFINITION} of `directory` must have "
                    "patterns of at most "
                    f"{_LONGEST_PATTERN} characters. Received: {len(pattern)}"
                )
            charsmap = value.get("precompiled_charsmap")
            if charsmap is not None:
                check_charsmap(
                    f"`precompiled_charsmap` in {DEFINITION} of `directory`",
                    charsmap,
                )


def check_charsmap(name: str, charsmap: str | bytes) -> bytes:
    """Raises ValueError unless a normalization table is complete.

    Args:
        name: str. For error messages.
        charsmap: str in base 64, or bytes.

    Returns:
        bytes.
    """
    try:
        table = (
            base64.b64decode(charsmap, validate=True)
            if isinstance(charsmap, str)
            else bytes(charsmap)
        )
        size = int.from_bytes(table[:4], "little")
    except (binascii.Error, TypeError, ValueError):
        table, size = b"", 0
    # A trie of 256 units or more, then texts that end with a zero byte.
    valid = (
        size >= 1024
        and size % 4 == 0
        and size + 4 < len(table)
        and table[-1] == 0
    )
    try:
        table[4 + size :].decode("utf-8")
    except UnicodeDecodeError:
        valid = False
    if not valid:
        raise ValueError(
            f"{name} must be a table of sentencepiece. "
            f"Received: {len(table)} bytes of something else"
        )
    return table
