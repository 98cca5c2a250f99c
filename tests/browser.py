"""A real headless Chromium for the tests of the page, with the network off.

Set-up: Debian's packages ``chromium`` and ``chromium-driver``, and axe-core from npm at the version below.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

AXE = "4.10.3"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


class Browser:
    """Chromium with one page open at a time. ``requests`` are those that the page made, its own file left out."""

    def __init__(self, profile: Path) -> None:
        chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
        if not chromium or not driver:
            pytest.skip("no Chromium here: install the Debian packages chromium and chromium-driver")
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(driver))
        self.cdp("Network.enable")
        offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        self.cdp("Network.emulateNetworkConditions", **offline)

    def cdp(self, command: str, **values: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, values)

    def run(self, script: str, *values: Any) -> Any:
        return self.driver.execute_script(script, *values)

    def open(self, page: Path, *, width: int = 1440, dark: bool = False) -> None:
        """Opens a page from the disk; its log and its requests begin anew."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.cdp("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.cdp("Emulation.setEmulatedMedia", features=[scheme])
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(page.as_uri())
        self.page = page.as_uri()

    def console(self) -> list[str]:
        """Every line of the console since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that the page asked for since it was opened, other than itself."""
        asked = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                asked.append(message["params"]["request"]["url"])
        return [url for url in asked if url.partition("#")[0] != self.page]

    def screenshot(self, path: Path) -> None:
        """The whole page as a PNG."""
        width, height = self.run("const e = document.documentElement; return [e.clientWidth, e.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, 16000), "scale": 1}
        shot = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def faults(self, axe: Path) -> list[str]:
        """What axe-core calls serious or critical, as "rule: element"."""
        self.cdp("Runtime.evaluate", expression=axe.read_text(encoding="utf-8"))
        result = self.driver.execute_async_script(
            "const done = arguments[0];"
            "axe.run(document, {resultTypes: ['violations']}).then(done, e => done({error: String(e)}))"
        )
        assert "error" not in result, result["error"]
        assert result["testEngine"]["version"] == AXE
        return [
            f"{fault['id']}: {node['html'][:200]}"
            for fault in result["violations"]
            if fault["impact"] in ("serious", "critical")
            for node in fault["nodes"]
        ]

    def close(self) -> None:
        self.driver.quit()


def axe_core(cache: Path) -> Path:
    """The script of axe-core at the pinned version, installed once with npm; skips where npm can't be reached."""
    script = cache / "node_modules" / "axe-core" / "axe.min.js"
    told = script.with_name("package.json")
    if not script.exists() or json.loads(told.read_text())["version"] != AXE:
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("axe-core needs npm, which is not installed")
        command = [
            npm,
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
            str(cache),
            f"axe-core@{AXE}",
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip("npm could not be reached within a minute")
        if done.returncode:
            pytest.skip(f"npm could not install axe-core: {done.stderr.strip()[-200:]}")
    return script
