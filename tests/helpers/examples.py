"""Code blocks of pages: extraction, execution and expected output."""

import re
import textwrap

# `print(...)  # text` in one line, or below it a comment line for each line.
BESIDE = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)
BELOW = re.compile(r"^print\(.*\)\n((?:# .*(?:\n|$))+)", re.MULTILINE)


def blocks(language, text):
    """Bodies of the fenced blocks of a language, in order, unindented."""
    fence = rf"^( *)```{language}\n(.*?)^\1```$"
    found = re.findall(fence, text, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(body) for _, body in found]


def said(code):
    """Returns the documented output lines of a block, in order."""
    found = [(match.start(), match[1]) for match in BESIDE.finditer(code)]
    for match in BELOW.finditer(code):
        below = [line[2:] for line in match[1].splitlines()]
        found.append((match.start(), "\n".join(below)))
    return [line for _, text in sorted(found) for line in text.splitlines()]


def run(code, names, capsys, page):
    """Runs a block in a namespace; returns documented and printed lines.

    Printed lines that are not documented are left out.
    """
    expected = said(code)
    exec(compile(code, page, "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    return expected, [line for line in printed if line in expected]
