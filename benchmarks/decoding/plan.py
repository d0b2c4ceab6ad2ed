"""Contestants and sizes of the decoding benchmark."""

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
    "32 tokens; in batches of 32, half of the rows are padded. All contestants "
    "have the same random weights and generate the same tokens, which a test "
    "checks.",
    "Exactly 64 new tokens per sentence: the logits have a bias, as in Marian, "
    "which is -1e9 for the pad, start and end tokens. All contestants still "
    "check for the end token. Tokens/s counts the best sequence of each "
    "sentence, not its other hypotheses; *of peak* counts the products of all "
    "hypotheses, with cached keys and values, for every contestant.",
    "keras_attn: `model.generate(sources, max_new_tokens=64, strategy=...)`. "
    "transformers: `MarianMTModel.generate`. CTranslate2: `translate_batch`, "
    "one thread for a single sentence, one worker per core for 32; it has no "
    "backend, and its *of peak* is relative to PyTorch's peak.",
    "KerasHub: its encoder and decoder layers with their caches and its "
    "`GreedySampler` or `BeamSampler`, in a step like that of its "
    "`BartSeq2SeqLM`, but without that model's first pass over all target "
    "positions and without reordering the source tensors at each step. "
    "Compiled as one program on JAX and, with XLA, on TensorFlow; *without "
    "XLA*: Keras's default for `jit_compile` on a CPU.",
    "*Bare*: hand-written loops for this model, with the same cache, end of "
    "sequences and finished hypotheses; on JAX one compiled program.",
    "*TensorFlow tutorial*: one sentence at a time; each step runs the whole "
    "model on all tokens so far, as a `tf.function`. *Fixed length*: on a "
    "padded target, compiled with XLA.",
    "One sentence, greedy, on JAX was measured again 80 minutes after the "
    "rest, when the machine was nearly twice as fast: compare these three rows "
    "only with each other. In the first measurement keras_attn reached 0.85 of "
    "the speed of the bare loop. *Of peak* is relative to 102 GFLOP/s in these "
    "three rows and to 106 in the other JAX rows.",
    "Medians of 5 measurements of 4 batches of one sentence, or of 1 batch of "
    "32, each contestant in its own process, taking turns.",
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
            # It supports neither batches nor beams.
            cases=(_ONE,),
        )


CONTESTANTS = list(_contestants())
