"""Chat templates: a conversation as the text that a chat model reads."""

import datetime
import json
from typing import Any

from keras_attn import checks
from keras_attn.text import packages


def template_of(setting: Any) -> str | None:
    """Returns the template in the `chat_template` of a folder.

    Args:
        setting: str; a list of dicts with `"name"` and `"template"`, of which
            the one named `"default"` counts; or None.

    Returns:
        str, or None without a template.

    Raises:
        ValueError: another value.

    Examples:
        >>> from keras_attn.text.chat_template import template_of
        >>> template_of([{"name": "default", "template": "{{ messages }}"}])
        '{{ messages }}'
    """
    if isinstance(setting, list) and all(
        isinstance(one, dict) and {"name", "template"} <= one.keys()
        for one in setting
    ):
        named = {str(one["name"]): one["template"] for one in setting}
        setting = named.get("default")
    if setting is None or isinstance(setting, str):
        return setting
    raise ValueError(
        "`chat_template` in tokenizer_config.json of `directory` must be a "
        'str, or a list of objects with "name" and "template". '
        f"Received: {checks.shown(setting)}"
    )


def check_conversation(conversation: Any) -> None:
    """Raises ValueError unless messages are a list of dicts with a role."""
    if (
        isinstance(conversation, (list, tuple))
        and conversation
        and all(
            isinstance(message, dict) and isinstance(message.get("role"), str)
            for message in conversation
        )
    ):
        return
    raise ValueError(
        "`conversation` must be a list of messages, dicts with a str as "
        f'"role", such as {{"role": "user", "content": "Hello"}}. '
        f"Received: {checks.shown(conversation)}"
    )


def rendered(template: str, variables: dict[str, Any]) -> str:
    """Renders a template as transformers does, in Jinja's sandbox.

    Args:
        template: str. A Jinja template.
        variables: dict of the values that it uses.

    Returns:
        str.

    Raises:
        ValueError: the template is invalid, needs a variable or refuses the
            conversation.
        ImportError: the package `jinja2` is not installed.

    Examples:
        >>> from keras_attn.text.chat_template import rendered
        >>> rendered("{% for x in xs %}[{{ x }}]{% endfor %}", {"xs": "ab"})
        '[a][b]'
    """
    jinja2 = packages.jinja2()
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols", _generation(jinja2)],
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = _now
    try:
        return environment.from_string(template).render(**variables)
    # Templates of strangers: whatever they do wrong becomes one sentence.
    except Exception as error:
        name = type(error).__name__
        raise ValueError(
            "`conversation` must be one that the chat template of the "
            f"tokenizer can render. Received: {error} ({name})"
        ) from error


def _generation(jinja2):
    """Returns an extension that reads `{% generation %}`.

    It marks what the model writes, for training, and adds no text.
    """

    class Generation(jinja2.ext.Extension):
        tags = frozenset({"generation"})

        def parse(self, parser):
            line = next(parser.stream).lineno
            body = parser.parse_statements(
                ("name:endgeneration",), drop_needle=True
            )
            return jinja2.nodes.Scope(body, lineno=line)

    return Generation


def _to_json(value, ensure_ascii=False, indent=None, **kwargs):
    # Jinja's own filter escapes characters of HTML.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **kwargs)


def _refuse(message):
    raise ValueError(message)


def _now(format):
    return datetime.datetime.now().strftime(format)
