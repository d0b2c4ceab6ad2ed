"""BytePairTokenizer: the tokenizer of GPT-2."""

import collections
import json
from collections.abc import Iterable, Sequence
from typing import Any, Self

from keras_attn import checks
from keras_attn.text import arguments, packages
from keras_attn.text.pretrained_tokenizer import (
    PretrainedTokenizer,
    given_settings,
    model_of,
    settings_of,
    template,
)
from keras_attn.text.tokenizer_folder import (
    DEFINITION,
    check_definition,
    checked_vocabulary,
    str_of,
)
from keras_attn.text.vocabulary_files import read_json_object, read_text

_VOCABULARY, _MERGES = "vocab.json", "merges.txt"
_HEADER, _END = "#version: 0.2", "<|endoftext|>"
_SPECIAL = {"unk_token": _END, "bos_token": _END, "eos_token": _END}
_SPECIAL_OF_ROBERTA = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "sep_token": "</s>",
    "cls_token": "<s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
    "mask_token": "<mask>",
}
_SPACE = "Ġ"  # a space, as the library writes this byte


class BytePairTokenizer(PretrainedTokenizer):
    r"""Byte-level byte-pair encoding (BPE), as in GPT-2.

    A text is split into words by a regular expression and each word into its
    UTF-8 bytes; adjacent pieces are merged in the order in which the pairs were
    learned (Sennrich et al. 2016, https://arxiv.org/abs/1508.07909; on bytes:
    Radford et al. 2019, "Language Models are Unsupervised Multitask Learners",
    sec. 2.2). Any text round-trips. The package `tokenizers` does the work.

    Load the files of a published model with `load`, or learn a vocabulary with
    `train_from_lines`. `load` also reads the tokenizer.json of other BPE models
    (RoBERTa, BART, Llama and others).

    Args:
        vocab: dict {token: id}.
        merges: list of pairs of str, in merge order.
        unk_token: str. Default `"<|endoftext|>"`. It occurs only if `vocab` has
            no token for a byte.
        bos_token: str. The token that starts a row. Default `"<|endoftext|>"`.
        eos_token: str. The token that ends a row. Default `"<|endoftext|>"`.
        pad_token: str. The padding token. Default None: none.
        add_prefix_space: bool. Whether to add a space before the text. Default
            False.
        additional_special_tokens: iterable of str. More special tokens; those
            that are not in `vocab` get the ids after it. Default: none.

    Raises:
        ValueError: a special token that is not in `vocab`, two tokens with one
            id, or a merge that is duplicated or not in `vocab`.
        ImportError: the package `tokenizers` is not installed.

    Examples:
        >>> from keras_attn.text import BytePairTokenizer
        >>> lines = ["low lower lowest", "new newer newest"] * 4
        >>> tokenizer = BytePairTokenizer.train_from_lines(lines, 264)
        >>> tokenizer.tokens("the lowest")
        ['t', 'h', 'e', 'Ġlo', 'we', 'st']
        >>> tokenizer.decode(tokenizer.encode("Where is\tthe 猫?"))
        'Where is\tthe 猫?'
    """

    _MODEL = "BPE"
    _CLASSES = "GPT2Tokenizer", "RobertaTokenizer"

    def __init__(
        self,
        vocab: dict[str, int],
        merges: Sequence[tuple[Any, Any]],
        unk_token: str = _END,
        bos_token: str = _END,
        eos_token: str = _END,
        pad_token: str | None = None,
        add_prefix_space: bool = False,
        additional_special_tokens: Iterable[str] = (),
    ) -> None:
        checks.boolean("add_prefix_space", add_prefix_space)
        special = {
            "bos_token": bos_token,
            "eos_token": eos_token,
            "unk_token": unk_token,
            "pad_token": pad_token,
        }
        for key in ("bos_token", "eos_token", "unk_token"):
            checks.string(key, special[key])
        settings = given_settings(
            "GPT2Tokenizer",
            special,
            additional_special_tokens,
            {"add_prefix_space": bool(add_prefix_space)},
        )
        ids = checked_vocabulary("`vocab`", vocab)
        for key, token in settings.special.items():
            if token not in ids:
                raise ValueError(
                    f"`vocab` must contain the token `{key}`. "
                    f"Received: no {checks.shown(token)} among {len(ids)}"
                )
        merges = _checked_merges("`merges`", merges, ids)
        self._build(ids, merges, settings)

    def _read(self, folder):
        name = folder.name or "GPT2Tokenizer"
        folder.check_class(self._CLASSES)
        saved = None
        if folder.definition is None:
            folder.require(_VOCABULARY, _MERGES)
            ids = read_json_object(folder.path / _VOCABULARY)
            merges = _read_merges(folder)
            names = [f"{n} of `directory`" for n in (_VOCABULARY, _MERGES)]
        else:
            model = model_of(folder)
            ids, merges = model.get("vocab"), model.get("merges") or []
            names = [
                f"`{n}` in {DEFINITION} of `directory`"
                for n in ("vocab", "merges")
            ]
            if not isinstance(merges, list):
                raise ValueError(
                    f"{names[1]} must be a list of pairs of str. "
                    f"Received: {checks.shown(merges)}"
                )
            merges = [m.split(" ") if isinstance(m, str) else m for m in merges]
            saved = _saved_processor(folder.definition)
        options = {"add_prefix_space": folder.option("add_prefix_space", False)}
        special = _SPECIAL
        if name == "RobertaTokenizer":
            options["trim_offsets"] = folder.option("trim_offsets", True)
            special = _SPECIAL_OF_ROBERTA
        settings = settings_of(folder, name, special, [], options)
        for key in special:
            if key in ("sep_token", "cls_token") and (
                key not in settings.special
            ):
                raise ValueError(
                    f"`{key}` in tokenizer_config.json of `directory` must be "
                    "a token. Received: null"
                )
        ids = checked_vocabulary(names[0], ids)
        merges = _checked_merges(names[1], merges, ids)
        around = {}
        if folder.definition is None:
            around = {
                key: folder.option(f"add_{key}", False)
                for key in ("bos_token", "eos_token")
            }
        self._build(ids, merges, settings, saved, around)

    def _build(self, ids, merges, settings, saved=None, around=None):
        library = packages.tokenizers()
        options = settings.options
        engine = library.Tokenizer(
            library.models.BPE(
                vocab=ids,
                merges=merges,
                continuing_subword_prefix="",
                end_of_word_suffix="",
                fuse_unk=False,
            )
        )
        space = options["add_prefix_space"]
        engine.pre_tokenizer = library.pre_tokenizers.ByteLevel(
            add_prefix_space=space
        )
        engine.decoder = library.decoders.ByteLevel()
        special = {k: str_of(token) for k, token in settings.special.items()}

        def processor(found):
            if settings.name == "RobertaTokenizer":
                return library.processors.RobertaProcessing(
                    (special["sep_token"], found[special["sep_token"]]),
                    (special["cls_token"], found[special["cls_token"]]),
                    options["trim_offsets"],
                    space,
                )
            if saved is not None:
                return saved
            return _row_template(special, found, around or {})

        self._set_up(engine, settings, processor)

    @classmethod
    def train_from_lines(
        cls, lines: Iterable[str], vocabulary_size: int, **kwargs: Any
    ) -> Self:
        """Learns a vocabulary from texts in memory.

        The result is deterministic.

        Args:
            lines: iterable of str.
            vocabulary_size: int >= 257: 256 bytes, the learned pieces and the
                special tokens. With little text the result may be smaller.
            **kwargs: other arguments of the constructor.

        Returns:
            A BytePairTokenizer.

        Raises:
            ValueError: `lines` is a single text or has an item that is not a
                str, or the size is below 256 and the special tokens.
            ImportError: the package `tokenizers` is not installed.
        """
        checks.positive_int("vocabulary_size", vocabulary_size)
        checks.integer("vocabulary_size", vocabulary_size, most=2**24)
        lines = arguments.text_lines("lines", lines)
        library = packages.tokenizers()
        names = ("unk_token", "bos_token", "eos_token", "pad_token")
        special = [kwargs.get(name, _SPECIAL.get(name)) for name in names]
        special += kwargs.get("additional_special_tokens", ())
        special = list(dict.fromkeys(t for t in special if t is not None))
        least = 256 + len(special)
        if vocabulary_size < least:
            raise ValueError(
                f"`vocabulary_size` must be at least {least}. "
                f"Received: vocabulary_size={vocabulary_size}"
            )
        engine = library.Tokenizer(library.models.BPE())
        engine.pre_tokenizer = library.pre_tokenizers.ByteLevel(
            add_prefix_space=bool(kwargs.get("add_prefix_space", False))
        )
        trainer = library.trainers.BpeTrainer(
            vocab_size=vocabulary_size - len(special),
            # A pair that occurs once is not merged.
            min_frequency=2,
            show_progress=False,
            initial_alphabet=sorted(
                library.pre_tokenizers.ByteLevel.alphabet()
            ),
        )
        checked = (
            arguments.checked_text(
                "lines", line, "an iterable of texts, of str"
            )
            for line in lines
        )
        engine.train_from_iterator(checked, trainer)
        model = json.loads(engine.to_str())["model"]
        pieces = sorted(model["vocab"], key=model["vocab"].get)
        pieces = list(dict.fromkeys([*pieces, *special]))
        ids = {piece: i for i, piece in enumerate(pieces)}
        return cls(ids, model["merges"], **kwargs)

    def _classic_files(self):
        model = json.loads(self._engine.to_str())["model"]
        if self._settings.name not in self._CLASSES or any(
            "\n" in part or " " in part
            for pair in model["merges"]
            for part in pair
        ):
            return {}
        lines = [_HEADER, *map(" ".join, model["merges"])]
        text = json.dumps(model["vocab"], ensure_ascii=False)
        return {
            _VOCABULARY: text.encode(),
            _MERGES: ("\n".join(lines) + "\n").encode(),
        }

    def _continues_word(self, token):
        return not token.startswith((_SPACE, "\u2581"))


