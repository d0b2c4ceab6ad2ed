"""Malformed calls of the text package."""

import json

import numpy as np

from keras_attn import text
from tests.malformed.calls import Call, kinds
from tests.malformed.values import (
    DEEP,
    ENDLESS,
    NAN,
    Kind,
    choice,
    count,
    flag,
    instance,
    limited,
    lines,
    number,
    path,
    title,
)
from tests.malformed.values import seed as seed_kind
from tests.malformed.values import text as text_kind

LINES = ["low lower lowest", "new newer newest"] * 4
PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] un ##like ##ly you".split()
ROWS = [[2, 7, 8, 9, 3, 0]]
UNIGRAMS = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁a", -1.0)]
UNIGRAMS += [("▁", -2.0), ("a", -3.0), ("b", -3.0)]
DEEP_JSON = "[" * 10_000 + "]" * 10_000


def byte_pair():
    """Returns a byte-pair tokenizer."""
    return text.BytePairTokenizer.train_from_lines(
        LINES, 264, pad_token="<pad>"
    )


def word_piece():
    """Returns a word-piece tokenizer."""
    return text.WordPieceTokenizer(PIECES)


def unigram():
    """Returns a unigram tokenizer."""
    return text.UnigramTokenizer(UNIGRAMS)


def subword():
    """Returns a subword tokenizer."""
    return text.SubwordTokenizer.train_from_lines(LINES, 290)


def _ids(size, **more):
    """A flat list of ids."""
    return Kind(
        [5, 6],
        {
            "none": None,
            "number": 5,
            "fraction": 1.5,
            "bool": True,
            "text": "56",
            "bytes": b"56",
            "dict": {5: 6},
            "set": {5},
            "object": object(),
            "fractions": [1.5],
            "bools": [True],
            "nones": [None],
            "texts": ["5"],
            "negative": [-1],
            "outside": [size],
            "past_int32": [2**31],
            "past_int64": [2**70],
            "mixed": [[[5]], 6],
            "nested": [5, [6]],
            "array_of_floats": np.array([1.5]),
            "array_of_bools": np.array([True]),
            "array_of_text": np.array(["5"]),
            "scalar": np.array(5),
            "nan": [NAN],
            "complex": [1j],
            "deep": DEEP,
            "endless": ENDLESS,
            **more,
        },
    )


def _rows(valid=ROWS, size=None):
    """Rows of ids."""
    wrong = {
        "none": None,
        "text": "abc",
        "number": 5,
        "flat": [5],
        "fractions": [[1.5]],
        "bools": [[True]],
        "texts": [["5"]],
        "nones": [[None]],
        "ragged": [[5], [6, 7]],
        "negative": [[-1]],
        "past_int32": [[2**31]],
        "past_int64": [[2**70]],
        "deeper": [[[5]]],
        "nan": [[NAN]],
        "floats": np.ones((2, 3)),
        "complex": np.ones((2, 3), complex),
        "dict": {"a": 1},
        "object": object(),
        "deep": DEEP,
        "endless": ENDLESS,
    }
    if size is not None:
        wrong["outside"] = [[size]]
    return Kind(valid, wrong)


def _special():
    return Kind(
        (0,),
        {
            "none": None,
            "number": 0,
            "text": "0",
            "dict": {0: 1},
            "fractions": [1.5],
            "bools": [True],
            "nones": [None],
            "nested": [[0]],
            "negative": [-1],
            "past_int64": [2**70],
            "endless": ENDLESS,
            "object": object(),
        },
    )


def _seed():
    return seed_kind(0).plus(
        negative=-1, pair_of_fractions=(1.5, 2), negative_pair=(1, -1), empty=[]
    )


def _rate(valid):
    return number(valid, 0, 1).plus(zero=0.0)


def _load_tokenizer(folder):
    saved = folder / "load_tokenizer"
    saved.mkdir()
    tokenizer = text.BytePairTokenizer.train_from_lines(["a b"], 260)
    tokenizer.save(saved)
    yield Call(
        "text.load_tokenizer",
        text.load_tokenizer,
        kinds(directory=path(saved).plus(missing=folder / "none")),
    )


