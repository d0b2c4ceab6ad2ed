"""Training of the sentencepiece model."""

import contextlib
import io
import pathlib
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from keras_attn import checks
from keras_attn.text import packages
from keras_attn.text.arguments import checked_text, is_iterable
from keras_attn.typing import PathLike

_SPACE = "\u2581"
PAD_ID, START_ID, END_ID, UNKNOWN_ID = 0, 1, 2, 3

# sentencepiece writes a space as U+2581, so a U+2581 in the text would decode
# to a space. These rules escape it, and the escape character U+001A itself, so
# that any text round-trips. They are saved in the model file, so that Python
# and the graph ops apply the same rules.
_ESCAPE = "2581\t1A 31\n1A\t1A 30\n"
_UNESCAPE = "1A 31\t2581\n1A 30\t1A\n"


def learn(
    lines: Iterable[str],
    vocabulary_size: int,
    character_coverage: float = 0.9995,
    name: str = "lines",
) -> bytes:
    """Learns a byte-pair vocabulary and returns it as bytes.

    Args:
        lines: iterable of str.
        vocabulary_size: int. Maximum number of pieces.
        character_coverage: float in [0.98, 1], the range of sentencepiece.
            Fraction of the text's characters that get their own piece; the
            others are encoded as bytes.
        name: str. Where the lines are from, for error messages.

    Returns:
        bytes, a serialized sentencepiece model.

    Raises:
        ValueError: no text; a line that is not a str or cannot be encoded as
            UTF-8; a vocabulary that is too small for the characters.
    """
    _check_sizes(vocabulary_size, character_coverage)
    trainer = packages.sentencepiece().SentencePieceTrainer
    expected = "an iterable of texts, of str"
    lines = (checked_text(name, line, expected) for line in lines)
    lines = [" " + line for line in lines if line]
    if not lines:
        raise ValueError(
            f"`{name}` must hold text to learn a vocabulary from. "
            "Received: no text"
        )
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        escape = pathlib.Path(folder, "escape.tsv")
        escape.write_text(_ESCAPE, encoding="utf-8")
        unescape = pathlib.Path(folder, "unescape.tsv")
        unescape.write_text(_UNESCAPE, encoding="utf-8")
        with _too_small(vocabulary_size):
            trainer.train(
                sentence_iterator=iter(lines),
                model_writer=model,
                model_type="bpe",
                # Below the number of special tokens, the trainer does not
                # say how many pieces are needed.
                vocab_size=max(vocabulary_size, UNKNOWN_ID + 1),
                character_coverage=character_coverage,
                byte_fallback=True,
                split_digits=True,
                hard_vocab_limit=False,
                # By default, lines of more than 4,192 bytes are skipped.
                max_sentence_length=2**30,
                normalization_rule_tsv=str(escape),
                denormalization_rule_tsv=str(unescape),
                remove_extra_whitespaces=False,
                # With this on, TensorFlow's decoder strips all leading spaces
                # (as of tensorflow-text 2.21.1); `SubwordTokenizer` adds and
                # removes exactly one.
                add_dummy_prefix=False,
                pad_id=PAD_ID,
                bos_id=START_ID,
                eos_id=END_ID,
                unk_id=UNKNOWN_ID,
                unk_surface="\N{REPLACEMENT CHARACTER}",
                minloglevel=2,
            )
    return _without_paths(model.getvalue())


def learn_word_pieces(
    counts: dict[Any, Any],
    vocabulary_size: int,
    special: Sequence[str],
    joiner: str,
) -> list[str]:
    """Learns a WordPiece vocabulary from words.

    Args:
        counts: {word: number of occurrences}.
        vocabulary_size: int. Maximum number of pieces.
        special: list of str, the special tokens, which come first.
        joiner: str. Prefix of the pieces that continue a word.

    Returns:
        List of str: the special tokens, each character with and without the
        prefix, and the learned pieces.

    Raises:
        ValueError: no words, or a size that is too small for the characters.
    """
    if not counts:
        raise ValueError(
            "`lines` must hold words. Received: nothing to learn from"
        )
    characters = sorted({c for word in counts for c in word})
    single = [*characters, *(joiner + c for c in characters)]
    needed = len({*special, *single})
    if vocabulary_size < needed:
        raise ValueError(
            f"`vocabulary_size` must be at least {needed} here, for the "
            "special tokens and each character, at the start of a word and "
            f"inside one. Received: vocabulary_size={vocabulary_size}"
        )
    # Sorted, so that the result does not depend on the order of the lines. The
    # trainer would take its space character for a space.
    words = [f"{w}\t{n}" for w, n in sorted(counts.items()) if _SPACE not in w]
    pieces = _byte_pairs(words, vocabulary_size + len(characters) + 2)
    learned = [
        piece[1:] if piece.startswith(_SPACE) else joiner + piece
        for piece in pieces
        if piece != _SPACE
    ]
    found = dict.fromkeys([*special, *single, *learned])
    return list(found)[:vocabulary_size]


