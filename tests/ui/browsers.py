"""A headless chromium of the distribution, driven by selenium."""

from __future__ import annotations

import os
import shutil

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

PROGRAMS = ("chromium", "chromedriver")


def missing() -> list[str]:
    """The programs that are not installed."""
    return [program for program in PROGRAMS if shutil.which(program) is None]


def headless(dark: bool = False) -> webdriver.Chrome:
    """A browser without a window and without the network's proxies; the caller ends it."""
    options = Options()
    options.binary_location = str(shutil.which("chromium"))
    words = ["--headless=new", "--disable-gpu", "--no-proxy-server", "--hide-scrollbars"]
    words += ["--disable-dev-shm-usage", "--disable-background-networking"]
    if os.geteuid() == 0:
        words.append("--no-sandbox")  # chromium refuses root with its sandbox.
    if dark:
        words.append("--blink-settings=preferredColorScheme=0")
    for word in words:
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options, Service(shutil.which("chromedriver")))
