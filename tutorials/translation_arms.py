"""The four translators that are compared, each as wide as is fair."""

import math

from keras_attn.models import RecurrentSeq2Seq, Transformer

ATTENTIONS = {
    "none": {"attention": None},
    "additive": {"attention": "additive"},
    "general": {"attention": "general", "input_feeding": True},
}
ARMS = (*ATTENTIONS, "transformer")
# Counts of parameters that differ by less are called equal.
TOLERANCE = 0.02


def read_arms(text):
    """Returns the names of the arms that a setting asks for.

    Args:
        text: str, names with commas between.

    Returns:
        List of str, in the order given.

    Raises:
        ValueError: no name, one twice, or one that is not known.

    Examples:
    >>> read_arms("none, additive")
    ['none', 'additive']
    """
    names = [name.strip() for name in text.split(",")]
    if len({*names}) < len(names) or {*names} - {*ARMS}:
        raise ValueError(
            f"ARMS must name some of {', '.join(ARMS)}, each once, with commas "
            f"between. Received: ARMS={text}"
        )
    return names


def build_arm(name, width, vocabulary_size, run, **options):
    """Builds an arm.

    Args:
        name: str, one of `ARMS`.
        width: int. D of the model; even, and a multiple of the heads.
        vocabulary_size: int. V of both sides.
        run: has `layers`, `blocks`, `heads` and `dropout`.
        **options: further arguments of the model, such as `pad_id` or
            `scheduled_sampling`.

    Returns:
        `RecurrentSeq2Seq` or `Transformer`.
    """
    if name == "transformer":
        return Transformer(
            vocabulary_size,
            num_layers=run.blocks,
            num_heads=run.heads,
            hidden_dim=width,
            intermediate_dim=4 * width,
            dropout=run.dropout,
            **options,
        )
    return RecurrentSeq2Seq(
        vocabulary_size,
        num_layers=run.layers,
        hidden_dim=width,
        bidirectional=True,
        dropout=run.dropout,
        **ATTENTIONS[name],
        **options,
    )


def parameters(name, width, vocabulary_size, run):
    """Returns how many parameters an arm has, without building it.

    Args:
        name: str, one of `ARMS`.
        width: int. D of the model.
        vocabulary_size: int. V of both sides.
        run: has `layers` and `blocks`.

    Returns:
        Int.
    """
    v, d = vocabulary_size, width
    if name == "transformer":
        # One matrix for source, target and output. Four products of an
        # attention, two of a feed-forward network, gains and biases.
        attention, network, norm = 4 * d * (d + 1), 8 * d**2 + 5 * d, 2 * d
        encoder = attention + network + 2 * norm
        decoder = 2 * attention + network + 3 * norm
        return v * d + run.blocks * (encoder + decoder)
    # An LSTM has four gates, which read the input and the state, with a bias.
    # Of the encoder each direction has half of the features.
    encoder = 2 * 4 * (d // 2) * (d + d // 2 + 1)
    decoder = 4 * d * (d + d + 1)
    fed = 4 * d * d if name == "general" else 0
    score = {"none": 0, "additive": 2 * d * d + d, "general": d * d}[name]
    mixing = 2 * d * d if name != "none" else 0
    # Source, target and output have a matrix each, the output a bias.
    tables = 3 * v * d + v
    return tables + run.layers * (encoder + decoder) + fed + score + mixing


def equal_widths(names, vocabulary_size, run):
    """Chooses widths with which all arms have as many parameters.

    As many as the arm `additive` has with the width that is asked for.

    Args:
        names: list of str, some of `ARMS`.
        vocabulary_size: int. V of both sides.
        run: has `width`, `layers`, `blocks` and `heads`.

    Returns:
        Dict of name to width.

    Raises:
        ValueError: no width of an arm comes within 2 %.

    Examples:
    >>> import recurrent_settings
    >>> equal_widths(["none", "general"], 1500, recurrent_settings.Settings())
    {'none': 136, 'general': 122}
    """
    wanted = parameters("additive", run.width, vocabulary_size, run)
    widths = {}
    for name in names:
        if name == "additive":
            widths[name] = run.width
            continue
        step = math.lcm(2, run.heads) if name == "transformer" else 2
        width = min(
            range(step, 8 * run.width + step, step),
            key=lambda d: abs(
                parameters(name, d, vocabulary_size, run) - wanted
            ),
        )
        count = parameters(name, width, vocabulary_size, run)
        if abs(count - wanted) > TOLERANCE * wanted:
            raise ValueError(
                "WIDTH must be such that all arms can have as many parameters, "
                f"within {TOLERANCE:.0%}: try a width beside it, or a larger "
                "one. Received: "
                f"WIDTH={run.width}: {wanted:,} parameters, {name} has "
                f"{count:,} with a width of {width}"
            )
        widths[name] = width
    return widths