def _mask_tokens(folder):
    yield Call(
        "text.mask_tokens",
        text.mask_tokens,
        kinds(
            token_ids=_rows(size=12),
            vocabulary_size=count(12).plus(giant=2**40),
            mask_id=count(4, 0).plus(outside=12, past_int64=2**70),
            special_ids=_special().plus(outside=[12]),
            mask_rate=_rate(0.15).plus(one=1.0),
            continuations=Kind(
                None,
                {
                    "number": 3,
                    "text": "abc",
                    "short": [True],
                    "nones": [None] * 12,
                    "nans": [NAN] * 12,
                    "texts": ["a"] * 12,
                    "object": object(),
                    "dict": {"a": 1},
                },
            ),
            max_predictions=limited(2).optional(),
            seed=_seed(),
        ),
    )


def _permute(folder):
    yield Call(
        "text.permute_tokens",
        text.permute_tokens,
        kinds(
            token_ids=_rows(),
            special_ids=_special(),
            prediction_rate=_rate(0.3).plus(one=1.0),
            max_span_length=count(2).plus(giant=2**40),
            seed=_seed(),
        ),
    )


def _edit_distance(folder):
    sequence = Kind(
        "abc",
        {
            "none": None,
            "number": 3,
            "nan": NAN,
            "bool": True,
            "bytes": b"abc",
            "dict": {"a": 1},
            "set": {"a"},
            "object": object(),
            "type": int,
            "nested": [["a"]],
            "arrays": [np.ones(2)],
            "rank_more": np.ones((2, 2)),
            "scalar": np.array(5),
            "deep": DEEP,
            "endless": ENDLESS,
        },
    )
    yield Call(
        "text.edit_distance",
        text.edit_distance,
        kinds(first=sequence, second=sequence),
    )


def _error_rate(folder):
    yield Call(
        "text.error_rate",
        text.error_rate,
        kinds(
            predictions=lines(["abc", "d"]).plus(shorter=["abc"]),
            references=lines(["abc", "de"]).plus(
                empty=[], blank=["", " "], deep=DEEP, endless=ENDLESS
            ),
            unit=choice("word"),
        ),
    )


def _squad_scores(folder):
    yield Call(
        "text.squad_scores",
        text.squad_scores,
        kinds(
            prediction=text_kind("a box"),
            references=lines(["the box"]),
        ),
    )


def _question_windows(folder):
    question = ("Where?", "Ann is in Oslo.", [("in Oslo", 7)])
    wrong = {
        "none": None,
        "number": 3,
        "text": "abc",
        "dict": {"a": "b"},
        "numbers": [1, 2],
        "pairs": [question[:2]],
        "no_answers": [(*question[:2], None)],
        "answer_texts": [(*question[:2], ["in Oslo"])],
        "fractions": [(*question[:2], [("in Oslo", 7.5)])],
        "bytes": [(b"Where?", *question[1:])],
        "deep": [DEEP],
        "endless": ENDLESS,
    }
    yield Call(
        "text.question_windows",
        text.question_windows,
        kinds(
            questions=Kind([question], wrong),
            tokenizer=instance(subword()),
            max_length=count(20, 4),
            lowercase=flag(True),
        ),
    )


def _squad_threshold(folder):
    yield Call(
        "text.squad_threshold",
        text.squad_threshold,
        kinds(
            predictions=lines(["a", "b"]).plus(shorter=["a"], empty=[]),
            scores=Kind(
                [1.5, -2],
                {
                    "none": None,
                    "text": "ab",
                    "texts": ["a", "b"],
                    "nans": [NAN, 1.0],
                    "nones": [None, 1.0],
                    "dict": {1.0: 2.0},
                    "shorter": [1.0],
                    "nested": [[1.0], [2.0]],
                    "endless": ENDLESS,
                },
            ),
            references=lines([["a"], []]).without("nested"),
        ),
    )


