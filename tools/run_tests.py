"""Runs the tests on each backend and reports where the time went.

`make test` calls it:

    python -m tools.run_tests --backends tensorflow jax torch --tests tests

One process per backend imports the backend and is forked for each part: the
tests of a folder, or some of its files. Several parts run in parallel. When few
parts of a backend are left, the next backend starts. If a part fails, its
output is printed and the run stops.
"""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import re
import select
import signal
import sys
import tempfile
import time

from tools.forked_pytest import fork_pytest, warm_up
from tools.hidden_packages import alone

ROOT = pathlib.Path(__file__).parents[1]
# Size of the files that run in one process, in bytes. Compiled programs stay in
# memory until the process ends.
PART_BYTES = 80_000
# Folders that take long for their size: programs train models, and the browser
# opens every page of the site. They start first, so that no worker waits for
# them at the end.
FIRST = ("tests/examples", "tests/site")
# pytest's status if no test was selected: all of them run on another backend.
NO_TESTS = 5
COVERAGE = (
    *("--cov=keras_attn", "--cov-branch", "--cov-context=test"),
    "--cov-report=",
)


def main(arguments):
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.run_tests",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--backends", nargs="+", required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--tests",
        default="tests",
        help="folders and files (patterns too), and options of pytest",
    )
    parser.add_argument(
        "--shard",
        type=shard,
        default=(1, 1),
        help="2/4: the second quarter of the parts",
    )
    parser.add_argument(
        "--coverage",
        type=pathlib.Path,
        help="folder: record there which test runs which line",
    )
    given = parser.parse_args(arguments)
    words = given.tests.split()
    options = [word for word in words if word.startswith("-")]
    files = find_tests([w for w in words if not w.startswith("-")])
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        run = Run(
            given.backends,
            options,
            given.workers,
            pathlib.Path(folder),
            given.coverage and given.coverage.resolve(),
        )
        number, count = given.shard
        parts = parts_of(files, given.workers)[number - 1 :: count]
        failed = run.all_of(parts)
    print(summary(run.ended, time.monotonic() - started))
    if failed:
        print(f"Stopped, tests failed on {failed}.", file=sys.stderr)
        return 1
    return 0


def shard(text):
    """Returns the number and the count of a shard, `"2/4"`.

    Raises:
        argparse.ArgumentTypeError: the text names no shard.
    """
    found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    number, count = map(int, found.groups()) if found else (1, 0)
    if number > count:
        raise argparse.ArgumentTypeError(
            f"SHARD must be NUMBER/COUNT, such as 2/4. Received: {text}"
        )
    return number, count


def find_tests(words):
    """Returns test files by folder, file or pattern, and ids of single tests.

    Args:
        words: list of str, relative to the root of the checkout.

    Returns:
        List of str, sorted, without duplicates.

    Raises:
        SystemExit: a word matches no file.
    """
    found = set()
    for word in words:
        path, _, test = word.partition("::")
        paths = sorted(ROOT.glob(path.rstrip("/")))
        if not paths:
            sys.exit(f"TESTS must name tests. Received: {word}")
        for one in paths:
            inside = one.rglob("test_*.py") if one.is_dir() else [one]
            names = [each.relative_to(ROOT).as_posix() for each in inside]
            found |= {f"{name}::{test}" if test else name for name in names}
    return sorted(found)


def parts_of(files, workers=1):
    """Splits tests into parts, each of one folder, in the order of their start.

    The folders `FIRST` start first, then the largest parts. A few files make
    small parts, so that all workers have two.

    Args:
        files: list of str, from `find_tests`.
        workers: int. Parts that run in parallel. Default 1.

    Returns:
        List of pairs of a name and a list of files.
    """
    folders = collections.defaultdict(list)
    for file in files:
        folders[os.path.dirname(file.partition("::")[0])].append(file)
    part_bytes = min(PART_BYTES, sum(map(_bytes, files)) / (2 * workers))
    parts = []
    for folder, inside in folders.items():
        sizes = [_bytes(file) for file in inside]
        number = round(sum(sizes) / part_bytes)
        number = min(max(1, number), len(inside))
        share, done, split = sum(sizes) / number, 0, [[] for _ in range(number)]
        for file, size in zip(inside, sizes, strict=True):
            split[min(int(done / share), number - 1)].append(file)
            done += size
        for index, some in enumerate(filter(None, split)):
            name = folder if number == 1 else f"{folder} {index + 1}/{number}"
            parts.append((name, some))
    return sorted(
        parts,
        key=lambda part: (
            part[0].split()[0] not in FIRST,
            -sum(map(_bytes, part[1])),
        ),
    )


