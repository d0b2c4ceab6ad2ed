"""Validated access to the values of a `config.json`."""

import json
import math
from typing import Any, NoReturn

from keras_attn.pretrained.json_file import read_json
from keras_attn.typing import PathLike

_NEEDED = object()


def read_config(path: PathLike) -> "Config":
    """Reads a `config.json`, and the `generation_config.json` beside it.

    Args:
        path: `pathlib.Path` of the file.

    Returns:
        `Config`.

    Raises:
        ValueError: a file is not a JSON object.
    """
    generation = path.with_name("generation_config.json")
    found = read_json(generation) if generation.is_file() else {}
    return Config(read_json(path), Config(found, file=generation.name))


class Config:
    """Validated access to the values of a config.

    Every method raises a ValueError that names the key if its value is invalid.

    Args:
        values: dict, as in `config.json`. A key that is None counts as missing.
        generation: `Config` of `generation_config.json`. Default None.
        file: str. Name of the file, for messages. Default `"config.json"`.

    Examples:
        >>> from keras_attn.pretrained.config import Config
        >>> Config({"d_model": 8}).size("d_model")
        8
    """

    def __init__(
        self,
        values: dict[str, Any],
        generation: "Config | None" = None,
        file: str = "config.json",
    ) -> None:
        self.values: dict[str, Any] = values
        self.generation: Config | None = generation
        self.file: str = file

    def size(self, key: Any, default: Any = _NEEDED) -> int:
        """Returns an integer >= 1."""
        value = self._value(key, default)
        if not _is_int(value) or not 1 <= value < 2**31:
            self.refuse(key, "must be a positive integer below 2**31")
        return value

    def heads(self, key: Any, width: int) -> int:
        """Returns a number of heads, a divisor of the value of `width`."""
        value = self.size(key)
        if self.size(width) % value:
            self.refuse(key, f"must divide `{width}`={self.values[width]}")
        return value

    def index(self, key: Any, default: Any = _NEEDED) -> int:
        """Returns an integer >= 0."""
        value = self._value(key, default)
        if not _is_int(value) or not 0 <= value < 2**31:
            self.refuse(key, "must be an integer in [0, 2**31)")
        return value

    def positive(self, key: Any, default: Any) -> float:
        """Returns a finite number > 0."""
        value = self._value(key, default)
        if not _is_number(value) or not 0 < value < math.inf:
            self.refuse(key, "must be a number greater than 0")
        return value

    def not_negative(self, key: Any, default: Any) -> float:
        """Returns a finite number >= 0."""
        value = self._value(key, default)
        if not _is_number(value) or not 0 <= value < math.inf:
            self.refuse(key, "must be a number of at least 0")
        return value

    def token_id(
        self,
        key: Any,
        default: Any = _NEEDED,
        vocabulary_size: int | None = None,
    ) -> int:
        """Returns an integer >= 0, and below the size of the vocabulary."""
        value = self._value(key, default)
        if not _is_int(value) or not 0 <= value < 2**31:
            self.refuse(key, "must be one id, an integer >= 0", value)
        if vocabulary_size is not None and value >= vocabulary_size:
            self.refuse(key, f"must lie in [0, {vocabulary_size})", value)
        return value

    def token_ids(
        self,
        key: Any,
        default: Any = _NEEDED,
        vocabulary_size: int | None = None,
    ) -> int | list[int]:
        """Returns one id as `token_id` does, or a list of different ids."""
        value = self._value(key, default)
        if not isinstance(value, list):
            return self.token_id(key, default, vocabulary_size)
        for number in value:
            Config({key: number}, file=self.file).token_id(
                key, default, vocabulary_size
            )
        if not value or len(set(value)) < len(value):
            self.refuse(key, "must hold different ids", value)
        return value[0] if len(value) == 1 else value

    def fraction(self, key: Any, default: Any) -> float:
        """Returns a number in [0, 1)."""
        value = self._value(key, default)
        if not _is_number(value) or not 0 <= value < 1:
            self.refuse(key, "must lie in [0, 1)")
        return value

    def flag(self, key: Any, default: Any) -> bool:
        """Returns a bool."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            self.refuse(key, "must be true or false")
        return value

    def choice(
        self,
        key: Any,
        options: dict[Any, Any],
        default: Any = None,
    ) -> Any:
        """Returns the entry of `options`, a dict, for the value."""
        value = self._value(key, default)
        if not isinstance(value, str) or value not in options:
            listed = ", ".join(repr(option) for option in options)
            self.refuse(key, f"must be one of {listed}", value)
        return options[value]

    def strings(self, key: Any, default: Any) -> list[Any]:
        """Returns a list of at least one str."""
        value = self._value(key, default) or default
        if not isinstance(value, list) or not all(
            isinstance(item, str) for item in value
        ):
            self.refuse(key, "must be a list of names")
        return value

    def count(self, key: Any) -> int:
        """Returns the number of entries of an object, 0 if it is missing."""
        value = self._value(key, {})
        if not isinstance(value, dict):
            self.refuse(key, "must be an object")
        return len(value)

    def only(self, key: Any, supported: Any) -> None:
        """Raises ValueError if the value is given and not supported."""
        value = self._value(key, supported)
        if value != supported or isinstance(value, bool) != isinstance(
            supported, bool
        ):
            self.refuse(key, f"must be {json.dumps(supported)} to be read")

    def _value(self, key, default=_NEEDED):
        value = self.values.get(key)
        if value is not None:
            return value
        if default is _NEEDED:
            raise ValueError(
                f"{self.file} must have a value for `{key}`. Received: none"
            )
        return default

    def optional(self, key: str, read: Any, default: Any) -> Any:
        """Returns None if the value is null, else what `read` returns.

        Args:
            key: str.
            read: a method of this class that takes a key and a default.
            default: the value if the key is missing, or None.
        """
        return (
            None
            if self.values.get(key, default) is None
            else read(key, default)
        )

    def refuse(self, key: str, why: str, value: Any = _NEEDED) -> NoReturn:
        """Raises ValueError, because of the value of a key.

        Args:
            key: str.
            why: str. What the value must be.
            value: the value, if it is not the one under the key.
        """
        if value is _NEEDED:
            value = self.values.get(key)
        raise ValueError(
            f"`{key}` in {self.file} {why}. Received: {_shown(value)}"
        )


def _is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value):
    return _is_int(value) or isinstance(value, float)


def _shown(value):
    shown = json.dumps(value)
    return shown if len(shown) <= 80 else f"{shown[:80]}..."
