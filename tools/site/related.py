"""Finds what belongs to a public name: its equation, tests and tutorial.

A name is written as in `layers.MultiHeadAttention`, without `keras_attn`.
"""

import ast
import functools
import pathlib
import re
import tomllib

from markdown.extensions.toc import slugify

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Where a name is taught, if not where a tutorial or a guide first uses it. A
# package stands for all its names.
TAUGHT_IN = {
    "blocks.EncoderBlock": "tutorials/blocks/index.md#encoder-block",
    "blocks.Residual": "tutorials/blocks/index.md"
    "#residual-connection-and-layer-normalization",
    "blocks.SegmentBlock": "tutorials/transformer_xl/index.md"
    "#segments-with-a-memory",
    "blocks.TwoStreamBlock": "tutorials/xlnet/index.md#two-streams",
    "cache": "guides/decoding.md#custom-models",
    "datasets.SHOWCASE_PAIRS": "tutorials/translate/index.md#data",
    "decoding.Choice": "guides/decoding.md#custom-strategies",
    "decoding.SearchSpec": "guides/decoding.md#custom-strategies",
    "decoding.SingleSequenceStrategy": "guides/decoding.md#custom-strategies",
    "decoding.Strategy": "guides/decoding.md#custom-strategies",
    "decoding.stream": "guides/decoding.md#streaming",
    "explain.AttentionMap": "tutorials/looking_inside/index.md#where-it-looks",
    "explain.Report": "guides/doctor.md#reading-a-report",
    "explain.attention_maps": "tutorials/looking_inside/index.md"
    "#where-it-looks",
    "explain.plot_attention": "tutorials/translate/index.md#attention",
    "layers.Dropout": "guides/backends.md#torchcompile",
    "layers.AttentionPosition": "tutorials/positions/index.md"
    "#relative-positions-rotary-and-alibi",
    "layers.MultiHeadAttention": "tutorials/multi_head/index.md"
    "#the-layer-in-numpy",
    "layers.PositionalEmbedding": "tutorials/positions/index.md"
    "#absolute-positions-sinusoidal-and-learned",
    "layers.TransformerXLPosition": "tutorials/transformer_xl/index.md"
    "#relative-positions",
    "layers.XLNetPosition": "tutorials/xlnet/index.md#two-streams",
    "models.Bert": "tutorials/bert/index.md#model",
    "models.BertPretrainer": "tutorials/bert/index.md#model",
    "models.GenerativeModel": "guides/decoding.md#custom-models",
    "models.MultipleChoice": "guides/pretrained.md#bert-and-its-heads",
    "models.RecurrentSeq2Seq": "tutorials/recurrent/index.md#two-models",
    "models.ReplacedTokenDetector": "guides/pretrained.md#albert-and-electra",
    "models.Roberta": "guides/pretrained.md#roberta-and-xlm-roberta",
    "models.SegmentMemory": "tutorials/transformer_xl/index.md"
    "#segments-with-a-memory",
    "models.Transformer": "tutorials/translate/index.md#model",
    "ops.attend": "tutorials/multi_head/index.md#self-attention-by-hand",
    "ops.sinusoid": "tutorials/positions/index.md"
    "#absolute-positions-sinusoidal-and-learned",
    "text.BatchReport": "guides/text.md#sentence-pairs-for-translation",
    "text.BytePairTokenizer": "guides/text.md#tokenizers",
    "text.TokenDataset": "tutorials/translate/index.md#batches",
    "text.UnigramTokenizer": "guides/text.md#tokenizers",
    "testing.host_reads": "guides/testing.md#the-checks",
    "text.mask_tokens": "tutorials/bert/index.md#masking",
    "training.SequenceCrossentropy": "tutorials/translate/index.md#loss",
    "training.TrainingProgress": "tutorials/translate/index.md#training",
    "training.WarmupSchedule": "tutorials/translate/index.md#learning-rate",
}
# The tests of a name, where no rule finds them. A package stands for all its
# names.
TESTED_IN = {
    "cache": "tests/test_cache.py",
    "datasets.Answer": "tests/datasets/test_passages.py",
    "datasets.LabeledSentence": "tests/datasets/test_generators.py",
    "datasets.Question": "tests/datasets/test_passages.py",
    "datasets.Recording": "tests/datasets/test_audio.py",
    "datasets.TaggedSentence": "tests/datasets/test_generators.py",
    "decoding.ActiveHypotheses": "tests/decoding/test_strategies.py",
    "decoding.Choice": "tests/decoding/test_strategies.py",
    "decoding.Decoded": "tests/decoding/test_strategies.py",
    "decoding.DecodingState": "tests/decoding/test_steps.py",
    "decoding.SearchSpec": "tests/decoding/test_strategies.py",
    "decoding.SingleSequenceStrategy": "tests/decoding/test_strategies.py",
    "decoding.Strategy": "tests/decoding/test_strategies.py",
    "explain.AttentionMap": "tests/explain/test_attention_maps.py",
    "layers.XLNetPosition": "tests/layers/test_transformer_xl_position.py",
    "models.Encoder": "tests/models/test_encoder_models.py",
    "models.GenerativeModel": "tests/decoding/test_generate.py",
    "models.ReplacedTokenDetector": "tests/pretrained"
    "/test_successors_of_bert.py",
    "models.Roberta": "tests/pretrained/test_successors_of_bert.py",
    "ops.relative_shift": "tests/layers/test_transformer_xl_position.py",
    "text.BatchReport": "tests/text/test_token_batches.py",
}
_ENTRY = re.compile(r"^::: (keras_attn\.(\w+)\.(?:\w+\.)?(\w+))$", re.MULTILINE)
_EQUATION = re.compile(r"^\| ([^|<]+)<br>(`[\w.]+`(?:, `[\w.]+`)*) \|", re.M)
_SECTION = re.compile(
    r"^#+ (?P<title>.*)$"
    r"|^(?P<indent> *)```(?P<kind>.*)\n(?P<code>(?:.*\n)*?) *```$",
    re.MULTILINE,
)


