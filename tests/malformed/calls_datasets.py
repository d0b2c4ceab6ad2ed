"""Malformed calls of the datasets package."""

import gzip
import importlib.util
import io
import json
import zipfile

import numpy as np

from keras_attn import datasets
from tests.helpers.data_set_files import (
    png_bytes,
    wav_bytes,
    write_nlvr,
    write_tar,
)
from tests.malformed.calls import Call, kinds
from tests.malformed.values import (
    DEEP,
    ENDLESS,
    NAN,
    Kind,
    choice,
    count,
    flag,
    function,
    limited,
    lines,
    number,
    path,
    positive,
    size,
    text,
    title,
)
from tests.malformed.values import seed as seed_kind

WORDS = "a plain tuple of words, texts or numbers"
ARRAYS = "a plain tuple of arrays"
BINARY = bytes(range(256))
SCENE = (
    datasets.SceneObject("square", "red", 8.0, 20.0, 4.0),
    datasets.SceneObject("ring", "blue", 30.0, 12.0, 4.0),
)


def _seed():
    return seed_kind(0).plus(none=None, negative=-1, empty=[])


def _report(folder):
    def report(**arguments):
        with datasets.report_bad_lines(**arguments):
            pass

    yield Call(
        "datasets.report_bad_lines",
        report,
        kinds(strict=flag(False), limit=count(10, 0)),
    )


def _generator(name, also=None, **arguments):
    """Calls of a generator.

    Args:
        name: str, of the generator.
        also: dict, as of `Call`.
        **arguments: its arguments besides `n`, `seed` and `split`.
    """

    def calls(folder):
        yield Call(
            f"datasets.{name}",
            getattr(datasets, name),
            kinds(
                n=limited(2, 0),
                seed=_seed(),
                split=choice("train"),
                **arguments,
            ),
            also=also or {},
        )

    return calls


def _range(valid, least, most):
    """A number, or a pair (low, high)."""
    return number(valid, least, most).plus(
        reversed=(most, least),
        outside=(least, most + 1),
        triple=(least, most, most),
        empty=(),
        texts=("1", "2"),
        nones=(None, None),
        nans=(NAN, NAN),
        bools=(True, True),
        nested=[[least, most]],
        deep=DEEP,
    )


def _words(valid):
    return lines(valid).plus(
        empty=[], blank=["word", " "], deep=DEEP, endless=ENDLESS, type=list
    )


def _digits():
    images, labels = np.zeros((3, 8, 8), "float32"), np.arange(3)
    return Kind(
        (images, labels),
        {
            "number": 3,
            "text": "ab",
            "dict": {"images": images, "labels": labels},
            "set": {1, 2},
            "object": object(),
            "images": images,
            "alone": (images,),
            "triple": (images, labels, labels),
            "nones": (None, None),
            "texts": ("a", "b"),
            "no_images": (images[:0], labels[:0]),
            "rank_less": (images[0], labels[:1]),
            "rank_more": (images[..., None], labels),
            "integers": (images.astype("int32"), labels),
            "complex": (images.astype("complex64"), labels),
            "bools": (images > 0, labels),
            "negative": (images - 1, labels),
            "bright": (images + 255, labels),
            "nans": (images * NAN, labels),
            "array_of_text": (images.astype(str), labels),
            "array_of_objects": (np.full(images.shape, None), labels),
            "short": (images, labels[:2]),
            "one_hot": (images, np.eye(3)),
            "fractions": (images, labels + 0.5),
            "labels_of_text": (images, labels.astype(str)),
            "past_int32": (images, labels + 2**40),
            "ragged": ([[[0.5], [0.5, 0.5]]], [1]),
            "deep": (DEEP, labels),
            "large": (np.zeros((3, 99, 8), "float32"), labels),
            "small": (np.zeros((3, 2, 2), "float32"), labels),
        },
        names=("size", "distractor_size"),
    )


def _misspell(folder):
    yield Call(
        "datasets.misspell",
        datasets.misspell,
        kinds(
            word=text("word").plus(
                empty="", short="in", blank="    ", list=["word"], deep=DEEP
            ),
            seed=_seed(),
            known_words=_words([]).accepts(
                "the default is empty, and a set is a collection",
                "empty",
                "set",
            ),
        ),
    )


