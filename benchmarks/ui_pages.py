"""Pictures of the web page for docs/howto/ui.md, over studies replayed from a recorded dataset.

    python -m benchmarks.ui_pages [--out docs/figures/ui] [--store FILE]

Every run time is one that was recorded in the dataset ``grid-node``; the study that uses them is
the real one (search, proof in rounds, recommendation). One study is published to a scratch folder,
and one more is left unfinished with this process as its worker, so that something runs. Needs
chromium with its driver, and the packages of the extra ``dev``. Nothing of the user is read or
written: home, data and results are in a temporary directory.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.common import run_benchmark

CELLS = ("is-A", "jacobi3d-small", "cg-W")


def picture(driver, url: str, path: Path, width: int, height: int, click: Callable | None = None):
    """A picture of a page in a window of this size."""
    driver.set_window_size(width, height)
    driver.get(url)
    time.sleep(1.5)
    if click:
        click(driver)
    driver.save_screenshot(str(path))


def shrink(path: Path) -> None:
    """The picture with a palette of 64 colours, which is enough for a page."""
    from PIL import Image

    with Image.open(path) as image:
        image.convert("RGB").quantize(64).save(path, optimize=True)


def main() -> None:
    """Make the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/figures/ui"))
    parser.add_argument("--store", type=Path, help="keep the database in this new file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        os.environ["XDG_DATA_HOME"] = f"{place}/data"
        os.environ["XDG_CONFIG_HOME"] = f"{place}/config"
        make(options.out, options.store or Path(place) / "results.db", Path(place))


def make(out: Path, database: Path, place: Path) -> None:
    """The pictures in ``out``, from a new database."""
    import uvicorn

    from autotune.store import Store
    from autotune.ui.app import build
    from autotune.ui.server import listen
    from benchmarks.replayed_study import DATASET, replayed
    from tests.ui.browsers import headless

    with Store.open(database) as store:
        hashes = {cell: replayed(store, cell, 1) for cell in CELLS}
        other = replayed(store, "cg-W", 2)
        running = replayed(store, "cg-W-null", 1, whole=False)
        for summary in store.studies():
            print(summary.hash[:8], summary.app, summary.status, summary.runs, "runs")
    out.mkdir(parents=True, exist_ok=True)
    published(hashes["cg-W"], database, place)
    opened, address = Store.open_read_only(database), listen("127.0.0.1", 0)
    app = build(opened, "secret-of-this-run", address.hosts, address.port)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [address.listening]})
    thread.start()
    base = f"http://127.0.0.1:{address.port}"
    pages = {
        "studies": ("/", 1400, 620),
        "study": (f"/study/{hashes['cg-W'][:16]}", 1400, 1800),
        "running": ("/running", 1400, 560),
        "compare": (f"/compare?study={hashes['cg-W'][:16]}&study={other[:16]}", 1400, 1100),
        "published": ("/published", 1400, 320),
        "dataset": (f"/dataset/{DATASET}", 1400, 800),
        "study-narrow": (f"/study/{hashes['cg-W'][:16]}", 500, 900),
    }
    print("running:", running[:8])
    driver = headless()
    try:
        driver.get(address.url("secret-of-this-run"))
        for name, (path, width, height) in pages.items():
            picture(driver, base + path, out / f"{name}.png", width, height)
        driver.get(f"{base}/published")
        found = driver.find_elements("css selector", "tbody a[href^='/published/']")
        if found:
            picture(driver, found[0].get_attribute("href"), out / "publication.png", 1400, 1100)
    finally:
        driver.quit()
        server.should_exit = True
        thread.join()
        opened.close()
    for path in sorted(out.glob("*.png")):
        shrink(path)
        print(path, path.stat().st_size, "bytes")


def published(study: str, database: Path, place: Path) -> None:
    """Publish the study's setting to a scratch file and verify it, as a user does.

    The file has lines of somebody else already. ``--force``, because the recorded study had another
    definition of the cluster.
    """
    from autotune.cli import main as autotune

    target = place / "openmpi-mca-params.conf"
    target.write_text("# lines of the administrator\nbtl_base_warn_component_unused = 0\n")
    source = f"study:{study[:12]}"
    words = ["publish", "--from", source, "--force", "-f", "openmpi-user", "-o", str(target)]
    print("publish:", autotune([*words, "--store", str(database)]))
    print("verify:", autotune(["verify-published", "--no-compare", str(target)]))


if __name__ == "__main__":
    run_benchmark(main)
