"""Checks that the types of all public symbols of the package are known.

As a program (`python -m tools.verify_types`) it runs
`basedpyright --verifytypes` with the stub of Keras and prints each symbol that
lacks a type, with the reason. It exits with status 1 if there are any.
"""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]


def report():
    """Runs basedpyright.

    Returns:
        Dict, the output of `--verifytypes --outputjson`.
    """
    paths = [str(ROOT), str(ROOT / "tools" / "typing")]
    result = subprocess.run(
        [
            *(sys.executable, "-m", "basedpyright"),
            *("--pythonpath", sys.executable),
            *("--verifytypes", "keras_attn"),
            *("--ignoreexternal", "--outputjson"),
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        return json.loads(result.stdout)
    except json.JSONDecodeError:
        sys.exit(f"basedpyright failed: {result.stdout[-1000:]}")


def untyped(found):
    """Lists the public symbols without a known type.

    Args:
        found: dict, from `report`.

    Returns:
        List of str, `symbol: reasons`; and int, the number of public symbols.
    """
    symbols = [
        symbol
        for symbol in found["typeCompleteness"]["symbols"]
        if symbol["isExported"]
    ]
    lines = []
    for symbol in symbols:
        if not symbol["isTypeKnown"]:
            reasons = "; ".join(
                " ".join(each["message"].split())
                for each in symbol["diagnostics"]
            )
            # A class without a reason has an untyped member, listed too.
            lines.append(f"{symbol['name']}: {reasons or 'see its members'}")
    errors = [each["message"] for each in found["generalDiagnostics"]]
    return errors + lines, len(symbols)


if __name__ == "__main__":
    lines, count = untyped(report())
    print("\n".join(lines) or f"All {count} public symbols have known types.")
    # Without symbols, the check has not run.
    sys.exit(1 if lines or not count else 0)