def _encode_morse(folder):
    yield Call(
        "datasets.encode_morse",
        datasets.encode_morse,
        kinds(
            text=text("SOS").plus(
                empty="",
                blank=" ",
                spaces="A  B",
                lines="A\nB",
                symbols="A-B",
                accent="É",
                sharp_s="straße",
                surrogate="\ud800",
                long="E" * 100_000,
                list=["SOS"],
                deep=DEEP,
            ),
            wpm=number(20.0, 1, 100),
            frequency=number(600.0, 100, 3900),
            snr=number(6.0, -40, 100).optional(),
            silence=number(0.1, 0.01, 60),
            seed=_seed(),
        ),
    )


def _check_caption(folder):
    first, second = SCENE
    yield Call(
        "datasets.check_caption",
        datasets.check_caption,
        kinds(
            scene=Kind(
                SCENE,
                {
                    "none": None,
                    "number": 3,
                    "text": "ab",
                    "dict": {first: second},
                    "set": {first, second},
                    "object": object(),
                    "alone": first,
                    "one": (first,),
                    "three": (first, second, first),
                    "scenes": [SCENE, SCENE],
                    "tuples": [tuple(first), tuple(second)],
                    "no_position": (first, second._replace(x=None)),
                    "text_position": (first._replace(y="3"), second),
                    "nones": (None, None),
                    "array": np.ones((2, 5)),
                    "deep": DEEP,
                },
            ),
            caption=text("a red square left of a blue ring").plus(
                list=["a red square left of a blue ring"], deep=DEEP
            ),
        ),
    )


def _records(valid, **more):
    return Kind(
        valid,
        {
            "none": None,
            "number": 3,
            "nan": NAN,
            "bool": True,
            "text": "abc",
            "bytes": b"abc",
            "dict": {"a": "b"},
            "set": {"a", "b"},
            "object": object(),
            "type": list,
            "function": len,
            "numbers": [1, 2],
            "nones": [None],
            "list_of_bytes": [b"abc"],
            "tuples_of_numbers": [(1, "a")],
            "empty_tuples": [()],
            "array": np.ones(2),
            "scalar": np.array(5),
            "deep": [DEEP],
            "endless": ENDLESS,
            **more,
        },
    )


def _split_by_hash(folder):
    yield Call(
        "datasets.split_by_hash",
        datasets.split_by_hash,
        kinds(
            records=_records([("a", "b"), "c"], mixed=["a", 3])
            .named("key")
            .accepts("an empty list of words", "empty_tuples"),
            key=function(None).optional(),
            parts=count(20, 3),
        ),
        also={
            "key, returns None": ({"key": lambda record: None}, "key"),
            "key, returns numbers": ({"key": lambda record: [1]}, "key"),
            "key, returns bytes": ({"key": lambda record: b"a"}, "key"),
        },
    )


def _group_references(folder):
    yield Call(
        "datasets.group_references",
        datasets.group_references,
        kinds(
            pairs=_records(
                [("a", "b"), ("a", "c")],
                texts=["ab", "cd"],
                triples=[("a", "b", "c")],
                lists_as_source=[(["a"], "b")],
                no_target=[("a", None)],
                mixed=[("a", "b"), "c"],
            )
        ),
    )


def _reference_streams(folder):
    yield Call(
        "datasets.reference_streams",
        datasets.reference_streams,
        kinds(
            references=_records([["a", "b"], ["c"]], texts=["ab"]).accepts(
                "an empty list of references", "empty_tuples"
            )
        ),
    )


def _slot_questions(folder):
    turn = datasets.DialogueTurn("6", (), (datasets.Slot("time", "6", 0),))
    yield Call(
        "datasets.slot_questions",
        datasets.slot_questions,
        kinds(turns=_records([turn], plain_tuples=[tuple(turn)])),
    )


def _write_squad(folder):
    question = datasets.make_questions(1)[0]
    yield Call(
        "datasets.write_squad",
        datasets.write_squad,
        kinds(
            path=path(folder / "test.json"),
            questions=_records([question], plain_tuples=[tuple(question)]),
        ),
    )


