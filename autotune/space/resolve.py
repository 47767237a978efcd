"""Resolve a space file against one library: its names, enumerated values and defaults.

This module turns a definition into the space of one library. It expands derived values, which
follow from parameters and facts and are never set. Levels and defaults are in
:mod:`autotune.space.levels`; :mod:`autotune.space.named_space` loads spaces by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from autotune.errors import UsageError
from autotune.space.definition import (
    ENUM,
    ConstraintTable,
    Definition,
    Keys,
    ParameterTable,
    is_cores_each,
    matches,
)
from autotune.space.expression import (
    Compare,
    Constant,
    Expr,
    IsSet,
    Logic,
    Name,
    parse_expression,
    rename_names,
)
from autotune.space.layout_table import NamedValues
from autotune.space.levels import default_of, levels_of, number_of
from autotune.space.parameter import Argument, Parameter, default_kind
from autotune.space.setting import Setting, Value, normalise_value, read_value
from autotune.space.space import Constraint, Space
from autotune.space.vocabulary import LayoutRules, Naming
from runner.mpi.discover import adapter, family
from runner.mpi.library import Library, ParamInfo

_MCA = "mca"
"""The only target for which the library's list can confirm names."""


_PLACEMENT = "placement"

_ONE_OF = ("pml", "mtl")
"""Frameworks that use one component, and whose components all have parameters."""


@dataclass
class _ResolvedTable:
    """One parameter of the definition: its name in this library, or why it is absent."""

    keys: Keys
    name: str
    info: ParamInfo | None = None
    absent: str | None = None
    levels: tuple[Value, ...] = field(default_factory=tuple)


def resolve(
    definition: Definition,
    name: str,
    origin: str,
    library: Library | None = None,
    facts: Mapping[str, Value] | None = None,
) -> Space:
    """The space of a definition under a library (None: names as in the file).

    Parameters that the library does not have, or whose condition cannot be true under the facts,
    are in ``Space.absent`` with the reason. ``origin`` is the file's name in messages. Raises
    :class:`UsageError` if the definition is for another library, or if the resulting space is
    invalid.
    """
    facts = dict(facts or {})
    if library and definition.library and not matches(definition.library, library):
        raise UsageError(
            f"{origin}: space {name} is for {definition.library}, but the MPI library here "
            f"is {title(library)}; choose another space (--space) or another MPI (--mpi)",
            code="space.other_library",
        )
    tables = {
        canonical: _find(canonical, table, f"{origin}: parameters.{canonical}", library, facts)
        for canonical, table in definition.parameters.items()
    }
    return _assemble(definition, name, library, tables, facts)


def _assemble(
    definition: Definition,
    name: str,
    library: Library | None,
    tables: dict[str, _ResolvedTable],
    facts: dict[str, Value],
) -> Space:
    names = {canonical: item.name for canonical, item in tables.items()}
    enums = {item.name: item.info.number_names for item in tables.values() if item.info}
    present = {c: item for c, item in tables.items() if item.absent is None}
    absent = {c: item.absent for c, item in tables.items() if item.absent is not None}
    derived_values = derive(
        {n: rename_names(parse_expression(t), names) for n, t in definition.derived.items()}
    )

    def read(text: str) -> Expr:
        return spelled_out(_parse_native(text, names, enums), derived_values)

    parameters = [_parameter(item, names, read, facts) for item in present.values()]
    constraints = [
        Constraint(read(table.rule), table.reason, _parse_native(table.rule, names, enums))
        for table in definition.constraints
        if applies(table, library)
    ]
    arguments = [
        Argument(table.words).with_names(names, read(table.when) if table.when else None)
        for table in definition.arguments
    ]
    aliases = {
        other: item.name
        for canonical, item in present.items()
        for other in _names(canonical, definition.parameters[canonical]) - {item.name}
    }
    space = Space(
        name,
        tuple(parameters),
        tuple(constraints),
        absent,
        facts,
        aliases,
        derived_values,
        tuple(arguments),
        frozenset({definition.requires} if definition.requires else ()),
    )
    space = _without_hopeless(space, names)
    layout = _layout(definition, names, derived_values)
    return replace(space, starts=_starts(definition, space, names), layout=layout)


