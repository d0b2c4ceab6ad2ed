"""Says what is wrong with a page, as a reader would see it."""

import pathlib
import urllib.parse

PROBE = pathlib.Path(__file__).with_name("probe.js").read_text(encoding="utf-8")
_LOCAL = {"about", "blob", "data"}
_SCHEMES = {"default": False, "slate": True}


def check(tab, url):
    """Opens a page in a tab and lists what is wrong with it.

    Args:
        tab: `tools.site.tab.Tab`.
        url: str. The page.

    Returns:
        List of str: errors of scripts and on the console, files that did not
        come, requests to another host, pictures that are not shown, formulas
        that are not rendered, what is wider than the window, and a colour
        scheme that is not the one the reader prefers. Empty: nothing is wrong.
    """
    tab.open(url)
    seen = tab.evaluate(PROBE)
    host = urllib.parse.urlsplit(url).netloc
    return [*heard(tab.events, host), *_seen(seen, tab.variant)]


def heard(events, host):
    """Reads what a tab heard of the browser.

    Args:
        events: list of pairs, method and parameters: `Tab.events`.
        host: str. The one host that may be asked.

    Yields:
        Str: errors, files that did not come, requests to another host.
    """
    asked = {}
    for method, params in events:
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            what = details.get("exception", {}).get("description")
            yield f"script error: {what or details['text']}"
        elif method == "Runtime.consoleAPICalled":
            if params["type"] in ("assert", "error"):
                said = (
                    a.get("value", a.get("description")) for a in params["args"]
                )
                yield f"console: {' '.join(map(str, said))}"
        elif method == "Log.entryAdded":
            entry = params["entry"]
            # What the network failed to bring is told below, by its name.
            if entry["level"] == "error" and entry["source"] != "network":
                yield f"console: {entry['text']}"
        elif method == "Network.requestWillBeSent":
            address = params["request"]["url"]
            asked[params["requestId"]] = address
            parts = urllib.parse.urlsplit(address)
            if parts.scheme not in _LOCAL and parts.netloc != host:
                yield f"asks another host: {address}"
        elif method == "Network.webSocketCreated":
            yield f"opens a socket: {params['url']}"
        elif method == "Network.responseReceived":
            status = params["response"]["status"]
            if status >= 400:
                yield f"answered by {status}: {params['response']['url']}"
        elif method == "Network.loadingFailed" and not params.get("canceled"):
            address = asked.get(params["requestId"], "a file")
            yield f"did not come: {address} ({params['errorText']})"


def _seen(seen, variant):
    if seen["pageWidth"] > variant.width or seen["windowWidth"] > variant.width:
        widest = max(seen["pageWidth"], seen["windowWidth"])
        yield f"the page is {widest} pixels wide, its window {variant.width}"
    for element in seen["wide"]:
        yield f"sticks out of the window: {element}"
    for picture in seen["pictures"]:
        yield f"picture not shown: {picture}"
    for formula in [*seen["formulas"], *seen["typed"]]:
        yield f"formula not rendered: {formula}"
    if seen["scheme"] and _SCHEMES.get(seen["scheme"]) is not variant.dark:
        wanted = "dark" if variant.dark else "light"
        yield f"the colour scheme is `{seen['scheme']}`, not {wanted}"