def _row_template(special, ids, around):
    """Returns the template of transformers 5 for its `add_bos_token`."""
    bos, eos = (
        special.get(key) if around.get(key) else None
        for key in ("bos_token", "eos_token")
    )
    single, pair = ["$A:0"], ["$B:1"]
    if bos:
        single, pair = [f"{bos}:0", *single], [f"{bos}:1", *pair]
    if eos:
        single, pair = [*single, f"{eos}:0"], [*pair, f"{eos}:1"]
    used = {token: ids[token] for token in (bos, eos) if token}
    return template(single, [*single, *pair], used)


def _saved_processor(definition):
    """Returns the post-processor of a tokenizer.json, None without one."""
    part = definition.get("post_processor")
    if part is None:
        return None
    check_definition(definition)
    library = packages.tokenizers()
    packer = library.Tokenizer(library.models.BPE())
    minimal = {**json.loads(packer.to_str()), "post_processor": part}
    try:
        return library.Tokenizer.from_str(json.dumps(minimal)).post_processor
    except Exception as error:
        raise ValueError(
            f"`post_processor` in {DEFINITION} of `directory` must be one of "
            f"the package tokenizers. Received: {checks.shown(part)} ({error})"
        ) from None


def _read_merges(folder):
    """Returns the pairs of merges.txt, as the library reads it."""
    text = read_text(folder.path / _MERGES).replace("\r\n", "\n")
    return [
        line.split(" ")
        for line in text.split("\n")
        if line and not line.startswith("#version")
    ]


def _checked_merges(name, merges, vocabulary):
    """Returns merges as tuples, or raises ValueError."""
    merges = arguments.text_list("merges", merges, "a list of pairs of str")
    merges = [tuple(m) if isinstance(m, (list, tuple)) else m for m in merges]
    for pair in merges:
        if (
            not isinstance(pair, tuple)
            or len(pair) != 2
            or not all(isinstance(p, str) and p in vocabulary for p in pair)
            or "".join(pair) not in vocabulary
        ):
            raise ValueError(
                f"{name} must be pairs of the vocabulary, whose concatenation "
                f"is in it too. Received: {checks.shown(pair)}"
            )
    counted = collections.Counter(merges)
    if len(counted) < len(merges):
        raise ValueError(
            f"{name} must not have duplicates. "
            f"Received: {counted.most_common(1)[0][0]!r} several times"
        )
    return merges
