"""Folders of published tokenizers: compared with transformers."""

import json

import numpy as np
import pytest
import sentencepiece
import tokenizers
import transformers

from keras_attn.text import (
    BytePairTokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
    load_tokenizer,
    subword_model,
)
from tests.text.tokenizer_texts import scripts, texts, training_lines

pytestmark = [
    pytest.mark.one_backend,
    pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses"),
]


def lines():
    return training_lines()


def write(folder, **files):
    """Writes JSON files, or text and bytes; `a__b` is the file a.b."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8", newline="\n")
        else:
            path.write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The classic files of each kind."""
    folder = tmp_path_factory.mktemp("trained")
    found = {
        "cased": WordPieceTokenizer.train_from_lines(
            lines(), 6000, do_lower_case=False
        ),
        "uncased": WordPieceTokenizer.train_from_lines(lines(), 6000),
        "bpe": BytePairTokenizer.train_from_lines(lines(), 3000),
        "t5": UnigramTokenizer.train_from_lines(
            lines(), 3500, character_coverage=0.99
        ),
        "xlnet": UnigramTokenizer.train_from_lines(
            lines(),
            3500,
            tokenizer_class="XLNetTokenizer",
            character_coverage=0.99,
        ),
    }
    for name, tokenizer in found.items():
        tokenizer.save(folder / name)
    return folder


def bert_4(folder, trained):
    """As transformers 4 wrote a slow BertTokenizer with two new tokens."""
    vocab = (trained / "cased" / "vocab.txt").read_text("utf-8")
    size = vocab.count("\n")
    return write(
        folder,
        vocab__txt=vocab,
        added_tokens__json={"<new>": size, "[E1]": size + 1},
        special_tokens_map__json={
            "unk_token": "[UNK]",
            "sep_token": "[SEP]",
            "pad_token": "[PAD]",
            "cls_token": "[CLS]",
            "mask_token": "[MASK]",
            "additional_special_tokens": ["[E1]"],
        },
        tokenizer_config__json={
            "do_lower_case": False,
            "do_basic_tokenize": True,
            "never_split": None,
            "strip_accents": True,
            "tokenize_chinese_chars": False,
            "model_max_length": 512,
            "tokenizer_class": "BertTokenizer",
        },
    )


def bert_bare(folder, trained):
    return write(
        folder,
        vocab__txt=(trained / "uncased" / "vocab.txt").read_bytes(),
        config__json={"model_type": "bert"},
    )


def bert_4_decoder(folder, trained):
    """As transformers 4.34 and later wrote it, with `added_tokens_decoder`."""
    vocab = (trained / "uncased" / "vocab.txt").read_text("utf-8")
    flags = dict.fromkeys(["lstrip", "rstrip", "single_word"], False)
    flags |= {"normalized": False, "special": True}
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    decoder = {str(i): {"content": t, **flags} for i, t in enumerate(names)}
    new = {**flags, "normalized": True, "special": False, "lstrip": True}
    decoder[str(vocab.count("\n"))] = {"content": "<new>", **new}
    return write(
        folder,
        vocab__txt=vocab,
        tokenizer_config__json={
            "added_tokens_decoder": decoder,
            "additional_special_tokens": [],
            "clean_up_tokenization_spaces": True,
            "do_lower_case": True,
            "tokenizer_class": "BertTokenizer",
            **dict(zip(["pad_token", "unk_token"], names, strict=False)),
        },
    )


def saved(name, kind, **options):
    """A folder that transformers 5 writes."""

    def make(folder, trained):
        theirs = getattr(transformers, name).from_pretrained(
            trained / kind, **options
        )
        theirs.add_tokens(["<new>"])
        theirs.save_pretrained(folder)
        return folder

    return make


def gpt2_4(folder, trained):
    return write(
        folder,
        vocab__json=(trained / "bpe" / "vocab.json").read_bytes(),
        merges__txt=(trained / "bpe" / "merges.txt").read_bytes(),
        special_tokens_map__json={
            "bos_token": "<|endoftext|>",
            "eos_token": "<|endoftext|>",
            "unk_token": "<|endoftext|>",
            "pad_token": {
                "content": "<pad>",
                "lstrip": False,
                "normalized": True,
                "rstrip": False,
                "single_word": False,
            },
        },
        added_tokens__json={"<pad>": 3000, "<new>": 3001},
        tokenizer_config__json={
            "add_prefix_space": True,
            "errors": "replace",
            "tokenizer_class": "GPT2Tokenizer",
        },
    )


def gpt2_bare(folder, trained):
    return write(
        folder,
        vocab__json=(trained / "bpe" / "vocab.json").read_bytes(),
        merges__txt=(trained / "bpe" / "merges.txt").read_bytes(),
        config__json={"model_type": "gpt2"},
        tokenizer_config__json={"pad_token": "<|endoftext|>"},
    )


