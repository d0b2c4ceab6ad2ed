"""The list of public symbols without a type."""

import pytest

from tools import verify_types

pytestmark = pytest.mark.one_backend


def test_symbols_without_a_type_are_listed_with_the_reason():
    def symbol(name, known, *messages, exported=True):
        return {
            "name": name,
            "isExported": exported,
            "isTypeKnown": known,
            "diagnostics": [{"message": each} for each in messages],
        }

    symbols = [
        symbol("a.f", False, 'Parameter "x"\n  is missing', "No result"),
        symbol("a.A", False),
        symbol("a.g", True),
        symbol("b.h", False, "Unknown", exported=False),
    ]
    lines, count = verify_types.untyped(
        {
            "typeCompleteness": {"symbols": symbols},
            "generalDiagnostics": [{"message": "No py.typed file found"}],
        }
    )
    assert count == 3
    assert lines == [
        "No py.typed file found",
        'a.f: Parameter "x" is missing; No result',
        "a.A: see its members",
    ]
