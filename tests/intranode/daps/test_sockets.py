"""Connections: who does not know the key is refused, and descriptors are those of the sockets."""

from __future__ import annotations

import socket
import threading

import pytest

from runner.runtimes.intranode.daps.sockets import (
    KEY,
    Listener,
    Place,
    connect,
    own_addresses,
    shut_down,
    this_host,
)


def accepting(listener: Listener, expected: dict[int, bytes]) -> threading.Thread:
    thread = threading.Thread(target=listener.accept, args=(expected, 10.0))
    thread.start()
    return thread


@pytest.mark.parametrize("alone", [True, False])
def test_only_who_knows_the_key_is_accepted(alone: bool) -> None:
    listener, own = Listener(alone), bytes(range(KEY))
    place = Place(this_host(), (), listener.port, listener.key)
    thread = accepting(listener, {3: own})
    wrong = Place(this_host(), (), listener.port, bytes(KEY))
    assert connect(wrong, this_host(), 3, own) is None
    # The key is right, the rank is not expected.
    assert connect(place, this_host(), 4, own) is None
    # Who says nothing keeps nobody out.
    with socket.create_connection(("127.0.0.1", listener.port)) as silent:
        silent.sendall(b"GET / HTTP/1.1\r\n\r\n" * 3)
        found = connect(place, this_host(), 3, own)
    thread.join()
    listener.close()
    assert found is not None
    assert listener.refusals == 3
    with found, listener.peers[3] as other:
        found.sendall(b"word")
        assert other.recv(4) == b"word"


def test_who_listens_must_know_the_key_of_who_connects() -> None:
    listener = Listener(True)
    thread = accepting(listener, {3: bytes(KEY)})
    place = Place(this_host(), (), listener.port, listener.key)
    assert connect(place, this_host(), 3, bytes(range(KEY))) is None
    thread.join()
    listener.close()
    listener.peers[3].close()


def test_ranks_of_other_hosts_are_reached_by_their_addresses() -> None:
    listener, own = Listener(False), bytes(range(KEY))
    thread = accepting(listener, {0: own})
    # Nobody listens at the first address; the second one leads to this machine.
    place = Place("another", ("127.255.255.254", "127.0.0.1"), listener.port, listener.key)
    with socket.create_server(("127.0.0.1", 0)) as unused:
        assert unused.getsockname()[1] != listener.port
    found = connect(place, this_host(), 0, own)
    thread.join()
    listener.close()
    assert found is not None
    found.close()
    listener.peers[0].close()


def test_addresses_are_of_the_network_not_of_loopback() -> None:
    for address in own_addresses():
        socket.inet_aton(address)
        assert not address.startswith("127.")


def test_a_connection_ends_for_all_that_have_it() -> None:
    one, other = socket.socketpair()
    again = one.dup()
    shut_down([one.fileno()])
    assert other.recv(1) == b""
    assert again.recv(1) == b""
    for end in (one, other, again):
        end.close()
