"""A local HTTP server for a folder."""

import contextlib
import functools
import http.server
import threading


@contextlib.contextmanager
def serve(folder):
    """Serves a folder over HTTP, as a context manager.

    Args:
        folder: path.

    Yields:
        The address, such as `http://127.0.0.1:40123/`.
    """
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass
