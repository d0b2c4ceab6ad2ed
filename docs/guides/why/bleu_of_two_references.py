"""BLEU against one reference and against two. `theirs` requires KerasHub.

Requires sacreBLEU: `pip install sacrebleu`. The translation has six words, the
references nine and two. Nine is nearer: the brevity penalty is exp(1 - 9 / 6).
"""

import keras
import sacrebleu

try:
    import keras_hub
except ImportError:
    keras_hub = None

translation = "the cat sat on the mat"
references = ["the cat sat on the mat today at noon", "the cat"]


def theirs(references):
    metric = keras_hub.metrics.Bleu()
    metric.update_state([references], [translation])
    return 100 * float(metric.result())


def ours(references):
    # One list per reference, not one per translation.
    streams = [[reference] for reference in references]
    return sacrebleu.corpus_bleu([translation], streams).score


def describe(bleu):
    one, two = bleu(references[:1]), bleu(references)
    return f"{one:.2f} with the first reference, {two:.2f} with both"


print(f"keras {keras.__version__} on {keras.backend.backend()}")
if keras_hub is None:
    print("theirs: not shown, for want of KerasHub: pip install keras-hub")
else:
    print(f"keras-hub {keras_hub.__version__}")
    print("theirs:", describe(theirs))
print("ours:  ", describe(ours))