def _bytes(file):
    return (ROOT / file.partition("::")[0]).stat().st_size


@dataclasses.dataclass
class Part:
    """A part that has run.

    Attributes:
        backend: str.
        name: str. Its folder.
        status: int. Of pytest.
        seconds: float. From its fork to its end.
        files: dict from a file to the seconds of its tests.
        outcomes: dict from "passed", "failed" or "skipped" to a number.
    """

    backend: str
    name: str
    status: int = 0
    seconds: float = dataclasses.field(default_factory=time.monotonic)
    files: dict = dataclasses.field(default_factory=dict)
    outcomes: dict = dataclasses.field(default_factory=dict)

    def line(self):
        """Summarizes the result in one line."""
        counts = ", ".join(f"{n} {name}" for name, n in self.outcomes.items())
        return (
            f"{self.backend:10} {self.name:22} {self.seconds:6.1f} s  {counts}"
        )


class Run:
    """Runs all parts on all backends, a few at a time.

    Args:
        backends: list of str, in the order in which they run.
        options: list of str. Pytest options.
        workers: int. Parts that run in parallel.
        folder: `pathlib.Path`. For logs and results.
        coverage: `pathlib.Path` of a folder, or None. For each part, the data
            of coverage.py, with a context for each test, and the seconds of
            each test, as `BACKEND-NUMBER.coverage` and `.json`.

    Attributes:
        ended: list of `Part`.
    """

    def __init__(self, backends, options, workers, folder, coverage=None):
        self.ended = []
        self._backends, self._options = backends, options
        self._workers, self._folder = workers, folder
        self._coverage = coverage
        if coverage is not None:
            coverage.mkdir(parents=True, exist_ok=True)
            self._options = [*options, *COVERAGE]

    def all_of(self, parts):
        """Runs parts on each backend; returns a backend that failed, or ""."""
        # One byte for each part that may run, as in make's jobserver.
        slots, free = os.pipe()
        os.set_blocking(slots, False)
        os.write(free, b"." * self._workers)
        waiting, servers = list(self._backends), {}
        try:
            self._next(waiting, servers, parts, slots, free)
            while servers:
                for pipe in select.select(list(servers), [], [])[0]:
                    server, lines, backend = servers[pipe]
                    for line in lines.read():
                        if line == "nearly done":
                            self._next(waiting, servers, parts, slots, free)
                        elif self._failed(line):
                            return self.ended[-1].backend
                    if lines.closed:
                        del servers[pipe]
                        # A server that died has skipped parts.
                        if os.waitpid(server, 0)[1]:
                            return backend
            return ""
        finally:
            for server, *_ in servers.values():
                os.kill(server, signal.SIGTERM)
                os.waitpid(server, 0)

    def _next(self, waiting, servers, parts, slots, free):
        if not waiting:
            return
        backend = waiting.pop(0)
        reading, writing = os.pipe()
        server = os.fork()
        if not server:
            try:
                self._serve(backend, parts, slots, free, writing)
            finally:
                # An exception was printed; the parent's code must not run on.
                os._exit(1)
        os.close(writing)
        servers[reading] = server, _Lines(reading), backend

    def _failed(self, line):
        base = self._folder / line
        part = Part(**json.loads(base.with_suffix(".part").read_text("utf-8")))
        self.ended.append(part)
        print(part.line(), flush=True)
        if part.status in (0, NO_TESTS):
            return False
        log = base.with_suffix(".log")
        print(log.read_text("utf-8", errors="replace"), flush=True)
        return True

    def _serve(self, backend, parts, slots, free, writing):
        """Forks this process for each part, in the server; does not return."""
        running = {}

        def stop(*_):
            for process in running:
                os.killpg(process, signal.SIGKILL)
            os._exit(1)

        def collect():
            """Reports the parts that have ended, and gives their slots back."""
            while running:
                process, status = os.waitpid(-1, os.WNOHANG)
                if not process:
                    return
                base, part = running.pop(process)
                _finish(part, status, base)
                os.write(free, b".")
                os.write(writing, f"{base.name}\n".encode())

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        os.environ["KERAS_BACKEND"] = backend
        backends, share = self._backends, "1/1"
        if alone():
            share = f"{backends.index(backend) + 1}/{len(backends)}"
            backends = [backend]
        os.environ["TEST_BACKENDS"] = " ".join(backends)
        os.environ["ALONE_SHARE"] = share
        if len(parts) > 1:
            warm_up()
        waiting, told = list(enumerate(parts)), False
        while waiting or running:
            collect()
            if len(waiting) <= self._workers and not told:
                # The next backend is imported while the last parts run.
                os.write(writing, b"nearly done\n")
                told = True
            if not waiting or not _take(slots):
                time.sleep(0.1)
                continue
            number, (name, files) = waiting.pop(0)
            base = self._folder / f"{backend}-{number}"
            environment, seconds = {}, None
            if self._coverage is not None:
                recorded = self._coverage / base.name
                environment["COVERAGE_FILE"] = f"{recorded}.coverage"
                seconds = recorded.with_suffix(".json")
            process = fork_pytest(
                ["-q", *self._options, *files],
                base.with_suffix(".log"),
                plugins=[_Recorder(base.with_suffix(".json"), seconds)],
                environment=environment,
            )
            running[process] = base, Part(backend, name)
        os._exit(0)


