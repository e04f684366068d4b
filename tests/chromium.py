"""A headless Chromium for the tests, driven over a pipe by its DevTools protocol.

No driver and no library: messages are JSON texts that end with a zero byte, commands on file
descriptor 3 of the browser, answers and events on 4.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time

from patience import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_chromium():
    """Path of a browser on this machine, or None; ``GEOMIX_CHROMIUM`` names another."""
    wanted = os.environ.get("GEOMIX_CHROMIUM")
    return wanted or next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One page of a browser of its own. ``problems``: errors, refused loads and requests."""

    def __init__(self, profile):
        to_browser, self._commands = os.pipe()
        self._answers, from_browser = os.pipe()
        self._buffer, self._last, self._session = b"", 0, None
        self.problems, self.requests = [], []
        self._browser = _start(profile, to_browser, from_browser)
        os.close(to_browser)
        os.close(from_browser)
        try:
            target = self.ask("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)[
                "sessionId"
            ]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.ask(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._browser.kill()
        self._browser.wait()
        os.close(self._commands)
        os.close(self._answers)

    def ask(self, method, **parameters):
        """Send a command and wait for its answer; events on the way are noted."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._commands, data) :]
        while True:
            answer = self._read()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path):
        """Load a file and wait until its scripts have run."""
        self.problems.clear()
        self.requests.clear()
        self.ask("Page.navigate", url=path.as_uri())
        self.wait_for("document.readyState === 'complete' && location.protocol === 'file:'")

    def wait_for(self, condition):
        end = time.monotonic() + PATIENCE
        while not self.run(condition):
            assert time.monotonic() < end, f"{condition} did not come true in {PATIENCE} s"
            time.sleep(0.02)

    def run(self, expression):
        """The value of a JavaScript expression, as JSON carries it."""
        given = {"returnByValue": True, "awaitPromise": True}
        answer = self.ask("Runtime.evaluate", expression=expression, **given)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def press(self, key, code, text=""):
        """A key, as the keyboard would send it."""
        told = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **told, text=text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **told)

    def screenshot(self, path, *, width=1100, height=None, dark=False):
        """A picture of the whole page, or of its first ``height`` pixels."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        size = {"width": width, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", height=900, **size)
        whole = self.run("document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": width, "height": height or whole, "scale": 1}
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self, path):
        printed = self.ask("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(printed["data"]))

    def _read(self):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], PATIENCE)
            assert ready, f"the browser said nothing for {PATIENCE} s"
            data = os.read(self._answers, 1 << 20)
            assert data, "the browser has ended"
            self._buffer += data
        message, self._buffer = self._buffer.split(b"\0", 1)
        event = json.loads(message)
        self._note(event)
        return event

    def _note(self, event):
        method, told = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(told["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning"):
            self.problems.append(told["args"])
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.problems.append(told["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.problems.append(told["message"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])


def _start(profile, to_browser, from_browser):
    """The browser with our pipe ends as its descriptors 3 and 4."""
    command = [
        find_chromium(),
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--hide-scrollbars",
        "--force-color-profile=srgb",
        f"--user-data-dir={profile}",
        "--remote-debugging-pipe",
    ]
    # Python hands descriptors on under the numbers they have; the shell moves them to 3 and 4.
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
    try:
        return subprocess.Popen(
            ["/bin/bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "chromium", *command],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    finally:
        for end in ends:
            os.close(end)