def _pack_segments(folder):
    ids = {
        "none": None,
        "number": 3,
        "text": "abc",
        "flat": [5, 6],
        "fractions": [[1.5], [2.5]],
        "texts": ["a", "b"],
        "shorter": [[5]],
        "negative": [[-1], [5]],
        "giant": [[2**40], [5]],
        "dict": {5: 6},
        "deep": [DEEP],
        "endless": ENDLESS,
    }
    yield Call(
        "text.pack_segments",
        text.pack_segments,
        kinds(
            first=Kind([[5, 6], [7]], ids).named("second"),
            second=Kind([[8], [9]], ids).optional(),
            start_id=count(1, 0).plus(giant=2**40),
            end_id=count(2, 0).plus(giant=2**40),
            length=limited(20, 5).optional(),
            pad_to_length=flag(True),
        ),
    )


def _pad_windows(folder):
    question = ("Where?", "Ann is in Oslo.", [("in Oslo", 7)])
    windows = text.question_windows([question], subword())
    wrong = {
        "none": None,
        "number": 3,
        "text": "abc",
        "dict": {"a": "b"},
        "numbers": [1, 2],
        "plain_tuples": [tuple(windows[0])],
        "deep": [DEEP],
        "endless": ENDLESS,
    }
    yield Call(
        "text.pad_windows",
        text.pad_windows,
        kinds(
            windows=Kind(windows, wrong),
            length=limited(40).optional().plus(short=3),
            pad_id=count(0, 0).plus(giant=2**40),
        ),
    )


def _documents(valid):
    return Kind(
        valid,
        {
            "none": None,
            "number": 3,
            "text": "abc",
            "texts": ["abc", "def"],
            "fractions": [[[1.5], [2]], [[3]]],
            "nones": [[[None], [2]], [[3]]],
            "dict": {"a": 1},
            "object": object(),
            "deep": DEEP,
            "endless": ENDLESS,
        },
    )


def _pairs(folder):
    yield Call(
        "text.sentence_pairs",
        text.sentence_pairs,
        kinds(
            documents=_documents([[[5], [6], [7]], [[8], [9]]]).plus(
                flat=[[5, 6], [7]],
                empty=[[], []],
                negative=[[[-1], [2]], [[3]]],
            ),
            length=count(8).plus(one=1).optional(),
            seed=_seed(),
        ),
    )


class _NoIds:
    """A tokenizer without ids."""

    def encode(self, texts):
        """Returns no ids."""
        return []


def _epochs():
    return kinds(
        shuffle=flag(True),
        seed=_seed().plus(none=None),
        initial_epoch=count(0, 0),
        shard=Kind(
            (1, 2),
            {
                "none": None,
                "number": 1,
                "text": "01",
                "one_number": (1,),
                "three_numbers": (0, 1, 2),
                "empty": (),
                "index_is_count": (2, 2),
                "negative": (-1, 2),
                "no_shards": (0, 0),
                "floats": (0.0, 2.0),
                "nan": (NAN, 2),
                "bools": (False, True),
                "giant": (0, 2**70),
                "array": np.array([0, 2]),
                "dict": {0: 1, 1: 2},
                "object": object(),
                "endless": ENDLESS,
            },
        ),
    )


def _batches(folder):
    def batches(**given):
        return next(iter(text.token_batches(**given)))

    yield Call(
        "text.token_batches",
        batches,
        {
            **kinds(
                source=lines(["one two"]).named("target"),
                target=lines(["two"]).named("source"),
                tokenizer=instance(subword()).plus(no_ids=_NoIds()),
                tokens_per_batch=limited(12),
                max_length=count(16).plus(one=1),
                buckets=count(3),
                rows_multiple_of=limited(2),
                labels=flag(True),
            ),
            **_epochs(),
        },
        also={
            "more sources": ({"source": ["a", "b"]}, ("source", "target")),
        },
    )


