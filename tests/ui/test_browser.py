"""The page in a real browser: keyboard, live refresh, policy, narrow windows, dark colours."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autotune.store import Store
from tests.contract.store_samples import ok
from tests.ui.browsers import headless, missing
from tests.ui.served import Listening, serving
from tests.ui.stores import TOKEN, searched

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"{', '.join(missing())} not installed: no browser"),
    pytest.mark.xdist_group("browser"),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, str]]:
    """The address of a server, its database, and the hash of a study that runs now."""
    path = tmp_path_factory.mktemp("browser") / "results.db"
    with Store.open(path) as store:
        study = searched(store)
        one = store.find_study(study[:16])
        store.add_trial(one.id, {"limit": 1}, "limit=1")  # this process measures it
        with serving(path) as address:
            yield address.url(TOKEN).rstrip("/"), path, study


@pytest.fixture(scope="module")
def browser(served: tuple[str, Path, str]) -> Iterator[Any]:
    driver = headless()
    try:
        driver.get(f"{served[0]}/")
        yield driver
    finally:
        driver.quit()


def wait_for(driver: Any, script: str) -> Any:
    """The first true answer of a script."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, 60).until(lambda d: d.execute_script(f"return {script}"))


def drawn_width(driver: Any) -> list[int]:
    """The width of the page's content and of the window, two frames after it was loaded.

    At the load event itself Chromium may still answer with a layout from before the last style
    sheet came.
    """
    found: list[int] = driver.execute_async_script(
        "const done = arguments[arguments.length - 1], frame = requestAnimationFrame;"
        "frame(() => frame(() => done("
        "[document.documentElement.scrollWidth, window.innerWidth])))"
    )
    return found


def test_a_server_on_another_port_gets_nothing_of_the_token(
    browser: Any, served: tuple[str, Path, str]
) -> None:
    """Its page is opened by hand, and loads from itself, as a page does that collects cookies."""
    page = "<script>fetch('/fetched').then(() => { document.title = 'done'; })</script>"
    with Listening(page) as other:
        browser.get(f"{served[0]}/")
        browser.get(other.url)
        wait_for(browser, "document.title === 'done'")
        browser.get(f"{served[0]}/")
        assert browser.current_url == f"{served[0]}/"
    assert len(other.requests) >= 2
    assert not [words for words in other.requests if TOKEN in words]
    assert browser.get_cookies() == []


def test_slash_goes_to_the_search_and_tab_goes_everywhere(
    browser: Any, served: tuple[str, Path, str]
) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser.get(f"{served[0]}/")
    in_search = "document.activeElement.id === 'search'"
    deadline = time.monotonic() + 60
    while not browser.execute_script(f"return {in_search}") and time.monotonic() < deadline:
        # A page that was not drawn yet loses keys.
        ActionChains(browser).send_keys("/").perform()
        time.sleep(0.5)
    assert browser.execute_script(f"return {in_search}")
    assert browser.execute_script("return document.activeElement.value") == ""
    browser.get(f"{served[0]}/")
    wanted = browser.execute_script(
        "return document.querySelectorAll('a[href], button, select, input:not([type=hidden])')"
        ".length"
    )
    reached: list[str] = []
    for _ in range(wanted + 6):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        here = browser.execute_script(
            "const e = document.activeElement; if (e === document.body) return null;"
            "const s = getComputedStyle(e);"
            "return [e.outerHTML.slice(0, 120), s.outlineStyle, parseFloat(s.outlineWidth)]"
        )
        if here is None:
            break
        if here[0].startswith(("<a", "<button", "<select", "<input")):
            assert here[1] == "solid", here  # The focus can be seen.
            assert here[2] >= 2, here
            reached.append(here[0])
    assert 'class="skip"' in reached[0]
    assert len(reached) >= wanted


def test_a_running_study_is_refreshed(browser: Any, served: tuple[str, Path, str]) -> None:
    address, path, study = served
    browser.get(f"{address}/running")
    field = "document.querySelector('[data-field=runs]').textContent"
    before = browser.execute_script(f"return {field}")
    with Store.open(path) as store:
        one = store.find_study(study[:16])
        store.add_run(one.id, None, "confirm:r1", 0, 0, ok(1.0))
    wait_for(browser, f"{field} !== {before!r}")
    phase = browser.execute_script(
        "return document.querySelector('[data-field=phase]').textContent"
    )
    assert "proving" in phase


@pytest.mark.parametrize("width", [400, 1400])
def test_the_pages_are_readable_and_break_no_rule(
    browser: Any, served: tuple[str, Path, str], width: int
) -> None:
    address, _, study = served
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    browser.get_log("browser")
    for page in ("/", f"/study/{study[:16]}", "/running", "/compare", "/datasets", "/clusters"):
        browser.get(address + page)
        wide = drawn_width(browser)
        assert wide[0] <= wide[1], (page, wide)  # Only tables and figures scroll, by themselves.
    wait_for(browser, "document.readyState === 'complete'")
    said = [line["message"] for line in browser.get_log("browser")]
    assert not said  # No violation of the policy, no script error, no missing file.
