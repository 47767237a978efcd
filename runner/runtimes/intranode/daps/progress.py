"""Steps of progress, for oneself and for others, and the loop of a waiting rank; compiled."""

from __future__ import annotations

from runner.runtimes.core.atomic import (
    add,
    call_0,
    call_2,
    call_5,
    inner,
    load,
    load_int,
    load_real,
    pause,
    peek,
    put,
    store,
    store_real,
    swap_if,
)
from runner.runtimes.core.dice import draw
from runner.runtimes.intranode.daps.connection import give_out, take_in
from runner.runtimes.intranode.daps.daps_records import (
    INBOX,
    LINK,
    ME,
    MESSAGE,
    OFFER,
    OWNER,
    POLLFD_SIZE,
    REQUEST,
    RING,
)
from runner.runtimes.intranode.daps.handlers import handle_letter
from runner.runtimes.intranode.daps.matching import receive
from runner.runtimes.intranode.daps.parcels import link_of, owner_of, place_of, send_message

FUNCTIONS = {
    "issue": "int64(int64, int64, int64, int64)",
    "begin_receive": "int64(int64, int64, int64)",
    "wait_for": "int64(int64, int64, int64, int64)",
    "serve": "void(int64)",
    "expect": "void(int64, int64)",
}
"""Functions for Python."""
_LETTERS = 16
"""Number of letters of one rank before those of others are handled."""
_MONOTONIC = 1


@inner
def poll_network(me: int, owner: int) -> int:
    """Continue all connections of an owner; returns 1 if anything moved, else 0."""
    count = load(me + ME.remotes)
    if count == 0:
        return 0
    pollfds = load(me + ME.polls) + POLLFD_SIZE * count * load(owner + OWNER.local)
    if count > 1:
        call_5(load(me + ME.poll), pollfds, count, 0, 0, 0)
    has_moved = 0
    for number in range(count):
        link, place = link_of(me, owner, number), pollfds + POLLFD_SIZE * number
        socket = load_int(place)
        if peek(link + LINK.lost) != 0:
            continue
        # The upper 16 bits are the result of poll.
        if count == 1 or (load(place) >> 48) & 0xFFFF != 0:
            has_moved |= take_in(me, owner, link, socket)
        if load(link + LINK.first) < load(link + LINK.end) and peek(link + LINK.lost) == 0:
            has_moved |= give_out(me, owner, link, socket)
    return has_moved


@inner
def poll_shm(me: int, owner: int) -> int:
    """Handle the letters of an owner; returns 1 if there were any, else 0."""
    has_moved = 0
    for local in range(load(me + ME.locals)):
        inbox = load(load(owner + OWNER.inboxes) + 8 * local)
        number, count = load(inbox + INBOX.taken), peek(inbox + INBOX.posted)
        stop = min(count, number + _LETTERS)
        while number < stop:
            handle_letter(me, owner, inbox + INBOX.letters + MESSAGE.size * (number % RING))
            number += 1
            put(inbox + INBOX.taken, number)
            has_moved = 1
    return has_moved


@inner
def own_progress(me: int) -> int:
    """Both progress tasks of this rank, which makes its own progress now."""
    owner = load(me + ME.owner)
    has_moved = poll_network(me, owner) | poll_shm(me, owner)
    if has_moved != 0:
        if load(me + ME.helper) != 0:
            store(owner + OWNER.given, load(owner + OWNER.given) + 1)
            store(me + ME.stolen, load(me + ME.stolen) + 1)
        else:
            store(owner + OWNER.own, load(owner + OWNER.own) + 1)
    return has_moved


@inner
def try_hold(me: int, owner: int) -> int:
    """Start to make the progress of an owner unless somebody does (Rule 1)."""
    place = owner + OWNER.in_progress
    if peek(place) != 0:
        return 0
    return swap_if(place, 0, load(me + ME.number) + 1)


@inner
def seconds(me: int) -> float:
    """The clock of this machine."""
    place = me + ME.time0
    call_2(load(me + ME.clock_gettime), _MONOTONIC, place)
    return float(load(place)) + 1e-9 * float(load(place + 8))


@inner
def is_early(me: int) -> bool:
    """True if it is too early for the next attempt; if not, sets the time of the attempt after
    it."""
    gap = load_real(me + ME.gap)
    if gap <= 0.0:
        return False
    time = seconds(me)
    if time < load_real(me + ME.next):
        return True
    store_real(me + ME.next, time + gap)
    return False