def _finish(part, status, base):
    """Writes the result of a part, for the process that reports it."""
    part.status = os.waitstatus_to_exitcode(status)
    part.seconds = time.monotonic() - part.seconds
    recorded = base.with_suffix(".json")
    if recorded.exists():
        content = json.loads(recorded.read_text(encoding="utf-8"))
        part.files, part.outcomes = content["files"], content["outcomes"]
    text = json.dumps(dataclasses.asdict(part))
    base.with_suffix(".part").write_text(text, encoding="utf-8")


def _take(slots):
    try:
        return os.read(slots, 1)
    except BlockingIOError:
        return b""


class _Lines:
    """Reads complete lines from a pipe that is written incrementally."""

    def __init__(self, pipe):
        self._pipe, self._rest, self.closed = pipe, "", False

    def read(self):
        """Returns the lines available now."""
        content = os.read(self._pipe, 1 << 16).decode()
        if not content:
            self.closed = True
            os.close(self._pipe)
        *lines, self._rest = (self._rest + content).split("\n")
        return lines


class _Recorder:
    """Pytest plugin: writes the durations and outcomes of the tests."""

    def __init__(self, path, tests=None):
        self._path, self._tests = path, tests
        self._seconds = collections.Counter()
        self._outcomes = collections.Counter()

    def pytest_runtest_logreport(self, report):
        self._seconds[report.nodeid] += report.duration
        if report.when == "call" or report.outcome != "passed":
            self._outcomes[report.outcome] += 1

    def pytest_sessionfinish(self):
        files = collections.Counter()
        for test, seconds in self._seconds.items():
            files[test.partition("::")[0]] += seconds
        content = {"files": files, "outcomes": self._outcomes}
        self._path.write_text(json.dumps(content), encoding="utf-8")
        if self._tests is not None:
            text = json.dumps(self._seconds, indent=0)
            self._tests.write_text(text, encoding="utf-8")


def summary(parts, seconds):
    """Lists the seconds of each folder and backend, and the slowest files.

    Args:
        parts: list of `Part`.
        seconds: float. From start to end.

    Returns:
        str of several lines, the last one the number of tests.
    """
    backends = list(dict.fromkeys(part.backend for part in parts))
    table, files = collections.Counter(), collections.Counter()
    outcomes = collections.Counter()
    for part in parts:
        outcomes.update(part.outcomes)
        for file, time_of_it in part.files.items():
            table[os.path.dirname(file), part.backend] += time_of_it
            files[file, part.backend] += time_of_it
    folders = sorted({folder for folder, _ in table})
    lines = ["", f"{'seconds':22}" + "".join(f"{b:>12}" for b in backends)]
    for folder in folders:
        cells = (f"{table[folder, backend]:12.0f}" for backend in backends)
        lines.append(f"{folder:22}" + "".join(cells))
    totals = (
        f"{sum(table[folder, backend] for folder in folders):12.0f}"
        for backend in backends
    )
    lines += [f"{'all':22}" + "".join(totals), "", "The 20 slowest files:"]
    for (file, backend), time_of_it in files.most_common(20):
        lines.append(f"{time_of_it:8.1f} s  {backend:10} {file}")
    passed, bad = outcomes["passed"], outcomes["failed"]
    counts = f"{passed} passed, {bad} failed, {outcomes['skipped']} skipped"
    return "\n".join([*lines, "", f"All of it took {seconds:.0f} s.", counts])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
