"""examples/chat.py: turns, templates and what does not fit."""

import json
import runpy

import keras
import pytest
import tokenizers
import transformers

from keras_attn import layers, models, pretrained
from keras_attn.text import load_tokenizer
from tests.helpers.programs import ROOT, run

pytestmark = pytest.mark.one_backend

SPECIAL = "<s>", "<|start|>", "<|end|>"
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "<|start|>{{ m.role }}\n{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
CONTEXT = 192


def tokenizer(path, template=None):
    """Writes a tokenizer of bytes, with a chat template or without."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    names = [*SPECIAL, *alphabet]
    engine = tokenizers.Tokenizer(
        tokenizers.models.BPE({name: i for i, name in enumerate(names)}, [])
    )
    engine.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(False)
    engine.decoder = tokenizers.decoders.ByteLevel()
    engine.post_processor = tokenizers.processors.TemplateProcessing(
        "<s> $A", special_tokens=[("<s>", 0)]
    )
    written = transformers.PreTrainedTokenizerFast(
        tokenizer_object=engine,
        bos_token="<s>",
        eos_token="<|end|>",
        extra_special_tokens=["<|start|>"],
    )
    written.chat_template = template
    written.save_pretrained(path)
    return len(names)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A Llama with a chat template, and one without."""
    folder = tmp_path_factory.mktemp("chat")
    for name, template in (("chat", TEMPLATE), ("base", None)):
        size = tokenizer(folder / name, template)
        keras.utils.set_random_seed(0)
        model = models.GPT(
            size,
            num_layers=1,
            num_heads=2,
            hidden_dim=16,
            max_sequence_length=CONTEXT,
            position_embedding=None,
            attention_position=layers.RotaryPosition(),
            normalization="rms_norm",
            use_bias=False,
            activation="silu",
            gated=True,
            pad_id=None,
            start_id=0,
            end_id=2,
        )
        for weight in model.trainable_weights:
            weight.assign(weight + keras.random.normal(weight.shape, seed=1))
        pretrained.save(model, folder / name)
    return folder


def answers(folder, *prompts, count=9):
    """Returns the text that the model generates greedily for each prompt."""
    model, text = pretrained.load(folder), load_tokenizer(folder)
    found = []
    for ids in prompts:
        tokens = model.generate([ids], count).tokens[0, 0]
        found.append(text.decode([t for t in tokens if t != 2]))
    return found


def chat(folder, *lines, options=(), status=0):
    return run(
        "chat",
        folder,
        *("--temperature", 0, "--max-new-tokens", 9),
        *options,
        stdin="".join(f"{line}\n" for line in lines),
        status=status,
    )


def conversation(*contents, system=None):
    """Alternates a user and the assistant."""
    first = [{"role": "system", "content": system}] if system else []
    return first + [
        {"role": ("user", "assistant")[i % 2], "content": content}
        for i, content in enumerate(contents)
    ]


def prompt(folder, *contents, system=None):
    return load_tokenizer(folder).apply_chat_template(
        conversation(*contents, system=system), add_generation_prompt=True
    )


def test_turns_equal_generation_from_the_whole_conversation(folders):
    folder = folders / "chat"
    kwargs = {"system": "Be brief."}
    (first,) = answers(folder, prompt(folder, "Hi", **kwargs))
    second, again = answers(
        folder,
        prompt(folder, "Hi", first, "A cat?", **kwargs),
        prompt(folder, "A cat?", **kwargs),
    )
    done = chat(
        folder,
        *("Hi", "", "A cat?", "/new", "A cat?"),
        options=("--system", "Be brief."),
    )
    assert done.stdout == f"{first}\n\n{second}\n\n{again}\n\n"
    assert "parameters. /new starts again" in done.stderr
    assert "tokens/s" in done.stderr.splitlines()[-1]


def test_a_model_without_a_template_continues_the_text(folders):
    folder = folders / "base"
    ids = load_tokenizer(folder).encode
    (first,) = answers(folder, [0, *ids("The cat")])
    (second,) = answers(folder, [0, *ids(f"The cat\n{first}\nsat")])
    done = chat(folder, "The cat", "sat")
    assert done.stdout == f"{first}\n\n{second}\n\n"
    done = chat(folder, options=("--system", "Be brief."), status=1)
    assert "`--system` needs a model with a chat template" in done.stderr


def test_old_messages_make_room(folders):
    folder = folders / "chat"
    long = "x" * 120
    (first,) = answers(folder, prompt(folder, long))
    (second,) = answers(folder, prompt(folder, long))
    done = chat(folder, long, "y" * CONTEXT, long)
    assert done.stdout == f"{first}\n\n{second}\n\n"
    assert "(The oldest messages no longer fit" in done.stderr
    assert "it must fit into the 192 tokens that the model can" in done.stderr


def test_a_message_is_read_once(folders, monkeypatch):
    """Except where the template changes what has been read."""
    program = runpy.run_path(str(ROOT / "examples" / "chat.py"))
    folder = folders / "chat"
    model = pretrained.load(folder)
    one = program["Chat"](model, load_tokenizer(folder))
    lengths, read = [], model.read

    def counted(rows, state=None):
        if rows is not None:
            lengths.append(len(rows[0]))
        return read(rows, state)

    monkeypatch.setattr(model, "read", counted)
    texts = ["".join(one.answer(text, 4, "greedy")) for text in ("Hi", "A")]
    before, after = (
        len(prompt(folder, *contents))
        for contents in (["Hi"], ["Hi", texts[0], "A"])
    )
    assert lengths == [before, after - before]
    one._messages[0]["content"] = "Ho"
    list(one.answer("B", 4, "greedy"))
    assert lengths[2] == len(prompt(folder, "Ho", texts[0], "A", texts[1], "B"))


def test_positions_that_depend_on_the_length_are_read_again(folders, tmp_path):
    folder = tmp_path / "dynamic"
    tokenizer(folder, TEMPLATE)
    pretrained.save(pretrained.load(folders / "chat"), folder)
    path = folder / "config.json"
    values = json.loads(path.read_text("utf-8"))
    values["max_position_embeddings"] = CONTEXT // 2
    values["rope_parameters"] = {
        "rope_theta": 10000.0,
        "rope_type": "dynamic",
        "factor": 2.0,
    }
    path.write_text(json.dumps(values), "utf-8")
    (first,) = answers(folder, prompt(folder, "Hi"))
    (second,) = answers(folder, prompt(folder, "Hi", first, "A cat?"))
    assert chat(folder, "Hi", "A cat?").stdout == f"{first}\n\n{second}\n\n"


def test_models_and_options_that_cannot_chat(folders, tmp_path):
    pretrained.save(
        models.Bert(
            11,
            max_sequence_length=6,
            num_layers=1,
            num_heads=1,
            hidden_dim=4,
            intermediate_dim=4,
        ),
        tmp_path,
    )
    assert (
        "decoder-only model. It has a Bert" in chat(tmp_path, status=1).stderr
    )
    done = run("chat", folders / "chat", "--max-new-tokens", 0, status=1)
    assert "`--max-new-tokens` must be at least 1" in done.stderr
    done = run("chat", tmp_path / "missing", status=1)
    assert "must be a folder with" in done.stderr
