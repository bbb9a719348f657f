# SPDX-License-Identifier: Apache-2.0
"""Names in anonymous namespaces are unique within a folder: its sources may be compiled as one.

Which sources meet in a unit changes whenever one is added, so two equal names compile today and not tomorrow.
"""

import collections
import os
import re

from tree import without_comments_and_strings

ROOMS = ("engine/", "service/", "client/")

# The comment after the closing brace is blanks by then.
_ANONYMOUS = re.compile(r"^namespace \{$(.*?)^\} +$", re.MULTILINE | re.DOTALL)
_FUNCTION = re.compile(r"^(?!return\b|using\b|#)(?:[\w:<>,&*]+ +)+[&*]?(\w+)\(([^{};()]*)\)[^;{}()]*\{",
                       re.MULTILINE)
_TYPE = re.compile(r"^(?:class|struct|enum class) (\w+)", re.MULTILINE)
_TYPE_WITH_BODY = re.compile(r"^(?:class|struct|enum class) (\w+)(?: final)?(?: :[^;{]*)? ?\{", re.MULTILINE)
_CONSTANT = re.compile(r"^(?:constexpr|const) [\w:<>, *]+?\b(\w+)(?:\[\w*\])? *[={]", re.MULTILINE)
_PARAMETER_NAME = re.compile(r"(?<=[\s&*])\w+\s*(?=,|$)")


def _parameter_types(text):
    return re.sub(r"\s+", "", _PARAMETER_NAME.sub("", text.strip()))


def _names(text):
    for body in _ANONYMOUS.findall(without_comments_and_strings(text)):
        for name, parameters in _FUNCTION.findall(body):
            yield f"{name}({_parameter_types(parameters)})"
        yield from _TYPE.findall(body)
        yield from _CONSTANT.findall(body)


def _types_of_headers(tree):
    """The place and name of each type that headers declare."""
    for path in tree.with_suffix(".h"):
        if path.startswith(ROOMS):
            for name in _TYPE_WITH_BODY.findall(without_comments_and_strings(tree.text(path))):
                yield path, name


def check(tree):
    places = collections.defaultdict(set)
    for path in tree.with_suffix(".cc"):
        if path.startswith(ROOMS):
            for name in _names(tree.text(path)):
                places[os.path.dirname(path), name].add(path)
    for path, name in _types_of_headers(tree):
        if (os.path.dirname(path), name) in places:
            places[os.path.dirname(path), name].add(path)
    return [f"{', '.join(sorted(paths))}: each names its own {name}, and they may be compiled as one"
            for (_, name), paths in sorted(places.items()) if len(paths) > 1]
