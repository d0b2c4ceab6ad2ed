"""Checks of a rendered page."""

import pathlib
import urllib.parse

PROBE = pathlib.Path(__file__).with_name("probe.js").read_text(encoding="utf-8")
_LOCAL = {"about", "blob", "data"}
_SCHEMES = {"default": False, "slate": True}


def check(tab, url):
    """Opens a page in a tab and lists its problems.

    Args:
        tab: `tools.site.tab.Tab`.
        url: str. The page.

    Returns:
        List of str: script and console errors, files that failed to load,
        requests to another host, images not shown, formulas not rendered,
        elements wider than the window, and a color scheme other than the
        preferred one. Empty if there are none.
    """
    tab.open(url)
    seen = tab.evaluate(PROBE)
    host = urllib.parse.urlsplit(url).netloc
    return [*heard(tab.events, host), *_seen(seen, tab.variant)]


def heard(events, host):
    """Reports problems in the events of a tab.

    Args:
        events: list of pairs, method and parameters: `Tab.events`.
        host: str. The only host that pages may send requests to.

    Yields:
        Str: errors, files that failed to load, requests to another host.
    """
    requested = {}
    for method, params in events:
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            what = details.get("exception", {}).get("description")
            yield f"script error: {what or details['text']}"
        elif method == "Runtime.consoleAPICalled":
            if params["type"] in ("assert", "error"):
                values = (
                    a.get("value", a.get("description")) for a in params["args"]
                )
                yield f"console: {' '.join(map(str, values))}"
        elif method == "Log.entryAdded":
            entry = params["entry"]
            # Network errors are reported below, with the address.
            if entry["level"] == "error" and entry["source"] != "network":
                yield f"console: {entry['text']}"
        elif method == "Network.requestWillBeSent":
            address = params["request"]["url"]
            requested[params["requestId"]] = address
            parts = urllib.parse.urlsplit(address)
            if parts.scheme not in _LOCAL and parts.netloc != host:
                yield f"request to another host: {address}"
        elif method == "Network.webSocketCreated":
            yield f"opens a socket: {params['url']}"
        elif method == "Network.responseReceived":
            status = params["response"]["status"]
            if status >= 400:
                yield f"status {status}: {params['response']['url']}"
        elif method == "Network.loadingFailed" and not params.get("canceled"):
            address = requested.get(params["requestId"], "a file")
            yield f"failed to load: {address} ({params['errorText']})"


def _seen(seen, variant):
    if seen["pageWidth"] > variant.width or seen["windowWidth"] > variant.width:
        widest = max(seen["pageWidth"], seen["windowWidth"])
        yield f"the page is {widest} pixels wide, its window {variant.width}"
    for element in seen["wide"]:
        yield f"wider than the window: {element}"
    for picture in seen["pictures"]:
        yield f"image not shown: {picture}"
    for formula in [*seen["formulas"], *seen["typed"]]:
        yield f"formula not rendered: {formula}"
    if seen["scheme"] and _SCHEMES.get(seen["scheme"]) is not variant.dark:
        expected = "dark" if variant.dark else "light"
        yield f"the color scheme is `{seen['scheme']}`, not {expected}"
