"""All rules of the check, the gravest first."""

from __future__ import annotations

from collections.abc import Iterable

from autotune.check.finding import LaunchFinding
from autotune.check.launch_facts import LaunchFacts
from autotune.check.rule import LaunchRule
from autotune.check.rules import (
    binding,
    containers,
    launch,
    memory,
    parameters,
    single_copy,
    slots,
    slurm,
    start_up,
    threads,
    transport,
    worlds,
)

_RULES: tuple[type[LaunchRule], ...] = (
    worlds.ForeignLauncher,
    worlds.Singletons,
    worlds.MixedVersions,
    containers.HiddenVariables,
    containers.SeparateProcesses,
    launch.Fails,
    binding.OneCore,
    binding.TwoRanks,
    binding.SameCores,
    binding.OtherJobOnCores,
    threads.Crowded,
    threads.Quota,
    threads.Cpuset,
    threads.ActiveWaiting,
    slots.TooFewSlots,
    slots.NoYield,
    slurm.CpusPerTask,
    slurm.ExportNone,
    parameters.UnknownParameter,
    parameters.MisspeltParameter,
    parameters.OtherVersion,
    parameters.WrongLayer,
    parameters.RefusedValue,
    parameters.Overridden,
    parameters.WithoutEffect,
    parameters.WrongResults,
    transport.TcpOnOneNode,
    transport.SlowProvider,
    single_copy.ForbiddenCopy,
    single_copy.NamespacesApart,
    start_up.ScanOfPci,
    start_up.NameResolution,
    start_up.OpeningOfLibfabric,
    memory.HugePages,
    memory.NumaBalancing,
)

RULES: tuple[LaunchRule, ...] = tuple(
    sorted((kind() for kind in _RULES), key=lambda rule: (-rule.weight, rule.code))
)
"""One of each, ordered by weight."""


def examine(facts: LaunchFacts, rules: Iterable[LaunchRule] = RULES) -> list[LaunchFinding]:
    """The findings of all rules, the gravest first."""
    findings = [finding for rule in rules for finding in rule.examine(facts)]
    return sorted(findings, key=lambda finding: -finding.weight)


def rule_of(code: str) -> LaunchRule | None:
    """The rule with this code; None if there is none."""
    return next((rule for rule in RULES if rule.code == code), None)