def roberta_4(folder, trained):
    vocab = json.loads((trained / "bpe" / "vocab.json").read_text("utf-8"))
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    vocab = {t: i for i, t in enumerate([*special, *vocab, "<mask>"])}
    mask = {"content": "<mask>", "lstrip": True, "rstrip": False}
    mask |= {"single_word": False, "normalized": False}
    return write(
        folder,
        vocab__json=vocab,
        merges__txt=(trained / "bpe" / "merges.txt").read_bytes(),
        special_tokens_map__json={
            "bos_token": "<s>",
            "eos_token": "</s>",
            "mask_token": mask,
            "pad_token": "<pad>",
        },
        tokenizer_config__json={"tokenizer_class": "BartTokenizer"},
    )


def any_bpe(folder, trained):
    """A tokenizer.json of another class, with spaces as ▁ and bytes."""
    library = tokenizers
    engine = library.Tokenizer(
        library.models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True)
    )
    engine.normalizer = library.normalizers.Sequence(
        [
            library.normalizers.Prepend("▁"),
            library.normalizers.Replace(" ", "▁"),
        ]
    )
    engine.decoder = library.decoders.Sequence(
        [
            library.decoders.Replace("▁", " "),
            library.decoders.ByteFallback(),
            library.decoders.Fuse(),
            library.decoders.Strip(" ", 1, 0),
        ]
    )
    bytes_ = [f"<0x{i:02X}>" for i in range(256)]
    trainer = library.trainers.BpeTrainer(
        vocab_size=2500,
        special_tokens=["<unk>", "<s>", "</s>", *bytes_],
        show_progress=False,
        limit_alphabet=600,
    )
    engine.train_from_iterator(lines(), trainer)
    values = json.loads(engine.to_str())
    values["added_tokens"] = values["added_tokens"][:3]
    engine = library.Tokenizer.from_str(json.dumps(values))
    engine.post_processor = library.processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_object=engine,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        extra_special_tokens={"new_token": "<new>"},
    )
    theirs.save_pretrained(folder)
    return folder


def any_unigram(folder, trained):
    """A tokenizer.json of another class, without a tokenizer_config.json."""
    definition = json.loads(
        (trained / "t5" / "tokenizer.json").read_text("utf-8")
    )
    definition["pre_tokenizer"] = {
        "type": "Metaspace",
        "replacement": "▁",
        "prepend_scheme": "first",
        "split": False,
    }
    return write(
        folder,
        tokenizer__json=definition,
        tokenizer_config__json={
            "tokenizer_class": "PreTrainedTokenizerFast",
            "pad_token": "<pad>",
            "additional_special_tokens": ["<new>"],
        },
    )


def unigram_5(name, special):
    """A folder of a class that has a tokenizer.json alone."""

    def make(folder, trained):
        path = trained / "xlnet" / "tokenizer.json"
        vocab = json.loads(path.read_text("utf-8"))["model"]["vocab"]
        first = [(token, 0.0) for token in special.split()]
        pieces = first + [(p, x) for p, x in vocab if p not in dict(first)]
        theirs = getattr(transformers, name)(vocab=pieces)
        theirs.add_tokens(["<new>"])
        theirs.save_pretrained(folder)
        return folder

    return make


def t5_4(folder, trained):
    extra = [f"<extra_id_{i}>" for i in range(20)]
    return write(
        folder,
        spiece__model=(trained / "t5" / "spiece.model").read_bytes(),
        special_tokens_map__json={
            "additional_special_tokens": extra,
            "eos_token": "</s>",
            "pad_token": "<pad>",
            "unk_token": "<unk>",
        },
        tokenizer_config__json={
            "additional_special_tokens": extra,
            "extra_ids": 20,
            "eos_token": "</s>",
            "legacy": True,
            "sp_model_kwargs": {},
            "tokenizer_class": "T5Tokenizer",
        },
    )


def t5_bare(folder, trained):
    return write(
        folder,
        spiece__model=(trained / "t5" / "spiece.model").read_bytes(),
        config__json={"model_type": "t5"},
    )


def xlnet_4(folder, trained):
    mask = {"__type": "AddedToken", "content": "<mask>", "lstrip": True}
    mask |= {"rstrip": False, "single_word": False, "normalized": True}
    return write(
        folder,
        spiece__model=(trained / "xlnet" / "spiece.model").read_bytes(),
        tokenizer_config__json={
            "additional_special_tokens": ["<eop>", "<eod>"],
            "do_lower_case": True,
            "keep_accents": False,
            "mask_token": mask,
            "remove_space": True,
            "tokenizer_class": "XLNetTokenizer",
        },
    )


