"""Operations on the data of a message: copy or add, with gaps on either side; compiled."""

from __future__ import annotations

from runner.runtimes.core.atomic import inner, load
from runner.runtimes.intranode.cab_records import REGION
from runner.runtimes.intranode.daps.daps_records import ME, STAGE
from runner.runtimes.intranode.moves import is_whole, move, pack, put_in


@inner
def move_all(me: int, target: int, source: int, size: int) -> None:
    """Copy a region to another region of the same size."""
    if size > 0:
        move(target, source, 0, size, load(me + ME.bounce))


@inner
def add_all(me: int, target: int, source: int, size: int, operation: int) -> None:
    """Add a region to another region of the same size; all gaps are multiples of 8."""
    if is_whole(source):
        put_in(load(source + REGION.address), target, 0, size, operation)
        return
    at, bounce = 0, load(me + ME.bounce)
    while at < size:
        stop = min(at + STAGE, size)
        pack(bounce, source, at, stop)
        put_in(bounce, target, at, stop, operation)
        at = stop