def _layout(
    definition: Definition,
    names: Mapping[str, str],
    derived_values: Mapping[str, Expr],
) -> LayoutRules:
    """The words of the section ``[layout]``, in terms of this library's parameters."""
    table = definition.layout

    def rule(entry: str | NamedValues) -> Expr | Naming:
        if isinstance(entry, NamedValues):
            return Naming(names.get(entry.of, entry.of), entry.names, entry.other)
        return spelled_out(rename_names(parse_expression(entry), names), derived_values)

    return LayoutRules(
        words={word: rule(entry) for word, entry in table.words.items()},
        own={names.get(name, name): why for name, why in table.own.items()},
        absent=dict(table.absent),
        derived=dict(derived_values),
    )


def _starts(definition: Definition, space: Space, names: Mapping[str, str]) -> tuple[Setting, ...]:
    """The settings to try first, as far as this library and these facts allow them."""
    starts = []
    for table in definition.start:
        setting = Setting({names[n]: v for n, v in Setting.parse(table.setting).items()})
        if space.is_valid(setting) and (canonical := space.canonical(setting)) not in starts:
            starts.append(canonical)
    return tuple(starts)


def _names(canonical: str, table: ParameterTable) -> set[str]:
    """Every name of a parameter in any library."""
    native_names = {table.name, *(keys.name for keys in table.on.values())}
    return {canonical, *(name for name in native_names if name)}


def applies(table: ConstraintTable, library: Library | None) -> bool:
    """True if a constraint applies to this library."""
    return table.on is None or (library is not None and matches(table.on, library))


def _find(
    canonical: str,
    table: ParameterTable,
    where: str,
    library: Library | None,
    facts: Mapping[str, Value],
) -> _ResolvedTable:
    keys = keys_for(table, library)
    item = _ResolvedTable(keys, keys.name or canonical, absent=keys.absent)
    target = keys.target or default_kind(item.name)
    if item.absent is None and library is not None and library.params and target == _MCA:
        item.info = library.params.get(item.name)
        if item.info is None:
            item.absent = f"{title(library)} has no parameter {item.name}"
        elif item.info.synonym_of in library.params:
            item.info = library.params[item.info.synonym_of]
            item.name = item.info.name
    if item.absent is None and library is not None and target == _PLACEMENT:
        own = adapter(library)
        if item.name not in own.placement_names:
            item.absent = f"{own.launcher_title} has no option {item.name}"
    lacks_values = library is not None and not library.params and keys.levels == ENUM
    if item.absent is None and lacks_values and library is not None:
        item.absent = f"{title(library)} does not list its values here"
    if item.absent is None:
        item.levels = levels_of(
            item.keys, item.info, facts, where, title(library) if library else ""
        )
    if item.info is not None and library is not None:
        item.levels, item.absent = _installed_levels(item, library)
    return item


def _installed_levels(
    item: _ResolvedTable, library: Library
) -> tuple[tuple[Value, ...], str | None]:
    """The installed levels of a parameter that selects one component of a framework.

    It is absent (with the reason) if no choice would be left. A component without parameters is not
    visible, so other selections (``^cma``, ``self,sm``) stay unchanged.
    """
    if item.name not in _ONE_OF:
        return item.levels, item.absent
    levels = tuple(
        level
        for level in item.levels
        if any(name.startswith(f"{item.name}_{level}_") for name in library.params)
    )
    if len(levels) > 1:
        return levels, None
    lacking = ", ".join(str(level) for level in item.levels if level not in levels)
    return item.levels, f"{title(library)} has no component {item.name}/{lacking} here"


