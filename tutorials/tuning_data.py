"""What there is to fine-tune on: four data sets, or what the grammar writes."""

import collections
import hashlib
import json
import pathlib
import random
from typing import Any, NamedTuple

import corpora
from phrase_facts import sentence
from phrase_passages import passage, twisted, write
from phrase_questions import draw_questions
from phrase_sampler import PhraseSampler
from restaurant_spans import read_turns, split_by_passage
from tuning_tasks import SentenceTask, SpanTask, TokenTask

_PATTERNS = (
    "action description comparison location existence liking feeling "
    "two_clauses"
).split()


class TuningData(NamedTuple):
    """Holds a task and its examples.

    Args:
        task: one of those of `tuning_tasks`.
        train: list of examples.
        validation: list of examples.
        test: list of examples.
    """

    task: Any
    train: Any
    validation: Any
    test: Any


def of_folder(folder):
    """Reads the sets that a folder holds, each from the files of its authors.

    Args:
        folder: path. With `clinc150/data_full.json.gz` (Larson et al. 2019),
            `med/MED.tsv.gz` (Yanaka et al. 2019), `restaurant8k` with
            `train_0.json.gz` and `test.json.gz` (Coope et al. 2020), `wnut17`
            with `wnut17train.conll.gz`, `emerging.dev.conll.gz` and
            `emerging.test.annotated.gz` (Derczynski et al. 2017), or some of
            them.

    Returns:
        Dict of name to `TuningData`.

    Raises:
        CorpusError: a file that cannot be read, or none at all.
    """
    folder = pathlib.Path(folder)
    readers = {
        "sentence": ("clinc150", _clinc),
        "pair": ("med", _med),
        "span": ("restaurant8k", _restaurants),
        "tokens": ("wnut17", _wnut),
    }
    found = {
        name: read(folder / place)
        for name, (place, read) in readers.items()
        if (folder / place).is_dir()
    }
    if not found:
        places = ", ".join(place for place, _ in readers.values())
        raise corpora.CorpusError(
            f"DATA must be a folder with one of {places}. Received: {folder}"
        )
    return found