def marian(folder, trained):
    special = {"pad_id": -1, "eos_id": 1, "unk_id": 2, "bos_id": 0}
    files, pieces = {}, {}
    for name, part in (("source", lines()[::2]), ("target", lines()[1::2])):
        model = subword_model.learn_unigram(part, 2500, 0.99, special)
        files[f"{name}__spm"] = model
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        pieces |= dict.fromkeys(
            processor.id_to_piece(i)
            for i in range(3, processor.get_piece_size())
            # Published vocabularies leave out the rarest pieces.
            if i % 50
        )
    names = ["</s>", "<unk>", *pieces, ">>fr<<", "<pad>"]
    return write(
        folder,
        **files,
        vocab__json={token: i for i, token in enumerate(names)},
        special_tokens_map__json={
            "eos_token": "</s>",
            "pad_token": "<pad>",
            "unk_token": "<unk>",
        },
        tokenizer_config__json={
            "source_lang": "en",
            "target_lang": "fr",
            "tokenizer_class": "MarianTokenizer",
        },
    )


def modernbert(folder, trained):
    """As published: byte-level BPE in the frame of BERT."""
    library, special = tokenizers, ["[UNK]", "[CLS]", "[SEP]", "[PAD]"]
    vocab = json.loads((trained / "bpe" / "vocab.json").read_text("utf-8"))
    merges = (trained / "bpe" / "merges.txt").read_text("utf-8")
    merges = [tuple(line.split()) for line in merges.splitlines()[1:]]
    engine = library.Tokenizer(library.models.BPE(vocab, merges))
    engine.normalizer = library.normalizers.NFC()
    engine.pre_tokenizer = library.pre_tokenizers.ByteLevel(False)
    engine.decoder = library.decoders.ByteLevel()
    added = library.AddedToken
    engine.add_tokens([added("|||IP_ADDRESS|||"), added("[unused0]")])
    engine.add_tokens([added(" " * count) for count in range(8, 1, -1)])
    engine.add_special_tokens([added(name) for name in special])
    mask = added("[MASK]", lstrip=True, normalized=False)
    engine.add_special_tokens([mask])
    frame = {name: engine.token_to_id(name) for name in special[1:3]}
    engine.post_processor = library.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=list(frame.items()),
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=engine,
        **{f"{name[1:-1].lower()}_token": name for name in special},
        mask_token=mask,
        clean_up_tokenization_spaces=True,
        model_input_names=["input_ids", "attention_mask"],
    ).save_pretrained(folder)
    return write(folder, config__json={"model_type": "modernbert"})


FORMATS = {
    "BertTokenizer of version 4": bert_4,
    "BertTokenizer, vocab.txt": bert_bare,
    "BertTokenizer, added_tokens_decoder": bert_4_decoder,
    "BertTokenizer of version 5": saved("BertTokenizer", "uncased"),
    "DistilBertTokenizer of version 5": saved(
        "DistilBertTokenizer", "cased", do_lower_case=False
    ),
    "GPT2Tokenizer of version 4": gpt2_4,
    "GPT2Tokenizer, vocab.json": gpt2_bare,
    "GPT2Tokenizer of version 5": saved(
        "GPT2Tokenizer", "bpe", pad_token="<pad>"
    ),
    "RobertaTokenizer of version 4": roberta_4,
    "T5Tokenizer of version 4": t5_4,
    "T5Tokenizer, spiece.model": t5_bare,
    "T5Tokenizer of version 5": saved("T5Tokenizer", "t5"),
    "XLNetTokenizer of version 4": xlnet_4,
    "XLNetTokenizer of version 5": saved("XLNetTokenizer", "xlnet"),
    "AlbertTokenizer of version 5": unigram_5(
        "AlbertTokenizer", "<pad> <unk> [CLS] [SEP] [MASK]"
    ),
    "XLMRobertaTokenizer of version 5": unigram_5(
        "XLMRobertaTokenizer", "<s> <pad> </s> <unk>"
    ),
    "MarianTokenizer": marian,
    "ModernBERT": modernbert,
    "tokenizer.json with a BPE model": any_bpe,
    "tokenizer.json with a unigram model": any_unigram,
}


# Compared on a fifth of the texts, to save time: others of the same model have
# them all.
SHORTER = {
    "AlbertTokenizer of version 5",
    "BertTokenizer of version 5",
    "BertTokenizer, added_tokens_decoder",
    "BertTokenizer, vocab.txt",
    "DistilBertTokenizer of version 5",
    "GPT2Tokenizer of version 5",
    "GPT2Tokenizer, vocab.json",
    "ModernBERT",
    "T5Tokenizer of version 5",
    "T5Tokenizer, spiece.model",
    "XLMRobertaTokenizer of version 5",
    "XLNetTokenizer of version 5",
}
# Those that put a token before a text.
ROW_STARTS = (
    *("Albert", "Bert", "DistilBert", "ModernBERT", "Roberta", "XLMRoberta"),
    "tokenizer.json with a BPE",
)