def _packed(folder):
    def batches(**given):
        return next(iter(text.packed_batches(**given)))

    yield Call(
        "text.packed_batches",
        batches,
        {
            **kinds(
                source=lines(["one two"]).named("target"),
                target=lines(["two"]).named("source").optional(),
                tokenizer=instance(subword()).plus(no_ids=_NoIds()),
                tokens_per_batch=limited(12),
                max_length=limited(16).plus(one=1),
                rows_multiple_of=limited(2),
            ),
            **_epochs(),
        },
        also={
            "more sources": ({"source": ["a", "b"]}, ("source", "target")),
        },
    )


def _blocks(folder):
    def blocks(**given):
        return next(iter(text.token_blocks(**given)))

    flat = Kind(
        np.arange(10),
        {
            "none": None,
            "text": "abc",
            "number": 5,
            "fractions": [1.5],
            "bools": [True],
            "texts": ["5"],
            "nested": [[5]],
            "negative": [-1] * 10,
            "past_int32": [2**31] * 10,
            "nan": [NAN],
            "dict": {"a": 1},
            "object": object(),
            "deep": DEEP,
            "endless": ENDLESS,
            "short": [5],
            "empty": [],
        },
    ).accepts("a last, shorter block", "short")
    yield Call(
        "text.token_blocks",
        blocks,
        {
            **kinds(
                token_ids=flat,
                length=count(4),
                batch_size=limited(2),
                pad_id=count(0, 0).plus(past_int32=2**31),
            ),
            **_epochs(),
        },
    )


def _streams(folder):
    def streams(**given):
        return next(iter(text.token_streams(**given)))

    yield Call(
        "text.token_streams",
        streams,
        {
            **kinds(
                documents=_documents([[1, 2, 3, 4], [5, 6, 7]]).plus(
                    flat=[5, 6],
                    negative=[[-1]],
                    past_int32=[[2**31]],
                    nested=[[[5]]],
                    empty=[[]],
                    floats=np.ones((2, 2)),
                ),
                length=limited(2),
                batch_size=limited(2),
                pad_id=count(0, 0).plus(past_int32=2**31),
            ),
            **_epochs(),
        },
    )


def _dataset(folder):
    """Calls of the constructor and of `set_epoch`; `fit` does the others."""

    def draw(epoch):
        return lambda index: np.zeros((2, 3), "int32")

    yield Call(
        "text.TokenDataset",
        text.TokenDataset,
        kinds(
            draw=Kind(draw, {"none": None, "number": 3, "text": "a"}),
            num_batches=count(2),
            initial_epoch=count(0, 0),
            report=Kind(None, {"number": 3, "text": "a", "list": [3]}),
        ),
    )
    yield Call(
        "text.TokenDataset.set_epoch",
        text.TokenDataset(draw, 2).set_epoch,
        kinds(epoch=count(0, 0)),
    )


def _files(name, made, saved, damaged, errors=()):
    """Calls of `save` and `load`, with damaged files.

    Args:
        name: str, the class.
        made: the tokenizer.
        saved: path.
        damaged: dict of labels to functions that damage the saved files.
        errors: tuple of exceptions.
    """
    argument = "path" if name == "SubwordTokenizer" else "directory"
    made.save(saved)
    yield Call(
        f"text.{name}.save",
        made.save,
        kinds(**{argument: path(saved)}),
        errors=errors,
    )
    kind = path(saved).plus(missing=saved.parent / "no such place")
    load = type(made).load
    yield Call(
        f"text.{name}.load",
        load,
        kinds(**{argument: kind}),
        errors=(OSError,),
    )
    names = (argument, "path", "vocabulary", "merges", "model", "tokenizer")
    for label, damage in damaged.items():
        folder = saved.parent / f"{name} {label}"
        folder.mkdir()
        place = folder / saved.name
        made.save(place)
        damage(place)
        yield Call(
            f"text.{name}.load, {label}",
            load,
            kinds(**{argument: Kind(saved, {"damaged": place}).named(*names)}),
            valid=False,
        )


