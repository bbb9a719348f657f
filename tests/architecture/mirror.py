# SPDX-License-Identifier: Apache-2.0
"""Each file of operators and each primitive has its tests, which lie and are named as it does."""

import re

OPERATORS = "engine/onnx/ops/"
PRIMITIVES = "engine/primitives/"

_TABLE = re.compile(r"^TILEWIRE_OPERATORS\(\w+\) = \{", re.MULTILINE)
_TEST = re.compile(r"^TEST(_F|_P)?\(", re.MULTILINE)


def _operators_without_tests(tree):
    for path in tree.with_suffix(".cc"):
        if not path.startswith(OPERATORS) or not _TABLE.search(tree.text(path)):
            continue
        test = f"tests/{path[:-len('.cc')]}_test.cc"
        if test not in tree.files or not _TEST.search(tree.text(test)):
            yield f"{path}: has operators, and no tests in {test}"


def _tests_without_operators(tree):
    for path in tree.with_suffix("_test.cc"):
        tested = path.replace("tests/", "", 1).replace("_test.cc", ".cc")
        if path.startswith("tests/" + OPERATORS) and tested not in tree.files:
            yield f"{path}: there is no {tested}"


def _primitives_without_tests(tree):
    folders = {path.split("/")[2] for path in tree.files
               if re.fullmatch(PRIMITIVES + r"\w+/[^/]+\.cc", path)}
    for folder in sorted(folders):
        tests = f"tests/{PRIMITIVES}{folder}/"
        if not any(path.startswith(tests) and _TEST.search(tree.text(path))
                   for path in tree.with_suffix("_test.cc")):
            yield f"{PRIMITIVES}{folder}: no tests in {tests}"


def check(tree):
    return [*_operators_without_tests(tree), *_tests_without_operators(tree),
            *_primitives_without_tests(tree)]
