"""A headless Chromium, driven by its DevTools protocol over a pipe, and pages in it."""

import base64
import io
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

import numpy
import PIL.Image

# What a page may take to come to what is waited for, on a machine that is slow and busy.
PATIENCE = 120

# Descriptors 3 and 4 are where Chromium reads and writes.
START = 'exec "$0" "$@" 3<&{} 4>&{}'

FLAGS = ("--headless", "--remote-debugging-pipe", "--disable-gpu", "--disable-dev-shm-usage",
         "--disable-background-networking", "--disable-component-update", "--no-first-run", "--hide-scrollbars",
         "--force-color-profile=srgb", "about:blank")


class Browser:

    def __init__(self):
        program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
        if program is None:
            raise AssertionError("no Chromium; deploy/install_packages.sh --tests installs it")
        self._directory = pathlib.Path(tempfile.mkdtemp(prefix="opserve-test-"))
        from_here, self._write = os.pipe()
        self._read, to_here = os.pipe()
        # Its sandbox needs rights that root in a container does not have.
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", START.format(from_here, to_here), program, *sandbox,
             f"--user-data-dir={self._directory}", *FLAGS],
            pass_fds=(from_here, to_here), stderr=subprocess.DEVNULL,
            env=dict(os.environ, HOME=str(self._directory)))
        os.close(from_here)
        os.close(to_here)
        self._received = b""
        self._last_id = 0
        self.events = []

    def close(self):
        os.close(self._write)  # it ends when nobody drives it
        self._process.wait(timeout=PATIENCE)
        os.close(self._read)
        shutil.rmtree(self._directory, ignore_errors=True)

    def call(self, method, session=None, **parameters):
        """The result of a method of the protocol. Events that come meanwhile are kept."""
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer = self._read_until(lambda answer: answer.get("id") == self._last_id)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def await_event(self, session, method):
        self._read_until(
            lambda event: event.get("method") == method and event.get("sessionId") == session)

    def _read_until(self, is_wanted):
        deadline = time.monotonic() + PATIENCE
        while True:
            message = self._next_message(deadline)
            if "method" in message:
                self.events.append(message)
            if is_wanted(message):
                return message

    def _next_message(self, deadline):
        while b"\0" not in self._received:
            if not select.select([self._read], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"the browser has not answered for {PATIENCE} s")
            received = os.read(self._read, 1 << 20)
            if not received:
                raise AssertionError("the browser has ended")
            self._received += received
        message, self._received = self._received.split(b"\0", 1)
        return json.loads(message)

    def open(self, url="about:blank", width=1400, height=1000, is_dark=False):
        return Page(self, url, width, height, is_dark)


class Page:

    def __init__(self, browser, url, width, height, is_dark):
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}])
        self.call("Page.navigate", url=url)
        browser.await_event(self._session, "Page.loadEventFired")

    def call(self, method, **parameters):
        return self._browser.call(method, self._session, **parameters)

    def events(self, method):
        """Parameters of what has happened so far."""
        return [event["params"] for event in self._browser.events
                if event.get("sessionId") == self._session and event["method"] == method]

    def evaluate(self, expression):
        """The value of a JavaScript expression; of a promise, what it comes to."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_until(self, condition):
        """Until a JavaScript expression is true, which is looked at whenever the document changes."""
        try:
            self.evaluate(f"""new Promise((resolve) => {{
                const look = () => ({condition}) && (observer.disconnect(), resolve());
                const observer = new MutationObserver(look);
                observer.observe(document, {{ subtree: true, childList: true, characterData: true,
                                             attributes: true }});
                look();
            }})""")
        except AssertionError as error:
            raise AssertionError(f"{condition}: {error}; the page: {self.text()}") from None

    def text(self, selector="body"):
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")

    def requests(self):
        """Addresses that were asked for."""
        return [event["request"]["url"] for event in self.events("Network.requestWillBeSent")]

    def complaints(self):
        """Exceptions, and what the browser says of violations of the page's policy."""
        return (self.events("Runtime.exceptionThrown")
                + [event for event in self.events("Log.entryAdded")
                   if event["entry"]["source"] != "network"])

    def screenshot(self, path=None):
        """The whole page as an array of rows of RGB pixels."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        png = base64.b64decode(shot)
        if path is not None:
            pathlib.Path(path).write_bytes(png)
        return numpy.asarray(PIL.Image.open(io.BytesIO(png)).convert("RGB"))