def _word_stem(folder):
    yield Call(
        "datasets.word_stem",
        datasets.word_stem,
        kinds(word=text("words").plus(empty="", blank=" \n", list=["a"])),
    )


def _with_split(name, needed=None):
    """Calls of a function of `split` that may need a package."""

    def calls(folder):
        yield Call(
            f"datasets.{name}",
            getattr(datasets, name),
            kinds(split=choice("train")),
            valid=needed is None or bool(importlib.util.find_spec(needed)),
        )

    return calls


def _zip(name, content):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, content)
    return stream.getvalue()


def _file(place, name, content):
    """Writes a file and returns its path."""
    place.mkdir(parents=True, exist_ok=True)
    file = place / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def _files(place, name, content, damaged):
    """The path of a file, and paths of damaged ones.

    Args:
        place: path of a new folder.
        name: str, of the file.
        content: str.
        damaged: dict of labels to pairs (name, content) or contents.
    """
    zipped = gzip.compress(content.encode())
    damaged = {
        "empty_file": "",
        "binary": BINARY,
        "utf16": content.encode("utf-16"),
        "not_gzip": (f"{name}.gz", content),
        "truncated_gzip": (f"{name}.gz", zipped[:-9]),
        "zip": ("a.zip", _zip("a.bin", b"abc")),
        "corrupt_zip": ("a.zip", b"PK\3\4" + BINARY),
        **damaged,
    }
    wrong = {
        "missing": place / "missing" / name,
        "folder": place,
        "long": f"{'a' * 5000}{name}",
    }
    for label, given in damaged.items():
        given = given if isinstance(given, tuple) else (name, given)
        wrong[label] = _file(place / label, *given)
    return path(_file(place, name, content)).plus(**wrong)


def _bad_lines():
    return choice("error").accepts("a class is callable", "type")


def _reader(name, file, content, damaged=None, accepted=(), **arguments):
    """Calls of a reader of one file.

    Args:
        name: str, of the reader.
        file: str. Name of a valid file.
        content: str.
        damaged: dict, as of `_files`.
        accepted: tuple of labels of paths that may be accepted.
        **arguments: the other arguments.
    """

    def calls(folder):
        files = _files(folder / name, file, content, damaged or {})
        yield Call(
            f"datasets.{name}",
            getattr(datasets, name),
            kinds(
                path=files.accepts("a text without lines", *accepted),
                **arguments,
            ),
            errors=(datasets.DataFileError,),
        )

    return calls


def _json_reader(name, content, damaged):
    """Calls of a reader of a JSON file; `damaged` are other contents."""
    bad = {
        "truncated": json.dumps(content)[:-1],
        "deep_json": "[" * 10_000 + "]" * 10_000,
        "long_number": "9" * 5000,
        "nan": "NaN",
        "null": "null",
        "text": '"abc"',
        "empty_list": "[]",
        "empty_object": "{}",
        "list_of_nulls": "[null]",
        "object_of_nulls": '{"data": null}',
    }
    bad |= {label: json.dumps(value) for label, value in damaged.items()}
    return _reader(name, "a.json", json.dumps(content), bad)


def _squad(context="Ann sits in Oslo.", **changed):
    answer = {"text": "in Oslo", "answer_start": 9}
    answer |= {k: v for k, v in changed.items() if k in answer}
    question = {"id": "1", "question": "Where?", "answers": [answer]}
    question |= {k: v for k, v in changed.items() if k not in answer}
    paragraph = {"context": context, "qas": [question]}
    return {"data": [{"paragraphs": [paragraph]}]}


def _turn(span=(3, 4), slot="time", words="At 6.", **changed):
    start, end = span
    values = {"startIndex": start, "endIndex": end}
    turn = {
        "userInput": {"text": words},
        "context": {"requestedSlots": ["time"]},
        "labels": [{"slot": slot, "valueSpan": values}],
    }
    return [turn | changed]


def _read_parallel(folder):
    place = folder / "read_parallel"
    files = _files(place, "a.txt", "a\nb\n", {"short": "a\n"})
    yield Call(
        "datasets.read_parallel",
        datasets.read_parallel,
        kinds(source_path=files, target_path=files, on_bad_lines=_bad_lines()),
        errors=(datasets.DataFileError,),
    )


