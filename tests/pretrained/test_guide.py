"""The code of docs/guides/pretrained.md, with small random folders."""

import json
import pathlib

import keras
import numpy as np
import pytest

from keras_attn import text
from tests.helpers.examples import blocks
from tests.pretrained import hugging_face

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.one_backend("torch")

GUIDE = pathlib.Path(__file__).parents[2] / "docs/guides/pretrained.md"
LINES = ["a fine film", "i left after an hour", "the dog sleeps ."] * 5


def bert(folder):
    tokenizer = text.WordPieceTokenizer.train_from_lines(LINES, 60)
    config = transformers.BertConfig(
        vocab_size=tokenizer.vocabulary_size,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=12,
    )
    transformers.BertForPreTraining(config).save_pretrained(folder)
    tokenizer.save(folder)


def gpt2(folder):
    tokenizer = text.BytePairTokenizer.train_from_lines(LINES, 270)
    end = tokenizer.end_id
    config = transformers.GPT2Config(
        vocab_size=tokenizer.vocabulary_size,
        n_embd=8,
        n_layer=1,
        n_head=2,
        bos_token_id=end,
        eos_token_id=end,
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save(folder)


def llama(folder):
    tokenizer = text.BytePairTokenizer.train_from_lines(LINES, 270)
    end = tokenizer.end_id
    config = transformers.LlamaConfig(
        vocab_size=tokenizer.vocabulary_size,
        hidden_size=8,
        intermediate_size=12,
        num_hidden_layers=1,
        num_attention_heads=2,
        bos_token_id=end,
        eos_token_id=end,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save(folder)


def chat(folder):
    llama(folder)
    template = (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    )
    (folder / "chat_template.jinja").write_text(template, "utf-8")


def modernbert(folder):
    config = transformers.ModernBertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=12,
        pad_token_id=1,
    )
    transformers.ModernBertForMaskedLM(config).save_pretrained(folder)


def xlm_roberta(folder):
    config = transformers.XLMRobertaConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=12,
    )
    transformers.XLMRobertaForMaskedLM(config).save_pretrained(folder)


def marian(folder):
    hugging_face.marian(max_position_embeddings=160).save_pretrained(folder)
    trained = text.UnigramTokenizer.train_from_lines(
        LINES, 40, tokenizer_class="XLNetTokenizer"
    )
    trained.save(folder)
    model = (folder / "spiece.model").read_bytes()
    for name in ("spiece.model", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(model)
    others = [t for t in trained.vocabulary if t not in ("</s>", "<pad>")]
    tokens = dict.fromkeys(["</s>", "<unk>", *others])
    tokens = [*tokens][: hugging_face.PAD]
    ids = {token: i for i, token in enumerate([*tokens, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(ids), "utf-8")


def vit(folder):
    config = transformers.ViTConfig(
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=12,
        image_size=32,
    )
    transformers.ViTForImageClassification(config).save_pretrained(folder)


# The heads of BERT's pre-training, and a classifier of images.
@pytest.mark.filterwarnings("ignore:model.safetensors holds tensors of heads")
def test_the_code_of_the_guide(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, make in (
        ("bert-base-uncased", bert),
        ("gpt2", gpt2),
        ("ModernBERT-base", modernbert),
        ("opus-mt-en-de", marian),
        ("vit-base-patch16-224", vit),
        ("SmolLM2-135M", llama),
        ("SmolLM2-135M-Instruct", chat),
        ("xlm-roberta-base", xlm_roberta),
    ):
        make(tmp_path / name)
    page = GUIDE.read_text(encoding="utf-8")
    names = {"__name__": "__main__"}
    written = []
    for code in blocks("python", page):
        exec(compile(code, GUIDE.name, "exec"), names)
        if "logits = theirs" in code:
            model, inputs = names["model"], names["inputs"]
            written.append(model)
            np.testing.assert_allclose(
                keras.ops.convert_to_numpy(model(inputs)),
                names["logits"].detach().numpy(),
                atol=1e-5,
            )
            np.testing.assert_array_equal(
                inputs["token_ids"], names["rows"]["input_ids"]
            )
    assert len(written) == 1
    assert names["decoded"].tokens.shape == (1, 1, 128)