def of_grammar(count, seed):
    """Writes four tasks with the phrase grammar.

    Args:
        count: int. Examples to learn from, of each; a fifth as many for
            validation, as many for the test.
        seed: int.

    Returns:
        Dict of name to `TuningData`: of which of eight patterns a sentence is;
        whether the second sentence follows from the first; which words answer
        a question about a passage; who did what where, as entities.
    """
    sizes = count, max(8, count // 5), count
    makers = {
        "sentence": (SentenceTask(_PATTERNS), _patterns),
        "pair": (SentenceTask(("follows", "does not")), _entailed),
        "span": (SpanTask(), _asked),
        "tokens": (
            TokenTask(
                ["O"]
                + [
                    f"{mark}-{role}"
                    for role in ("subject", "object", "place")
                    for mark in "BI"
                ]
            ),
            _roles,
        ),
    }
    made = {}
    for number, (name, (task, make)) in enumerate(makers.items()):
        draw = random.Random(f"{seed} {number}")
        examples, seen = [], set()
        while len(examples) < sum(sizes):
            for example in make(draw):
                # No sentence is on two sides.
                text = repr(example[:-1])
                if text not in seen:
                    seen.add(text)
                    examples.append(example)
        first, second, _ = sizes
        made[name] = TuningData(
            task,
            examples[:first],
            examples[first : first + second],
            examples[first + second : sum(sizes)],
        )
    return made


def share_of(examples, share, task, seed):
    """Returns a share of examples, as many of each class where there are any.

    Args:
        examples: list.
        share: float in (0, 1].
        task: one of those of `tuning_tasks`.
        seed: int.

    Returns:
        List, in an order that the seed decides.
    """
    draw = random.Random(seed)
    groups = collections.defaultdict(list)
    for example in examples:
        kind = example[-1] if isinstance(task, SentenceTask) else None
        groups[kind].append(example)
    chosen = []
    for group in groups.values():
        chosen += draw.sample(group, max(1, round(share * len(group))))
    draw.shuffle(chosen)
    return chosen


def _patterns(draw):
    sampler = PhraseSampler(draw.getrandbits(32))
    name = draw.choice(_PATTERNS)
    return [(getattr(sampler, name)().english, None, name)]


def _entailed(draw):
    """A fact, and it with less said, or with something else said."""
    facts = passage(draw)
    fact = draw.choice(facts)
    if draw.random() < 0.5:
        less = fact._replace(place=None if fact.verb != "be" else fact.place)
        less = less._replace(subject=_plain(draw, less.subject))
        if less.object:
            less = less._replace(object=_plain(draw, less.object))
        other, label = less, "follows"
    else:
        options = twisted(facts, fact)
        if not options:
            return []
        other, label = draw.choice(options), "does not"
    texts = [" ".join(sentence(one)[0]) for one in (fact, other)]
    return [] if texts[0] == texts[1] else [(*texts, label)]


def _plain(draw, thing):
    """Leaves the adjective of a thing out, half of the time."""
    return thing._replace(adjective=None) if draw.random() < 0.5 else thing


def _asked(draw):
    facts = passage(draw)
    return draw_questions(draw, facts, set(range(len(facts))), most=2)


def _roles(draw):
    words, spans = write(passage(draw))
    tags = ["O"] * len(words)
    for found in spans:
        for role, (first, last) in found.items():
            tags[first] = f"B-{role}"
            tags[first + 1 : last + 1] = [f"I-{role}"] * (last - first)
    return [(tuple(words), tuple(tags))]


def _clinc(folder):
    try:
        content = json.loads(
            "\n".join(corpora.read_lines(folder / "data_full.json.gz"))
        )
        parts = [
            [(text, None, intent) for text, intent in content[part]]
            for part in ("train", "val", "test")
        ]
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise corpora.CorpusError(
            f"{folder} cannot be read: {type(error).__name__}, {error}"
        ) from error
    classes = sorted({intent for _, _, intent in parts[0]})
    return TuningData(SentenceTask(classes), *parts)


def _med(folder):
    header, *lines = corpora.read_lines(folder / "MED.tsv.gz")
    names = header.split("\t")
    columns = [
        names.index(name) for name in ("sentence1", "sentence2", "gold_label")
    ]
    sides = [], [], []
    for line in lines:
        if line.strip():
            row = line.split("\t")
            example = tuple(row[column] for column in columns)
            # By the first sentence: no premise is on two sides.
            digest = hashlib.sha256(example[0].encode()).hexdigest()
            part = {0: 1, 1: 2, 2: 2}.get(int(digest, 16) % 10, 0)
            sides[part].append(example)
    return TuningData(SentenceTask(("entailment", "neutral")), *sides)


def _restaurants(folder):
    train, validation = split_by_passage(read_turns(folder / "train_0.json.gz"))
    test = read_turns(folder / "test.json.gz")
    return TuningData(SpanTask(), train, validation, test)


def _wnut(folder):
    files = (
        "wnut17train.conll.gz",
        "emerging.dev.conll.gz",
        "emerging.test.annotated.gz",
    )
    parts = [_tagged(folder / name) for name in files]
    tags = sorted({tag for part in parts for _, row in part for tag in row})
    tags.remove("O")
    return TuningData(TokenTask(["O", *tags]), *parts)


def _tagged(path):
    """Reads a word and its tag a line, an empty line behind each sentence."""
    sentences, words, tags = [], [], []
    for number, line in enumerate([*corpora.read_lines(path), ""], 1):
        if not line.strip():
            if words:
                sentences.append((tuple(words), tuple(tags)))
            words, tags = [], []
            continue
        columns = line.split("\t")
        if len(columns) != 2:
            raise corpora.CorpusError(
                f"Line {number:,} of {path} has no word and tag with a tab "
                f"between: {line[:60]!r}"
            )
        words.append(columns[0])
        tags.append(columns[1].strip())
    return sentences
