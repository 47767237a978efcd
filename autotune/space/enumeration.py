"""Walk through every distinct valid setting of a space without keeping those already seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from autotune.space.parameter import Parameter
from autotune.space.setting import Setting, Value

if TYPE_CHECKING:
    from autotune.space.space import Constraint, Space


def valid_settings(space: Space) -> Iterator[Setting]:
    """Depth first over the parameters, the last one varying fastest.

    A raw combination is a setting of its own exactly if every value in it is active and it breaks
    no rule; each test is made as soon as the parameters it mentions are decided, so that a
    condition that does not hold costs one step and not a whole sub-tree.
    """
    order = _parents_first(space)
    rules = _due(order, space)
    values: dict[str, Value] = {}

    def settled(depth: int) -> bool:
        names, constraints = rules[depth]
        if any(name in values and not space.active(name, values) for name in names):
            return False
        return not constraints or not set(space.broken(values)).intersection(constraints)

    def walk(depth: int) -> Iterator[Setting]:
        if depth == len(order):
            yield Setting(values)
            return
        name = order[depth].name
        for choice in order[depth].choices:
            if choice is not None:
                values[name] = choice
            if settled(depth):
                yield from walk(depth + 1)
            values.pop(name, None)

    return walk(0)


def _parents_first(space: Space) -> list[Parameter]:
    """The parameters in their order, but each after those its condition mentions (cycles stay)."""
    done: dict[str, Parameter] = {}
    on_the_way: set[str] = set()

    def visit(parameter: Parameter) -> None:
        if parameter.name in done or parameter.name in on_the_way:
            return
        on_the_way.add(parameter.name)
        for name in sorted(parameter.when.names if parameter.when else ()):
            if name in space:
                visit(space[name])
        done[parameter.name] = parameter

    for parameter in space.parameters:
        visit(parameter)
    return list(done.values())


def _due(order: list[Parameter], space: Space) -> list[tuple[list[str], list[Constraint]]]:
    """For each depth: the conditions and the constraints whose last parameter is decided there."""
    place = {parameter.name: depth for depth, parameter in enumerate(order)}

    def last(names: frozenset[str] | set[str]) -> int | None:
        return max((place[name] for name in names if name in place), default=None)

    rules: list[tuple[list[str], list[Constraint]]] = [([], []) for _ in order]
    for parameter in order:
        if parameter.when is not None:
            depth = last(parameter.when.names | {parameter.name})
            assert depth is not None  # it contains the parameter itself
            rules[depth][0].append(parameter.name)
    for constraint in space.constraints:
        depth = last(constraint.expr.names)
        if depth is not None:
            rules[depth][1].append(constraint)
    return rules