def _written(file, content):
    """Returns a function that replaces the content of a file."""

    def damage(folder):
        target = folder / file if file else folder
        if isinstance(content, str):
            target.write_text(content, encoding="utf-8")
        else:
            target.write_bytes(content)

    return damage


def _classic(file, content):
    """Returns a function that damages a file of an older version."""

    def damage(folder):
        (folder / "tokenizer.json").unlink()
        if content is None:
            (folder / file).unlink()
        else:
            _written(file, content)(folder)

    return damage


def _characters(folder):
    made = text.CharacterTokenizer("abc")
    yield Call(
        "text.CharacterTokenizer",
        text.CharacterTokenizer,
        kinds(
            characters=lines(["a", "b"])
            .without("string")
            .plus(twice="aa", empty="", long=["ab"], deep=DEEP)
        ),
    )
    yield Call(
        "text.CharacterTokenizer.train_from_lines",
        text.CharacterTokenizer.train_from_lines,
        kinds(lines=lines(["ab", "c"]).plus(empty=[], blank=[""])),
    )
    yield Call(
        "text.CharacterTokenizer.encode",
        made.encode,
        kinds(texts=text_kind("ab").plus(nested=[["ab"]], deep=DEEP)),
    )
    for name in "decode", "pieces":
        yield Call(
            f"text.CharacterTokenizer.{name}",
            getattr(made, name),
            kinds(ids=_ids(7)),
        )
    files = {
        "binary": _written("characters.json", bytes(range(256))),
        "list": _written("characters.json", "[1]"),
        "number": _written("characters.json", '{"characters": 3}'),
        "repeated": _written("characters.json", '{"characters": "aa"}'),
        "none": lambda saved: (saved / "characters.json").unlink(),
    }
    yield from _files("CharacterTokenizer", made, folder / "characters", files)


def _byte_pair(folder):
    made = byte_pair()
    yield Call(
        "text.BytePairTokenizer",
        text.BytePairTokenizer,
        kinds(
            vocab=instance({t: i for i, t in enumerate(made.vocabulary)})
            .without("own_type", "list", "dict")
            .plus(
                empty_dict={},
                missing={"a": 0},
                text_id={"a": "b"},
                number_token={5: 0},
                pairs=[("a", 0)],
                huge_id={"<|endoftext|>": 2**40},
                twice={"<|endoftext|>": 0, "a": 0},
            ),
            merges=instance([("l", "o")])
            .without("own_type", "list", "empty", "empty_text")
            .plus(
                texts=["ab"],
                single=[("a",)],
                triple=[("a", "b", "c")],
                numbers=[(1, 2)],
                twice=[("l", "o")] * 2,
                unknown=[("☃", "☃")],
                nones=[None],
            ),
            unk_token=title("<|endoftext|>").plus(empty="", unknown="<u>"),
            bos_token=title("<|endoftext|>").plus(empty="", unknown="<s>"),
            eos_token=title("<|endoftext|>").plus(empty="", unknown="</s>"),
            pad_token=title(None).optional().plus(empty="", unknown="<none>"),
            add_prefix_space=flag(True),
            additional_special_tokens=lines(["<a>"]).plus(empty=[""]),
        ),
    )
    yield from _trained("BytePairTokenizer", text.BytePairTokenizer, 264)
    yield from _shared("BytePairTokenizer", made, 264, "low")
    vocabulary = json.dumps({"a": [0]})
    files = {
        "deep vocabulary": _classic("vocab.json", DEEP_JSON),
        "empty vocabulary": _classic("vocab.json", b""),
        "binary vocabulary": _classic("vocab.json", bytes(range(256))),
        "null vocabulary": _classic("vocab.json", "null"),
        "list ids": _classic("vocab.json", vocabulary),
        "long number": _classic("vocab.json", '{"a": ' + "9" * 5000 + "}"),
        "nan": _classic("vocab.json", '{"a": NaN}'),
        "binary merges": _classic("merges.txt", b"\xff\xfe"),
        "repeated merges": _classic("merges.txt", "l o\nl o\n"),
        "long merges": _classic("merges.txt", "l o w\n"),
        **_configs(),
        "no merges": _classic("merges.txt", None),
        "no vocabulary": _classic("vocab.json", None),
    }
    yield from _files("BytePairTokenizer", made, folder / "byte_pair", files)


