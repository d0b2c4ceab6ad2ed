"""UnigramTokenizer: the tokenizer of XLNet, T5 and Marian."""

import copy
import json
import math
import pathlib
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any, Self

from keras_attn import checks
from keras_attn.text import arguments, packages, subword_model
from keras_attn.text.marian_engine import MarianEngine, load_processor
from keras_attn.text.pretrained_tokenizer import (
    PretrainedTokenizer,
    given_settings,
    model_of,
    one_sentence,
    settings_of,
    template,
)
from keras_attn.text.tokenizer_folder import (
    CONFIG,
    DEFINITION,
    MOST_IDS,
    check_charsmap,
    checked_vocabulary,
    str_of,
)
from keras_attn.text.vocabulary_files import read_json_object

_MODEL_FILE = "spiece.model"
_MARIAN_FILES = _SOURCE, _TARGET, _VOCABULARY = (
    "source.spm",
    "target.spm",
    "vocab.json",
)
_SPACE = "\u2581"
_T5, _XLNET, _MARIAN = "T5Tokenizer", "XLNetTokenizer", "MarianTokenizer"
_SPECIAL = {
    _T5: {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"},
    _XLNET: {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "sep_token": "<sep>",
        "pad_token": "<pad>",
        "cls_token": "<cls>",
        "mask_token": "<mask>",
    },
    _MARIAN: {"unk_token": "<unk>", "eos_token": "</s>", "pad_token": "<pad>"},
}
# transformers has a fixed index for T5.
_UNKNOWN_OF_T5 = 2
_EXTRA_OF_XLNET = ["<eop>", "<eod>"]


class UnigramTokenizer(PretrainedTokenizer):
    """Unigram language model tokenizer, as in T5, XLNet and Marian.

    Each piece has a probability, and a text is split into the pieces with the
    largest product of probabilities (Kudo 2018,
    https://arxiv.org/abs/1804.10959). A piece that starts a word begins with
    `▁`. The packages `tokenizers` (T5, XLNet) and `sentencepiece` (Marian) do
    the work.

    Load the files of a published model with `load`, or learn a vocabulary with
    `train_from_lines`. `load` also reads the tokenizer.json of other unigram
    models. The tokenizer of a Marian model encodes texts of the source
    language; its `target` encodes those of the target language.

    Args:
        vocab: list of pairs (str, float): the pieces, in the order of their
            ids, and their log probabilities.
        tokenizer_class: str. Form of the tokenizer, as in
            tokenizer_config.json: `"T5Tokenizer"` adds `</s>` after a text;
            `"XLNetTokenizer"` adds `<sep>` and `<cls>`, and strips accents.
            Default `"T5Tokenizer"`.
        unk_id: int. Index of the unknown token. Default None: 2 for T5, the
            only value that transformers supports, and 0 for XLNet.
        do_lower_case: bool. Whether to lowercase the text, for XLNet. Default
            False.
        precompiled_charsmap: bytes. Normalization table of a sentencepiece
            model. Default None: none.
        bos_token: str. For XLNet. Default `"<s>"`.
        eos_token: str. The token that ends a text. Default `"</s>"`.
        unk_token: str. The unknown token. Default `"<unk>"`.
        sep_token: str. The token after each segment, for XLNet. Default
            `"<sep>"`.
        pad_token: str. The padding token. Default `"<pad>"`.
        cls_token: str. The last token of a row, for XLNet. Default `"<cls>"`.
        mask_token: str. The mask token, for XLNet. Default `"<mask>"`.
        additional_special_tokens: iterable of str. More special tokens, such as
            `<extra_id_0>` of T5; those that are not in `vocab` get the ids
            after it. Default: none.

    Raises:
        ValueError: a piece that is duplicated, a score that is not finite, or
            an unknown token that is not at `unk_id`.
        ImportError: the package `tokenizers` is not installed.

    Examples:
        >>> from keras_attn.text import UnigramTokenizer
        >>> tokenizer = UnigramTokenizer(
        ...     [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁the", -2.0),
        ...      ("▁", -3.0), ("cat", -3.5), ("c", -5.0), ("s", -4.0)])
        >>> tokenizer.tokens("the cats")
        ['▁the', '▁', 'cat', 's']
        >>> tokenizer.pack(["the cats", "the"])["token_ids"].tolist()
        [[3, 4, 5, 7, 1], [3, 1, 0, 0, 0]]
    """

    _MODEL = "Unigram"
    _CLASSES = _T5, _XLNET, _MARIAN
    _model = _marian = None

    def __init__(
        self,
        vocab: Sequence[tuple[Any, Any]],
        tokenizer_class: str = _T5,
        unk_id: int | None = None,
        do_lower_case: bool = False,
        precompiled_charsmap: bytes | None = None,
        bos_token: str = "<s>",
        eos_token: str = "</s>",
        unk_token: str = "<unk>",
        sep_token: str = "<sep>",
        pad_token: str = "<pad>",
        cls_token: str = "<cls>",
        mask_token: str = "<mask>",
        additional_special_tokens: Iterable[str] = (),
    ) -> None:
        checks.boolean("do_lower_case", do_lower_case)
        _check_class(tokenizer_class)
        special = {
            "bos_token": bos_token,
            "eos_token": eos_token,
            "unk_token": unk_token,
            "sep_token": sep_token,
            "pad_token": pad_token,
            "cls_token": cls_token,
            "mask_token": mask_token,
        }
        for key, token in special.items():
            if not checks.string(key, token):
                raise ValueError(
                    f"`{key}` must not be empty. Received: {key}=''"
                )
        special = {key: special[key] for key in _SPECIAL[tokenizer_class]}
        fixed = _UNKNOWN_OF_T5 if tokenizer_class == _T5 else 0
        unk_id = (
            fixed if unk_id is None else checks.integer("unk_id", unk_id, 0)
        )
        if tokenizer_class == _T5:
            checks.integer("unk_id", unk_id, fixed, fixed)
            options = {"extra_ids": 0}
        else:
            options = {"do_lower_case": bool(do_lower_case), "unk_id": unk_id}
        settings = given_settings(
            tokenizer_class, special, additional_special_tokens, options
        )
        if precompiled_charsmap is not None:
            checks.instance(
                "precompiled_charsmap", precompiled_charsmap, bytes, "bytes"
            )
            check_charsmap("`precompiled_charsmap`", precompiled_charsmap)
        pieces = _checked_pieces("`vocab`", vocab)
        if unk_id >= len(pieces) or pieces[unk_id][0] != unk_token:
            raise ValueError(
                f"`vocab` must have {unk_token!r} at index {unk_id}. "
                f"Received: {checks.shown(pieces[unk_id : unk_id + 1])}"
            )
        self._build(pieces, unk_id, precompiled_charsmap, settings)

    def _read(self, folder):
        name = folder.name
        if name is None and all(map(folder.has, _MARIAN_FILES)):
            name = _MARIAN
        if name is None or name not in self._CLASSES:
            raise ValueError(
                f"`tokenizer_class` in {CONFIG} of `directory` must be one of "
                f"{', '.join(self._CLASSES)}. Received: {folder.name}"
            )
        if name == _MARIAN:
            self._read_marian(folder)
            return
        options = {"do_lower_case": folder.option("do_lower_case", False)}
        if name == _T5:
            options = {"extra_ids": folder.option("extra_ids", 100)}
        if folder.definition is None:
            pieces, unk_id, table, extra = self._read_model(folder, name)
            where = f"{_MODEL_FILE} of `directory`"
        else:
            pieces, unk_id, table, extra = _read_json(folder, name)
            where = f"`vocab` in {DEFINITION} of `directory`"
        if name == _T5:
            unk_id = _UNKNOWN_OF_T5
            extra = _with_extra_ids(extra, options["extra_ids"])
        else:
            options["unk_id"] = unk_id
            extra = _EXTRA_OF_XLNET if extra is None else extra
        if folder.definition is None:
            # Those of the model replace the ones of special_tokens_map.json.
            folder.config.pop("additional_special_tokens", None)
        settings = settings_of(folder, name, _SPECIAL[name], extra, options)
        for key in (
            "unk_token",
            "eos_token",
            *(("sep_token", "cls_token") if name == _XLNET else ()),
        ):
            if key not in settings.special:
                raise ValueError(
                    f"`{key}` in {CONFIG} of `directory` must be a token. "
                    "Received: null"
                )
        pieces = _checked_pieces(where, pieces)
        if unk_id >= len(pieces):
            raise ValueError(
                f"{where} must have the unknown token at index {unk_id}. "
                f"Received: {len(pieces)} pieces"
            )
        self._build(pieces, unk_id, table, settings)
        if folder.definition is not None and folder.has(_MODEL_FILE):
            self._keep_model(folder, pieces)

    def _read_model(self, folder, name):
        """Returns pieces, unknown id, table and special tokens of a model."""
        model = folder.read(_MODEL_FILE)
        proto = _model_proto(_MODEL_FILE, model)
        self._model = model
        token = packages.tokenizers().AddedToken
        pieces = [(p.piece, p.score) for p in proto.pieces]
        extra = [
            token(p.piece, normalized=False, special=p.type == p.CONTROL)
            for p in proto.pieces
            if p.type in (p.CONTROL, p.USER_DEFINED)
        ]
        if name == _T5:
            number = folder.option("extra_ids", 100)
            pieces += [
                (f"<extra_id_{i}>", 0.0) for i in range(number - 1, -1, -1)
            ]
        table = proto.normalizer_spec.precompiled_charsmap or None
        if table is not None:
            check_charsmap(f"{_MODEL_FILE} of `directory`", table)
        return pieces, proto.trainer_spec.unk_id, table, extra

    def _keep_model(self, folder, pieces):
        """Keeps spiece.model for `save` if it has the same pieces."""
        model = folder.read(_MODEL_FILE)
        try:
            proto = _model_proto(_MODEL_FILE, model)
        except ValueError:
            return
        found = [p.piece for p in proto.pieces]
        if found == [piece for piece, _ in pieces[: len(found)]]:
            self._model = model

    def _read_marian(self, folder):
        folder.require(*_MARIAN_FILES)
        vocab = checked_vocabulary(
            f"{_VOCABULARY} of `directory`",
            read_json_object(folder.path / _VOCABULARY),
        )
        settings = settings_of(folder, _MARIAN, _SPECIAL[_MARIAN], [], {})
        settings = settings._replace(
            special=_python_specials(settings), extra=[*settings.extra]
        )
        unknown = str_of(settings.special.get("unk_token", "<unk>"))
        if unknown not in vocab:
            raise ValueError(
                f"{_VOCABULARY} of `directory` must contain the token "
                f"`unk_token`. Received: no {checks.shown(unknown)} among "
                f"{len(vocab)}"
            )
        if "eos_token" not in settings.special:
            raise ValueError(
                f"`eos_token` in {CONFIG} of `directory` must be a token. "
                "Received: null"
            )
        files = {name: folder.read(name) for name in (_SOURCE, _TARGET)}
        source, target = (load_processor(n, files[n]) for n in files)
        self._marian = {**files, _VOCABULARY: vocab}
        engine = MarianEngine(source, source, vocab, unknown)
        eos = str_of(settings.special["eos_token"])

        def processor(ids):
            end = f"{eos}:0"
            return template(
                ["$A:0", end], ["$A:0", "$B:0", end], {eos: ids[eos]}
            )

        self._set_up(engine, settings, processor)
        self._target_engine = engine.with_processor(target)

    @property
    def target(self) -> Self:
        """The tokenizer of the target language; of Marian, else itself."""
        if self._marian is None:
            return self
        other = copy.copy(self)
        engines = {
            "_engine": self._target_engine,
            "_target_engine": self._engine,
        }
        vars(other).update(engines)
        return other

    def _build(self, pieces, unk_id, table, settings):
        library, options = packages.tokenizers(), settings.options
        normalizers = library.normalizers
        special = {k: str_of(token) for k, token in settings.special.items()}
        with one_sentence("The vocabulary must be one of a unigram model"):
            engine = library.Tokenizer(
                library.models.Unigram(pieces, unk_id=unk_id)
            )
            found = [] if table is None else [normalizers.Precompiled(table)]
        if settings.name == _XLNET:
            steps = [
                normalizers.Replace("``", '"'),
                normalizers.Replace("''", '"'),
                normalizers.NFKD(),
                normalizers.StripAccents(),
            ]
            if options["do_lower_case"]:
                steps.append(normalizers.Lowercase())
            engine.normalizer = normalizers.Sequence([*steps, *found])
            mask = settings.special.get("mask_token")
            if isinstance(mask, str):
                settings.special["mask_token"] = library.AddedToken(
                    mask, lstrip=True, rstrip=False
                )
        elif found:
            engine.normalizer = found[0]
        spaces = {"replacement": _SPACE, "prepend_scheme": "always"}
        engine.pre_tokenizer = library.pre_tokenizers.Sequence(
            [
                library.pre_tokenizers.WhitespaceSplit(),
                library.pre_tokenizers.Metaspace(**spaces),
            ]
        )
        engine.decoder = library.decoders.Metaspace(**spaces)

        def processor(ids):
            if settings.name == _T5:
                # transformers writes this token with the id of `eos_token`.
                end = "</s>"
                return template(
                    ["$A", end],
                    ["$A", end, "$B", end],
                    {end: ids[special["eos_token"]]},
                )
            sep, cls = special["sep_token"], special["cls_token"]
            return template(
                ["$A:0", f"{sep}:0", f"{cls}:2"],
                ["$A:0", f"{sep}:0", "$B:1", f"{sep}:1", f"{cls}:2"],
                {sep: ids[sep], cls: ids[cls]},
            )

        self._set_up(engine, settings, processor)

    @classmethod
    def train_from_lines(
        cls,
        lines: Iterable[str],
        vocabulary_size: int = 8000,
        *,
        tokenizer_class: str = _T5,
        character_coverage: float = 0.9995,
        do_lower_case: bool = False,
    ) -> Self:
        """Learns a vocabulary from texts in memory, with sentencepiece.

        The result is deterministic.

        Args:
            lines: iterable of str, preferably one sentence each.
            vocabulary_size: int. Maximum number of pieces, special tokens
                included. With little text there may be fewer. Default 8000.
            tokenizer_class: str. As for the constructor.
            character_coverage: float in [0.98, 1]. Fraction of the text's
                characters that get their own piece; the others become the
                unknown token. Default 0.9995.
            do_lower_case: bool. As for the constructor.

        Returns:
            A UnigramTokenizer.

        Raises:
            ValueError: there is no text, `lines` is a single text or has an
                item that is not a str, or the size is too small for the
                characters of the text.
            ImportError: sentencepiece or tokenizers is not installed.

        Examples:
            >>> tokenizer = keras_attn.text.UnigramTokenizer
            >>> lines = ["the cat sat on the mat", "the dog sat on the cat"]
            >>> tokenizer.train_from_lines(lines * 9, 30).tokens("a cat")
            ['▁', 'a', '▁cat']
        """
        checks.boolean("do_lower_case", do_lower_case)
        _check_class(tokenizer_class)
        lines = arguments.text_lines("lines", lines)
        config = {"tokenizer_class": tokenizer_class}
        if tokenizer_class == _T5:
            config["extra_ids"] = 0
            special = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
        else:
            config["do_lower_case"] = bool(do_lower_case)
            if do_lower_case:
                lines = (line.lower() for line in lines)
            special = {"pad_id": -1, "eos_id": 2, "unk_id": 0, "bos_id": 1}
            special["control_symbols"] = "<cls>,<sep>,<pad>,<mask>,<eod>,<eop>"
        model = subword_model.learn_unigram(
            lines, vocabulary_size, character_coverage, special
        )
        with tempfile.TemporaryDirectory() as directory:
            folder = pathlib.Path(directory)
            (folder / _MODEL_FILE).write_bytes(model)
            (folder / CONFIG).write_text(json.dumps(config), encoding="utf-8")
            return cls.load(folder)

    def _definition_file(self):
        return {} if self._marian is not None else super()._definition_file()

    def _classic_files(self):
        if self._marian is not None:
            vocab = json.dumps(self._marian[_VOCABULARY], ensure_ascii=False)
            return {**self._marian, _VOCABULARY: vocab.encode()}
        if self._model is not None and self._settings.name in self._CLASSES:
            return {_MODEL_FILE: self._model}
        return {}

    @property
    def _has_segments(self):
        return self._settings.name == _XLNET

    @property
    def _padding_side(self):
        return "left" if self._settings.name == _XLNET else "right"

    def _continues_word(self, token):
        return not token.startswith(_SPACE)


def _check_class(name):
    if not isinstance(name, str) or name not in (_T5, _XLNET):
        raise ValueError(
            f"`tokenizer_class` must be one of {_T5}, {_XLNET}. "
            f"Received: tokenizer_class={checks.shown(name)}"
        )


def _checked_pieces(name, pieces):
    """Returns pieces as a list of pairs, or raises ValueError."""
    pieces = arguments.text_list(
        name.strip("`"), pieces, "a list of pairs (str, float)"
    )
    found, seen = [], set()
    for pair in pieces:
        valid = isinstance(pair, (list, tuple)) and len(pair) == 2
        piece, score = pair if valid else (None, None)
        if (
            not isinstance(piece, str)
            or isinstance(score, bool)
            or not isinstance(score, (int, float))
            or not math.isfinite(score)
        ):
            raise ValueError(
                f"{name} must be pairs of a str and a finite number. "
                f"Received: {checks.shown(pair)}"
            )
        arguments.checked_text(name.strip("`"), piece)
        if piece in seen:
            raise ValueError(
                f"{name} must not have duplicates. "
                f"Received: {checks.shown(piece)} several times"
            )
        seen.add(piece)
        found.append((piece, float(score)))
    if not 0 < len(found) <= MOST_IDS:
        raise ValueError(
            f"{name} must have from 1 to 2**24 pieces. Received: {len(found)}"
        )
    return found


def _model_proto(name, model):
    """Parses a sentencepiece model, or raises ValueError."""
    from sentencepiece import sentencepiece_model_pb2

    load_processor(name, model)
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    unigram = sentencepiece_model_pb2.TrainerSpec.UNIGRAM
    if not proto.pieces or proto.trainer_spec.model_type != unigram:
        raise ValueError(
            f"`directory` must contain a unigram model in {name}. "
            f"Received: {len(model)} bytes of something else"
        )
    return proto


def _read_json(folder, name):
    """Returns pieces, unknown id, table and special tokens of a JSON file."""
    pieces = model_of(folder).get("vocab")
    table = None
    part = folder.definition.get("normalizer") or {}
    steps = [part]
    if isinstance(part, dict) and part.get("type") == "Sequence":
        steps = part.get("normalizers") or []
    for step in steps:
        if isinstance(step, dict) and step.get("type") == "Precompiled":
            table = step.get("precompiled_charsmap")
            table = check_charsmap(
                f"`precompiled_charsmap` in {DEFINITION} of `directory`", table
            )
            break
    extra = folder.config.get("additional_special_tokens")
    return pieces, folder.option("unk_id", 0), table, extra


def _with_extra_ids(extra, number):
    """Returns special tokens with the sentinels of T5."""
    extra = [*(extra or [])]
    if not any("<extra_id_" in str_of(token) for token in extra):
        extra += [f"<extra_id_{i}>" for i in range(number)]
    return extra


def _python_specials(settings):
    """Returns special tokens as `transformers.PreTrainedTokenizer` has them."""
    return {key: str_of(token) for key, token in settings.special.items()}
