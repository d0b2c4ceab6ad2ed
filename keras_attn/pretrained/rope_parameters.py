"""Rotary positions in the config of a model."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from keras_attn.layers import RotaryPosition
from keras_attn.pretrained.config import Config
from keras_attn.pretrained.layer_types import FULL, SLIDING, windows_of

if TYPE_CHECKING:
    from keras_attn.models import GPT, Encoder

_LENGTH = "max_position_embeddings"
_ORIGINAL = "original_max_position_embeddings"
_PARTIAL = "partial_rotary_factor"
# Types whose original length is `max_position_embeddings` if it is not given.
_WITH_ORIGINAL = "llama3", "longrope", "yarn"


class Rope(NamedTuple):
    """Keys and defaults of a family's rotary position.

    transformers 5 has them in `rope_parameters`; earlier versions had
    `rope_theta` and `rope_scaling`, which are read too.

    Args:
        theta: float. Default of `rope_theta`.
        theta_key: str. Its key outside `rope_parameters`.
        partial: float. Default of `partial_rotary_factor`. None: all features
            of a head are rotated.
        partial_key: str. Its key outside `rope_parameters`.
        aliases: dict from other names of a `rope_type` to the usual one.
        outer_original: bool. Whether the config itself may have
            `original_max_position_embeddings`, 4096 by default, as in Phi-3.
        longest: int. Default of `max_position_embeddings`.
        scaling: dict. The parameters if the config has none. Default: no
            scaling.
    """

    theta: float = 10000.0
    theta_key: str = "rope_theta"
    partial: float | None = None
    partial_key: str = _PARTIAL
    aliases: Mapping[str, str] = MappingProxyType({})
    outer_original: bool = False
    longest: int = 2048
    scaling: Mapping[str, Any] = MappingProxyType({})


def read_rope(
    config: Config, rope: Rope, num_heads: int, head_dim: int
) -> tuple[RotaryPosition, int]:
    """Reads the rotary position that all layers share.

    Args:
        config: `Config`.
        rope: `Rope` of the family.
        num_heads: int. N.
        head_dim: int. H.

    Returns:
        `RotaryPosition`, and int, the longest sequence in tokens.

    Raises:
        ValueError: an unsupported value.
    """
    # As in transformers, the older key wins.
    where = "rope_scaling" if _object(config, "rope_scaling") else _NEW
    parameters = _object(config, where) or dict(rope.scaling)
    parameters = with_outer(config, where, parameters, rope)
    return read_position(config, where, parameters, rope, num_heads, head_dim)


def read_rope_by_type(
    config: Config,
    rope: Rope,
    local_rope: Rope,
    types: list[str],
    num_heads: int,
    head_dim: int,
) -> tuple[list[RotaryPosition], int]:
    """Reads the rotary positions of the two types of layers.

    Args:
        config: `Config`.
        rope: `Rope` of layers without a window.
        local_rope: `Rope` of layers with one.
        types: list of str. The type of each layer.
        num_heads: int. N.
        head_dim: int. H.

    Returns:
        List with one `RotaryPosition` per layer, and int, the longest sequence
        in tokens.

    Raises:
        ValueError: an unsupported value.
    """
    scaling = _object(config, "rope_scaling")
    parameters = _object(config, _NEW)
    unknown = sorted(parameters.keys() - {SLIDING, FULL})
    if unknown:
        config.refuse(
            _NEW,
            f"must only have the keys {SLIDING!r} and {FULL!r}",
            unknown,
        )
    read = {}
    for kind, kind_rope in ((FULL, rope), (SLIDING, local_rope)):
        own = parameters.get(kind) or {}
        if not isinstance(own, dict):
            config.refuse(_NEW, f"must have an object {kind!r}")
        if kind == FULL:
            own = own | scaling
        own = with_outer(config, _NEW, own, kind_rope)
        read[kind] = read_position(
            config, _NEW, own, kind_rope, num_heads, head_dim
        )
    return [read[kind][0] for kind in types], read[FULL][1]


def with_outer(
    config: Config, where: str, parameters: dict[str, Any], rope: Rope
) -> dict[str, Any]:
    """Returns the parameters of a position with those outside the object.

    Args:
        config: `Config`.
        where: str. The key that holds the parameters, for messages.
        parameters: dict.
        rope: `Rope` of the family.

    Raises:
        ValueError: a value is given in both places, and differs.
    """
    found = {k: value for k, value in parameters.items() if value is not None}
    for name, key, default in (
        ("rope_theta", rope.theta_key, rope.theta),
        (_PARTIAL, rope.partial_key, rope.partial or 1.0),
    ):
        value = config.positive(key, default)
        if name in found and config.values.get(key) not in (None, found[name]):
            config.refuse(key, f"must equal the `{name}` of `{where}`")
        found.setdefault(name, value)
    return found


_NEW = "rope_parameters"


def read_position(
    config: Config,
    where: str,
    parameters: dict[str, Any],
    rope: Rope,
    num_heads: int,
    head_dim: int,
) -> tuple[RotaryPosition, int]:
    """Reads one rotary position; the arguments are those of `read_rope`.

    Args:
        config: `Config`.
        where: str. The key that holds the parameters, for messages.
        parameters: dict with the parameters, and `rope_theta`.
        rope: `Rope`.
        num_heads: int.
        head_dim: int.
    """
    parameters = dict(parameters)
    old_type = parameters.pop("type", "default")
    rope_type = parameters.pop("rope_type", old_type)
    if isinstance(rope_type, str):
        rope_type = rope.aliases.get(rope_type, rope_type)
    theta = Config(parameters).positive("rope_theta", rope.theta)
    parameters.pop("rope_theta", None)
    partial = Config(parameters).positive(_PARTIAL, 1.0)
    parameters.pop(_PARTIAL, None)
    if partial > 1 or (rope.partial is None and partial != 1):
        expected = "1.0 to be read" if rope.partial is None else "at most 1"
        config.refuse(rope.partial_key, f"must be {expected}", partial)
    longest = config.size(_LENGTH, rope.longest)
    scaling = None
    if rope_type != "default" or parameters:
        scaling = {"rope_type": rope_type, **parameters}
        _add_defaults(config, scaling, rope, longest)
    rotary_dim = int(head_dim * partial)
    try:
        position = RotaryPosition(
            theta,
            None if rotary_dim == head_dim else rotary_dim,
            scaling=scaling,
        )
        position.check(num_heads, head_dim)
    except ValueError as error:
        raise ValueError(
            f"`{where}` in config.json must describe a supported position: "
            f"{error}"
        ) from None
    return position, _longest(position.scaling, longest)


def _object(config, key):
    """Returns an object of the config, {} if there is none."""
    config.count(key)
    return config.values.get(key) or {}


def _add_defaults(config, scaling, rope, longest):
    """Adds what transformers derives from `max_position_embeddings`."""
    rope_type = scaling["rope_type"]
    if rope_type == "dynamic":
        if scaling.setdefault(_ORIGINAL, longest) != longest:
            config.refuse(
                _ORIGINAL,
                f"must be `{_LENGTH}`={longest} with the `rope_type` 'dynamic'",
                scaling[_ORIGINAL],
            )
    elif rope_type in _WITH_ORIGINAL:
        if rope.outer_original:
            scaling[_ORIGINAL] = config.size(_ORIGINAL, 4096)
        else:
            original = config.size(_ORIGINAL, longest)
            scaling.setdefault(_ORIGINAL, original)
            if _ORIGINAL in config.values:
                scaling[_ORIGINAL] = original
    if rope_type in ("longrope", "yarn") and "factor" not in scaling:
        original = Config(scaling).size(_ORIGINAL)
        if longest > original:
            scaling["factor"] = longest / original
        elif rope_type == "longrope":
            scaling.setdefault("attention_factor", 1.0)
        else:
            scaling["factor"] = 1.0


def _longest(scaling, longest):
    """Returns the longest sequence of a config.

    `max_position_embeddings` is often the length before linear, dynamic or YaRN
    scaling, which is meant for longer sequences.
    """
    rope_type = None if scaling is None else scaling["rope_type"]
    if rope_type in ("linear", "dynamic"):
        return int(scaling["factor"] * longest)
    if rope_type == "yarn":
        return max(longest, int(scaling["factor"] * scaling[_ORIGINAL]))
    return longest


def write_rope(
    family: str, model: "GPT | Encoder", positions: tuple[Any, ...], rope: Rope
) -> dict[str, Any]:
    """Returns the keys of a config for the position that layers share.

    They are in the form of transformers 5 and in that of earlier versions,
    which would ignore the former.

    Args:
        family: str. Name of the family, for messages.
        model: `GPT` or `Encoder`.
        positions: tuple with the positions of the layers.
        rope: `Rope` of the family.

    Raises:
        ValueError: the family has no such position.
    """
    position = one_position(family, model, positions)
    parameters = write_position(family, model, position, rope)
    partial = parameters.get(_PARTIAL)
    return {
        _NEW: parameters,
        rope.theta_key: parameters["rope_theta"],
        "rope_scaling": position.scaling,
        **({} if partial is None else {rope.partial_key: partial}),
        **write_length(family, model, position.scaling, rope),
    }


def write_rope_by_type(
    family: str, model: "GPT | Encoder", rope: Rope, local_rope: Rope
) -> dict[str, Any]:
    """Returns the keys of a config for the positions of two types of layers.

    Args:
        family: str. Name of the family, for messages.
        model: `GPT` or `Encoder`.
        rope: `Rope` of layers without a window.
        local_rope: `Rope` of layers with one.

    Raises:
        ValueError: layers of one type have different positions.
    """
    layers = list(zip(positions_of(model), windows_of(model), strict=True))
    full = tuple(position for position, window in layers if window is None)
    local = tuple(position for position, window in layers if window is not None)
    # Without layers of a type, its position is that of the other one.
    wide = one_position(family, model, full or local)
    near = one_position(family, model, local or full)
    parameters = {
        FULL: write_position(family, model, wide, rope),
        SLIDING: write_position(family, model, near, local_rope),
    }
    return {
        _NEW: parameters,
        rope.theta_key: wide.max_wavelength,
        local_rope.theta_key: near.max_wavelength,
        "rope_scaling": wide.scaling,
        **write_length(family, model, wide.scaling, rope),
    }


def positions_of(model: "GPT | Encoder") -> tuple[Any, ...]:
    """Returns the position of each layer of a model."""
    positions = model.attention_position
    if isinstance(positions, tuple):
        return positions
    return (positions,) * model.num_layers


def one_position(
    family: str, model: "GPT | Encoder", positions: tuple[Any, ...]
) -> RotaryPosition:
    """Returns the rotary position of layers, which must be equal.

    Args:
        family: str. Name of the family, for messages.
        model: `GPT` or `Encoder`.
        positions: tuple with the positions of some of its layers.
    """
    for position in positions or (None,):
        if (
            not isinstance(position, RotaryPosition)
            or position.layout != "halves"
            or _arguments(position) != _arguments(positions[0])
        ):
            _refuse(
                family,
                "attention_position=RotaryPosition(...) with the layout "
                "'halves', equal in layers of one type",
                f"attention_position={model.attention_position!r}",
            )
    return positions[0]


def _arguments(position):
    return position.max_wavelength, position.rotary_dim, position.scaling


def write_position(
    family: str, model: "GPT | Encoder", position: RotaryPosition, rope: Rope
) -> dict[str, Any]:
    """Returns the `rope_parameters` of one position.

    Args:
        family: str. Name of the family, for messages.
        model: `GPT` or `Encoder`.
        position: `RotaryPosition`.
        rope: `Rope` of the family.
    """
    scaling = position.scaling or {"rope_type": "default"}
    parameters = {"rope_theta": position.max_wavelength, **scaling}
    head_dim = model.key_dim or model.hidden_dim // model.num_heads
    rotary_dim = position.rotary_dim or head_dim
    if rope.partial is not None:
        partial = rotary_dim / head_dim
        if int(head_dim * partial) < rotary_dim:
            partial = math.nextafter(partial, 1.0)
        parameters[_PARTIAL] = partial
    elif rotary_dim != head_dim:
        _refuse(family, f"rotary_dim={head_dim}", f"rotary_dim={rotary_dim}")
    return parameters


def write_length(
    family: str,
    model: "GPT | Encoder",
    scaling: dict[str, Any] | None,
    rope: Rope,
) -> dict[str, int]:
    """Returns the keys for the length of sequences.

    Args:
        family: str. Name of the family, for messages.
        model: `GPT` or `Encoder`.
        scaling: dict, or None. `RotaryPosition.scaling`.
        rope: `Rope` of the family.
    """
    scaling = scaling or {"rope_type": "default"}
    longest = model.max_sequence_length
    if longest is None:
        _refuse(family, "a max_sequence_length", "max_sequence_length=None")
    if scaling["rope_type"] == "dynamic":
        if longest != int(scaling["factor"] * scaling[_ORIGINAL]):
            _refuse(
                family,
                "a max_sequence_length that is the factor of its dynamic "
                "scaling times the original length",
                f"max_sequence_length={longest}",
            )
        longest = scaling[_ORIGINAL]
    elif scaling["rope_type"] == "linear":
        longest = math.ceil(longest / scaling["factor"])
    original = {}
    if rope.outer_original:
        original = {_ORIGINAL: scaling.get(_ORIGINAL, longest)}
    return {_LENGTH: longest, **original}


def _refuse(family: str, expected: str, received: str) -> NoReturn:
    raise ValueError(
        f"A {family} model must have {expected}. Received: {received}"
    )