def test_the_texts_have_many_scripts():
    assert len(texts()) >= 20_000
    assert len(scripts(texts()) - {"?"}) >= 20
    assert max(map(len, texts())) > 100


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_ids_offsets_and_texts(name, trained, tmp_path):
    folder = FORMATS[name](tmp_path / "given", trained)
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ours = load_tokenizer(folder)
    assert ours.vocabulary_size == len(theirs)
    check_special_ids(ours, theirs)
    given = texts()[:: 5 if name in SHORTER else 1]
    options = {"return_offsets_mapping": True} if theirs.is_fast else {}
    expected = theirs(given, return_attention_mask=False, **options)
    rows = expected["input_ids"]
    added = theirs([""])["input_ids"][0]
    first = len(added[:1]) if name.startswith(ROW_STARTS) else 0
    last = len(added) - first
    bare = [row[first : len(row) - last] for row in rows]
    found = ours.encode_batch(given)
    wrong = [
        (text, mine, other)
        for text, mine, other in zip(given, found, bare, strict=True)
        if mine != other
    ]
    assert not wrong, (len(wrong), wrong[:2])
    unknown = sum(row.count(ours.unknown_id) for row in bare)
    assert unknown < 0.3 * sum(map(len, bare))
    if theirs.is_fast:
        check_offsets(ours, given, rows, expected["offset_mapping"])
    for skip, part in ((True, rows), (False, rows[::10])):
        mine = ours.decode(part, skip_special_tokens=skip)
        assert mine == theirs.batch_decode(part, skip_special_tokens=skip)
    check_saved(ours, theirs, given[:400], rows[:400], tmp_path / "saved")


def test_albert_has_segments(trained, tmp_path):
    given, saved = tmp_path / "given", tmp_path / "saved"
    FORMATS["AlbertTokenizer of version 5"](given, trained)
    load_tokenizer(given).save(saved)
    for folder in given, saved:
        rows = load_tokenizer(folder).pack(["a"], ["b"])
        first = int(rows["segment_ids"].argmax())
        assert rows["segment_ids"][0, first:].all()
        assert rows["token_ids"][0, first - 1] == rows["token_ids"][0, -1]
    theirs = transformers.AutoTokenizer.from_pretrained(saved)
    expected = theirs("a", "b")["token_type_ids"]
    assert rows["segment_ids"][0].tolist() == expected


def test_modernbert_has_no_segments(trained, tmp_path):
    modernbert(tmp_path, trained)
    rows = load_tokenizer(tmp_path).pack(["a [MASK]"], ["b  c"])
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert rows.keys() == {"token_ids"}
    expected = theirs("a [MASK]", "b  c")["input_ids"]
    assert rows["token_ids"][0].tolist() == expected


def check_saved(ours, theirs, given, rows, folder):
    """`save` writes a folder that both libraries load."""
    ours.save(folder)
    again = transformers.AutoTokenizer.from_pretrained(folder)
    assert len(again) == len(theirs)
    assert again(given)["input_ids"] == rows
    loaded = load_tokenizer(folder)
    assert type(loaded) is type(ours)
    assert loaded.encode_batch(given) == ours.encode_batch(given)
    assert loaded.special_ids == ours.special_ids
    mine = ours.decode(rows)
    assert mine == again.batch_decode(rows, skip_special_tokens=True)
    assert mine == loaded.decode(rows)


def check_special_ids(ours, theirs):
    assert {*ours.special_ids} >= {*theirs.all_special_ids}
    others = {
        getattr(theirs, f"{n}_token_id")
        for n in ("bos", "eos", "unk", "sep", "cls", "mask")
    }
    pad = theirs.pad_token_id
    assert ours.pad_id == (None if pad in others else pad)
    assert ours.unknown_id == theirs.unk_token_id
    assert ours.mask_id == theirs.mask_token_id


def check_offsets(ours, given, rows, offsets):
    """`pack` in batches of texts of similar lengths, to pad little."""
    order = np.argsort([len(row) for row in rows], kind="stable")
    step = 500 if ours.pad_id is not None else 1
    if step == 1:
        order = order[::20]
    for begin in range(0, len(order), step):
        part = order[begin : begin + step]
        packed = ours.pack([given[i] for i in part], return_offsets=True)
        ids, spans = packed["token_ids"], packed["offsets"]
        sizes = np.array([len(rows[i]) for i in part])
        inside = np.arange(ids.shape[1]) < sizes[:, None]
        if ours._padding_side == "left":
            inside = inside[:, ::-1]
        assert ids[inside].tolist() == [t for i in part for t in rows[i]]
        expected = np.array([o for i in part for o in offsets[i]])
        np.testing.assert_array_equal(spans[inside], expected.reshape(-1, 2))
