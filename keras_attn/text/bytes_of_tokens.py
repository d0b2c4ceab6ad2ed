"""The bytes that the tokens of a published tokenizer add to a text."""

import json
import re
from collections.abc import Sequence
from typing import Any

_BEFORE = "abcdef"
_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")


def bytes_of_tokens(engine: Any, tokens: Sequence[str]) -> list[bytes]:
    """Returns the bytes of each token in the middle of a text.

    Args:
        engine: `tokenizers.Tokenizer`, or an object with the same methods.
        tokens: list of str, in the order of their ids; "" without a token.

    Returns:
        List of bytes.
    """
    decoder, kinds = _decoders(engine)
    added = engine.get_added_tokens_decoder()
    level = _bytes_of_characters() if "ByteLevel" in kinds else None
    suffix = (
        decoder.get("suffix") if decoder.get("type") == "BPEDecoder" else ""
    )
    found: list[Any] = []
    for number, token in enumerate(tokens):
        written = _BYTE.fullmatch(token)
        if number in added:
            # Byte-level decoders read it as text, others may add a space.
            found.append(token.encode() if level is not None else None)
        elif "ByteFallback" in kinds and written:
            found.append(bytes([int(written[1], 16)]))
        elif level is not None and level.keys() >= {*token}:
            found.append(bytes(level[character] for character in token))
        elif suffix:
            found.append(token.replace(suffix, " ").encode())
        else:
            found.append(None)
    _decode_others(engine, found)
    return found


def _decode_others(engine, found):
    """Replaces None by the text that a token adds to others."""
    before = engine.encode_batch_fast([_BEFORE], add_special_tokens=False)
    before = before[0].ids
    start = len(engine.decode(before, skip_special_tokens=False))
    for number, known in enumerate(found):
        if known is None:
            text = engine.decode([*before, number], skip_special_tokens=False)
            found[number] = text[start:].encode()


def _decoders(engine):
    """Returns the decoder of an engine as a dict, and the types in it."""
    if not hasattr(engine, "to_str"):
        return {}, set()
    decoder = json.loads(engine.to_str()).get("decoder") or {}
    parts = [decoder, *decoder.get("decoders", ())]
    return decoder, {part["type"] for part in parts if "type" in part}


def _bytes_of_characters():
    """Returns {character: byte} of byte-level vocabularies.

    Printable bytes are written as themselves, the others, in order, as the
    characters from U+0100 (Radford et al. 2019, the code of GPT-2).
    """
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = [byte for byte in range(256) if byte not in printable]
    found = {chr(byte): byte for byte in printable}
    return found | {chr(256 + i): byte for i, byte in enumerate(others)}
