"""`keras_attn.models.TransformerXL`, with or without memory."""

import numpy as np

from benchmarks.segment_memory import task
from keras_attn.models import TransformerXL


def prepare(case, way="memory"):
    """Returns a callable that reads the text a number of times.

    Args:
        case: dict of sizes.
        way: str. `"memory"`: the model carries its memory; `"segment"` or
            `"token"`: it reads one window per segment or token.
    """
    remembers = way == "memory"
    model = TransformerXL(
        task.VOCABULARY,
        case["layers"],
        case["heads"],
        case["width"],
        memory_length=case["memory"] if remembers else 0,
        stateful_batch_size=case["rows"] if remembers else None,
        activation="gelu",
        normalize_first=True,
        pad_id=None,
        start_id=None,
        end_id=None,
    )
    batches = _segments(case) if remembers else _windows(case, way)

    def run(steps):
        for _ in range(steps):
            for batch in batches:
                last = model.predict_on_batch(batch)
        return float(np.mean(last))

    return run


def _segments(case):
    lines, length = task.lines(case), case["segment"]
    starts = np.zeros((case["rows"], length), "int32")
    return [
        {
            "token_ids": lines[:, start : start + length],
            "document_starts": starts,
        }
        for start in range(0, lines.shape[1], length)
    ]


def _windows(case, way):
    step = case["segment"] if way == "segment" else 1
    windows, rows = task.windows(case, step), case["rows"]
    return [windows[i : i + rows] for i in range(0, len(windows), rows)]
