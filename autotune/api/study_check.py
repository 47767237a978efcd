"""The check of a study's launch line, told as the study begins."""

from __future__ import annotations

from autotune.check.study_check import StudyCheck
from autotune.measurement.events import Event, RunEnded, Watcher
from autotune.notes import Say
from autotune.space import DEFAULT, Setting, Space
from autotune.targets.target import Target


def checked(
    watch: Watcher, target: Target, space: Space, say: Say, setting: Setting = DEFAULT
) -> Watcher:
    """A watcher that says what is wrong with the launch of ``setting``, and passes events on.

    What is known before the first run is said now, the rest after the first run of the setting.
    """
    check = StudyCheck(target, space, say, setting)
    check.begin()

    def watching(event: Event) -> None:
        watch(event)
        if isinstance(event, RunEnded) and event.setting == setting:
            check.ran(event.entry.record)

    return watching
