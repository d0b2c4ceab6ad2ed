"""Taking nests of tensors apart and putting them together, quickly.

`keras.tree` needs a tenth of a millisecond for the state of a decoder, which is
a tenth of a step.
"""

import itertools

_written = {}


def structure(nest):
    """Says how a nest is built, as something hashable.

    Nests are tuples, named ones too, lists and dicts around tensors and None,
    which belongs to the structure.

    Args:
        nest: any nest.

    Returns:
        A tuple, equal for nests that are built alike.
    """
    if nest is None:
        return (None,)
    if not _is_nest(nest):
        return ()
    parts = tuple((key, structure(nest[key])) for key in _keys(nest))
    return type(nest), parts


def flattener(nest):
    """Writes a function that flattens what is built like a nest.

    Args:
        nest: as for `structure`.

    Returns:
        A function of a nest, which returns the list of its tensors, dicts by
        sorted keys, or None where the nest is built in another way.
    """
    return _kept(_write_flattener, nest)


def packer(nest):
    """Writes a function that packs a flat sequence like a nest.

    Args:
        nest: as for `structure`.

    Returns:
        A function of a sequence, the inverse of the one of `flattener`.
    """
    return _kept(_write_packer, nest)


def _kept(write, nest):
    key = write, structure(nest)
    if key not in _written:
        _written[key] = write(nest)
    return _written[key]


def _write_flattener(nest):
    scope, lines, leaves = {}, [], []
    _take_apart(nest, "nest", lines, leaves, scope)
    body = "".join(f"    {line}\n" for line in lines)
    exec(
        f"def flatten(nest):\n{body}    return [{', '.join(leaves)}]",
        scope,
    )
    return scope["flatten"]


def _write_packer(nest):
    scope = {}
    text = _put_together(nest, itertools.count(), scope)
    exec(f"def pack(flat):\n    return {text}", scope)
    return scope["pack"]


def _take_apart(nest, name, lines, leaves, scope):
    if nest is None:
        lines.append(f"if {name} is not None: return None")
    elif not _is_nest(nest):
        lines.append(f"if {name} is None: return None")
        leaves.append(name)
    else:
        kind = f"type_{len(scope)}"
        scope[kind] = type(nest)
        other = f"type({name}) is not {kind} or len({name}) != {len(nest)}"
        keys = _keys(nest)
        if isinstance(nest, dict):
            scope[f"keys_{kind}"] = set(keys)
            other += f" or {name}.keys() != keys_{kind}"
        lines.append(f"if {other}: return None")
        for number, key in enumerate(keys):
            part = f"{name}_{number}"
            lines.append(f"{part} = {name}[{key!r}]")
            _take_apart(nest[key], part, lines, leaves, scope)


def _put_together(nest, numbers, scope):
    if nest is None:
        return "None"
    if not _is_nest(nest):
        return f"flat[{next(numbers)}]"
    parts = [_put_together(nest[key], numbers, scope) for key in _keys(nest)]
    if isinstance(nest, dict):
        pairs = zip(_keys(nest), parts, strict=True)
        return "{" + ", ".join(f"{key!r}: {part}" for key, part in pairs) + "}"
    inside = "".join(f"{part}, " for part in parts)
    if isinstance(nest, list):
        return f"[{inside}]"
    if type(nest) is tuple:
        return f"({inside})"
    name = f"type_{len(scope)}"
    scope[name] = type(nest)
    return f"{name}({inside})"


def _keys(nest):
    return sorted(nest) if isinstance(nest, dict) else list(range(len(nest)))


def _is_nest(value):
    return type(value) in (tuple, list, dict) or (
        isinstance(value, tuple) and hasattr(value, "_fields")
    )