def keys_for(table: ParameterTable, library: Library | None) -> Keys:
    """The table in file order, with its values for this library instead of the general ones."""
    values = {key: getattr(table, key) for key in Keys.model_fields}
    for spec, override in table.on.items():
        if library is not None and matches(spec, library):
            values |= {key: getattr(override, key) for key in override.model_fields_set}
    return Keys.model_construct(**values)


def _parameter(
    item: _ResolvedTable,
    names: Mapping[str, str],
    read: Callable[[str], Expr],
    facts: Mapping[str, Value],
) -> Parameter:
    keys, info = item.keys, item.info
    return Parameter(
        name=item.name,
        levels=item.levels,
        target=keys.target or default_kind(item.name),
        default=1 if is_cores_each(item.name, keys) else default_of(keys, info, facts),
        unset=keys.unset,
        when=read(keys.when) if keys.when else None,
        implies=_native_implied(keys.implies, names),
        implies_at={
            number_of(read_value(level), info): _native_implied(values, names)
            for level, values in keys.implies.items()
            if isinstance(values, dict)
        },
        help=keys.help or (info.help if info else ""),
        option=Argument(keys.option).with_names(names).template if keys.option else None,
        enum=dict(info.number_names) if info else {},
        words=info.only_words if info else (),
    )


def _native_implied(implied: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Value]:
    """Implied values under this library's names, without the tables for single levels."""
    plain = {n: v for n, v in implied.items() if not isinstance(v, dict)}
    return {names.get(n, n): normalise_value(v) for n, v in plain.items()}


def _parse_native(
    text: str, names: Mapping[str, str], enums: Mapping[str, Mapping[int, str]]
) -> Expr:
    """Parse the text, replace names by the library's, and enumerated names by their numbers."""

    def change(node: Expr) -> Expr:
        if not isinstance(node, Compare):
            return node
        left, right = node.left, node.right
        return Compare(node.sign, _as_number(left, right, enums), _as_number(right, left, enums))

    return rename_names(parse_expression(text), names).map(change)


def _as_number(node: Expr, other: Expr, enums: Mapping[str, Mapping[int, str]]) -> Expr:
    if isinstance(node, Constant) and isinstance(other, Name):
        for number, name in enums.get(other.name, {}).items():
            if name == node.content:
                return Constant(number)
    return node


def _without_hopeless(space: Space, names: Mapping[str, str]) -> Space:
    """Move parameters to ``absent`` whose condition is false for every setting under the facts."""
    hopeless = {}
    for parameter in space:
        when = parameter.when
        if when is None or any(name in space for name in when.names):
            continue
        if not space.active(parameter.name, {}):
            hopeless[parameter.name] = f"its condition {when} does not hold here"
    if not hopeless:
        return space
    canonical = {native: name for name, native in names.items()}
    reasons = {canonical.get(name, name): reason for name, reason in hopeless.items()}
    parameters = tuple(parameter for parameter in space if parameter.name not in hopeless)
    absent = {**space.absent, **reasons}
    return _without_hopeless(replace(space, parameters=parameters, absent=absent), names)


def title(library: Library) -> str:
    """Name and version of the library, for messages."""
    return f"{family(library.family).title} {library.version}".strip()


def derive(definitions: Mapping[str, Expr]) -> dict[str, Expr]:
    """The expressions of derived values, in terms of parameters and facts only.

    Each expression may use earlier derived values."""
    values: dict[str, Expr] = {}
    for name, expr in definitions.items():
        values[name] = spelled_out(expr, values)
    return values


def spelled_out(expr: Expr, derived_values: Mapping[str, Expr]) -> Expr:
    """The ``expr`` with every derived value replaced by its expression.

    So rules name the parameters they depend on, which repair and enumeration of settings use. A
    derived value counts as set if any name in it is set.
    """

    def change(node: Expr) -> Expr:
        if isinstance(node, Name):
            return derived_values.get(node.name, node)
        if isinstance(node, IsSet) and node.name in derived_values:
            tests = tuple(IsSet(name) for name in sorted(derived_values[node.name].names))
            return tests[0] if len(tests) == 1 else Logic("or", tests)
        return node

    return expr.map(change)
