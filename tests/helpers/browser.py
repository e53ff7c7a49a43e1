"""A headless Chromium, driven over its own protocol by a pair of pipes.

Nothing beside the browser is needed. Protocol: https://chromedevtools.github.io/devtools-protocol
"""

import itertools
import json
import os
import select
import shutil
import subprocess
import time

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60  # seconds: other tests run beside


def find_browser():
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page in a browser; a context manager."""

    def __init__(self, profile, width=1280, height=900):
        path = find_browser()
        if path is None or os.name != "posix":
            pytest.skip(f"no browser on PATH: {', '.join(NAMES)}")
        self.commands, self.answers = itertools.count(1), b""
        self.events = []
        theirs, self.out = os.pipe()
        self.into, ours = os.pipe()

        def connect():
            # Chromium reads commands from 3 and writes answers to 4.
            low, high = os.dup(theirs), os.dup(ours)
            os.dup2(low, 3)
            os.dup2(high, 4)

        self.process = subprocess.Popen(
            [
                path,
                "--headless=new",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--hide-scrollbars",
                f"--user-data-dir={profile}",
                f"--window-size={width},{height}",
                "about:blank",
            ],
            preexec_fn=connect,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(ours)
        self.session = None
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.send(
            "Target.attachToTarget", targetId=page["targetId"], flatten=True
        )["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        os.close(self.out)
        os.close(self.into)
        self.process.kill()
        self.process.wait()

    def send(self, method, **parameters):
        """Call a method of the protocol; return its result."""
        number = next(self.commands)
        command = {"id": number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.out, json.dumps(command).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def receive(self):
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self.answers:
            ready, _, _ = select.select(
                [self.into], [], [], max(deadline - time.monotonic(), 0)
            )
            assert ready, "the browser does not answer"
            chunk = os.read(self.into, 1 << 20)
            assert chunk, "the browser has gone"
            self.answers += chunk
        answer, _, self.answers = self.answers.partition(b"\0")
        answer = json.loads(answer)
        if "method" in answer:
            self.events.append(answer)
        return answer

    def open(self, path):
        """Load a file, and wait until it has been drawn."""
        self.events.clear()
        self.send("Page.navigate", url=path.resolve().as_uri())
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self.receive()
        self.frames()

    def frames(self, count=2):
        """Wait for the browser to draw."""
        self.run(
            f"new Promise(done => {{ let n = {count}; const next = () => n-- ?"
            " requestAnimationFrame(next) : done(1); next(); })"
        )

    def run(self, code):
        """Return the value of an expression, or of the promise that it is."""
        result = self.send(
            "Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def resize(self, width, height, scale=1):
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )

    def prefer(self, scheme):
        """Let the system be "light" or "dark"."""
        self.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def mouse(self, kind, x, y, **more):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.frames()

    def drag(self, x, y, to_x, to_y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        for step in range(1, 6):
            self.mouse(
                "mouseMoved",
                x + (to_x - x) * step / 5,
                y + (to_y - y) * step / 5,
                button="left",
                buttons=1,
            )
        self.mouse("mouseReleased", to_x, to_y, button="left", clickCount=1)
        self.frames()

    def wheel(self, x, y, delta, shift=False):
        self.mouse("mouseWheel", x, y, deltaX=0, deltaY=delta, modifiers=8 * shift)
        self.frames(3)

    def press(self, key, text=None):
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                **({"text": text} if text and kind == "keyDown" else {}),
            )
        self.frames()

    def problems(self):
        """Return what the page complained about, and what it asked the network for."""
        found = []
        for event in self.events:
            if event["method"] == "Runtime.exceptionThrown":
                found.append(event["params"]["exceptionDetails"])
            if event["method"] == "Log.entryAdded":
                entry = event["params"]["entry"]
                # That tests read pixels is slow, as it says.
                if entry["source"] != "rendering":
                    found.append(entry)
            if event["method"] == "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                if not url.startswith(("file:", "data:")):
                    found.append(url)
        return found
