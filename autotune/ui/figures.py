"""Figures on the page: the SVG of reports without inline styles, which the page's policy forbids.

Every property that the figures use is also an attribute of SVG, so a style becomes attributes. Text
cannot be mistaken for a style, because it has no ``<`` or ``>``.
"""

from __future__ import annotations

import dataclasses
import re

from autotune.report.page import Section

_TAG = re.compile(r"<[A-Za-z][^<>]*>")
_STYLE = re.compile(r'\sstyle="([^"]*)"')
_SHEET = re.compile(r"<style[^>]*>.*?</style>", re.DOTALL)
# The style sheet of matplotlib, as attributes that everything in the figure inherits.
_SVG_HEAD = '<svg stroke-linejoin="round" stroke-linecap="butt"'


def plain_svg(svg: str) -> str:
    """The same figure with attributes instead of styles."""
    svg = _SHEET.sub("", svg).replace("<svg", _SVG_HEAD, 1)
    return _TAG.sub(lambda tag: _STYLE.sub(_attributes, tag[0]), svg)


def _attributes(style: re.Match[str]) -> str:
    parts = (part.partition(":") for part in style[1].split(";") if ":" in part)
    pairs = ((name.strip(), value.strip()) for name, _, value in parts)
    # The background is for a figure in a separate file.
    return "".join(f' {name}="{value}"' for name, value in pairs if name != "background")


def plain_section(section: Section) -> Section:
    """The section with its figures for the page."""
    return dataclasses.replace(section, figures=tuple(map(plain_svg, section.figures)))
