"""PretrainedTokenizer: what the tokenizers of published models share."""

import abc
import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from keras_attn import checks
from keras_attn.atomic_files import whole_file, writable_folder
from keras_attn.text import arguments, packages
from keras_attn.text.bytes_of_tokens import bytes_of_tokens
from keras_attn.text.chat_template import (
    check_conversation,
    rendered,
    template_of,
)
from keras_attn.text.row_packer import (
    RowPacker,
    encodings_of_ids,
    post_processing,
)
from keras_attn.text.tokenizer_folder import (
    CONFIG,
    DEFINITION,
    MOST_IDS,
    REBUILT,
    SPECIAL_TOKENS,
    TokenizerFolder,
    added_token,
    check_definition,
    str_of,
)
from keras_attn.typing import PathLike, TensorLike

# Of a folder without a class that transformers has a constructor for.
_ANY_CLASS = "PreTrainedTokenizerFast"
# Their models have segment ids, which transformers 5 leaves out.
_WITH_SEGMENTS = ("AlbertTokenizer",)
_SEGMENTS = ["input_ids", "token_type_ids", "attention_mask"]
# Settings that are saved as they were loaded: they change no ids.
_KEPT = (
    "chat_template",
    "clean_up_tokenization_spaces",
    "model_input_names",
    "model_max_length",
    "pad_token_type_id",
    "padding_side",
    "split_special_tokens",
    "truncation_side",
)
_STRATEGIES = "longest_first", "only_first", "only_second"
# What transformers replaces for `clean_up_tokenization_spaces`, in order.
_CLEANED = (
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
)
_MOST_DEPTH = 32


class Settings(NamedTuple):
    """What a tokenizer's folder says besides its vocabulary.

    Args:
        name: str. Class of transformers.
        special: dict of str or AddedToken: `pad_token` and so on.
        extra: list of str or AddedToken, `extra_special_tokens`.
        added: {id: AddedToken}, in the order in which they are added.
        options: dict. Constructor arguments of that class.
        kept: dict. Settings that are saved unchanged.
    """

    name: str
    special: dict[Any, Any]
    extra: list[str]
    added: dict[Any, Any]
    options: dict[Any, Any]
    kept: dict[Any, Any]


