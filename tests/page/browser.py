"""A headless Chromium, spoken to by its DevTools protocol through two pipes: no package is needed
for that. Tests use one page of it."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find_browser():
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if path := shutil.which(name):
            return path
    return None


class Browser:
    """The page's exceptions and error messages are collected in `errors`."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="shadowprof-browser-")
        to_browser, self.to = os.pipe()
        self.come, from_browser = os.pipe()

        # Chromium expects its pipes as descriptors 3 and 4.
        def place_pipes():
            os.dup2(to_browser, 100)
            os.dup2(from_browser, 101)
            os.dup2(100, 3)
            os.dup2(101, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={self.folder}", "about:blank"],
            preexec_fn=place_pipes, close_fds=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.received = b""
        self.last_id = 0
        self.session = None
        self.errors = []
        pages = self.call("Target.getTargets")["targetInfos"]
        page = next(p for p in pages if p["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Runtime", "Page", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.come)
        shutil.rmtree(self.folder, ignore_errors=True)

    def receive(self, deadline):
        while b"\0" not in self.received:
            ready, _, _ = select.select([self.come], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.come, 1 << 20)
            if not more:
                raise EOFError("the browser has gone away")
            self.received += more
        message, _, self.received = self.received.partition(b"\0")
        message = json.loads(message)
        self.note(message)
        return message

    def note(self, message):
        what = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            details = what["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif message.get("method") == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in what["args"]))
        elif message.get("method") == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
            self.errors.append(what["entry"]["text"])

    def call(self, method, **params):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        deadline = time.monotonic() + 90
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def run(self, script):
        """The value of a JavaScript expression; waits for promises."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, condition, seconds=30):
        deadline = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {seconds} s for {condition}")
            time.sleep(0.03)

    def resize(self, width, height, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=2 if phone else 1, mobile=phone)

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, path):
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self.wait_for("document.readyState === 'complete' && document.querySelector('#tabs button')")

    def click(self, selector):
        """A real click, at the middle of what it hits, when that is drawn and stays where it is: a table
        makes its rows anew when it is told its size."""
        deadline = time.monotonic() + 30
        while not (place := self.run(f"""new Promise((answer) => {{
            const found = () => document.querySelector({json.dumps(selector)});
            if (!found()) throw new Error("nothing is " + {json.dumps(selector)});
            found().scrollIntoView({{block: "center", inline: "center"}});
            const where = (element) => {{
                const box = element.getBoundingClientRect();
                return [box.left + box.width / 2, box.top + box.height / 2];
            }};
            const element = found(), before = where(element);
            const frames = (n, then) => n === 0 ? then() : requestAnimationFrame(() => frames(n - 1, then));
            frames(3, () => {{
                const now = found() === element ? where(element) : [];
                const hit = now.length ? document.elementFromPoint(...now) : null;
                answer(now[0] === before[0] && now[1] === before[1] && element.contains(hit) ? now : null);
            }});
        }})""")):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{selector} does not stand still, or something covers it")
        x, y = place
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key, code=None):
        text = key if len(key) == 1 else ""
        codes = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "ArrowRight": 39, "ArrowLeft": 37}
        more = {"windowsVirtualKeyCode": codes[key]} if key in codes else {}
        if key == "Enter":
            text = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **more)

    def type(self, text):
        for letter in text:
            self.press(letter)

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
