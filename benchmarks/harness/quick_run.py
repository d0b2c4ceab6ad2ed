"""The quick run: every table at a tiny size, to find what no longer runs.

It fails on errors only: the times of a quick run mean nothing.
"""

import concurrent.futures
import importlib
import importlib.util
import os
import pathlib
import subprocess
import sys
import time

from benchmarks.harness import race, report

TABLES = (
    "training_step",
    "training_step_gpu",
    "training_parts",
    "fit_overhead",
    "llama_training",
    "llama_decoding",
    "attention",
    "attention_gpu",
    "attention_memory",
    "projections",
    "decoding",
    "decoding_gpu",
    "step_capture",
    "segment_memory",
    "packing",
)
# JAX compiles most, so it starts first.
BACKENDS = "jax", "tensorflow", "torch"
# Programs that print their own table: what they need, and small sizes.
PROGRAMS = {
    "large_vocabulary": (
        BACKENDS,
        "--vocabulary 99 --rows 2 --length 4 --width 8 --layers 1 --steps 1 "
        "--rounds 1",
    ),
    "checkpoint_loading": (
        (*BACKENDS, "transformers"),
        "--layers 1 --width 64 --rounds 1",
    ),
    "context_parallel": (
        ("jax",),
        "--length 64 --width 16 --heads 2 --layers 1 --devices 1 2",
    ),
    "quantization": (
        ("torch",),
        "--epochs 0 --rounds 1 --tokens 2 --samples 2 --characters 9000 "
        "--modes float32,int8,gptq",
    ),
    "speculative_decoding": (
        ("torch",),
        "--layers 1 --width 16 --assistant-width 8 --steps 1 "
        "--assistant-steps 1 --rows 2 "
        "--drafts 2 --tokens 8 --rounds 1 --characters 9000",
    ),
    "cache_quantization": (
        BACKENDS,
        "--epochs 0 --rounds 1 --tokens 2 --characters 9000",
    ),
    "tokenizer_speed": (
        ("tokenizers", "sentencepiece"),
        "--texts 200 --rounds 1",
    ),
}
ABSENT = {
    "translation_quality": "trains for an hour, beside JoeyNMT in a "
    "separate environment"
}


def present(contestants):
    """Returns the contestants that can run, and the missing packages."""
    absent = {
        name
        for one in contestants
        for name in (one.needs, one.backend)
        if name and not _installed(name)
    }
    return [
        one
        for one in contestants
        if not absent.intersection((one.needs, one.backend))
    ], sorted(absent)


def everything(out):
    """Runs all tables and programs, several at a time.

    Args:
        out: path of the folder that receives the tables of each backend.

    Returns:
        Int: 0, or 1 if something failed.
    """
    started = time.monotonic()
    jobs = [_backend(name, out) for name in BACKENDS if _installed(name)]
    skipped = [f"{name}: {why}" for name, why in ABSENT.items()]
    skipped += [
        f"all tables on {name}: {name} is not installed"
        for name in BACKENDS
        if not _installed(name)
    ]
    for name, (needed, sizes) in PROGRAMS.items():
        missing = [one for one in needed if not _installed(one)]
        if missing:
            skipped.append(f"{name}: {missing[0]} is not installed")
        else:
            command = [sys.executable, "-m", f"benchmarks.{name}"]
            jobs.append((name, [*command, *sizes.split()], os.environ))
    failed = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for future in concurrent.futures.as_completed(
            [pool.submit(_finished, *job) for job in jobs]
        ):
            name, status, seconds, text = future.result()
            lines = text.splitlines()
            skipped += [x[9:] for x in lines if x.startswith("skipped: ")]
            print(f"{name}: {seconds:.0f} s", flush=True)
            for line in lines:
                if line.startswith("  "):
                    print(line, flush=True)
            if status:
                failed.append(name)
                print(text[-8000:], file=sys.stderr, flush=True)
    for line in dict.fromkeys(skipped):
        print(f"skipped: {line}")
    took = time.monotonic() - started
    end = f"failed: {', '.join(failed)}" if failed else "no errors"
    print(f"Every table at a tiny size in {took:.0f} s: {end}.")
    return int(bool(failed))


def run_backend(backend, out):
    """Runs the contestants of a backend in all tables, in forks.

    Args:
        backend: str. The backend of this process.
        out: path of the folder that receives the tables.

    Returns:
        Int: 0, or 1 if a table failed.
    """
    # Only here: the main process must not import a backend.
    from benchmarks.harness import forked

    forked.warm_up()
    failed = 0
    for name in TABLES:
        plan = importlib.import_module(f"benchmarks.{name}.plan")
        every = [one for one in plan.CONTESTANTS if one.backend == backend]
        here, _ = present(every)
        for one in every:
            if one not in here:
                print(
                    f"skipped: {name}: {one.name}: {one.needs} is not installed"
                )
        if not here:
            continue
        started = time.monotonic()
        try:
            result = race.run(
                plan, plan.QUICK_CASES, here, 2, runner=forked.ForkedRunner
            )
        except RuntimeError as error:
            failed = 1
            print(f"  {name}: failed. {error}", flush=True)
            continue
        result = report.complete(result, plan, name, quick=True)
        result["absent"] = sorted({o.needs for o in every if o not in here})
        report.write_all(result, out)
        took = time.monotonic() - started
        print(
            f"  {name}: {len(here)} contestants, {len(plan.QUICK_CASES)} "
            f"cases, {took:.0f} s",
            flush=True,
        )
    return failed


def _backend(name, out):
    program = [sys.executable, "-m", "benchmarks.harness.quick_run", name]
    # Tiny matrices: threads would only wait for each other.
    settings = {"KERAS_BACKEND": name, "OMP_NUM_THREADS": "1"}
    folder = pathlib.Path(out) / name
    return f"tables on {name}", [*program, folder], {**os.environ, **settings}


def _finished(name, command, environment):
    started = time.monotonic()
    done = subprocess.run(
        command,
        cwd=race.ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return name, done.returncode, time.monotonic() - started, done.stdout


def _installed(name):
    return importlib.util.find_spec(name) is not None


if __name__ == "__main__":
    sys.exit(run_backend(sys.argv[1], pathlib.Path(sys.argv[2])))
