"""The command line of a request: a command's options, made from the fields of its models.

A command is a function of its requests and of a few options of its own. :func:`takes_request` makes
the function that typer reads::

    @takes_request
    def noise(request: NoiseRequest, quiet: Quiet = False, store: StoreUrl = None) -> None:
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_args, get_origin

import typer

from autotune.cli import completion
from autotune.cli.options import LATE
from autotune.config.option import OptionField, Request, option_field, option_fields
from autotune.study.study_request import SearchRequest
from autotune.targets.request import TargetRequest


def takes_request(work: Callable[..., None], name: str = "") -> Callable[..., None]:
    """The command whose options are those of the requests among the parameters of ``work``.

    Its other parameters stay options of their own. Late options of the requests stand behind them,
    and options of the output last. ``name`` is that of a command of a group, such as "mate check".
    """
    command_name = name or work.__name__.replace("_", "-")
    models: dict[str, type[Request]] = {}
    ranks: list[tuple[int, Parameter]] = []
    for own in signature(work, eval_str=True).parameters.values():
        if isinstance(own.annotation, type) and issubclass(own.annotation, Request):
            models[own.name] = own.annotation
            ranks += [
                (field.option.late, _parameter(field)) for field in option_fields(own.annotation)
            ]
        else:
            ranks.append((2 if LATE in get_args(own.annotation) else 0, own))
    parameters = [one for _, one in sorted(ranks, key=lambda pair: pair[0])]
    others = signature(work).parameters.keys() - models.keys()

    def command(**values: Any) -> None:
        requests = {own: model.read(command_name, values) for own, model in models.items()}
        work(**requests, **{own: values[own] for own in others})

    command.__name__, command.__doc__ = work.__name__, work.__doc__
    # What typer reads: the signature, and the types of its parameters.
    keywords = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in parameters]
    vars(command)["__signature__"] = Signature(keywords)
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def _parameter(field: OptionField) -> Parameter:
    """An option of a request as a parameter that typer understands."""
    form, info = field.option.form, field.info
    kind: Any = form.kind or info.annotation
    if tuple in (get_origin(kind), *map(get_origin, get_args(kind))):
        kind = list[str]
    value = ... if info.is_required() else form.show(info.default)
    if value in (None, (), {}):
        kind, value = kind | None, None
    typer_default = _typer(field, value)
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=typer_default, annotation=kind)


def _typer(field: OptionField, *value: Any) -> Any:
    """What typer has to know of an option or argument, with its default unless that stands beside
    it."""
    option = field.option
    text = option.help() if callable(option.help) else option.help
    more: dict[str, Any] = {"help": text, "metavar": option.metavar}
    more |= {"min": field.limit("ge"), "max": field.limit("le")}
    if option.completion is not None:
        more["autocompletion"] = getattr(completion, option.completion)
    if option.names:
        return typer.Option(*value, *option.names, **more)
    return typer.Argument(*value, show_default=False, **more)


ClusterName = Annotated[str, _typer(option_field(TargetRequest, "cluster"))]
Mpi = Annotated[str | None, _typer(option_field(TargetRequest, "mpi"))]
Guard = Annotated[bool, _typer(option_field(SearchRequest, "guard"))]
