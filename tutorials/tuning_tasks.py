"""Four kinds of tasks for one encoder: what is read, said, and scored.

Each has

    labels         how many classes there are, or None
    model(encoder) the encoder with the head of this kind
    encode(examples, tokenizer, length)
                   a dict of inputs, int32 (B, T), and labels
    score(model, examples, tokenizer, length)
                   the share in [0, 1] that is published for such tasks
"""

import collections
import itertools

import keras
import numpy as np

from keras_attn.models import (
    SequenceClassifier,
    SpanExtractor,
    TokenClassifier,
    align_labels_with_tokens,
    bio_spans,
)
from keras_attn.training import SequenceCrossentropy, freeze

_NONE = -1
_BATCH = 128  # rows that are scored together


class SentenceTask:
    """Which of a few classes a sentence, or a pair of them, is of.

    Args:
        classes: list of str.

    An example is a tuple (first, second or None, class).
    """

    measure = "accuracy"

    def __init__(self, classes):
        self.classes = list(classes)
        self._ids = {name: i for i, name in enumerate(self.classes)}

    def model(self, encoder):
        """Returns the encoder with a class on its first vector."""
        return SequenceClassifier(encoder, len(self.classes))

    @property
    def loss(self):
        """Returns the cross-entropy of the class."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def encode(self, examples, tokenizer, length):
        """Returns inputs, and int32 (B,) classes."""
        first, second, names = zip(*examples, strict=True)
        pairs = second[0] is not None
        inputs = tokenizer.pack(
            list(first), list(second) if pairs else None, length
        )
        return inputs, np.array([self._ids[n] for n in names], "int32")

    def score(self, model, examples, tokenizer, length):
        """Returns the share of examples whose class is found."""
        inputs, labels = self.encode(examples, tokenizer, length)
        logits = model.predict(inputs, batch_size=_BATCH, verbose=0)
        return float((logits.argmax(-1) == labels).mean())


class SpanTask:
    """Which words of a passage answer a question, if any do.

    An example is a `questions.Question`. The question is the first segment,
    the passage the second.
    """

    measure = "span F1"

    def model(self, encoder):
        """Returns the encoder with two pointers."""
        return _without_pooler(SpanExtractor(encoder, no_answer="first"))

    @property
    def loss(self):
        """Returns the cross-entropy of both ends."""
        return SequenceCrossentropy(pad_id=_NONE)

    def encode(self, examples, tokenizer, length):
        """Returns inputs, and int32 (B, 2) places of the answer."""
        rows, numbers, labels = [], [], []
        for example in examples:
            asked, _ = pieces_of(example.asked, tokenizer)
            pieces, words = pieces_of(example.passage, tokenizer)
            asked = asked[: length // 2]
            room = length - 3 - len(asked)
            rows.append((asked, pieces[:room]))
            start = 2 + len(asked)  # behind [CLS] and [SEP]
            numbers.append([_NONE] * start + words[:room])
            labels.append(_ends(numbers[-1], example.span))
        inputs = tokenizer.pack(*map(list, zip(*rows, strict=True)), length)
        inputs["answerable"] = _filled(numbers, inputs["token_ids"]) >= 0
        return inputs, np.array(labels, "int32")

    def score(self, model, examples, tokenizer, length):
        """Returns the F1 of spans that are right from end to end."""
        inputs, _ = self.encode(examples, tokenizer, length)
        spans = model.extract(inputs, batch_size=_BATCH)
        found = []
        for example, start, end in zip(
            examples, spans.start, spans.end, strict=True
        ):
            asked, _ = pieces_of(example.asked, tokenizer)
            _, words = pieces_of(example.passage, tokenizer)
            before = 2 + min(len(asked), length // 2)
            found.append(
                None
                if start < before
                else (words[start - before], words[end - before])
            )
        right = [example.span for example in examples]
        hits = sum(
            f is not None and f == r for f, r in zip(found, right, strict=True)
        )
        return _f1(hits, _count(found), _count(right))


class TokenTask:
    """Which entities a sentence names.

    Args:
        tags: list of str, `O` and `B-` and `I-` of each kind.

    An example is a tuple (words, tags).
    """

    measure = "entity F1"

    def __init__(self, tags):
        self.tags = list(tags)
        self._ids = {tag: i for i, tag in enumerate(self.tags)}

    def model(self, encoder):
        """Returns the encoder with a tag on each vector."""
        return _without_pooler(TokenClassifier(encoder, len(self.tags)))

    @property
    def loss(self):
        """Returns the cross-entropy of tags, on first pieces."""
        return SequenceCrossentropy(pad_id=_NONE)

    def encode(self, examples, tokenizer, length):
        """Returns inputs, and int32 (B, T) tags, -1 but on first pieces."""
        rows, numbers = [], []
        for words, _ in examples:
            pieces, of_word = pieces_of(words, tokenizer)
            rows.append(pieces[: length - 2])
            numbers.append([_NONE, *of_word[: length - 2]])
        inputs = tokenizer.pack(rows, length=length)
        labels = align_labels_with_tokens(
            numbers,
            [[self._ids[tag] for tag in tags] for _, tags in examples],
            inputs["token_ids"].shape[1],
        )
        return inputs, labels

    def score(self, model, examples, tokenizer, length):
        """Returns the F1 of entities that are right from end to end."""
        inputs, labels = self.encode(examples, tokenizer, length)
        found = model.predict(inputs, batch_size=_BATCH, verbose=0).argmax(-1)
        counts = collections.Counter()
        for (_, tags), row, places in zip(
            examples, found, labels >= 0, strict=True
        ):
            said = [self.tags[i] for i in row[places]]
            # What was cut off, or has no piece, is found to be nothing.
            said += ["O"] * (len(tags) - len(said))
            found_here, there = set(bio_spans(said)), set(bio_spans(tags))
            counts["hits"] += len(found_here & there)
            counts["found"] += len(found_here)
            counts["there"] += len(there)
        return _f1(counts["hits"], counts["found"], counts["there"])


def pieces_of(words, tokenizer):
    """Cuts words into pieces.

    Args:
        words: list of str.
        tokenizer: `WordPieceTokenizer`.

    Returns:
        List of ids, and a list of ints as long: of which word each is. A word
        without any piece, of control characters only, is the unknown one.
    """
    cut = [ids or [tokenizer.unknown_id] for ids in tokenizer.encode(words)]
    numbers = [[number] * len(ids) for number, ids in enumerate(cut)]
    chain = itertools.chain.from_iterable
    return list(chain(cut)), list(chain(numbers))


def _without_pooler(model):
    """Freezes what this head does not use: Keras warns of it otherwise."""
    if getattr(model.encoder, "pooler", False):
        freeze(model, "^pooler/")
    return model


def _ends(numbers, span):
    """Returns the first and the last piece of some words; (0, 0) for none."""
    if span is None or span[0] not in numbers or span[1] not in numbers:
        return 0, 0
    last = len(numbers) - 1 - numbers[::-1].index(span[1])
    return numbers.index(span[0]), last


def _filled(rows, like):
    out = np.full(like.shape, _NONE)
    for line, row in zip(out, rows, strict=True):
        line[: len(row)] = row
    return out


def _count(spans):
    return sum(span is not None for span in spans)


def _f1(hits, found, there):
    return 2 * hits / (found + there) if found + there else 0.0
