"""A local HTTP server for a folder."""

import contextlib
import functools
import http.server
import json
import pathlib
import threading

_INDEX = "/search/search_index.json"


@contextlib.contextmanager
def serve(folder, search=True):
    """Serves a folder over HTTP, as a context manager.

    Args:
        folder: path.
        search: bool. Whether the search of the site finds all pages. Otherwise
            it finds one: every page builds the index when it opens, which takes
            long. Default True.

    Yields:
        The address, such as `http://127.0.0.1:40123/`.
    """
    handler = functools.partial(
        _Quiet if search else _WithoutSearch, directory=str(folder)
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class _WithoutSearch(_Quiet):
    def do_GET(self):
        if self.path != _INDEX:
            super().do_GET()
            return
        path = pathlib.Path(self.directory + _INDEX)
        index = json.loads(path.read_text("utf-8"))
        index["docs"] = index["docs"][:1]
        self.send_response(http.HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(index).encode())
