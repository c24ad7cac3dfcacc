"""Chromium without a window and without a network, for the tests of the report."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.by import By

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "headless",
    "no-sandbox",
    "disable-gpu",
    "disable-dev-shm-usage",
    "disable-component-update",
)
NO_NETWORK = "host-resolver-rules=MAP * ~NOTFOUND"


def find_browser() -> tuple[str, str] | None:
    """The programs of the browser and of its driver."""
    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    return (program, driver) if program and driver else None


class Browser(webdriver.Chrome):
    def __init__(self, program: str, driver: str) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = program
        for each in (*ARGUMENTS, NO_NETWORK):
            options.add_argument(f"--{each}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        super().__init__(options, webdriver.ChromeService(driver))

    def open(self, page: Path, view: str = "") -> None:
        """Load a page anew."""
        self.get("about:blank")
        self.get(page.as_uri() + view)

    def go(self, view: str) -> None:
        """Another view of the same page."""
        self.execute_async_script(
            "addEventListener('hashchange', () => arguments[1](), {once: true}); location.hash = "
            "arguments[0]",
            view,
        )

    def run(self, script: str) -> Any:
        """The value of an expression, awaited if it is a promise."""
        return self.execute_script(f"return {script}")

    def point(self, selector: str, click: bool = False) -> None:
        """Move the mouse to the middle of an element."""
        element = self.find_element(By.CSS_SELECTOR, selector)
        self.execute_script(
            "arguments[0].scrollIntoView({block: 'center', inline: 'center'})", element
        )
        mouse = webdriver.ActionChains(self, duration=0).move_to_element(element)
        (mouse.click() if click else mouse).perform()

    def press(self, *keys: str) -> None:
        webdriver.ActionChains(self).send_keys(*keys).perform()

    def size(self, width: int, height: int) -> None:
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)

    def prefer(self, scheme: str, medium: str = "", motion: str = "no-preference") -> None:
        wishes = {"prefers-color-scheme": scheme, "prefers-reduced-motion": motion}
        features = [{"name": name, "value": value} for name, value in wishes.items()]
        self.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": medium, "features": features})

    def complaints(self) -> list[str]:
        """What went wrong since the last call: exceptions, errors and warnings in the log or the
        console.
        """
        return [
            entry["message"]
            for entry in self.get_log("browser")
            if entry["level"] in ("SEVERE", "WARNING")
        ]

    def requests(self) -> list[str]:
        """The addresses that were asked for since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.get_log("performance")]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]
