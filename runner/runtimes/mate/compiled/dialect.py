"""The dialect of compiled functions: a check of a function's tree before compiling.

Every refusal names the user's line, the impossible construct and what to write instead.
"""

from __future__ import annotations

import ast

from runner.runtimes.mate.compiled.source import RegionSource, dotted_name

_LOOP = "write a loop over the elements of arrays"
_INSTEAD: dict[type[ast.AST], tuple[str, str]] = {
    ast.Assert: ("assert", "test in a Python region"),
    ast.AsyncFor: ("async for", "compiled code does not wait"),
    ast.AsyncFunctionDef: ("a function in a function", "put it beside this one, in the module"),
    ast.AsyncWith: ("async with", "compiled code does not wait"),
    ast.Await: ("await", "compiled code does not wait; use dependencies between regions"),
    ast.ClassDef: ("a class in a function", "put what it holds into the state"),
    ast.Delete: ("del", "leave it out"),
    ast.Dict: ("a dictionary", "use arrays of the state"),
    ast.DictComp: ("a comprehension", _LOOP),
    ast.FormattedValue: ("text", "use numbers"),
    ast.FunctionDef: ("a function in a function", "put it beside this one, in the module"),
    ast.GeneratorExp: ("a generator", _LOOP),
    ast.Global: ("global", "use an array of one element in the state"),
    ast.Import: ("import", "import at the beginning of the file"),
    ast.ImportFrom: ("import", "import at the beginning of the file"),
    ast.JoinedStr: ("text", "use numbers"),
    ast.Lambda: ("lambda", "write a function beside this one, in the module"),
    ast.List: ("a list", "use a tuple of numbers, or an array of the state"),
    ast.ListComp: ("a comprehension", _LOOP),
    ast.MatMult: ("the operator @", "write loops"),
    ast.Match: ("match", "write if and elif"),
    ast.NamedExpr: (":=", "assign in a line of its own"),
    ast.Nonlocal: ("nonlocal", "use an array of one element in the state"),
    ast.Raise: ("raise", "write a number into an array of the state, and test it after the graph"),
    ast.Set: ("a set", "use arrays of the state"),
    ast.SetComp: ("a comprehension", _LOOP),
    ast.Starred: ("*", "write the arguments or values one by one"),
    ast.Try: ("try", "compiled code raises nothing: test with if"),
    ast.TryStar: ("try", "compiled code raises nothing: test with if"),
    ast.Yield: ("yield", "use a loop"),
    ast.YieldFrom: ("yield", "use a loop"),
}
_REDUCTIONS = frozenset({"mean", "prod", "std", "sum", "var"})
_NEW_ARRAYS = frozenset({"astype", "copy", "flatten", "ravel", "reshape", "tolist"})


def check(source: RegionSource) -> None:
    """Raise :class:`GraphError` for the first part of the function that cannot be compiled."""
    arguments, region = source.tree.args, source.region
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs:
        raise source.refusal(
            source.tree, "only plain parameters can be compiled: no *, ** and / in the definition"
        )
    if region and (len(arguments.args) != 2 or arguments.defaults):
        raise source.refusal(
            source.tree, "a region has two parameters, the state and the iteration: f(part, i)"
        )
    body = source.tree.body
    if _is_text(body[0]):
        body = body[1:]
    for statement in body:
        for node in ast.walk(statement):
            _check(source, node)


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _check(source: RegionSource, node: ast.AST) -> None:
    if advice := _INSTEAD.get(type(node)):
        what, instead = advice
        raise source.refusal(node, f"{what} cannot be compiled: {instead}")
    match node:
        case ast.Attribute(ctx=ast.Store()):
            raise source.refusal(
                node,
                f"{dotted_name(node) or node.attr} is assigned: compiled code reads the numbers of "
                "the state when the graph is entered and cannot change them; use an array of one "
                f"element ({dotted_name(node) or node.attr}[0] = ...)",
            )
        case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()):
            raise source.refusal(node, "the operator @ cannot be compiled: write loops")
        case ast.BinOp(left=one, right=other) | ast.Compare(left=one, comparators=[other]) if (
            _is_slice(one) or _is_slice(other)
        ):
            raise source.refusal(
                node,
                "an operation of whole arrays makes a new array, which compiled code cannot: write "
                "a loop over their elements",
            )
        case ast.UnaryOp(operand=one) if _is_slice(one):
            raise source.refusal(
                node,
                "an operation of a whole array makes a new array, which compiled code cannot: "
                "write a loop over its elements",
            )
        case ast.With():
            _check_with(source, node)
        case ast.Attribute(attr=name) if name in _NEW_ARRAYS and not _of_state(source, node):
            raise source.refusal(
                node,
                f".{name}() makes a new array, which compiled code cannot: make the array when the "
                "state is made, and write a loop over its elements",
            )
        case ast.Attribute(attr=name) if (
            source.python and name in _REDUCTIONS and not _of_state(source, node)
        ):
            raise source.refusal(
                node,
                f".{name} adds in another order than numpy, so the last bits would differ: write a "
                "loop, or mark the region compiled=True",
            )
        case ast.Constant(value=str() | bytes()):
            raise source.refusal(
                node,
                f"{type(node.value).__name__} {node.value!r:.40} cannot be compiled: use numbers",
            )
        case ast.Call(keywords=keywords) if any(k.arg is None for k in keywords):
            raise source.refusal(node, "** cannot be compiled: write the arguments one by one")
        case ast.Call(func=function) if not isinstance(function, ast.Name | ast.Attribute):
            raise source.refusal(
                node, "a call of what an expression gives cannot be compiled: call a function"
            )
        case ast.Call(func=ast.Name(id="range"), args=[_, _, step]) if not _is_number(step):
            raise source.refusal(
                node, "range with a step that is no constant cannot be compiled: use while"
            )
        case ast.Return() if source.region and node.value is not None:
            raise source.refusal(node, "a region returns nothing: write into an array of the state")


def _check_with(source: RegionSource, node: ast.With) -> None:
    match node.items:
        case [ast.withitem(ast.Call(ast.Attribute(owner, "buffering"), [], []), None)] if (
            dotted_name(owner)
        ):
            pass
        case _:
            raise source.refusal(
                node, "with cannot be compiled, except with ctx.buffering(): leave it out"
            )
    for statement in node.body:
        if (exit_node := _leaving(statement, in_loop=False)) is not None:
            raise source.refusal(
                exit_node,
                "this would leave the block of buffering early: end the block before it",
            )


def _leaving(node: ast.AST, in_loop: bool) -> ast.AST | None:
    """The first statement in ``node`` that leaves it, other than by its end."""
    if isinstance(node, ast.Return):
        return node
    if isinstance(node, (ast.Break, ast.Continue)) and not in_loop:
        return node
    inside = in_loop or isinstance(node, (ast.For, ast.While))
    leaving_children = (_leaving(child, inside) for child in ast.iter_child_nodes(node))
    return next((leaving for leaving in leaving_children if leaving is not None), None)


def _of_state(source: RegionSource, node: ast.Attribute) -> bool:
    """True if this is an attribute of the state, which may have any name."""
    base = node.value
    return source.region and isinstance(base, ast.Name) and base.id == source.parameters[0]


def _is_slice(node: ast.expr) -> bool:
    """True if this is a part of an array, such as ``a[1:]`` or ``a[k, :]``."""
    if not isinstance(node, ast.Subscript):
        return False
    index = node.slice
    return any(isinstance(n, ast.Slice) for n in (index, *getattr(index, "elts", ())))


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and bool(node.value)
