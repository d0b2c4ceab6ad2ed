"""Chat templates: the texts and ids of transformers."""

import json
import shutil

import pytest
import tokenizers
import transformers

from keras_attn.text import BytePairTokenizer, load_tokenizer
from keras_attn.text.chat_template import rendered

pytestmark = pytest.mark.one_backend

# The forms that published templates have, each in its own words.
TEMPLATES = {
    "markers of roles": (
        "{%- for message in messages %}\n"
        "    {%- if loop.first and message['role'] != 'system' %}\n"
        "{{ '<|start|>system\\nBe brief.<|end|>\\n' }}\n"
        "    {%- endif %}\n"
        "{{ '<|start|>' + message['role'] + '\\n' + message['content'] }}\n"
        "{{- '<|end|>' + '\\n' }}\n"
        "{% endfor %}\n"
        "{% if add_generation_prompt %}{{ '<|start|>assistant\\n' }}{% endif %}"
    ),
    "system prompt in the first turn": (
        "{{ bos_token }}"
        "{% if messages[0].role == 'system' %}"
        "{% set rest = messages[1:] %}{% set system = messages[0].content %}"
        "{% else %}{% set rest, system = messages, none %}{% endif %}"
        "{% for message in rest %}"
        "{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('Roles must alternate') }}{% endif %}"
        "{% if message.role == 'user' %}"
        "[INST] {% if loop.first and system is not none %}<<{{ system }}>> "
        "{% endif %}{{ message.content | trim }} [/INST]"
        "{% else %} {{ message.content | trim }} {{ eos_token }}{% endif %}"
        "{% endfor %}"
    ),
    "generation, tools and loop controls": (
        "{% if tools %}{{ tools | tojson(indent=2) }}{% endif %}"
        "{% for m in messages %}"
        "{% if m.role == 'system' %}{% continue %}{% endif %}"
        "{% if m.role == 'assistant' %}{% generation %}"
        "{{ m.content + eos_token }}{% endgeneration %}"
        "{% else %}<|start|>{{ m.content }}<|end|>{% endif %}"
        "{% endfor %}{{ enable_thinking | default('absent') }}"
    ),
}
CONVERSATION = [
    {"role": "system", "content": "You like cats & “dogs”."},
    {"role": "user", "content": "  Who sleeps?\n"},
    {"role": "assistant", "content": "The cat: <|end|> é."},
    {"role": "user", "content": "And now?"},
]
TOOLS = [{"name": "look", "description": "Öffne <b>'it'</b>"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A byte-level BPE tokenizer without a template."""
    special = ["<s>", "</s>", "<|start|>", "<|end|>"]
    engine = tokenizers.Tokenizer(tokenizers.models.BPE())
    engine.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(False)
    engine.decoder = tokenizers.decoders.ByteLevel()
    engine.train_from_iterator(
        ["the cat sleeps and the dog sat on the mat, user assistant"] * 3,
        tokenizers.trainers.BpeTrainer(
            vocab_size=300,
            special_tokens=special,
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    path = tmp_path_factory.mktemp("tokenizer")
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=engine,
        bos_token="<s>",
        eos_token="</s>",
        extra_special_tokens=special[2:],
    ).save_pretrained(path)
    return path


def both(folder, path, template):
    """Returns the tokenizers of transformers and ours with a template."""
    shutil.copytree(folder, path)
    theirs = transformers.AutoTokenizer.from_pretrained(path)
    theirs.chat_template = template
    theirs.save_pretrained(path)
    return theirs, load_tokenizer(path)


@pytest.mark.parametrize("name", TEMPLATES)
def test_texts_and_ids_equal_those_of_transformers(name, folder, tmp_path):
    theirs, ours = both(folder, tmp_path / "theirs", TEMPLATES[name])
    assert ours.chat_template == TEMPLATES[name]
    ours.save(tmp_path / "ours")
    again = load_tokenizer(tmp_path / "ours")
    for kwargs in (
        {},
        {"add_generation_prompt": True},
        {"tools": TOOLS, "enable_thinking": False},
    ):
        for messages in CONVERSATION, CONVERSATION[1:2]:
            expected = theirs.apply_chat_template(
                messages, tokenize=False, **kwargs
            )
            for tokenizer in ours, again:
                assert expected == tokenizer.apply_chat_template(
                    messages, tokenize=False, **kwargs
                )
            assert (
                ours.apply_chat_template(messages, **kwargs)
                == theirs.apply_chat_template(messages, **kwargs)["input_ids"]
            )


def test_places_of_the_template(folder, tmp_path):
    """tokenizer_config.json, with one or several; a file comes first."""
    path = tmp_path / "folder"
    shutil.copytree(folder, path)
    assert load_tokenizer(path).chat_template is None

    def found(setting):
        config = path / "tokenizer_config.json"
        values = json.loads(config.read_text("utf-8"))
        config.write_text(json.dumps(values | {"chat_template": setting}))
        return load_tokenizer(path).chat_template

    assert found("one") == "one"
    pairs = {"tool_use": "a", "default": "b"}
    listed = [{"name": k, "template": v} for k, v in pairs.items()]
    assert found(listed) == "b"
    assert found(listed[:1]) is None
    for bad in 3, ["a"], [{"name": "default", "template": 3}]:
        with pytest.raises(ValueError, match=r"`chat_template` in .* a str"):
            found(bad)
    (path / "chat_template.jinja").write_text("{# é #}", "utf-8")
    assert found("one") == "{# é #}"


def test_bad_conversations(folder, tmp_path):
    name = "system prompt in the first turn"
    _, ours = both(folder, tmp_path / "theirs", TEMPLATES[name])
    for bad in ([], "hi", [{"content": "hi"}], [{"role": 3}], ["hi"]):
        with pytest.raises(ValueError, match="`conversation` must be a list"):
            ours.apply_chat_template(bad)
    with pytest.raises(ValueError, match="Received: Roles must alternate"):
        ours.apply_chat_template(CONVERSATION[2:])
    _, ours = both(folder, tmp_path / "other", TEMPLATES["markers of roles"])
    with pytest.raises(ValueError, match=r"can render.*no attribute 'content'"):
        ours.apply_chat_template([{"role": "user"}])
    with pytest.raises(ValueError, match="needs a tokenizer whose folder has"):
        load_tokenizer(folder).apply_chat_template(CONVERSATION)
    assert isinstance(ours, BytePairTokenizer)


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ ''.__class__.__base__.__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{% for i in range(10 ** 9) %}{% endfor %}",
        "{% include 'secret' %}",
        "{% for %}",
    ],
)
def test_the_sandbox_refuses_what_no_template_needs(template):
    messages = [{"role": "user", "content": "hi"}]
    with pytest.raises(ValueError, match="can render"):
        rendered(template, {"messages": messages})
    assert messages == [{"role": "user", "content": "hi"}]