def _folders(place, valid, damaged):
    """The path of a folder, and paths of damaged ones.

    Args:
        place: path of a new folder.
        valid: dict of names to contents, the files of the folder.
        damaged: dict of labels to such dicts, the files that differ. None: the
            file is missing.
    """
    damaged = {"empty_folder": dict.fromkeys(valid), **damaged}
    found = {}
    for label, changed in {"valid": {}, **damaged}.items():
        found[label] = place / label
        found[label].mkdir(parents=True)
        for name, content in {**valid, **changed}.items():
            if content is not None:
                _file(found[label], name, content)
    wrong = {
        "missing": place / "none",
        "file": _file(place, "a.txt", "abc"),
        "long": "a" * 5000,
        **found,
    }
    return path(wrong.pop("valid")).plus(**wrong)


def _read_captions(folder):
    files = {"a.png": png_bytes(4, 2), "captions.tsv": "a.png\tA sea.\n"}
    damaged = {
        "no_captions": {"captions.tsv": None},
        "empty_captions": {"captions.tsv": ""},
        "binary_captions": {"captions.tsv": BINARY},
        "no_tab": {"captions.tsv": "a.png A sea.\n"},
        "no_image": {"a.png": None},
        "no_picture": {"a.png": "abc"},
        "binary_picture": {"a.png": BINARY},
        "empty_picture": {"a.png": b""},
        "truncated_picture": {"a.png": png_bytes(40, 20)[:-40]},
        "wide_picture": {"a.png": png_bytes(2**20, 1)},
        "null_name": {"captions.tsv": "a\0.png\tA sea.\n"},
        "long_name": {"captions.tsv": f"{'a' * 5000}.png\tA sea.\n"},
    }
    yield Call(
        "datasets.read_captions",
        datasets.read_captions,
        kinds(
            folder=_folders(folder / "read_captions", files, damaged),
            height=limited(70),
            on_bad_lines=_bad_lines(),
        ),
        errors=(datasets.DataFileError,),
    )


