"""The named inputs."""

from __future__ import annotations

from dataclasses import dataclass

from runner.programs.apps.common.grid import Shape


@dataclass(frozen=True)
class Input:
    """Cells along x, y, z, the number of steps and of variables."""

    size: Shape
    steps: int
    variables: int
    description: str


INPUTS = {
    "tiny": Input((12, 10, 8), 5, 2, "for tests: a few milliseconds"),
    "small": Input((48, 48, 48), 400, 1, "some hundredths of a second"),
    "default": Input((96, 96, 96), 300, 5, "about one second at 2 ranks"),
    "brief": Input((96, 96, 96), 100, 5, "the first third of default"),
    "many": Input((32, 32, 32), 400, 40, "messages of 8 or of 320 KiB"),
    "large": Input((256, 256, 256), 40, 1, "larger than the caches: bound by memory"),
}