def _byte_pairs(words, size):
    """Returns the pieces that are learned from lines `word, tab, count`."""
    if not words:
        return []
    model = io.BytesIO()
    trainer = packages.sentencepiece().SentencePieceTrainer
    trainer.train(
        sentence_iterator=iter(words),
        model_writer=model,
        input_format="tsv",
        model_type="bpe",
        vocab_size=size,
        hard_vocab_limit=False,
        character_coverage=1.0,
        normalization_rule_name="identity",
        split_by_unicode_script=False,
        split_by_number=False,
        max_sentence_length=2**30,
        max_sentencepiece_length=512,
        unk_id=0,
        bos_id=-1,
        eos_id=-1,
        pad_id=-1,
        num_threads=1,
        minloglevel=2,
    )
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    return [p.piece for p in proto.pieces if p.type == p.NORMAL]


def learn_unigram(
    lines: Iterable[str],
    vocabulary_size: int,
    character_coverage: float,
    special: dict[Any, Any],
) -> bytes:
    """Learns a unigram model and returns it as bytes.

    Args:
        lines: iterable of str.
        vocabulary_size: int. Maximum number of pieces.
        character_coverage: float in [0.98, 1]. As for `learn`.
        special: dict of the trainer's settings of special ids.

    Returns:
        bytes, a serialized sentencepiece model.

    Raises:
        ValueError: as for `learn`.
    """
    _check_sizes(vocabulary_size, character_coverage)
    trainer = packages.sentencepiece().SentencePieceTrainer
    expected = "an iterable of texts, of str"
    lines = [
        line
        for line in (checked_text("lines", x, expected) for x in lines)
        if line.strip()
    ]
    if not lines:
        raise ValueError(
            "`lines` must hold text to learn a vocabulary from. "
            "Received: no text"
        )
    model = io.BytesIO()
    with _too_small(vocabulary_size):
        trainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type="unigram",
            vocab_size=max(vocabulary_size, 10),
            character_coverage=character_coverage,
            hard_vocab_limit=False,
            max_sentence_length=2**30,
            # The sum of the threads' counts would depend on their order.
            num_threads=1,
            minloglevel=2,
            **special,
        )
    return model.getvalue()


def read_lines(files: PathLike | Iterable[PathLike]) -> Iterator[str]:
    r"""Returns the lines of text files, without their `\n` or `\r\n`.

    Args:
        files: a path, or an iterable of paths. UTF-8 text.

    Returns:
        Iterator of str.

    Raises:
        OSError: a file cannot be read.
        ValueError: `files` has an item that is no path, or a line is not UTF-8.
    """
    # A single path, or no path at all, which `checks.path` refuses.
    if not is_iterable(files):
        files = [files]
    return _lines_of([checks.path("files", path) for path in files])


def _check_sizes(vocabulary_size, character_coverage):
    # sentencepiece parses the size as an int32.
    checks.positive_int("vocabulary_size", vocabulary_size)
    checks.integer("vocabulary_size", vocabulary_size, most=2**31 - 1)
    checks.positive("character_coverage", character_coverage)
    if not 0.98 <= character_coverage <= 1:
        raise ValueError(
            "`character_coverage` must lie in [0.98, 1]. "
            f"Received: character_coverage={checks.shown(character_coverage)}"
        )


@contextlib.contextmanager
def _too_small(vocabulary_size):
    """Turns the trainer's error about a small vocabulary into ValueError."""
    try:
        yield
    except RuntimeError as error:
        needed = re.search(r"required_chars\. \d+ vs (\d+)", str(error))
        if not needed:
            raise
        raise ValueError(
            f"`vocabulary_size` must be at least {needed[1]} here, for the "
            "special tokens, the bytes if there are any, and the characters of "
            "the text (or lower `character_coverage`). "
            f"Received: vocabulary_size={vocabulary_size}"
        ) from error


def _lines_of(paths):
    for path in paths:
        with open(path, "rb") as stream:
            for number, line in enumerate(stream, 1):
                try:
                    text = line.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise ValueError(
                        "`files` must hold UTF-8 text. "
                        f"Received: line {number} of {path} ({error.reason})"
                    ) from error
                yield text.removesuffix("\n").removesuffix("\r")


def _without_paths(model):
    """Removes the names of temporary files, so that the bytes are equal.

    (The trainer writes them, as of sentencepiece 0.2.3.)
    """
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    proto.normalizer_spec.ClearField("normalization_rule_tsv")
    proto.denormalizer_spec.ClearField("normalization_rule_tsv")
    return proto.SerializeToString(deterministic=True)
