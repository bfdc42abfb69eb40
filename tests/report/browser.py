"""A headless Chromium, driven over WebDriver with nothing but the standard library.

    with Browser(width, height) as browser: ...

Everything goes over loopback. What it started, and only that, it ends."""

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import urllib.request

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "about:blank",
]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    def __init__(self, width=1280, height=900, dark=False):
        self.profile = tempfile.mkdtemp(prefix="report-browser-")
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        port = None
        for line in self.driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                port = found.group(1)
                break
        if port is None:
            raise RuntimeError("chromedriver did not start")
        self.base = f"http://127.0.0.1:{port}"
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        flags = FLAGS + [f"--user-data-dir={self.profile}", f"--window-size={width},{height}"]
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        options = {"args": flags, "binary": chromium}
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "timeouts": {"script": 600_000, "pageLoad": 600_000},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        answer = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = "/session/" + answer["sessionId"]
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        # Nothing slides: what is asked for is there at once.
        media = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in media.items()]
        self.command("Emulation.setEmulatedMedia", features=features)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.ask("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()
            shutil.rmtree(self.profile, ignore_errors=True)

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with self.opener.open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from None

    def command(self, name, **params):
        return self.ask("POST", self.session + "/goog/cdp/execute", {"cmd": name, "params": params})

    def open(self, url):
        self.ask("POST", self.session + "/url", {"url": url})

    def run(self, script, *arguments):
        """The value of a script's `return`, or of the promise that it returns."""
        return self.ask("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def painted(self):
        """Waits until what was asked for has been drawn."""
        self.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def log(self, which):
        return self.ask("POST", self.session + "/se/log", {"type": which})

    def element(self, css):
        return self.ask("POST", self.session + "/element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css):
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'})", css)
        self.ask("POST", f"{self.session}/element/{self.element(css)}/click", {})
        self.painted()

    def keys(self, css, text):
        self.ask("POST", f"{self.session}/element/{self.element(css)}/value", {"text": text})
        self.painted()

    def actions(self, *sources):
        self.ask("POST", self.session + "/actions", {"actions": list(sources)})
        self.painted()

    def wheel(self, css, amount):
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'})", css)
        at = {ELEMENT: self.element(css)}
        step = {"type": "scroll", "x": 0, "y": 0, "deltaX": 0, "deltaY": amount, "duration": 0, "origin": at}
        self.actions({"type": "wheel", "id": "wheel", "actions": [step]})

    def drag(self, css, distance):
        at = {ELEMENT: self.element(css)}
        steps = [
            {"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": at},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "duration": 50, "x": distance, "y": 0, "origin": at},
            {"type": "pointerUp", "button": 0},
        ]
        self.actions({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": steps})

    def hover(self, css, x, y):
        at = {ELEMENT: self.element(css)}
        steps = [{"type": "pointerMove", "duration": 0, "x": x, "y": y, "origin": at}]
        self.actions({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": steps})

    def screenshot(self, path, **clip):
        """Of what is seen, or of a part of the page: x, y, width, height."""
        part = {"clip": {**clip, "scale": 1}} if clip else {}
        answer = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True, **part)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))

    def complaints(self):
        """What the page, or the browser about it, wrote to the console."""
        return [entry for entry in self.log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self):
        """The addresses that pages in files asked for, but for those files and what they hold themselves. What the
        browser loads for itself is its own affair."""
        events = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        urls = [request["request"]["url"] for request in sent if request["documentURL"].startswith("file:")]
        return [url for url in urls if not url.startswith(("file:", "data:"))]
