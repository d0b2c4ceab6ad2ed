"""Who decodes, on which sizes, and what it costs at least."""

from benchmarks.decoding.task import flops, tokens
from benchmarks.harness.contestant import Contestant
from benchmarks.training_step import plan as training

__all__ = ["flops", "tokens"]

TITLE = "Decoding of an encoder-decoder Transformer"
ROUNDS = 5
STEPS = 1
PACKAGES = "transformers", "ctranslate2"

_MODEL = {
    key: training.CASES[0][key]
    for key in ("vocabulary", "layers", "heads", "width", "inner")
}
_ONE = "batch 1, greedy"


def _case(rows, beams, steps, model, length, new):
    how = "greedy" if beams == 1 else f"beam {beams}"
    name = f"batch {rows}, {how}"
    return {
        "name": name,
        "title": name[0].upper() + name[1:],
        "steps": steps,
        "rows": rows,
        "beams": beams,
        "length": length,
        "new": new,
        **model,
    }


CASES = [
    _case(rows, beams, steps, _MODEL, length=32, new=64)
    for rows, steps in ((1, 4), (32, 1))
    for beams in (1, 4)
]
_TINY = {"vocabulary": 60, "layers": 2, "heads": 2, "width": 16, "inner": 32}
QUICK_CASES = [
    _case(rows, beams, 1, _TINY, length=12, new=6)
    for rows, beams in ((1, 1), (3, 4))
]

NOTES = [
    "Width 256, 4 heads, feed-forward width 1,024, 3 + 3 layers, vocabulary "
    "8,000 with one matrix for source, target and output, float32. Sources of "
    "32 tokens; in batches of 32, half of the rows are padded. Everyone has "
    "the same random weights and generates the same tokens, which a test sees.",
    "Exactly 64 new tokens a sentence: the logits have a bias, as Marian's "
    "have, and that of the pad, start and end token is -1e9. Everyone looks "
    "for the end token all the same. Tokens/s counts the best sequence of each "
    "sentence, not its other hypotheses; *of peak* counts the products of all "
    "hypotheses, with cached keys and values, whatever a contestant does.",
    "keras_attn: `model.generate(sources, max_new_tokens=64, strategy=...)`. "
    "transformers: `MarianMTModel.generate`. CTranslate2: `translate_batch`, "
    "one thread for a single sentence, a worker on each core for 32; it has "
    "no backend, and its share of peak is that of PyTorch's.",
    "KerasHub: its encoder and decoder layers with their caches and its "
    "`GreedySampler` or `BeamSampler`, in a step like that of its "
    "`BartSeq2SeqLM`, but without that model's first pass over all places of "
    "the target and without moving what belongs to the source at each step. "
    "Compiled whole on JAX and, with XLA, on TensorFlow; *without XLA*: as "
    "Keras's default for `jit_compile` has it on a CPU.",
    "*Bare*: loops written by hand for this model, with the same cache, end of "
    "sequences and finished hypotheses; on JAX one compiled program.",
    "*TensorFlow tutorial*: one sentence at a time, the whole model on all "
    "tokens so far at each step, as a `tf.function`; *fixed length*: on a "
    "padded target, compiled with XLA.",
    "One sentence, greedy, on JAX was measured again 80 minutes after the "
    "rest, when the machine was nearly twice as fast: compare these three rows "
    "with each other alone. The first time keras_attn had reached 0.85 of the "
    "bare loop. The shares of peak of these three rows are of 102 GFLOP/s, "
    "those of JAX's other rows of 106.",
    "Medians of 5 measurements of 4 batches of one sentence, or of 1 of 32, in "
    "processes of their own that take turns.",
]


def _contestants():
    folder = "benchmarks.decoding"
    against = {
        "torch": "bare PyTorch",
        "jax": "bare JAX",
        "tensorflow": "KerasHub on tensorflow",
    }
    for backend, peer in against.items():
        yield Contestant(
            f"keras_attn on {backend}", backend, f"{folder}.ours", None, peer
        )
    for backend in against:
        yield Contestant(
            f"KerasHub on {backend}",
            backend,
            f"{folder}.keras_hub",
            against=f"keras_attn on {backend}",
            needs="keras_hub",
        )
    yield Contestant(
        "KerasHub on tensorflow, without XLA",
        "tensorflow",
        f"{folder}.keras_hub",
        {"xla": False},
        "keras_attn on tensorflow",
        "keras_hub",
    )
    for name, backend, module, needs in (
        ("transformers (Marian)", "torch", "hugging_face", "transformers"),
        ("CTranslate2", "torch", "ctranslate2", "ctranslate2"),
        ("bare PyTorch", "torch", "bare_torch", ""),
        ("bare JAX", "jax", "bare_jax", ""),
    ):
        yield Contestant(
            name,
            backend,
            f"{folder}.{module}",
            against="" if name.startswith("bare") else "keras_attn on torch",
            needs=needs,
        )
    for name, growing in (("", True), (", fixed length", False)):
        yield Contestant(
            f"TensorFlow tutorial{name}",
            "tensorflow",
            f"{folder}.tensorflow_tutorial",
            {"growing": growing},
            "keras_attn on tensorflow",
            # It knows no batches and no beams.
            cases=(_ONE,),
        )


CONTESTANTS = list(_contestants())
