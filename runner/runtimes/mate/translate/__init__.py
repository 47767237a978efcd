"""The translator: turns ordinary annotated mpi4py programs into programs of MATE.

    from runner.runtimes.mate.translate import translate
    text = translate(Path("app.py").read_text(), "app.py")

It needs libcst; comments and formatting survive. Source: Martin 2018, chapter 4.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import MetadataWrapper

from runner.runtimes.mate.translate.checks import (
    check_directives,
    check_imports,
    check_main,
    check_module,
)
from runner.runtimes.mate.translate.find import Finder, waiting
from runner.runtimes.mate.translate.module import ModuleNames
from runner.runtimes.mate.translate.pragmas import TranslationError, positions
from runner.runtimes.mate.translate.rewrite import RegionForm, Rewriter, with_main

__all__ = ["RegionForm", "Translation", "TranslationError", "translate", "translation"]


@dataclass(frozen=True)
class Translation:
    """A translated program, and the form of each of its regions, in order."""

    text: str
    regions: tuple[RegionForm, ...]


def translate(text: str, file: str = "program") -> str:
    """The text of :func:`translation`."""
    return translation(text, file).text


def translation(text: str, file: str = "program") -> Translation:
    """The program translated for the runtime; ``file`` is its name for messages.

    Raises TranslationError, with file and line, if a statement cannot be translated.
    """
    _check_python(text, file)
    try:
        return _translate(text, file)
    except RecursionError:
        raise TranslationError(f"{file}:1", "it is nested too deeply to be translated") from None


def _check_python(text: str, file: str) -> None:
    """Parse with Python first: its parser has limits at which libcst's would exhaust the stack.

    A process with an exhausted stack crashes.
    """
    try:
        ast.parse(text)
    except SyntaxError as problem:
        place = f"{file}:{problem.lineno or 1}"
        raise TranslationError(place, f"this is not valid Python: {problem.msg}") from None
    except (RecursionError, MemoryError):
        raise TranslationError(f"{file}:1", "it is nested too deeply to be translated") from None
    except ValueError as problem:  # A null byte in the text.
        raise TranslationError(f"{file}:1", f"this is not valid Python: {problem}") from None


def _translate(text: str, file: str) -> Translation:
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError as problem:
        place = f"{file}:{problem.raw_line}"
        raise TranslationError(place, f"this is not valid Python: {problem.message}") from None
    wrapper = MetadataWrapper(module)
    fail = positions(wrapper, file)
    module = wrapper.module
    check_imports(module, fail)
    check_directives(module, fail)
    finder = Finder(fail)
    module.visit(finder)
    functions = waiting(finder)
    check_module(module, functions.calls, finder.communicators, fail)
    check_main(wrapper, fail)
    names = ModuleNames(text, file)
    rewriter = Rewriter(module, functions, finder.communicators, names, fail)
    new_module = module.visit(rewriter)
    return Translation(with_main(new_module, rewriter, fail).code, tuple(rewriter.regions))
