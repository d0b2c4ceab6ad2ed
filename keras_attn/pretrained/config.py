"""Validated access to the values of a `config.json`."""

import json

from keras_attn import checks

_NEEDED = object()


def read_config(path):
    """Reads a `config.json`.

    Args:
        path: `pathlib.Path` of the file.

    Returns:
        `Config`.

    Raises:
        ValueError: the file is not a JSON object.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(
            f"{path.name} must be a JSON object. Received: {path} ({error})"
        ) from error
    if not isinstance(values, dict):
        raise ValueError(
            f"{path.name} must be a JSON object. "
            f"Received: {path}, a {type(values).__name__}"
        )
    return Config(values)


class Config:
    """Validated access to the values of a config.

    Every method raises a ValueError that names the key if its value is invalid.

    Args:
        values: dict, as in `config.json`. A key that is None counts as missing.

    Examples:
        >>> from keras_attn.pretrained.config import Config
        >>> Config({"d_model": 8}).size("d_model")
        8
    """

    def __init__(self, values):
        self.values = values

    def size(self, key, default=_NEEDED):
        """Returns an integer >= 1."""
        return checks.positive_int(key, self._value(key, default))

    def positive(self, key, default):
        """Returns a finite number > 0."""
        return checks.positive(key, self._value(key, default))

    def token_id(self, key, default=_NEEDED):
        """Returns an integer >= 0."""
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self._refuse(key, "must be one id, an integer >= 0")
        return value

    def fraction(self, key, default):
        """Returns a number in [0, 1)."""
        return checks.fraction(key, self._value(key, default))

    def flag(self, key, default):
        """Returns a bool."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            self._refuse(key, "must be true or false")
        return value

    def choice(self, key, options, default):
        """Returns the entry of `options`, a dict, for the value."""
        value = self._value(key, default)
        return options[checks.choice(key, value, tuple(options))]

    def only(self, key, supported):
        """Raises ValueError if the value is given and not supported."""
        if self._value(key, supported) != supported:
            self._refuse(key, f"must be {json.dumps(supported)} to be read")

    def _value(self, key, default=_NEEDED):
        value = self.values.get(key)
        if value is not None:
            return value
        if default is _NEEDED:
            raise ValueError(
                f"config.json must have a value for `{key}`. Received: none"
            )
        return default

    def _refuse(self, key, why):
        raise ValueError(
            f"`{key}` in config.json {why}. "
            f"Received: {json.dumps(self.values[key])}"
        )
