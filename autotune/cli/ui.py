"""``autotune ui``: a local web page over the results database."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

from autotune.cli.options import StoreUrl, opt
from autotune.errors import UsageError
from autotune.store import Store
from autotune.terminal.render import print_line

PACKAGES = ("jinja2", "matplotlib", "starlette", "uvicorn")
EXTRA = 'pip install "mpi-autotune[ui]"'


def ui(
    host: Annotated[
        str | None,
        opt(
            "--host ADDRESS",
            "Address to listen on. Default: 127.0.0.1, or with --remote every address of this "
            "machine. An address that other machines can reach needs --remote.",
        ),
    ] = None,
    port: Annotated[
        int, opt("--port N", "Port to listen on; 0 takes a free one.", min=0, max=65535)
    ] = 8765,
    remote: Annotated[
        bool,
        opt(
            "--remote",
            "Let other machines reach the page. It is sent without encryption, so anyone who sees "
            "the traffic can read it and the token.",
        ),
    ] = False,
    store: StoreUrl = None,
) -> None:
    """Show the results database as a web page on this machine, until Ctrl-C.

    The page only reads. The printed address has a secret token; without the token nothing is shown.
    """
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"autotune ui needs {' and '.join(missing)}; install with {EXTRA}", code="install.extra"
        )
    from autotune.ui.server import is_local, listen, serve

    host = host or ("0.0.0.0" if remote else "127.0.0.1")
    if not is_local(host) and not remote:
        raise UsageError(
            f"--host {host} can be reached by other machines, and the page is sent without "
            "encryption; expected an address of this machine only.  From elsewhere use a tunnel "
            f"(ssh -L {port or 8765}:localhost:{port or 8765} THIS_MACHINE), or add --remote",
            code="ui.host",
        )
    with Store.open_read_only(store) as database:
        address = listen(host, port)

        def ready(url: str) -> None:
            print_line(f"results of {database.label}, read-only; Ctrl-C ends it")
            # The address is made to be copied, so it is not wrapped.
            print_line(url, whole=True)

        try:
            serve(database, address, ready)
        except KeyboardInterrupt:
            print_line("ended")
