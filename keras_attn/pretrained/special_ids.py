"""The special ids of a config."""

from typing import TYPE_CHECKING, Any

from keras_attn.decoding.protocol import end_ids

if TYPE_CHECKING:
    from keras_attn.pretrained.config import Config


def special_ids(
    config: "Config",
    vocabulary_size: int,
    pad: int | None,
    start: int,
    end: int,
) -> dict[str, Any] | None:
    """Reads the special ids of a config.

    Most fine-tuned models have no padding token of their own and set
    `pad_token_id` to the end token. Such an id is no padding: in transformers
    too, only an attention mask says what is.

    The `generation_config.json` of a chat model often has more end ids, and
    those count: transformers generates with them.

    An id that is the family's default and lies outside the vocabulary is
    absent: transformers writes its defaults, which belong to the published
    vocabulary, into the config of every smaller model too.

    Args:
        config: `Config`.
        vocabulary_size: int. V.
        pad: int or None. The family's default of `pad_token_id`.
        start: int. That of `bos_token_id`.
        end: int. That of `eos_token_id`.

    Returns:
        Dict: `pad_id`, None if it is also the start id or an end id; `start_id`
        and `end_id`, which may be a list. Null in the config is None here, and
        so is an absent id.

    Raises:
        ValueError: another id outside the vocabulary, or not an integer.

    Examples:
        >>> from keras_attn.pretrained.config import Config
        >>> config = Config({"pad_token_id": 9, "eos_token_id": 9})
        >>> special_ids(config, 10, None, 1, 2)
        {'pad_id': None, 'start_id': 1, 'end_id': 9}
    """

    def read(key, default, read_value=config.token_id, values=config.values):
        value = values.get(key, default)
        if value is None or value == default >= vocabulary_size:
            return None
        return read_value(key, default, vocabulary_size)

    pad, start = read("pad_token_id", pad), read("bos_token_id", start)
    default, other = end, config.generation
    end = read("eos_token_id", default, config.token_ids)
    if other is not None and other.values.get("eos_token_id") is not None:
        end = read("eos_token_id", default, other.token_ids, other.values)
    pad = None if pad in (start, *end_ids(end)) else pad
    return {"pad_id": pad, "start_id": start, "end_id": end}


def target_ids(
    config: "Config",
    source_size: int,
    target_size: int,
    pad: int | None = None,
    start: int | None = None,
    end: int | None = None,
) -> dict[str, int]:
    """Reads the special ids of an encoder-decoder model.

    Args:
        config: `Config`.
        source_size: int. V of the source.
        target_size: int. V of the target.
        pad: int. The family's default of `pad_token_id`. Default None: the
            config must have one.
        start: int. That of `decoder_start_token_id`.
        end: int. That of `eos_token_id`.

    Returns:
        Dict: `pad_id`, `start_id` and `end_id`.

    Raises:
        ValueError: an id is missing, not an integer or outside the vocabulary,
            or the end is padding.

    Examples:
        >>> from keras_attn.pretrained.config import Config
        >>> target_ids(Config({"eos_token_id": 2}), 10, 10, pad=0, start=0)
        {'pad_id': 0, 'start_id': 0, 'end_id': 2}
    """

    def read(key, default, size):
        given = [] if default is None else [default]
        return config.token_id(key, *given, vocabulary_size=size)

    pad = read("pad_token_id", pad, min(source_size, target_size))
    ids = {
        "pad_id": pad,
        "start_id": read("decoder_start_token_id", start, target_size),
        "end_id": read("eos_token_id", end, target_size),
    }
    if ids["pad_id"] == ids["end_id"]:
        # A `Transformer` knows padding by its id alone.
        raise ValueError(
            "`pad_token_id` in config.json must differ from `eos_token_id`: "
            "the end of every source would count as padding. Received: "
            f"{ids['pad_id']} for both"
        )
    return ids


def written_end_id(model: Any) -> int | list[int] | None:
    """Returns the `eos_token_id` of a model's config: int, list or None."""
    several = isinstance(model.end_id, tuple)
    return list(model.end_id) if several else model.end_id
