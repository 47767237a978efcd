"""Access to the page: the token, the accepted host names, and the browser's restrictions.

The token is a secret in the path of every address: ``http://127.0.0.1:8765/TOKEN/running``. It is
not a cookie, because a browser sends a host's cookies to every port of the host: another user of
the machine could listen on one of them and collect it. Foreign pages cannot learn the address
(there is no referrer) or read answers (they have another origin, and a name used for DNS rebinding
is not in ``hosts``).
"""

from __future__ import annotations

import secrets
from collections.abc import Collection

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS = ("GET", "HEAD")
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""The content security policy: nothing inline, nothing from elsewhere."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def new_token() -> str:
    """A new secret of 256 random bits, as text for an address."""
    return secrets.token_urlsafe(32)


class Access:
    """The application ``app`` for clients that know ``token`` and request one of ``hosts``.

    ``hosts`` are the values of the Host header that are answered, in lower case, with the port.
    The token is the root path for ``app``.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: Collection[str]) -> None:
        self.app = app
        self.hosts = frozenset(hosts)
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # No other protocol is offered.
        refusal = self._refusal(HTTPConnection(scope))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        if refusal is None:
            scope = {**scope, "root_path": f"/{self._token.decode()}"}
        await (refusal or self.app)(scope, receive, send_with_headers)

    def _refusal(self, connection: HTTPConnection) -> Response | None:
        """The answer to a request that the application must not see; None for a good request."""
        if connection.headers.getlist("host") == [] or not self._is_served(
            connection.headers.getlist("host")
        ):
            return PlainTextResponse(
                "This address is not the one that autotune ui printed: the name in it is not "
                "served. Open the printed address.\n",
                400,
            )
        if connection.scope["method"] not in METHODS:
            return PlainTextResponse(
                "This page only shows results; expected GET.\n",
                405,
                {"Allow": ", ".join(METHODS)},
            )
        token, slash, _ = connection.scope["path"].removeprefix("/").partition("/")
        if self._right(token):
            return None if slash else RedirectResponse(f"/{token}/", 303)
        return PlainTextResponse(
            "This page needs the token of the address that autotune ui printed. Open that "
            "address again.\n",
            403,
        )

    def _is_served(self, hosts: list[str]) -> bool:
        return len(hosts) == 1 and hosts[0].lower() in self.hosts

    def _right(self, token: str) -> bool:
        return secrets.compare_digest(token.encode(errors="replace"), self._token)
