"""Access to the page: who may ask, by which name, and what a browser may do with the answer.

The token is a secret in the printed address. The first request with it gets a cookie and is sent on
to the address without it, so that the token stays in no history and no log of other servers. A page
of somebody else cannot read answers: the cookie is not sent with its requests, and a name that
leads to this machine (DNS rebinding) is not one of ``hosts``.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

QUERY = "token"
"""The name of the token in an address."""
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
    """The application ``app`` for those who know ``token`` and ask for one of ``hosts``.

    ``hosts`` are the values of the Host header that are answered, in lower case, with the port.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: Collection[str], port: int) -> None:
        self.app = app
        self.hosts = frozenset(hosts)
        # A cookie counts for all ports of a machine, so its name has the port.
        self.cookie = f"autotune-{port}"
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # No other protocol is offered.
        refused = self._refusal(HTTPConnection(scope))

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        await (refused or self.app)(scope, receive, send_guarded)

    def _refusal(self, asked: HTTPConnection) -> Response | None:
        """The answer to a request that the application must not see; None for a good request."""
        if asked.headers.getlist("host") == [] or not self._named(asked.headers.getlist("host")):
            return PlainTextResponse(
                "This address is not the one that autotune ui printed: the name in it is not "
                "served. Open the printed address.\n",
                400,
            )
        if asked.scope["method"] not in METHODS:
            return PlainTextResponse(
                "This page only shows results; expected GET.\n",
                405,
                {"Allow": ", ".join(METHODS)},
            )
        query = parse_qsl(asked.url.query, keep_blank_values=True)
        given = [value for name, value in query if name == QUERY]
        if given and all(self._right(value) for value in given):
            return self._welcome(asked, [(n, v) for n, v in query if n != QUERY])
        if not given and self._right(asked.cookies.get(self.cookie, "")):
            return None
        return PlainTextResponse(
            "This page needs the token of the address that autotune ui printed. Open that "
            "address again.\n",
            403,
        )

    def _named(self, hosts: list[str]) -> bool:
        return len(hosts) == 1 and hosts[0].lower() in self.hosts

    def _right(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(errors="replace"), self._token)

    def _welcome(self, asked: HTTPConnection, query: list[tuple[str, str]]) -> Response:
        """The cookie, and the way to the same page without the token in its address."""
        # One slash in front: two would begin the address of another server.
        place = "/" + quote(asked.url.path.lstrip("/"))
        answer = RedirectResponse(f"{place}?{urlencode(query)}" if query else place, 303)
        answer.set_cookie(
            self.cookie, self._token.decode(), httponly=True, samesite="strict", path="/"
        )
        return answer
