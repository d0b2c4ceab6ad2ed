"""A browser tab with its own window, and its events."""

import base64
import pathlib
from typing import NamedTuple

from tools.site.browser import BrowserError


class Variant(NamedTuple):
    """The window and the color scheme in which a page is shown.

    Args:
        name: str.
        width: int. Width of the window, in CSS pixels.
        height: int. Height of the window, in CSS pixels.
        dark: bool. Whether the preferred color scheme is dark.
        mobile: bool. Whether to emulate a phone.
    """

    name: str
    width: int
    height: int
    dark: bool
    mobile: bool


VARIANTS = (
    Variant("desktop-light", 1280, 900, False, False),
    Variant("desktop-dark", 1280, 900, True, False),
    Variant("phone-light", 390, 844, False, True),
    Variant("phone-dark", 390, 844, True, True),
)


class Tab:
    """An isolated tab: it shares no storage and no cache with others.

    Args:
        browser: a running `Browser`.
        variant: `Variant`.
    """

    def __init__(self, browser, variant):
        self.variant = variant
        self.events = []
        self._browser = browser
        context = browser.call("Target.createBrowserContext")
        self._context = context["browserContextId"]
        target = browser.call(
            "Target.createTarget",
            url="about:blank",
            browserContextId=self._context,
        )
        attached = browser.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        self._session = attached["sessionId"]
        browser.listen(self._session, self._hear)
        for domain in ("Log", "Network", "Page", "Runtime"):
            self.call(f"{domain}.enable")
        # Workers load files too; they start once their events are captured.
        self.call(
            "Target.setAutoAttach",
            autoAttach=True,
            waitForDebuggerOnStart=True,
            flatten=True,
        )
        scheme = "dark" if variant.dark else "light"
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=variant.width,
            height=variant.height,
            deviceScaleFactor=1,
            mobile=variant.mobile,
        )

    def close(self):
        """Closes the tab and deletes its storage."""
        self._browser.call(
            "Target.disposeBrowserContext", browserContextId=self._context
        )

    def call(self, method, **params):
        """Sends a command to the tab; see `Browser.call`."""
        return self._browser.call(method, self._session, **params)

    def open(self, url):
        """Opens a page and waits for its load event."""
        self.events.clear()
        answer = self.call("Page.navigate", url=url)
        if "errorText" in answer:
            raise BrowserError(f"{url}: {answer['errorText']}")
        if "loaderId" not in answer:
            raise BrowserError(f"{url}: differs in its fragment only")
        if not any(
            method == "Page.loadEventFired" for method, _ in self.events
        ):
            self._browser.wait(
                lambda m: (
                    m.get("method") == "Page.loadEventFired"
                    and m.get("sessionId") == self._session
                ),
                f"the end of loading {url}",
            )

    def evaluate(self, program):
        """Runs JavaScript, awaits its promise and returns its value.

        Raises:
            BrowserError: the program threw.
        """
        answer = self.call(
            "Runtime.evaluate",
            expression=program,
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            what = details.get("exception", {}).get("description")
            raise BrowserError(f"the script threw: {what or details['text']}")
        return answer["result"].get("value")

    def screenshot(self, path):
        """Writes a screenshot of the whole page as PNG."""
        answer = self.call(
            "Page.captureScreenshot", captureBeyondViewport=True, format="png"
        )
        pathlib.Path(path).write_bytes(base64.b64decode(answer["data"]))

    def _hear(self, method, params):
        self.events.append((method, params))
        if method == "Target.attachedToTarget":
            worker = params["sessionId"]
            self._browser.listen(worker, self._hear)
            for domain in ("Log", "Network", "Runtime"):
                self._browser.send(f"{domain}.enable", worker)
            self._browser.send("Runtime.runIfWaitingForDebugger", worker)
