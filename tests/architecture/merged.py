# SPDX-License-Identifier: Apache-2.0
"""Names in anonymous namespaces are unique within a package: its sources may be compiled as one.

Which sources meet in a unit changes whenever one is added, so two equal names compile today and not tomorrow.
"""

import collections
import os
import re

from tree import SOURCES

# The comment after the closing brace is blanks by then.
_ANONYMOUS = re.compile(r"^namespace \{$(.*?)^\} +$", re.MULTILINE | re.DOTALL)
_FUNCTION = re.compile(r"^(?!return\b|using\b|#)(?:[\w:<>,&*]+ +)+[&*]?(\w+)\(([^{};()]*)\)[^;{}()]*\{",
                       re.MULTILINE)
_TYPE = re.compile(r"^(?:class|struct|enum class) (\w+)", re.MULTILINE)
_TYPE_WITH_BODY = re.compile(r"^(?:class|struct|enum class) (\w+)(?: final)?(?: :[^;{]*)? ?\{", re.MULTILINE)
_CONSTANT = re.compile(r"^(?:constexpr|const) [\w:<>, *]+?\b(\w+)(?:\[\w*\])? *[={]", re.MULTILINE)
_PARAMETER_NAME = re.compile(r"(?<=[\s&*])\w+\s*(?=,|$)")
# The folders whose sources are merged. Each source of tests/bench and tests/fuzz is a program of its own.
_MERGED = SOURCES + ("tests/client/", "tests/conformance/", "tests/engine/", "tests/integration/", "tests/service/",
                     "tests/support/")


def _parameter_types(text):
    return re.sub(r"\s+", "", _PARAMETER_NAME.sub("", text.strip()))


def _names(code):
    for body in _ANONYMOUS.findall(code):
        for name, parameters in _FUNCTION.findall(body):
            yield f"{name}({_parameter_types(parameters)})"
        yield from _TYPE.findall(body)
        yield from _CONSTANT.findall(body)


def _package(tree, path):
    """The folder of the nearest BUILD, whose sources are merged; else the file's own."""
    folder = own = os.path.dirname(path)
    while folder:
        if f"{folder}/BUILD" in tree.files:
            return folder
        folder = os.path.dirname(folder)
    return own


def _types_of_headers(tree):
    """The place and name of each type that headers declare."""
    for path in tree.with_suffix(".h"):
        if path.startswith(_MERGED):
            for name in _TYPE_WITH_BODY.findall(tree.code(path)):
                yield path, name


def _hidden_types(places):
    """A function hides a type of its name, wherever that is declared."""
    for (package, name), paths in list(places.items()):
        function, bracket, _ = name.partition("(")
        if bracket and (package, function) in places:
            places[package, function] |= paths


def check(tree):
    places = collections.defaultdict(set)
    for path in tree.with_suffix(".cc"):
        if path.startswith(_MERGED):
            for name in _names(tree.code(path)):
                places[_package(tree, path), name].add(path)
    for path, name in _types_of_headers(tree):
        if (_package(tree, path), name) in places:
            places[_package(tree, path), name].add(path)
    _hidden_types(places)
    return [f"{', '.join(sorted(paths))}: each names its own {name}, and they may be compiled as one"
            for (_, name), paths in sorted(places.items()) if len(paths) > 1]
