"""WordPieceTokenizer: the tokenizer of BERT."""

import collections
from collections.abc import Iterable
from typing import Any, Self

from keras_attn import checks
from keras_attn.text import arguments, packages, subword_model
from keras_attn.text.pretrained_tokenizer import (
    PretrainedTokenizer,
    given_settings,
    model_of,
    settings_of,
    template,
)
from keras_attn.text.tokenizer_folder import (
    DEFINITION,
    checked_vocabulary,
    str_of,
)
from keras_attn.text.vocabulary_files import read_text

_FILE, _JOINER = "vocab.txt", "##"
_SPECIAL = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
# White space of Unicode, which the library strips from the end of a line.
_SPACES = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


class WordPieceTokenizer(PretrainedTokenizer):
    """WordPiece tokenizer, as in BERT: *un*, *##like*, *##ly*.

    A text is cleaned and split into words and punctuation, and each word into
    pieces: repeatedly the longest prefix that is in the vocabulary; pieces that
    continue a word start with `##`. A word that cannot be split, or has more
    than 100 characters, becomes the unknown token (Devlin et al. 2019,
    https://arxiv.org/abs/1810.04805; pieces: Wu et al. 2016, sec. 4.1,
    https://arxiv.org/abs/1609.08144). Special tokens such as `[MASK]` are
    recognized inside texts. The package `tokenizers` does the work.

    Load the files of a published model with `load`, or learn a vocabulary with
    `train_from_lines`.

    Args:
        vocab: iterable of str, the tokens in the order of their ids; or a dict
            {token: id}.
        do_lower_case: bool. Whether to lowercase the text. Default True.
        unk_token: str. The unknown token. Default `"[UNK]"`.
        sep_token: str. The token after each segment. Default `"[SEP]"`.
        pad_token: str. The padding token. Default `"[PAD]"`.
        cls_token: str. The first token of a row. Default `"[CLS]"`.
        mask_token: str. The mask token. Default `"[MASK]"`.
        tokenize_chinese_chars: bool. Whether each Chinese character is a word.
            Default True.
        strip_accents: bool. Whether to strip accents. Default None: same as
            `do_lower_case`.
        additional_special_tokens: iterable of str. More special tokens; those
            that are not in `vocab` get the ids after it. Default: none.

    Raises:
        ValueError: a token that is duplicated or not a str, or a special token
            that is missing.
        ImportError: the package `tokenizers` is not installed.

    Examples:
        >>> from keras_attn.text import WordPieceTokenizer
        >>> tokenizer = WordPieceTokenizer(
        ...     "[PAD] [UNK] [CLS] [SEP] [MASK] un ##like ##ly you".split())
        >>> tokenizer.tokens("Unlikely you")
        ['un', '##like', '##ly', 'you']
        >>> packed = tokenizer.pack(["unlikely"], ["you"])
        >>> packed["token_ids"].tolist(), packed["segment_ids"].tolist()
        ([[2, 5, 6, 7, 3, 8, 3]], [[0, 0, 0, 0, 0, 1, 1]])
    """

    _START, _END = "cls_token", "sep_token"
    _MODEL = "WordPiece"
    _CLASSES = "BertTokenizer", "DistilBertTokenizer"

    def __init__(
        self,
        vocab: Iterable[str] | dict[str, int],
        do_lower_case: bool = True,
        unk_token: str = "[UNK]",
        sep_token: str = "[SEP]",
        pad_token: str = "[PAD]",
        cls_token: str = "[CLS]",
        mask_token: str = "[MASK]",
        tokenize_chinese_chars: bool = True,
        strip_accents: bool | None = None,
        additional_special_tokens: Iterable[str] = (),
    ) -> None:
        checks.boolean("do_lower_case", do_lower_case)
        checks.boolean("tokenize_chinese_chars", tokenize_chinese_chars)
        if strip_accents is not None:
            checks.boolean("strip_accents", strip_accents)
        special = {
            "unk_token": unk_token,
            "sep_token": sep_token,
            "pad_token": pad_token,
            "cls_token": cls_token,
            "mask_token": mask_token,
        }
        for key, token in special.items():
            checks.string(key, token)
        options = {
            "do_lower_case": bool(do_lower_case),
            "strip_accents": strip_accents,
            "tokenize_chinese_chars": bool(tokenize_chinese_chars),
        }
        settings = given_settings(
            "BertTokenizer", special, additional_special_tokens, options
        )
        ids = checked_vocabulary("`vocab`", vocab)
        for key, token in special.items():
            if token not in ids:
                raise ValueError(
                    f"`vocab` must contain the token `{key}`. "
                    f"Received: no {checks.shown(token)} among {len(ids)}"
                )
        self._build(ids, settings)

    def _read(self, folder):
        name = folder.name or "BertTokenizer"
        folder.check_class(self._CLASSES)
        if folder.definition is None:
            folder.require(_FILE)
            ids = _read_lines(folder)
            where = f"{_FILE} of `directory`"
        else:
            ids = model_of(folder).get("vocab")
            where = f"`vocab` in {DEFINITION} of `directory`"
        options = {
            "do_lower_case": folder.option("do_lower_case", True),
            "strip_accents": folder.config.get("strip_accents"),
            "tokenize_chinese_chars": folder.option(
                "tokenize_chinese_chars", True
            ),
        }
        settings = settings_of(folder, name, _SPECIAL, [], options)
        ids = checked_vocabulary(where, ids)
        for key in ("unk_token", "cls_token", "sep_token"):
            if key not in settings.special:
                raise ValueError(
                    f"`{key}` in tokenizer_config.json of `directory` must "
                    "be a token. Received: null"
                )
        unknown = str_of(settings.special["unk_token"])
        if unknown not in ids:
            raise ValueError(
                f"{where} must contain the token `unk_token`. "
                f"Received: no {checks.shown(unknown)} among {len(ids)}"
            )
        self._build(ids, settings)

    def _build(self, ids, settings):
        library, options = packages.tokenizers(), settings.options
        special = {k: str_of(token) for k, token in settings.special.items()}
        engine = library.Tokenizer(
            library.models.WordPiece(ids, unk_token=special["unk_token"])
        )
        engine.normalizer = library.normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=options["tokenize_chinese_chars"],
            strip_accents=options["strip_accents"],
            lowercase=options["do_lower_case"],
        )
        engine.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
        engine.decoder = library.decoders.WordPiece(prefix=_JOINER)
        cls, sep = special["cls_token"], special["sep_token"]

        def processor(found):
            return template(
                [f"{cls}:0", "$A:0", f"{sep}:0"],
                [f"{cls}:0", "$A:0", f"{sep}:0", "$B:1", f"{sep}:1"],
                {cls: found[cls], sep: found[sep]},
            )

        self._set_up(engine, settings, processor)

    @classmethod
    def train_from_lines(
        cls, lines: Iterable[str], vocabulary_size: int, **kwargs: Any
    ) -> Self:
        """Learns a vocabulary from texts in memory.

        sentencepiece learns byte-pair merges inside the words (Sennrich et al.
        2016, https://arxiv.org/abs/1508.07909). The result is deterministic,
        and does not depend on the order of the lines.

        Args:
            lines: iterable of str.
            vocabulary_size: int. Maximum number of tokens.
            **kwargs: other arguments of the constructor.

        Returns:
            A WordPieceTokenizer.

        Raises:
            ValueError: `lines` is a single text, has no words or an item that
                is not a str, or the size is too small for the characters.
            ImportError: sentencepiece or tokenizers is not installed.

        Examples:
            >>> tokenizer = keras_attn.text.WordPieceTokenizer
            >>> lines = ["low lower lowest", "new newer newest"] * 4
            >>> tokenizer.train_from_lines(lines, 40).tokens("newer lows")
            ['newer', 'low', '##s']
        """
        checks.positive_int("vocabulary_size", vocabulary_size)
        lines = arguments.text_lines("lines", lines)
        special = [kwargs.get(key, token) for key, token in _SPECIAL.items()]
        # BERT's order.
        special = [special[i] for i in (2, 0, 3, 1, 4)]
        extra = kwargs.get("additional_special_tokens", ())
        special = list(dict.fromkeys([*special, *extra]))
        bare = cls(special, **kwargs)
        counts = bare._word_counts(lines)
        learned = subword_model.learn_word_pieces(
            counts, vocabulary_size, special, _JOINER
        )
        return cls(learned, **kwargs)

    def _word_counts(self, lines):
        """Counts the words of texts, cleaned, without special tokens."""
        normalizer = self._engine.normalizer
        splitter = self._engine.pre_tokenizer
        special = {*self._ids}
        counts = collections.Counter()
        for line in lines:
            arguments.checked_text(
                "lines", line, "an iterable of texts, of str"
            )
            for token in special:
                line = line.replace(token, " ")
            line = normalizer.normalize_str(line)
            counts.update(w for w, _ in splitter.pre_tokenize_str(line))
        return counts

    def _classic_files(self):
        lines = self._engine.get_vocab(with_added_tokens=False)
        pieces = sorted(lines, key=lines.get)
        whole = [*map(lines.get, pieces)] == [*range(len(pieces))]
        if not whole or any(
            "\n" in p or "\r" in p or p != p.rstrip(_SPACES) for p in pieces
        ):
            return {}
        return {_FILE: "".join(p + "\n" for p in pieces).encode()}

    @property
    def _has_segments(self):
        return self._settings.name != "DistilBertTokenizer"

    def _continues_word(self, token):
        return token.startswith(_JOINER)


def _read_lines(folder):
    """Returns {token: id} of vocab.txt, as the library reads it."""
    lines = read_text(folder.path / _FILE).split("\n")
    # The final newline does not start another line.
    lines = lines[:-1] if lines[-1] == "" else lines
    # A line of white space alone is kept, so that each line has its own id; no
    # word is equal to it.
    return [line.rstrip(_SPACES) or line.removesuffix("\r") for line in lines]