def _trained(name, kind, size):
    yield Call(
        f"text.{name}.train_from_lines",
        kind.train_from_lines,
        kinds(
            lines=lines(LINES),
            vocabulary_size=count(size).plus(too_small=3),
        ),
    )


def _word_piece(folder):
    made = word_piece()
    yield Call(
        "text.WordPieceTokenizer",
        text.WordPieceTokenizer,
        kinds(
            vocab=instance(PIECES)
            .without("own_type", "list")
            .plus(
                numbers=[5],
                twice=PIECES * 2,
                nones=[*PIECES, None],
                empty_dict={},
                surrogate=[*PIECES, "\ud800"],
            ),
            do_lower_case=flag(True),
            strip_accents=flag(None).optional(),
            tokenize_chinese_chars=flag(True),
            pad_token=title("[PAD]").plus(empty="", unknown="<pad>"),
            unk_token=title("[UNK]").plus(empty="", unknown="<unk>"),
            cls_token=title("[CLS]").plus(empty="", unknown="<cls>"),
            sep_token=title("[SEP]").plus(empty="", unknown="<sep>"),
            mask_token=title("[MASK]").plus(empty="", unknown="<mask>"),
            additional_special_tokens=lines(["<a>"]).plus(empty=[""]),
        ),
    )
    yield Call(
        "text.WordPieceTokenizer.train_from_lines",
        text.WordPieceTokenizer.train_from_lines,
        kinds(
            lines=lines(LINES).plus(empty=[], blank=[" "]),
            vocabulary_size=count(40).plus(too_small=6),
        ),
    )
    yield from _shared("WordPieceTokenizer", made, 9, "you")
    made.save(folder / "chat")
    template = "{% for m in messages %}{{ m.role + m.content }}{% endfor %}"
    (folder / "chat" / "chat_template.jinja").write_text(template)
    message = {"role": "user", "content": "you"}
    yield Call(
        "text.WordPieceTokenizer.apply_chat_template",
        text.WordPieceTokenizer.load(folder / "chat").apply_chat_template,
        kinds(
            conversation=Kind(
                [message],
                {
                    "none": None,
                    "number": 3,
                    "text": "you",
                    "empty": [],
                    "one": message,
                    "texts": ["you"],
                    "no role": [{"content": "you"}],
                    "other role": [{"role": 3, "content": "you"}],
                    "no content": [{"role": "user"}],
                    "other content": [{"role": "user", "content": 3}],
                    "deep": DEEP,
                },
            ),
            add_generation_prompt=flag(False),
            tokenize=flag(True),
        ),
    )
    files = {
        "empty vocabulary": _classic("vocab.txt", b""),
        "binary vocabulary": _classic("vocab.txt", b"\xff\xfe"),
        "repeated pieces": _classic("vocab.txt", "\n".join([*PIECES, "you"])),
        "deep config": _written("tokenizer_config.json", DEEP_JSON),
        "list as config": _written("tokenizer_config.json", "[1]"),
        "text as config": _written("tokenizer_config.json", "{"),
        "no vocabulary": _classic("vocab.txt", None),
        **_configs(),
    }
    yield from _files("WordPieceTokenizer", made, folder / "word_piece", files)