class PretrainedTokenizer(abc.ABC):
    """Base class of the tokenizers that read the files of published models.

    A child builds an engine: a `tokenizers.Tokenizer`, or an object with the
    same methods.
    """

    # The special tokens that start and end a row.
    _START, _END = "bos_token", "eos_token"
    # The classes of transformers that a child can build.
    _CLASSES = ()
    _MODEL = ""  # its type in tokenizer.json

    @classmethod
    def load(cls, directory: PathLike) -> Self:
        """Reads a folder in Hugging Face's layout, of version 4 or 5.

        Args:
            directory: path of a folder.

        Returns:
            A tokenizer of this class.

        Raises:
            ValueError: a file is missing or corrupt, or has a setting that
                changes ids and is not supported.
            ImportError: the package `tokenizers` is not installed.
        """
        return cls.from_folder(TokenizerFolder(directory))

    @classmethod
    def from_folder(cls, folder: Any) -> Self:
        """As `load`, from a folder whose settings have been read."""
        self = cls.__new__(cls)
        if folder.name in cls._CLASSES or (
            folder.definition is None and folder.name not in REBUILT
        ):
            self._read(folder)
        else:
            self._read_definition(folder)
        return self

    @abc.abstractmethod
    def _read(self, folder):
        """Sets up a tokenizer of one of `_CLASSES` from a TokenizerFolder."""

    def _read_definition(self, folder):
        """Sets up a tokenizer from tokenizer.json alone."""
        model = model_of(folder)
        if model["type"] != self._MODEL:
            raise ValueError(
                f"`directory` must have a {DEFINITION} with a {self._MODEL} "
                f"model for {type(self).__name__}. Received: {model['type']}"
            )
        definition = {
            **folder.definition,
            "padding": None,
            "truncation": None,
        }
        check_definition(definition)
        with one_sentence(f"`directory` must contain a valid {DEFINITION}"):
            engine = packages.tokenizers().Tokenizer.from_str(
                json.dumps(definition)
            )
        settings = settings_of(folder, _ANY_CLASS, {}, [], {})
        if folder.name in _WITH_SEGMENTS:
            settings.kept.setdefault("model_input_names", _SEGMENTS)
        processor = engine.post_processor
        self._set_up(engine, settings, lambda _: processor)

    def _set_up(self, engine, settings, processor):
        """Adds the special tokens to an engine and keeps it.

        Args:
            engine: `tokenizers.Tokenizer` without added tokens.
            settings: Settings.
            processor: function of {token: id} that returns a post-processor,
                or None.
        """
        self._engine, self._settings = engine, settings
        with one_sentence("The files of a tokenizer must be consistent"):
            self._add_tokens()
        self._ids = engine.get_vocab(with_added_tokens=True)
        largest = max(self._ids.values(), default=-1)
        if not 0 <= largest < MOST_IDS:
            raise ValueError(
                "A vocabulary must have ids in [0, 2**24). "
                f"Received: {len(self._ids)} tokens with ids up to {largest}"
            )
        self._tokens = [""] * (largest + 1)
        for token, number in self._ids.items():
            self._tokens[number] = token
        engine.encode_special_tokens = bool(
            settings.kept.get("split_special_tokens")
        )
        found = processor(self._ids)
        if found is None:
            found = template("$A:0", "$A:0 $B:1", {})
        # Kept apart from the engine: `pack` applies it after truncation, and
        # applied twice it would trim offsets twice.
        self._processor = found
        with contextlib.suppress(AttributeError):
            engine.post_processor = None

    def _add_tokens(self):
        """Adds tokens to the engine in the order of transformers 5."""
        engine, settings = self._engine, self._settings
        token_type = packages.tokenizers().AddedToken
        present = {
            t.content for t in engine.get_added_tokens_decoder().values()
        }
        tokens = [settings.added[i] for i in sorted(settings.added)]
        present |= {str_of(token) for token in tokens}
        for token in [*settings.special.values(), *settings.extra]:
            if str_of(token) not in present and token not in tokens:
                tokens.append(token)
        named = {str_of(token) for token in settings.special.values()}
        found = []
        for token in tokens:
            if isinstance(token, str):
                token = token_type(token, special=True)
            elif not token.special and token.content in named:
                token.special = True
            found.append(token)
        engine.add_tokens(found)
        for number, token in settings.added.items():
            actual = engine.token_to_id(str_of(token))
            if actual != number:
                raise ValueError(
                    "The added tokens of `directory` must follow the "
                    f"vocabulary. Received: {checks.shown(str_of(token))} "
                    f"with id {number} instead of {actual}"
                )

    def save(self, directory: PathLike) -> None:
        """Writes the files that `load` and `transformers` read.

        These are tokenizer.json, tokenizer_config.json and the older files of
        the class, if they can express the vocabulary.

        Args:
            directory: path of a folder; created if missing. A failed write
                leaves the old files.

        Raises:
            OSError: the files cannot be written.
            ValueError: `directory` is not a folder that can be written to.
        """
        checks.path("directory", directory)
        folder = writable_folder("directory", directory)
        files = {
            **self._classic_files(),
            **self._definition_file(),
            CONFIG: _json(self._config()),
        }
        with contextlib.ExitStack() as stack:
            partial = {
                name: stack.enter_context(whole_file(folder / name))
                for name in files
            }
            for name, path in partial.items():
                path.write_bytes(files[name])

    def _definition_file(self):
        definition = json.loads(self._engine.to_str())
        packing = json.loads(post_processing(self._processor).to_str())
        definition["post_processor"] = packing["post_processor"]
        return {DEFINITION: _json(definition)}

    def _classic_files(self):
        return {}

    def _config(self):
        settings = self._settings
        return {
            **settings.kept,
            **settings.options,
            **{key: str_of(token) for key, token in settings.special.items()},
            **{
                key: None
                for key in SPECIAL_TOKENS
                if key not in settings.special
            },
            "extra_special_tokens": [str_of(token) for token in settings.extra],
            "added_tokens_decoder": {
                str(number): {
                    "content": token.content,
                    "lstrip": token.lstrip,
                    "normalized": token.normalized,
                    "rstrip": token.rstrip,
                    "single_word": token.single_word,
                    "special": token.special,
                }
                for number, token in sorted(
                    self._engine.get_added_tokens_decoder().items()
                )
            },
            "tokenizer_class": settings.name,
        }

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The tokens in the order of their ids, a tuple of str."""
        return tuple(self._tokens)

    @property
    def vocabulary_size(self) -> int:
        """Number of ids: ids are in [0, vocabulary_size)."""
        return len(self._tokens)

    def _special_id(self, key):
        token = self._settings.special.get(key)
        return None if token is None else self._ids.get(str_of(token))

    @property
    def pad_id(self) -> int | None:
        """Id of the padding token; None if it has another role too."""
        found = self._special_id("pad_token")
        others = {
            self._special_id(key)
            for key in SPECIAL_TOKENS
            if key != "pad_token"
        }
        return None if found in others else found

    @property
    def unknown_id(self) -> int | None:
        """Id of the unknown token, or None."""
        return self._special_id("unk_token")

    @property
    def start_id(self) -> int | None:
        """Id of the token that starts a row, or None."""
        return self._special_id(self._START)

    @property
    def end_id(self) -> int | None:
        """Id of the token that ends a row or a segment, or None."""
        return self._special_id(self._END)

    @property
    def mask_id(self) -> int | None:
        """Id of the mask token, or None."""
        return self._special_id("mask_token")

    @property
    def special_ids(self) -> tuple[int, ...]:
        """The ids of the special tokens, a tuple; they are never masked."""
        found = {
            number
            for number, token in self._engine.get_added_tokens_decoder().items()
            if token.special
        }
        found |= {self._special_id(key) for key in self._settings.special}
        found |= {self._ids.get(str_of(t)) for t in self._settings.extra}
        return tuple(sorted(found - {None}))

    @property
    def continuations(self) -> np.ndarray:
        """Bool (V,), True for tokens that continue a word."""
        special = {*self.special_ids}
        return np.array(
            [
                i not in special and self._continues_word(token)
                for i, token in enumerate(self._tokens)
            ]
        )

    @abc.abstractmethod
    def _continues_word(self, token):
        """Whether a token is not the first one of a word."""

    def encode(self, text: str | Sequence[str]) -> list[Any]:
        """Encodes text as ids, without special tokens around it.

        Special tokens inside the text are recognized.

        Args:
            text: str, or list of str.

        Returns:
            List of int; for a list, a list of such lists.

        Raises:
            ValueError: an input that is not a str, or has lone surrogates.
        """
        if isinstance(text, str):
            return self._encoded([text])[0].ids
        texts = self._checked("text", text)
        return [encoding.ids for encoding in self._encoded(texts)]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encodes a list of texts, as `encode` does.

        Args:
            texts: list of str.

        Returns:
            List of lists of int.

        Raises:
            ValueError: as for `encode`.
        """
        texts = self._checked("texts", texts, "a list of str")
        found = self._encoded(texts, name="texts", expected="a list of str")
        return [encoding.ids for encoding in found]

    def tokens(self, text: str) -> list[str]:
        """Splits a text into the tokens whose ids `encode` returns.

        Args:
            text: str.

        Returns:
            List of str.

        Raises:
            ValueError: as for `encode`.
        """
        arguments.checked_text("text", text, "a str or a list of str")
        return [self._tokens[i] for i in self.encode(text)]

    def decode(self, ids: TensorLike, skip_special_tokens: bool = True) -> Any:
        """Decodes ids to text.

        Args:
            ids: int (L,), or of higher rank: list, array or tensor. Rows of a
                list may differ in length.
            skip_special_tokens: bool. Whether to leave out special tokens.
                Default True.

        Returns:
            str for rank 1, else a (nested) list of str.

        Raises:
            ValueError: no integers, or ids out of range.
        """
        checks.boolean("skip_special_tokens", skip_special_tokens)
        return self._decode_rows(ids, skip_special_tokens, 0)

    @property
    def chat_template(self) -> str | None:
        """The Jinja template of `apply_chat_template`, a str or None."""
        return template_of(self._settings.kept.get("chat_template"))

    def apply_chat_template(
        self,
        conversation: Sequence[dict[str, Any]],
        add_generation_prompt: bool = False,
        tokenize: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Writes a conversation as the prompt that a chat model has learned.

        The template comes from `chat_template.jinja` or tokenizer_config.json
        and runs in Jinja's sandbox, as in transformers.

        Args:
            conversation: list of messages, dicts with `"role"` (`"system"`,
                `"user"`, `"assistant"`, ...) and usually `"content"`, both str.
            add_generation_prompt: bool. Whether to append the tokens that begin
                an answer. Default False.
            tokenize: bool. Whether to return ids rather than text. Default
                True.
            **kwargs: further variables of the template, such as `tools` or
                `enable_thinking`.

        Returns:
            List of int, or str with `tokenize=False`.

        Raises:
            ValueError: the tokenizer has no template, or its template cannot
                render the conversation.
            ImportError: the package `jinja2` is not installed.

        Examples:
            >>> import pathlib, tempfile
            >>> from keras_attn.text import WordPieceTokenizer
            >>> tokenizer = WordPieceTokenizer(
            ...     "[PAD] [UNK] [CLS] [SEP] [MASK] user : who is it ?".split())
            >>> folder = pathlib.Path(tempfile.mkdtemp())
            >>> tokenizer.save(folder)
            >>> _ = (folder / "chat_template.jinja").write_text(
            ...     "{% for m in messages %}"
            ...     "{{ m.role + ': ' + m.content + sep_token }}{% endfor %}")
            >>> tokenizer = WordPieceTokenizer.load(folder)
            >>> messages = [{"role": "user", "content": "who is it?"}]
            >>> tokenizer.apply_chat_template(messages, tokenize=False)
            'user: who is it?[SEP]'
            >>> tokenizer.apply_chat_template(messages)
            [5, 6, 7, 8, 9, 10, 3]
        """
        check_conversation(conversation)
        checks.boolean("add_generation_prompt", add_generation_prompt)
        checks.boolean("tokenize", tokenize)
        template = self.chat_template
        if template is None:
            raise ValueError(
                "`apply_chat_template` needs a tokenizer whose folder has a "
                f"chat template. Received: a {type(self).__name__} without one"
            )
        special = self._settings.special
        text = rendered(
            template,
            {
                "messages": conversation,
                "tools": None,
                "documents": None,
                "add_generation_prompt": add_generation_prompt,
                **{key: str_of(token) for key, token in special.items()},
                **kwargs,
            },
        )
        return self.encode(text) if tokenize else text

    def token_bytes(self) -> list[bytes]:
        """Returns the bytes that each id adds to the middle of a text.

        They are those of `decode` with special tokens and without
        `clean_up_tokenization_spaces`. A token can be a part of a character in
        UTF-8, and ids without a token have no bytes.
        """
        return bytes_of_tokens(self._engine, self._tokens)

    def _decode_rows(self, ids, skip, depth):
        if depth > _MOST_DEPTH:
            raise ValueError(
                f"`ids` must have at most {_MOST_DEPTH} dimensions. "
                "Received: a list nested more deeply"
            )
        ids = arguments.plain_ids("ids", ids)
        nested = ids and (
            isinstance(ids[0], (list, tuple))
            or len(getattr(ids[0], "shape", ()))
        )
        if nested:
            return [self._decode_rows(row, skip, depth + 1) for row in ids]
        ids = arguments.id_list("ids", ids, len(self._tokens))
        with one_sentence("`ids` must be ids that the tokenizer can decode"):
            text = self._engine.decode(ids, skip_special_tokens=skip)
        clean = self._settings.kept.get("clean_up_tokenization_spaces")
        # As in transformers 5: for BPE it would remove spaces of the text.
        if clean and self._MODEL != "BPE":
            for old, new in _CLEANED:
                text = text.replace(old, new)
        return text

    def _checked(self, name, texts, expected="a str or a list of str"):
        """Returns a list of str; surrogates are found by the engine."""
        texts = arguments.text_list(name, texts, expected)
        if {*map(type, texts)} <= {str}:
            return texts
        return [str(arguments.checked_text(name, t, expected)) for t in texts]

    def _encoded(
        self,
        texts,
        offsets=False,
        words=False,
        name="text",
        expected="a str or a list of str",
    ):
        """Returns the `tokenizers.Encoding` of each text."""
        engine = self._engine
        method = engine.encode_batch if offsets else engine.encode_batch_fast
        try:
            with one_sentence(f"`{name}` must be text that it can encode"):
                return method(
                    texts, add_special_tokens=False, is_pretokenized=words
                )
        except TypeError:
            for text in texts:
                for part in text if words else [text]:
                    arguments.checked_text(name, part, expected)
            raise

    def pack(
        self,
        text: Sequence[Any],
        text_pair: Sequence[Any] | None = None,
        *,
        max_length: int | None = None,
        truncation: str = "longest_first",
        stride: int = 0,
        pad_to_max_length: bool = False,
        return_offsets: bool = False,
    ) -> dict[str, Any]:
        """Makes model inputs from texts or pairs of texts.

        Each row gets the special tokens of the model family:
        `[CLS] text [SEP] text_pair [SEP]` for BERT, `text </s>` for T5.

        Args:
            text: list of B str; of B lists of str, the words of a text; or of B
                lists of ids.
            text_pair: list of B of the same. Default None: single texts.
            max_length: int. Maximum ids per row, special ids included. Default
                None: no truncation.
            truncation: str. What is truncated, at its end, to fit
                `max_length`: `"longest_first"`, the longer text of a pair;
                `"only_first"`; or `"only_second"`. Default `"longest_first"`.
            stride: int. If it is not 0, a text that is too long gives several
                rows, each of which repeats this many tokens of the one before
                (Devlin et al. 2019, for long documents). A pair needs
                `truncation="only_first"` or `"only_second"`. Default 0.
            pad_to_max_length: bool. Whether to pad all rows to `max_length`.
                Default False: to the longest row.
            return_offsets: bool. Whether to return the positions of the tokens
                in the text. They are returned with a stride too. Default False.

        Returns:
            Dict of int32 arrays. `"token_ids"` (B, T). `"segment_ids"` (B, T),
            if models of this family have them: 1 at the second text. With
            `return_offsets=True` or a stride also: `"offsets"` (B, T, 2), where
            a token starts and ends in its text (or word), in characters;
            `"word_ids"` (B, T), the index of its word; `"sequence_ids"`
            (B, T), 0 for `text` and 1 for `text_pair`, and `"rows"` (B,), the
            index of the text a row comes from. Special tokens and padding have
            offsets 0 and -1 for the other two.

        Raises:
            ValueError: `text` and `text_pair` differ in length, `max_length` is
                too short, or rows of different lengths and no padding token.

        Examples:
            >>> from keras_attn.text import WordPieceTokenizer
            >>> tokenizer = WordPieceTokenizer(
            ...     "[PAD] [UNK] [CLS] [SEP] [MASK] who sleeps ? a cat "
            ...     "sit ##s and the dog".split())

            Pairs, truncated at the end of the longer text:

            >>> tokenizer.pack(["who sleeps?"], ["a cat"], max_length=7)
            {'token_ids': array([[2, 5, 6, 3, 8, 9, 3]], dtype=int32), \
'segment_ids': array([[0, 0, 0, 0, 1, 1, 1]], dtype=int32)}

            Question answering: a long context gives several rows.

            >>> rows = tokenizer.pack(
            ...     ["who sleeps?"], ["a cat sits and the dog sleeps"],
            ...     max_length=10, truncation="only_second", stride=2)
            >>> [" ".join(tokenizer.vocabulary[i] for i in row[5:-1])
            ...  for row in rows["token_ids"]]
            ['a cat sit ##s', 'sit ##s and the', 'and the dog sleeps']
            >>> rows["rows"].tolist()
            [0, 0, 0]

            Offsets find the characters of a token:

            >>> text = "A cat sits"
            >>> rows = tokenizer.pack([text], return_offsets=True)
            >>> [text[i:j] for i, j in rows["offsets"][0]]
            ['', 'A', 'cat', 'sit', 's', '']

            Tagging: `word_ids` gives each token the tag of its word.

            >>> words, tags = ["the", "cat", "sits"], np.array([0, 1, 2])
            >>> ids = tokenizer.pack([words], return_offsets=True)["word_ids"]
            >>> np.where(ids >= 0, tags[ids], -1).tolist()
            [[-1, 0, 1, 2, 2, -1]]
        """
        with_offsets = self._check_pack(
            max_length,
            truncation,
            stride,
            pad_to_max_length,
            return_offsets,
            text_pair is not None,
        )
        sides = [self._encoded_rows("text", text, with_offsets)]
        if text_pair is not None:
            sides.append(
                self._encoded_rows("text_pair", text_pair, with_offsets)
            )
            if len(sides[0]) != len(sides[1]):
                raise ValueError(
                    "`text_pair` must have as many rows as `text`, "
                    f"{len(sides[0])}. Received: {len(sides[1])}"
                )
        kept = self._settings.kept
        names = kept.get("model_input_names")
        packer = RowPacker(
            self._processor,
            self.pad_id,
            kept.get("padding_side", self._padding_side),
            kept.get("truncation_side", "right"),
            self._has_segments if names is None else "token_type_ids" in names,
        )
        return packer.pack(
            sides,
            max_length,
            truncation,
            stride,
            pad_to_max_length,
            with_offsets,
        )

    def _check_pack(
        self, max_length, truncation, stride, pad, return_offsets, pair
    ):
        """Checks the arguments of `pack`; returns whether offsets are asked."""
        checks.boolean("pad_to_max_length", pad)
        checks.boolean("return_offsets", return_offsets)
        checks.integer("stride", stride, 0, arguments.LONGEST_ROW)
        if not isinstance(truncation, str) or truncation not in _STRATEGIES:
            raise ValueError(
                f"`truncation` must be one of {', '.join(_STRATEGIES)}. "
                f"Received: truncation={checks.shown(truncation)}"
            )
        if truncation == "only_second" and not pair:
            raise ValueError(
                "`text_pair` must be given if `truncation` is 'only_second'. "
                "Received: text_pair=None"
            )
        if max_length is not None:
            checks.integer("max_length", max_length, 1, arguments.LONGEST_ROW)
        elif pad or stride:
            raise ValueError(
                "`max_length` must be given if `pad_to_max_length` is True or "
                "`stride` is not 0. Received: max_length=None"
            )
        if stride and pair and truncation == "longest_first":
            raise ValueError(
                "`truncation` must be 'only_first' or 'only_second' for pairs "
                f"with a `stride`. Received: truncation={truncation!r}"
            )
        return bool(return_offsets or stride)

    def _encoded_rows(self, name, rows, offsets):
        """Returns the encodings of `text` or `text_pair`."""
        expected = "a list of texts, of lists of words, or of lists of ids"
        if isinstance(rows, str) or not isinstance(rows, (list, tuple)):
            raise ValueError(
                f"`{name}` must be {expected}. "
                f"Received: {name} of type {type(rows).__name__}"
            )
        kinds = {_kind(row) for row in rows} - {"empty"}
        if len(kinds) > 1:
            raise ValueError(
                f"`{name}` must be {expected}. Received: a mixture of them"
            )
        if kinds <= {"text"} and not any(_kind(r) == "empty" for r in rows):
            rows = self._checked(name, list(rows))
            return self._encoded(rows, offsets=True, name=name)
        if kinds == {"words"}:
            rows = [self._checked(name, list(row)) for row in rows]
            return self._encoded(rows, offsets=True, name=name, words=True)
        if offsets:
            raise ValueError(
                f"`{name}` must be a list of texts or of lists of words if "
                "`return_offsets` is True. Received: lists of ids"
            )
        size = len(self._tokens)
        rows = [arguments.id_list(name, row, size) for row in rows]
        return encodings_of_ids(rows)

    @property
    def _has_segments(self):
        """Whether models of this family have segment ids."""
        return False

    @property
    def _padding_side(self):
        """Where models of this family have padding."""
        return "right"


def model_of(folder: Any) -> dict[str, Any]:
    """Returns the model of tokenizer.json, or raises ValueError."""
    if folder.definition is None:
        folder.require(DEFINITION)
    model = folder.definition.get("model")
    if not isinstance(model, dict):
        check_definition(folder.definition)
    kind = model.get("type")
    if kind is None:
        # Files of older versions of the library name no type.
        kind = (
            "BPE"
            if "merges" in model
            else "Unigram"
            if isinstance(model.get("vocab"), list)
            else "WordPiece"
        )
    if not isinstance(kind, str):
        raise ValueError(
            f"`model` in {DEFINITION} of `directory` must have a `type` of "
            f"str. Received: {checks.shown(kind)}"
        )
    return {**model, "type": kind}


def settings_of(
    folder: PathLike,
    name: str,
    defaults: dict[Any, Any],
    extra: Sequence[Any],
    options: dict[Any, Any],
) -> Settings:
    """Returns the Settings of a TokenizerFolder.

    Args:
        folder: TokenizerFolder.
        name: str. Class of transformers.
        defaults: dict of that class's special tokens.
        extra: list of its `additional_special_tokens`.
        options: dict of its other constructor arguments.

    Returns:
        Settings.
    """
    return Settings(
        name,
        folder.special(defaults),
        folder.extra(extra),
        folder.added,
        options,
        {
            k: folder.config[k]
            for k in _KEPT
            if folder.config.get(k) is not None
        },
    )


def given_settings(
    name: str,
    special: dict[Any, Any] | None,
    extra: Iterable[str],
    options: dict[Any, Any],
) -> Settings:
    """Returns the Settings of constructor arguments.

    Args:
        name: str. Class of transformers.
        special: dict of str or None, `pad_token` and so on.
        extra: iterable of str, `additional_special_tokens`.
        options: dict of the other arguments.

    Returns:
        Settings.

    Raises:
        ValueError: a special token that is empty or not a str.
    """
    for key, token in special.items():
        if token is not None and not checks.string(key, token):
            raise ValueError(f"`{key}` must not be empty. Received: {key}=''")
        if token is not None:
            arguments.checked_text(key, token)
    argument = "additional_special_tokens"
    extra = arguments.text_list(argument, extra, "a list of str")
    extra = [added_token(f"`{argument}`", token) for token in extra]
    special = {k: special[k] for k in SPECIAL_TOKENS if special.get(k)}
    return Settings(name, special, extra, {}, options, {})


def template(
    single: str | Sequence[str], pair: Any, ids: dict[str, int]
) -> Any:
    """Returns a post-processor.

    Args:
        single: str, such as `"[CLS]:0 $A:0 [SEP]:0"`, or a list of str.
        pair: the same for pairs.
        ids: {token: id} of the special tokens in them.

    Returns:
        `tokenizers.processors.TemplateProcessing`.
    """
    processors = packages.tokenizers().processors
    return processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[*ids.items()]
    )


@contextlib.contextmanager
def one_sentence(expected: str) -> Iterator[None]:
    """Turns the errors and panics of the library into ValueError.

    Args:
        expected: str. First sentence of the message, without its full stop.
    """
    try:
        yield
    except (ValueError, TypeError, ImportError, MemoryError):
        raise
    except BaseException as error:
        # A panic of Rust is no `Exception`.
        name = type(error).__name__
        if name != "PanicException" and type(error) is not Exception:
            raise
        detail = " ".join(str(error).split())[:200]
        raise ValueError(f"{expected}. Received: {detail}") from None


def _json(values):
    return (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode()


def _kind(row):
    if isinstance(row, str):
        return "text"
    if isinstance(row, (list, tuple)) and not row:
        return "empty"
    if isinstance(row, (list, tuple)) and isinstance(row[0], str):
        return "words"
    return "ids"