@functools.cache
def definitions():
    """Finds where the public names are defined.

    Returns:
        Dict from name to the dotted path of the object.
    """
    found = {}
    for package in _imported(ROOT / "keras_attn")[1]:
        folder = ROOT / "keras_attn" / package
        if folder.is_dir():
            imported, public = _imported(folder)
            found |= {f"{package}.{name}": imported[name] for name in public}
    return found


def _imported(folder):
    """Returns what a package imports, by name, and its `__all__`."""
    imported, public = {}, []
    for node in ast.parse((folder / "__init__.py").read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                path = f"{node.module}.{alias.name}"
                imported[alias.asname or alias.name] = path
        elif isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            public = ast.literal_eval(node.value)
    return imported, public


@functools.cache
def entries():
    """Finds the entries of the reference.

    Returns:
        Dict from name to its address, relative to `docs`.
    """
    return {
        f"{package}.{name}": f"api/{path.name}#{anchor}"
        for path in sorted((DOCS / "api").glob("*.md"))
        for anchor, package, name in _ENTRY.findall(path.read_text("utf-8"))
    }


def equations(page):
    """Finds the equations on a page, and the names that compute each.

    Args:
        page: str. The Markdown of `docs/equations.md`.

    Returns:
        Dict from title to list of names.
    """
    return {
        title: re.findall(r"`([\w.]+)`", names)
        for title, names in _EQUATION.findall(page)
    }


def anchor(title):
    """Returns the anchor of a heading or an equation."""
    return slugify(re.sub(r"[*`]", "", title), "-")


@functools.cache
def equation_of(name):
    """Returns the title of the first equation of a name, or None."""
    page = (DOCS / "equations.md").read_text("utf-8")
    titles = (
        title for title, names in equations(page).items() if name in names
    )
    return next(titles, None)


@functools.cache
def tests_of(name):
    """Finds the file that tests a name.

    It has the name of the module, as in `tests/layers/test_dropout.py`, or it
    is the file of the package's tests that mentions the name most often, or
    else the other names of its module.

    Returns:
        Path relative to the repository, or None.
    """
    package, _, _ = name.partition(".")
    if package in TESTED_IN or name in TESTED_IN:
        return TESTED_IN.get(package) or TESTED_IN[name]
    module = definitions()[name].split(".")[-2]
    path = ROOT / "tests" / package / f"test_{module}.py"
    if path.exists():
        return path.relative_to(ROOT).as_posix()
    files = {
        path: path.read_text("utf-8")
        for path in sorted(path.parent.glob("test_*.py"))
        if "malformed" not in path.name
    }
    for one in _siblings(name):
        word = re.compile(rf"\b{one.partition('.')[2]}\b")
        counts = {path: len(word.findall(files[path])) for path in files}
        if any(counts.values()):
            path = max(counts, key=counts.get)
            return path.relative_to(ROOT).as_posix()
    return None


@functools.cache
def source(path):
    """Returns the address of a file of the repository."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return f"{project['project']['urls']['Source']}/blob/main/{path}"


def uses(page):
    """Finds the names that the code of a page uses.

    Args:
        page: str, Markdown.

    Returns:
        Dict from name to the title of the section that first uses it.
    """
    found, bound, title = {}, {}, None
    for match in _SECTION.finditer(page):
        if match["code"] is None:
            title = match["title"]
            continue
        if match["kind"] != "python":
            continue
        code = re.sub(rf"(?m)^{match['indent']}", "", match["code"])
        try:
            nodes = [*ast.walk(ast.parse(code))]
        except SyntaxError:  # An excerpt.
            continue
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                bound |= _bound(node)
        for node in nodes:
            if isinstance(node, ast.Name | ast.Attribute):
                first, _, rest = ast.unparse(node).partition(".")
                path = ".".join(filter(None, (bound.get(first), rest)))
                name = path.removeprefix("keras_attn.")
                if first in bound and name in definitions():
                    found.setdefault(name, title)
    return found


def _bound(node):
    """Returns what an import binds, without what is not ours."""
    start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    return {
        alias.asname or alias.name: start + alias.name
        for alias in node.names
        if f"{start}{alias.name}.".startswith("keras_attn.")
    }


@functools.cache
def tutorials():
    """Reads the tutorials, in the order of the course.

    Returns:
        Dict from page, relative to `docs`, to what it `uses`.
    """
    index = (DOCS / "tutorials/index.md").read_text("utf-8")
    order = re.findall(r"(?m)^\| .*?\]\((\w+/index\.md)\)", index)
    return _uses(f"tutorials/{page}" for page in order)


@functools.cache
def guides():
    """Reads the guides.

    Returns:
        Dict from page, relative to `docs`, to what it `uses`.
    """
    return _uses(
        path.relative_to(DOCS).as_posix()
        for path in sorted((DOCS / "guides").glob("*.md"))
    )


def _uses(pages):
    return {page: uses((DOCS / page).read_text("utf-8")) for page in pages}


def title_of(page):
    """Returns the title of a page, relative to `docs`."""
    return (DOCS / page).read_text("utf-8").partition("\n")[0].strip("# ")


@functools.cache
def taught_in(name):
    """Finds the section that teaches a name.

    It is the first section of a tutorial, or else of a guide, whose code uses
    the name. A name that no page uses, such as the class of a result, is taught
    with the other names of its module.

    Returns:
        Address relative to `docs`, or None.
    """
    for pages in tutorials(), guides():
        for one in _siblings(name):
            keys = one, one.partition(".")[0]
            chosen = [TAUGHT_IN[key] for key in keys if key in TAUGHT_IN]
            found = [
                f"{page}#{anchor(used[one])}"
                for page, used in pages.items()
                if one in used
            ]
            if chosen or found:
                return (chosen or found)[0]
    return None


def _siblings(name):
    """Lists a name, and after it the other names of its module."""
    module = definitions()[name].rpartition(".")[0]
    others = [
        other
        for other, path in definitions().items()
        if path.rpartition(".")[0] == module and other != name
    ]
    return [name, *others]