def _shared(name, made, size, word):
    """Calls of the methods that all tokenizers of published models have."""
    yield Call(
        f"text.{name}.encode",
        made.encode,
        kinds(
            text=text_kind(word).plus(
                nested=[[word]], surrogate="\ud800", deep=DEEP
            )
        ),
    )
    yield Call(
        f"text.{name}.encode_batch",
        made.encode_batch,
        kinds(
            texts=lines([word]).plus(surrogate=["\ud800"], pair=[("a", "b")])
        ),
    )
    yield Call(
        f"text.{name}.tokens",
        made.tokens,
        kinds(text=text_kind(word).plus(listed=[word])),
    )
    yield Call(
        f"text.{name}.decode",
        made.decode,
        kinds(
            ids=_ids(size).plus(holes=[[5], None]),
            skip_special_tokens=flag(True),
        ),
    )
    texts = (
        lines([word])
        .without("nested")
        .plus(
            ids=[3], mixed_ids=[word, [5]], fractions=[[1.5]], outside=[[size]]
        )
    )
    yield Call(
        f"text.{name}.pack",
        made.pack,
        kinds(
            text=texts,
            text_pair=texts.optional().plus(more=["un", "you"]),
            max_length=limited(8).optional().plus(zero=0).without("huge"),
            truncation=choice("longest_first"),
            stride=count(0, 0).plus(past_int64=2**70),
            pad_to_max_length=flag(True),
            return_offsets=flag(False),
        ),
    )


def _configs():
    """Damages of a tokenizer_config.json."""
    special = "[PAD]"
    values = {
        "token": {"pad_token": {"content": 5}},
        "id": {"added_tokens_decoder": {"-1": {"content": special}}},
        "added": {"added_tokens_decoder": [special]},
        "extra": {"extra_special_tokens": 3},
        "side": {"padding_side": "top"},
        "words": {"never_split": ["a"]},
        "code": {"auto_map": {"AutoTokenizer": "code.py"}},
        "class": {"tokenizer_class": ["BertTokenizer"]},
    }
    return {
        f"{name} of the config": _written(
            "tokenizer_config.json", json.dumps(config)
        )
        for name, config in values.items()
    }


def _unigram(folder):
    made = unigram()
    special = {
        f"{name}_token": title(token).plus(empty="")
        for name, token in (
            ("bos", "<s>"),
            ("eos", "</s>"),
            ("unk", "<unk>"),
            ("sep", "<sep>"),
            ("pad", "<pad>"),
            ("cls", "<cls>"),
            ("mask", "<mask>"),
        )
    }
    yield Call(
        "text.UnigramTokenizer",
        text.UnigramTokenizer,
        kinds(
            vocab=instance(UNIGRAMS)
            .without("own_type", "list")
            .plus(
                no_scores=["a"],
                nan=[*UNIGRAMS, ("c", NAN)],
                twice=UNIGRAMS * 2,
                number=[*UNIGRAMS, (5, 1.0)],
                no_unknown=UNIGRAMS[3:],
            ),
            tokenizer_class=choice("T5Tokenizer"),
            unk_id=count(2).optional().plus(other=1),
            do_lower_case=flag(False),
            precompiled_charsmap=instance(None)
            .optional()
            .plus(short=b"ab", zeros=bytes(9), text="ab"),
            **special,
            additional_special_tokens=lines(["<a>"]).plus(empty=[""]),
        ),
    )
    yield Call(
        "text.UnigramTokenizer.train_from_lines",
        text.UnigramTokenizer.train_from_lines,
        kinds(
            lines=lines(LINES).plus(
                empty=[], blank=[" "], surrogate=["\ud800"]
            ),
            vocabulary_size=count(40).plus(too_small=3, past_int32=2**31),
            tokenizer_class=choice("XLNetTokenizer"),
            character_coverage=number(0.9995, 0, 1).plus(low=0.97),
            do_lower_case=flag(False),
        ),
    )
    yield from _shared("UnigramTokenizer", made, len(UNIGRAMS), "a a")
    files = {
        "binary json": _written("tokenizer.json", bytes(range(256))),
        "no model": _written("tokenizer.json", "{}"),
        "list": _written("tokenizer.json", "[]"),
        "deep": _written("tokenizer.json", DEEP_JSON),
        "no vocabulary": _written(
            "tokenizer.json", '{"model": {"type": "Unigram", "vocab": []}}'
        ),
        "table": _written(
            "tokenizer.json",
            '{"model": {"type": "Unigram", "vocab": [["a", 0]]}, "normalizer":'
            ' {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}',
        ),
        **_configs(),
    }
    yield from _files("UnigramTokenizer", made, folder / "unigram", files)


