"""BLEU after the same time: `examples/translate.py` and JoeyNMT.

Both train on the same 29,000 sentence pairs with the same 4,000 subwords, width
256 and 3 + 3 layers, each on one processor core, and are scored on the same
test sentences with beams of 4. One training each is evaluated after 15, 30 and
60 minutes of processor time.

    python -m benchmarks.translation_quality.prepare spa-eng.zip runs/quality
    export OMP_NUM_THREADS=1
    taskset -c 0 python -m benchmarks.translation_quality.ours runs/quality
    taskset -c 1 joeynmt/bin/python \
        benchmarks/translation_quality/joeynmt_run.py runs/quality
    python -m benchmarks.translation_quality.score runs/quality

`ours` passes further options on to `translate.py`. The table of BLEU by preset
and training pairs uses `prepare --pairs 5000 --vocabulary 1500`, `ours --preset
tiny`, and so on.

JoeyNMT has an environment of its own:

    python -m venv joeynmt
    joeynmt/bin/pip install torch==2.13.0 joeynmt importlib_metadata \
        "setuptools<80" sentencepiece==0.2.0
"""
