"""A headless Chromium, spoken to over its debugging pipe: opens a page at a width and says what it made of it."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

kNames = ("chromium", "chromium-browser", "google-chrome")


def chromium():
    """Path of the browser; None where there is none."""
    return next((path for path in map(shutil.which, kNames) if path), None)


class Browser:
    """Messages are JSON objects with a zero byte behind, on descriptors 3 (to the browser) and 4 (from it)."""

    def __init__(self, program, seconds=60):
        self.deadline = time.monotonic() + seconds
        self.profile = tempfile.mkdtemp(prefix="orrery-chromium-")
        to_browser, self.to_browser = os.pipe()
        self.from_browser, from_browser = os.pipe()
        # Out of the way of 3 and 4, which the child needs.
        ends = [os.dup2(end, 100 + i, inheritable=True) for i, end in enumerate((to_browser, from_browser))]

        def arrange():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-extensions", "--disable-sync", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=arrange,
            close_fds=False)
        for end in (to_browser, from_browser, *ends):
            os.close(end)
        self.number, self.buffer, self.events, self.session = 0, b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self):
        while b"\0" not in self.buffer:
            left = self.deadline - time.monotonic()
            if left <= 0 or not select.select([self.from_browser], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.from_browser, 1 << 16)
            if not piece:
                raise EOFError("the browser has ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") != self.number:
                self.events.append(answer)
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            return answer["result"]

    def open(self, url, width, height=900, scheme="light"):
        """Loads the page anew; what it complains about is in complaints() afterwards."""
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive())

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"]["value"]

    def complaints(self):
        """Console messages, log entries and exceptions since open()."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [event for event in self.events if event.get("method") in kinds]

    def requests(self):
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

    def screenshot(self, path):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))
