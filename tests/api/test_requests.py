"""One model has a command's options: the command line, Python and the documents agree with it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

from autotune.anova.factors import CORRECTIONS, MODELS
from autotune.anova.paired_runs import MARGIN
from autotune.anova.stability import WAYS
from autotune.api import compare as comparisons
from autotune.api.analysis_requests import AnovaRequest
from autotune.api.anova import PRESETS
from autotune.api.options import SearchOptions, TargetOptions
from autotune.api.publication_requests import VerifyRequest
from autotune.api.requests import ClasswideRequest, CollectivesRequest
from autotune.cli.commands import build
from autotune.collectives.tournament import OPERATIONS
from autotune.config.option import option_field, option_fields
from autotune.publish.recheck import PAIRS
from autotune.stats import LOOKS
from autotune.study.study_request import CompareRequest, NoiseRequest, SearchRequest
from autotune.targets.request import TargetRequest
from tests.case_table import case_table

WHOLE = SearchRequest.of(
    "a test",
    target={
        "program": ["./a.out", "-n", "3"], "ranks": 4, "cluster": "four", "mpi": "one",
        "metric": "T=(.)", "metric_rate": "R=(.)", "metric_choice": "last", "verify": "ok",
        "verify_absent": "bad", "exit_codes": "0,1", "stdin": Path("in"),
        "before": ["rm", "a b"], "fresh_dir": "work", "timeout": "10m", "clean_env": True,
        "commutative_only": True, "command": "search",
    },
    libraries=["two", "three"], strategy="ga", space="a+b", trials=7, budget_s=90, max_runs=80,
    seed=3, preset="thesis", options={"population": "20"}, min_gain=0.035, remeasure=True,
    fidelity=True, starts=["default", "x=1"], features="f.json", params_file="p.conf", guard=False,
)  # fmt: skip
PLAIN = SearchRequest.of("a test", target={"app": "micro", "input": "bcast", "command": "search"})


def read_again(words: Sequence[str]) -> SearchRequest:
    """The request of a command line of ``autotune search``."""
    command: Any = build()
    context = command.commands["search"].make_context("search", list(words[1:]))
    values = {
        parameter.name: context.params[parameter.name] or None
        if parameter.multiple or parameter.nargs == -1
        else context.params[parameter.name]
        for parameter in context.command.params
    }
    return SearchRequest.read("search", values)


@pytest.mark.parametrize("request_", [WHOLE, PLAIN], ids=["every option", "few options"])
def test_a_request_is_the_same_after_its_words_and_its_document(request_: SearchRequest) -> None:
    assert read_again(request_.words()) == request_
    stored = SearchRequest.from_json(request_.to_json(), "a test")
    assert stored == request_.model_copy(
        update={"target": request_.target.model_copy(update={"command": ""})}
    )


def test_the_sample_has_every_option() -> None:
    """Else the test above would not see a new one."""
    for field in option_fields(SearchRequest):
        if field.name not in ("app", "input"):
            assert WHOLE.value_at(field) != field.info.default, field.name


def kinds(annotation: Any) -> set[Any]:
    """The types that an annotation allows, without None; a tuple counts as a sequence."""
    if get_origin(annotation) is Annotated:
        return kinds(get_args(annotation)[0])
    if get_origin(annotation) is tuple:
        return {Sequence[str]}
    parts = (
        get_args(annotation)
        if type(annotation).__name__ in ("UnionType", "_UnionGenericAlias")
        else ()
    )
    return {k for part in parts for k in kinds(part)} - {NoneType} if parts else {annotation}


@pytest.mark.parametrize(
    ("keywords", "model", "elsewhere"),
    [
        (TargetOptions, TargetRequest, {"program", "command"}),
        (
            SearchOptions,
            SearchRequest,
            # Of tune() itself, in the types of Python; and the target, which has its own.
            {"target", "libraries", "strategy", "space", "budget_s", "max_runs"},
        ),
    ],
)
def test_the_keywords_of_python_are_the_fields(
    keywords: Any, model: type[BaseModel], elsewhere: set[str]
) -> None:
    own = get_type_hints(keywords)
    if model is SearchRequest:
        own = {
            name: kind for name, kind in own.items() if name not in TargetOptions.__annotations__
        }
    assert own.keys() == model.model_fields.keys() - elsewhere
    fields = get_type_hints(model, include_extras=True)
    for name, kind in own.items():
        assert kinds(kind) - {Path} == kinds(fields[name]), name


@pytest.mark.parametrize(
    ("function", "model"),
    [(comparisons.compare, CompareRequest), (comparisons.noise, NoiseRequest)],
)
def test_the_defaults_of_python_are_those_of_the_fields(
    function: Callable[..., Any], model: type[BaseModel]
) -> None:
    aliases = {"budget": "budget_s"} | ({"runs": "max_runs"} if model is CompareRequest else {})
    defaults = {
        aliases.get(name, name): parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and name not in ("store", "watch")
    }
    fields = {n: f.default for n, f in model.model_fields.items() if n in defaults}
    assert defaults == fields


@case_table(
    ("model", "field", "figures"),
    [
        (CompareRequest, "pairs", LOOKS),
        (CollectivesRequest, "operations", OPERATIONS),
        (ClasswideRequest, "preset", PRESETS),
        (AnovaRequest, "model", MODELS),
        (AnovaRequest, "correction", CORRECTIONS),
        (AnovaRequest, "by", WAYS),
    ],
)
def test_help_lists_what_the_code_has(
    model: type[BaseModel], field: str, figures: Sequence[object]
) -> None:
    """They are repeated there, so that help does not wait for the modules that have them."""
    assert ", ".join(map(str, figures)) in str(option_field(model, field).option.help)


def test_the_pairs_of_a_verification_are_those_of_its_comparison() -> None:
    assert VerifyRequest.model_fields["pairs"].default == PAIRS


def test_the_margin_of_a_class_is_that_of_its_proof() -> None:
    assert ClasswideRequest.model_fields["margin"].default == pytest.approx(MARGIN)
