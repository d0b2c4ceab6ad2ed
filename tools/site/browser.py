"""Controls headless Chromium over the DevTools protocol, through two pipes.

https://chromedevtools.github.io/devtools-protocol/
"""

import contextlib
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--no-first-run",
    # Requests to other hosts fail, and the checks report them.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


class BrowserError(Exception):
    """A command failed, or the browser no longer answers."""


def find_browser():
    """Returns the path of an installed Chromium, or None."""
    return next(filter(None, map(shutil.which, _PROGRAMS)), None)


class Browser:
    """A running Chromium, as a context manager.

    Args:
        program: path of Chromium.
        seconds: float. Timeout of an answer. Default: 30.
    """

    def __init__(self, program, seconds=30.0):
        self.seconds = seconds
        self._program = str(program)
        self._listeners = {}
        self._number = 0
        self._unread = b""

    def __enter__(self):
        self._closing = contextlib.ExitStack()
        with contextlib.ExitStack() as started:
            folder = started.enter_context(
                tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            )
            self._start(folder, started)
            self._closing = started.pop_all()
        return self

    def __exit__(self, *_):
        self._closing.close()

    def _start(self, folder, started):
        root = hasattr(os, "geteuid") and os.geteuid() == 0
        # Chromium's sandbox does not run as root.
        flags = [*_FLAGS, *["--no-sandbox"] * root]
        read, self._to = _pipe()
        self._from, write = _pipe()
        for end in (self._to, self._from):
            started.callback(os.close, end)
        log = started.enter_context(open(pathlib.Path(folder) / "log", "wb"))
        process = subprocess.Popen(
            [
                # Chromium reads from 3 and writes to 4.
                "bash",
                "-c",
                f'exec "$0" "$@" 3<&{read} 4>&{write}',
                self._program,
                *flags,
                f"--user-data-dir={folder}/profile",
                "about:blank",
            ],
            pass_fds=(read, write),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        os.close(read)
        os.close(write)
        started.callback(_end, process)
        self.call("Browser.getVersion")

    def listen(self, session, listener):
        """Calls `listener(method, params)` for each event of a session."""
        self._listeners[session] = listener

    def send(self, method, session=None, **params):
        """Sends a command without waiting, and returns its number."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        return self._number

    def call(self, method, session=None, **params):
        """Sends a command and returns its result.

        Args:
            method: str, such as `"Page.navigate"`.
            session: str. The session of a tab. Default: the browser itself.
            **params: parameters of the command.

        Returns:
            Dict.

        Raises:
            BrowserError: the command failed or timed out.
        """
        number = self.send(method, session, **params)
        answer = self.wait(lambda m: m.get("id") == number, method)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def wait(self, accept, what):
        """Reads messages until `accept` returns True for one.

        Args:
            accept: callable on a message, a dict.
            what: str. What is waited for, for the error message.

        Returns:
            The message.

        Raises:
            BrowserError: no such message arrived in time.
        """
        deadline = time.monotonic() + self.seconds
        while True:
            message = self._read(deadline, what)
            if "method" in message:
                listener = self._listeners.get(message.get("sessionId"))
                if listener:
                    listener(message["method"], message["params"])
            if accept(message):
                return message

    def _read(self, deadline, what):
        while b"\0" not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._from], [], [], left)[0]:
                raise BrowserError(f"no answer in {self.seconds:g} s: {what}")
            read = os.read(self._from, 1 << 20)
            if not read:
                raise BrowserError(f"Chromium has ended; waited for: {what}")
            self._unread += read
        message, self._unread = self._unread.split(b"\0", 1)
        return json.loads(message)


def _pipe():
    # High numbers, so that 3 and 4 are free in the new process.
    ends = []
    for end in os.pipe():
        ends.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10))
        os.close(end)
    return ends


def _end(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
