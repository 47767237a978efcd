"""Calls of C functions in compiled regions: their type for numba, and the call itself.

Like :mod:`runner.runtimes.mate.compiled.numba_types`, which imports it, this module imports numba.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.errors import NumbaTypeError
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import signature

from runner.runtimes.mate.compiled.failure import PREFIX
from runner.runtimes.mate.compiled.state import Function

_types: Any = types  # for names that numba's annotations leave out


class NumbaFunction(types.Callable):
    """A C function: its address. numba gives the callee of a call to the first argument."""

    def __init__(self, kind: Function) -> None:
        self.kind = kind
        super().__init__(name=f"function_{kind}")

    def get_call_type(self, _typing: Any, arguments: Any, keywords: Any) -> Any:
        """The signature of a call; raises NumbaTypeError for arguments that do not fit."""
        kind = self.kind
        if keywords or len(arguments) != len(kind.arguments):
            raise NumbaTypeError(
                f"{PREFIX}the C function {kind} takes {len(kind.arguments)} arguments, by position"
            )
        for n, (parameter, argument) in enumerate(zip(kind.arguments, arguments, strict=True)):
            _check_argument(n + 1, parameter, argument)
        result = types.void if kind.result == "void" else getattr(types, kind.result)
        return signature(result, *map(_types.unliteral, arguments), recvr=self)

    def get_call_signatures(self) -> Any:
        return (), False

    def get_impl_key(self, _signature: Any) -> Any:
        return NumbaFunction


def _check_argument(place: int, parameter: str, argument: Any) -> None:
    number, element = _types.unliteral(argument), parameter.removesuffix("*")
    if parameter == element:
        whole = parameter.startswith("int")
        fits = isinstance(number, types.Integer if whole else (types.Integer, types.Float))
    else:
        fits = isinstance(number, types.Array) and str(number.dtype) == element
    if not fits:
        parameter_text = parameter if parameter == element else f"an array of {element}"
        raise NumbaTypeError(
            f"{PREFIX}argument {place} of the C function is {number}: expected {parameter_text}"
        )


def _lower_c_call(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """Call the C function; arrays become the address of their first element."""
    function, *arguments = signature.args
    words = []
    for parameter, kind, value in zip(function.kind.arguments, arguments, values[1:], strict=True):
        if isinstance(kind, types.Array):
            words.append(context.make_array(kind)(context, builder, value).data)
        else:
            words.append(context.cast(builder, value, kind, getattr(types, parameter)))
    void = signature.return_type == types.void
    result = ir.VoidType() if void else context.get_value_type(signature.return_type)
    prototype = ir.FunctionType(result, [word.type for word in words]).as_pointer()
    answer = builder.call(builder.inttoptr(values[0], prototype), words)
    return context.get_dummy_value() if void else answer


lower_builtin(NumbaFunction, _types.VarArg(types.Any))(_lower_c_call)
