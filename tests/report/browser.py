"""A real browser: Debian's chromium, driven by selenium, with all that its console said."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
_OFFLINE = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb"),
)
_PATIENCE = 300  # seconds


def missing() -> str:
    """Say what is missing for a browser; nothing where it can be started."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed"
    if CHROMIUM is None or DRIVER is None:
        return (
            "there is no chromium with its chromedriver: apt-get install chromium chromium-driver"
        )
    return ""


class Browser:
    """A window of a browser that has a profile of its own, and loads files alone.

    Attributes:
        driver: selenium's driver.
    """

    def __enter__(self):
        from selenium import webdriver

        self._profile = tempfile.mkdtemp(prefix="chromium-")
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in (*_OFFLINE, f"--user-data-dir={self._profile}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = webdriver.ChromeService(executable_path=DRIVER)
        self.driver = webdriver.Chrome(options=options, service=service)
        return self

    def __exit__(self, *_error: object) -> None:
        self.driver.quit()
        shutil.rmtree(self._profile, ignore_errors=True)

    def open(self, path: Path, address: str = "#/") -> None:
        """Open a file, and wait until the page shows what the address asks for."""
        self.driver.get("about:blank")
        self.driver.get(path.as_uri() + address)
        self._shown(address)

    def go(self, address: str) -> None:
        """Go to another place in the page."""
        self.script("location.hash = arguments[0]", address)
        self._shown(address)

    def _shown(self, address: str) -> None:
        ready = "return document.getElementById('main')?.dataset.ready"
        self.wait(lambda: self.script(ready) == address, address)

    def script(self, source: str, *arguments: Any) -> Any:
        """Run a script in the page."""
        return self.driver.execute_script(source, *arguments)

    def text(self, selector: str = "main") -> str:
        """Return the text that an element shows."""
        return self.driver.find_element("css selector", selector).text

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements that a selector finds."""
        source = "return [...document.querySelectorAll(arguments[0])].map((node) => node.innerText)"
        return self.script(source, selector)

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, wherever the focus is."""
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def click(self, selector: str) -> None:
        """Click an element."""
        self.driver.find_element("css selector", selector).click()

    def search(self, text: str) -> None:
        """Write into the search field."""
        field = self.driver.find_element("css selector", "#search")
        field.clear()
        field.send_keys(text)

    def wait(self, is_so: Callable[[], Any], what: str = "") -> None:
        """Wait until something is so."""
        end = time.monotonic() + _PATIENCE
        while not is_so():
            assert time.monotonic() < end, f"still not so: {what}"
            time.sleep(0.02)

    def drawn(self, selector: str, count: int = 1) -> None:
        """Wait until a chart has so many parts: it is drawn once the browser has laid it out."""
        source = "return document.querySelectorAll(arguments[0]).length"
        self.wait(lambda: self.script(source, selector) >= count, selector)

    def look(self, width: int, scheme: str) -> None:
        """Set the width of the page, and whether the system is dark or light."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than the window."""
        return self.script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )

    def screenshot(self, path: Path, height: int | None = None) -> None:
        """Keep what the page shows, from the top to the bottom or for some pixels."""
        import base64

        path.parent.mkdir(parents=True, exist_ok=True)
        self.script("return new Promise((done) => setTimeout(done, 150))")
        size = self.script("return [innerWidth, document.documentElement.scrollHeight]")
        clip = {
            "x": 0,
            "y": 0,
            "width": size[0],
            "height": height or min(size[1], 4000),
            "scale": 1,
        }
        shot = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True}
        )
        path.write_bytes(base64.b64decode(shot["data"]))

    def errors(self) -> list[str]:
        """Return what the console said since it was asked last."""
        return [entry["message"] for entry in self.driver.get_log("browser")]