@inner
def help_other(me: int) -> int:
    """Help the first other rank of the node that may need it; returns 1 if there was one, else 0.

    The search starts at a random one.
    """
    others = load(me + ME.locals) - 1
    if load(me + ME.steals) == 0 or others == 0 or is_early(me):
        return 0
    first = draw(me + ME.dice, others)
    for turn in range(others):
        place = load(me + ME.number) + 1 + (first + turn) % others
        owner = owner_of(me, place % (others + 1))
        net, shm = 1, 1
        if load(me + ME.filter) != 0:
            # Rule 2: only if a message is likely, or something is left to be sent.
            net = int(peek(owner + OWNER.net_avail) > 0 or peek(owner + OWNER.unsent) < 0)
            shm = int(peek(owner + OWNER.shm_avail) > 0)
        if (net != 0 or shm != 0) and try_hold(me, owner) != 0:
            return help_owner(me, owner, net, shm)
    return 0


@inner
def help_owner(me: int, owner: int, net: int, shm: int) -> int:
    """Make progress for a held owner, in the configured order; then release it."""
    has_moved, shm_first = 0, load(me + ME.order)
    if shm_first != 0 and shm != 0:
        has_moved = poll_shm(me, owner)
    if has_moved == 0 and net != 0:
        has_moved = poll_network(me, owner)
    if has_moved == 0 and shm_first == 0 and shm != 0:
        has_moved = poll_shm(me, owner)
    if has_moved != 0:
        store(owner + OWNER.given, load(owner + OWNER.given) + 1)
        store(me + ME.stolen, load(me + ME.stolen) + 1)
    put(owner + OWNER.in_progress, 0)
    return has_moved


@inner
def rest(me: int, looks: int) -> None:
    """Nothing was found this many times: spin, or yield the core."""
    if looks > load(me + ME.spins) >= 0:
        call_0(load(me + ME.yield_))
    else:
        pause()


@inner
def hold_own(me: int, looks: int) -> int:
    """Wait until nobody else makes this rank's progress; returns 0 if somebody still does."""
    spins = 0
    while try_hold(me, load(me + ME.owner)) == 0:
        if spins > looks:
            return 0
        spins += 1
        rest(me, spins)
    return 1


def issue(me: int, rank: int, message: int, looks: int) -> int:
    """Send a message of this rank; returns 0 if another rank always makes its progress."""
    if hold_own(me, looks) == 0:
        return 0
    owner = load(me + ME.owner)
    kind = load(message + MESSAGE.kind)
    if send_message(me, owner, rank, message) != 0:
        if kind == OFFER:
            # The answer, which requests the data, may come while this rank computes.
            add(owner + OWNER.net_avail, 1)
        number = place_of(me, rank)
        link = link_of(me, owner, number)
        pollfds = load(me + ME.polls) + POLLFD_SIZE * load(me + ME.remotes) * load(me + ME.number)
        if peek(link + LINK.lost) == 0:
            give_out(me, owner, link, load_int(pollfds + POLLFD_SIZE * number))
    put(owner + OWNER.in_progress, 0)
    return 1


def begin_receive(me: int, request: int, looks: int) -> int:
    """Start a receive; returns 0 in the same case as :func:`issue`."""
    if hold_own(me, looks) == 0:
        return 0
    owner = load(me + ME.owner)
    if load(request + REQUEST.net) != 0:
        add(owner + OWNER.net_avail, 1)
    else:
        add(owner + OWNER.shm_avail, 1)
    receive(me, owner, request)
    put(owner + OWNER.in_progress, 0)
    return 1


@inner
def unmet(table: int, count: int) -> int:
    """The number of these words (place, least value) that are too small."""
    left = 0
    for number in range(count):
        pair = table + 16 * number
        if peek(load(pair)) < load(pair + 8):
            left += 1
    return left


def wait_for(me: int, table: int, count: int, looks: int) -> int:
    """Wait for words, and make progress meanwhile; returns the number left after some looks.

    Own progress comes first: a rank with own work does not look for others'.
    """
    owner, is_holder, spins = load(me + ME.owner), 0, 0
    left = unmet(table, count)
    while left != 0 and looks > 0:
        if is_holder == 0:
            is_holder = try_hold(me, owner)
        looks -= 1
        if (is_holder != 0 and own_progress(me) != 0) or help_other(me) != 0:
            spins = 0
        else:
            spins += 1
            rest(me, spins)
        left = unmet(table, count)
    if is_holder != 0:
        put(owner + OWNER.in_progress, 0)
    return left


def serve(me: int) -> None:
    """A progress thread: makes the progress of this rank until told to stop."""
    owner, spins = load(me + ME.owner), 0
    while peek(me + ME.stop) == 0:
        has_moved = 0
        if not is_early(me) and try_hold(me, owner) != 0:
            has_moved = own_progress(me)
            put(owner + OWNER.in_progress, 0)
        spins = 0 if has_moved != 0 else spins + 1
        rest(me, spins)


def expect(me: int, more: int) -> None:
    """Add to the reasons to expect messages from this node and from others."""
    owner = load(me + ME.owner)
    add(owner + OWNER.net_avail, more)
    add(owner + OWNER.shm_avail, more)