def _subword(folder):
    made = subword()
    source = folder / "lines.txt"
    source.write_text("\n".join(LINES), encoding="utf-8")
    yield Call(
        "text.SubwordTokenizer",
        text.SubwordTokenizer,
        kinds(
            model=instance(made._model)
            .without("own_type", "list")
            .plus(huge=10**12, bytes_of_nothing=b"", numbers=[1, 2])
        ),
    )
    coverage = number(0.9995, 0, 1).plus(zero=0.0, low=0.97)
    size = count(290).plus(
        too_small=4, past_int32=2**31, giant=2**40, past_int64=2**70
    )
    yield Call(
        "text.SubwordTokenizer.train",
        text.SubwordTokenizer.train,
        kinds(
            files=path(source)
            .without("list")
            .plus(nones=[None], numbers=[3], missing=folder / "none.txt"),
            vocabulary_size=size,
            character_coverage=coverage,
        ),
        errors=(OSError,),
    )
    yield Call(
        "text.SubwordTokenizer.train_from_lines",
        text.SubwordTokenizer.train_from_lines,
        kinds(
            lines=lines(LINES).plus(empty=[], surrogate=["\ud800"]),
            vocabulary_size=size,
            character_coverage=coverage,
        ),
    )
    yield Call(
        "text.SubwordTokenizer.encode",
        made.encode,
        kinds(
            texts=text_kind("low").plus(
                nested=[["low"]], surrogate="\ud800", deep=DEEP
            )
        ),
    )
    yield Call(
        "text.SubwordTokenizer.tokens",
        made.tokens,
        kinds(text=text_kind("low").plus(nested=[["low"]])),
    )
    for name in ("pieces", "decode"):
        kind = _ids(290)
        if name == "pieces":
            kind = kind.plus(rows=[[5]])
        else:
            kind = kind.plus(holes=[[5], None])
        yield Call(
            f"text.SubwordTokenizer.{name}",
            getattr(made, name),
            kinds(ids=kind),
        )
    files = {
        "empty": _written("", b""),
        "text": _written("", "abc"),
        "truncated": lambda place: place.write_bytes(place.read_bytes()[:100]),
        "binary": _written("", bytes(range(256))),
    }
    yield from _files("SubwordTokenizer", made, folder / "subword.model", files)


CALLS = {
    "BatchReport": "a plain tuple that `token_batches` reports",
    "BytePairTokenizer": _byte_pair,
    "CharacterTokenizer": _characters,
    "MaskedTokens": "a plain tuple of arrays",
    "PermutedTokens": "a plain tuple of arrays",
    "QuestionWindow": "a plain tuple that `question_windows` returns",
    "SentencePair": "a plain tuple",
    "SquadScores": "a plain tuple that `squad_scores` returns",
    "SubwordTokenizer": _subword,
    "TokenDataset": _dataset,
    "UnigramTokenizer": _unigram,
    "WordPieceTokenizer": _word_piece,
    "edit_distance": _edit_distance,
    "error_rate": _error_rate,
    "load_tokenizer": _load_tokenizer,
    "mask_tokens": _mask_tokens,
    "pack_segments": _pack_segments,
    "pad_windows": _pad_windows,
    "permute_tokens": _permute,
    "question_windows": _question_windows,
    "sentence_pairs": _pairs,
    "squad_scores": _squad_scores,
    "squad_threshold": _squad_threshold,
    "packed_batches": _packed,
    "token_batches": _batches,
    "token_blocks": _blocks,
    "token_streams": _streams,
}