def _read_nlvr(folder):
    place = folder / "nlvr"
    place.mkdir()
    write_nlvr(place, "dev", ["true", "false"])
    files = {file.name: file.read_bytes() for file in place.iterdir()}
    archive = files["images_dev.tar.gz"]
    write_tar(place / "bad.tar.gz", {"dev-0-1-0.png": b"no image"})
    no_picture = (place / "bad.tar.gz").read_bytes()
    damaged = {
        "no_json": {"dev.json.gz": None},
        "empty_json": {"dev.json.gz": b""},
        "binary_json": {"dev.json.gz": BINARY},
        "other_json": {"dev.json": '{"identifier": "0-1"}\n'},
        "list_as_json": {"dev.json": "[1]\n"},
        "deep_json": {"dev.json": "[" * 10_000 + "\n"},
        "number_as_label": {
            "dev.json": '{"identifier": "0", "sentence": "a", "label": 1}\n'
        },
        "list_as_label": {
            "dev.json": '{"identifier": "0", "sentence": "a", "label": []}\n'
        },
        "no_images": {"images_dev.tar.gz": None},
        "empty_images": {"images_dev.tar.gz": b""},
        "binary_images": {"images_dev.tar.gz": BINARY},
        "truncated_images": {"images_dev.tar.gz": archive[: len(archive) // 2]},
        "no_pictures": {"images_dev.tar.gz": no_picture},
    }
    yield Call(
        "datasets.read_nlvr",
        datasets.read_nlvr,
        kinds(
            folder=_folders(folder / "read_nlvr", files, damaged),
            split=choice("dev"),
            height=limited(5),
            label=flag(True),
            on_bad_lines=_bad_lines(),
        ),
        errors=(datasets.DataFileError,),
    )


WAV = wav_bytes([[0], [100], [-100]])
DAMAGED_WAVS = {
    "empty_wav": b"",
    "binary_wav": BINARY,
    "truncated_wav": WAV[:-1],
    "header_only": WAV[:44],
    "no_channels": WAV[:22] + b"\0\0" + WAV[24:],
    "no_width": WAV[:34] + b"\0\0" + WAV[36:],
    "no_rate": WAV[:24] + b"\0\0\0\0" + WAV[28:],
    "compressed": WAV[:20] + b"\2\0" + WAV[22:],
    "three_channels": wav_bytes([[0, 1, 2]]),
}


def _read_wav(folder):
    place = folder / "read_wav"
    files = {
        label: _file(place, f"{label}.wav", content)
        for label, content in DAMAGED_WAVS.items()
    }
    file = path(_file(place, "a.wav", WAV))
    file = file.plus(missing=place / "none", folder=place, **files)
    yield Call(
        "datasets.read_wav",
        datasets.read_wav,
        kinds(path=file),
        errors=(datasets.DataFileError,),
    )


def _read_wav_folder(folder):
    name = "7_ann_1.wav"
    damaged = {
        **{label: {name: wav} for label, wav in DAMAGED_WAVS.items()},
        "no_name": {name: None, "seven.wav": WAV},
        "corrupt_archive": {"a.tar.gz": BINARY},
        "empty_transcripts": {"transcripts.tsv": ""},
        "binary_transcripts": {"transcripts.tsv": BINARY},
        "no_tab": {"transcripts.tsv": "7_ann_1 seven\n"},
        "unknown_name": {"transcripts.tsv": "8_ann_1\teight\n"},
        "repeated": {"transcripts.tsv": "7_ann_1\tseven\n" * 2},
        "two_transcripts": {"transcripts.tsv": "", "transcripts.txt": ""},
    }
    place = folder / "read_wav_folder"
    files = _folders(place, {name: WAV}, damaged)
    yield Call(
        "datasets.read_wav_folder",
        datasets.read_wav_folder,
        kinds(
            path=files.plus(
                wav_file=place / "valid" / name,
                corrupt_tar=_file(place, "a.tar", BINARY),
                empty_tar=_file(place, "b.tar.gz", b""),
            ),
            on_bad_lines=_bad_lines(),
        ),
        errors=(datasets.DataFileError,),
    )


def _column(valid):
    return title(valid).plus(unknown="body", empty="")


_SEQUENCES = {
    "length": size(6).plus(huge=10**9),
    "min_length": size(2).plus(huge=10**9, long=7).optional(),
    "num_symbols": size(10).plus(huge=10**9),
}


CALLS = {
    "AlignedPair": WORDS,
    "Answer": WORDS,
    "BadLine": "a plain tuple that readers pass to `on_bad_lines`",
    "CaptionCheck": "a plain tuple that `check_caption` returns",
    "CaptionedImages": ARRAYS,
    "ClutteredDigits": ARRAYS,
    "DataFileError": "an exception that readers raise",
    "DialogueTurn": WORDS,
    "DisfluentQuestion": WORDS,
    "EntailmentPair": WORDS,
    "HandwrittenDigits": ARRAYS,
    "LabeledSentence": WORDS,
    "Misspelling": WORDS,
    "MorseMessage": ARRAYS,
    "NumberComparisons": ARRAYS,
    "PronounSentence": WORDS,
    "Question": WORDS,
    "RecallSequences": ARRAYS,
    "Recording": ARRAYS,
    "SHOWCASE_PAIRS": "a constant, a tuple of pairs",
    "SceneObject": WORDS,
    "Scenes": ARRAYS,
    "SentencePair": WORDS,
    "SequencePairs": ARRAYS,
    "Slot": WORDS,
    "TaggedSentence": WORDS,
    "TranslationPair": WORDS,
    "check_caption": _check_caption,
    "encode_morse": _encode_morse,
    "group_references": _group_references,
    "load_handwritten_digits": _with_split(
        "load_handwritten_digits", "sklearn"
    ),
    "make_aligned_pairs": _generator(
        "make_aligned_pairs",
        also={
            "n, more than exist": ({"n": 10**6, "max_phrases": 1}, "n"),
            "max_phrases, too small": ({"min_phrases": 4}, "max_phrases"),
        },
        min_phrases=limited(1),
        max_phrases=limited(3),
    ),
    "make_cluttered_digits": _generator(
        "make_cluttered_digits",
        also={"size, below that of the digits": ({"size": 7}, "size")},
        size=limited(20),
        distractors=limited(2, 0),
        distractor_size=limited(4),
        spread=number(1.0, 0, 1),
        digits=_digits(),
    ),
    "make_comparison_task": _generator(
        "make_comparison_task", num_digits=limited(3).plus(large=10)
    ),
    "make_copy_task": _generator("make_copy_task", **_SEQUENCES),
    "make_dialogues": _generator("make_dialogues"),
    "make_digit_audio": _generator(
        "make_digit_audio",
        also={"min_digits, above": ({"min_digits": 2}, "min_digits")},
        min_digits=limited(1),
        max_digits=limited(1).plus(large=101),
        snr=_range(20.0, -40, 100),
    ),
    "make_disfluent_questions": _generator("make_disfluent_questions"),
    "make_documents": _generator("make_documents"),
    "make_entailment_pairs": _generator("make_entailment_pairs"),
    "make_labeled_sentences": _generator("make_labeled_sentences"),
    "make_lookup_task": _generator(
        "make_lookup_task",
        also={"num_pairs, above": ({"num_pairs": 13}, "num_pairs")},
        num_pairs=size(6).plus(huge=10**9),
        num_keys=size(12).plus(huge=10**9),
        num_values=size(8).plus(huge=10**9),
    ),
    "make_misspellings": _generator(
        "make_misspellings",
        also={
            "split, with words": (
                {"split": "test", "words": ["word"]},
                ("split", "words"),
            ),
        },
        words=_words(None).optional(),
        unchanged_rate=number(0.0, 0, 1),
    ),
    "make_morse_audio": _generator(
        "make_morse_audio",
        max_seconds=positive(6.0).plus(
            short=1.0, long=1e6, huge=1e300, giant=2**2000
        ),
        wpm=_range(20.0, 1, 100),
        frequency=_range(600.0, 100, 3900),
        snr=_range(6.0, -40, 100),
    ),
    "make_pronoun_sentences": _generator("make_pronoun_sentences"),
    "make_questions": _generator(
        "make_questions", unanswerable_rate=number(0.3, 0, 1).plus(one=1.0)
    ),
    "make_recall_task": _generator(
        "make_recall_task",
        length=size(6).plus(one=1, huge=10**9),
        num_symbols=size(8).plus(huge=10**9),
        num_distractors=size(26).plus(huge=10**9),
    ),
    "make_reversal_task": _generator("make_reversal_task", **_SEQUENCES),
    "make_scenes": _generator("make_scenes", size=limited(16, 16)),
    "make_sentence_pairs": _generator("make_sentence_pairs"),
    "make_sorting_task": _generator(
        "make_sorting_task",
        also={
            "length, more than num_symbols": (
                {"length": 11},
                ("length", "num_symbols"),
            ),
            "split, of one set": (
                {"num_symbols": 6, "min_length": 6, "split": "test"},
                "split",
            ),
        },
        max_mask_rate=number(0.0, 0, 1),
        **_SEQUENCES,
    ),
    "make_tagged_sentences": _generator(
        "make_tagged_sentences", tags=choice("upos")
    ),
    "make_translation_pairs": _generator("make_translation_pairs"),
    "misspell": _misspell,
    "read_captions": _read_captions,
    "read_classification_csv": _reader(
        "read_classification_csv",
        "a.csv",
        "text,label,other\na,b,c\n",
        {
            "suffix": ("a.txt", "text,label,other\na,b,c\n"),
            "header_only": "text,label,other\n",
            "no_label": "text,other\na,b\n",
            "short_row": "text,label,other\na,b\n",
            "long_row": "text,label,other\na,b,c,d\n",
            "blank_label": "text,label,other\na, ,c\n",
            "open_quote": 'text,label,other\n"a,b,c\n',
            "long_field": f"text,label,other\n{'a' * 200_000},b,c\n",
        },
        text_column=_column("text"),
        label_column=_column("label"),
        text_pair_column=_column("other").optional(),
        on_bad_lines=_bad_lines(),
    ),
    "read_conll_bio": _reader(
        "read_conll_bio",
        "a.conll",
        "Ann\tB-person\nsings\tO\n",
        {
            "no_tag": "Ann\n",
            "other_tag": "Ann\tperson\n",
            "no_sentence": "-DOCSTART- O\n\n",
        },
        on_bad_lines=_bad_lines(),
    ),
    "read_conllu": _reader(
        "read_conllu",
        "a.conllu",
        "1\tDogs\tdog\tNOUN\tNNS\t_\t_\t_\t_\t_\n",
        {
            "few_columns": "1\tDogs\tdog\n",
            "no_id": "Dogs\tDogs\tdog\tNOUN\tNNS\n",
            "comments_only": "# text = a\n",
        },
        tags=choice("upos"),
        on_bad_lines=_bad_lines(),
    ),
    "read_disfl_qa": _json_reader(
        "read_disfl_qa",
        {"a": {"disfluent": "b", "original": "c"}},
        {
            "no_original": {"a": {"disfluent": "b"}},
            "number": {"a": {"disfluent": "b", "original": 3}},
            "list": {"a": ["b", "c"]},
            "texts": {"a": "b"},
        },
    ),
    "read_documents": _reader(
        "read_documents",
        "a.txt",
        "It rains.\n\nHello!\n",
        {"blank": "\n \n", "no_comments": ("a.conllu", "1\tDogs\n")},
        on_bad_lines=_bad_lines(),
    ),
    "read_lines": _reader(
        "read_lines",
        "a.txt",
        "Go.\n",
        accepted=("empty_file",),
        on_bad_lines=_bad_lines(),
    ),
    "read_misspellings": _reader(
        "read_misspellings",
        "a.txt",
        "becuase->because\n",
        {
            "no_arrow": "becuase because\n",
            "no_correction": "becuase->\n",
            "corrections": "abd->and, bad,\n",
        },
        on_bad_lines=_bad_lines(),
    ),
    "read_nlvr": _read_nlvr,
    "read_parallel": _read_parallel,
    "read_restaurants8k": _json_reader(
        "read_restaurants8k",
        _turn(),
        {
            "no_input": _turn(userInput=None),
            "number_as_text": _turn(words=3),
            "no_context": _turn(context=None),
            "number_as_requested": _turn(context={"requestedSlots": 3}),
            "text_as_requested": _turn(context={"requestedSlots": "time"}),
            "numbers_as_requested": _turn(context={"requestedSlots": [3]}),
            "object_as_labels": _turn(labels={"slot": "time"}),
            "nulls_as_labels": _turn(labels=[None]),
            "number_as_slot": _turn(slot=3),
            "outside": _turn(span=(3, 9)),
            "empty_span": _turn(span=(3, 3)),
            "negative": _turn(span=(-2, 4)),
            "fraction": _turn(span=(3.0, 4.0)),
            "bool": _turn(span=(True, 4)),
            "texts_as_span": _turn(span=("3", "4")),
            "nulls_as_span": _turn(span=(None, None)),
        },
    ),
    "read_squad": _json_reader(
        "read_squad",
        _squad(),
        {
            "number_as_context": _squad(3),
            "number_as_question": _squad(question=3),
            "no_answers": _squad(answers=[]),
            "nulls_as_answers": _squad(answers=[None]),
            "text_as_impossible": _squad(is_impossible="false"),
            "empty_answer": _squad(text=""),
            "list_as_answer": _squad(text=["in Oslo"]),
            "elsewhere": _squad(answer_start=8),
            "negative": _squad(answer_start=-8),
            "fraction": _squad(answer_start=9.0),
            "bool": _squad("Iin Oslo.", answer_start=True),
            "null": _squad(answer_start=None),
            "huge": _squad(answer_start=2**70),
        },
    ),
    "read_tsv_pairs": _reader(
        "read_tsv_pairs",
        "a.tsv",
        "Go.\tVe.\n",
        {
            "no_tab": "Go. Ve.\n",
            "blank": "\n\n",
            "blank_target": "Go.\t \n",
            "binary_in_zip": ("a.zip", _zip("a.tsv", BINARY)),
        },
        on_bad_lines=_bad_lines(),
    ),
    "read_wav": _read_wav,
    "read_wav_folder": _read_wav_folder,
    "reference_streams": _reference_streams,
    "report_bad_lines": _report,
    "slot_questions": _slot_questions,
    "spelling_words": _with_split("spelling_words"),
    "split_by_hash": _split_by_hash,
    "word_stem": _word_stem,
    "write_squad": _write_squad,
}
