# SPDX-License-Identifier: Apache-2.0
"""Functions of the product that only tests call: each is dead weight, or a feature that lost its caller.

A function counts as called if its name is followed by a parenthesis, or is taken by its address, anywhere in the
product but where a function of that name is declared or defined. A name that is called through one class is not
noticed in another.
"""

import collections
import re

from tree import SOURCES

# Functions that stay although nothing in the product calls them, each with its reason.
ALLOWED = {
    "CountAsPresent": "puts the emulated instructions of tests/support in the place of those that a CPU lacks",
    "KnownMetadata": "of client/client.h, which other people's programs include",
    "MemoryConsumptionBytes": "a query of the contract that tests/engine/rows.txt holds the engine to (S02)",
    "TurnAwaited": "a test cannot see otherwise that a turn is waited for, and would have to sleep",
    "UseTileMachine": "puts the emulated tiles of tests/support in the place of those that a CPU lacks",
    "leased_bytes": "how tests see that every buffer is given back",
}

_NAME = re.compile(r"(?<![\w~])(\w+)(?=(?:<[^;{}=]*?>)?(\(\)?)?)")
# The type before a declared name, and the classes that qualify the name.
_WORD_BEFORE = re.compile(r"(\w+|[\w>\]][>&*]+)\s+(?:\w+(?:<[^<>()]*>)?::)*$")
# Words after which a name is called, not declared.
_STATEMENTS = {"return", "else", "case", "throw", "new", "delete", "do", "and", "or", "not", "in"}
_KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "decltype", "alignas", "alignof", "operator",
             "defined", "static_assert", "catch", "requires", "noexcept", "assert", "void", "int", "bool", "float",
             "double", "char", "constexpr", "new", "delete", "explicit"}
_MACROS = ("ABSL_", "TILEWIRE_")
_PASTED = re.compile(r"(\w+)##|##(\w+)")
# Called by a name of a base, or through an interface that other rooms implement and call.
_VIRTUAL = re.compile(r"\boverride\b|\bfinal\b|= *0 *$")


def _is_declared(text, start, end):
    """Whether the name in text[start:end], before a parenthesis, is that of a declaration or a definition."""
    line_start = text.rfind("\n", 0, start) + 1
    before = text[line_start:start]
    if not before.strip() or before.strip() == "explicit":
        return False
    match = _WORD_BEFORE.search(before)
    if match is None:
        return False
    word = match.group(1) or ""
    return word not in _STATEMENTS and not before.rstrip().endswith(("=", "(", ","))


def _scan(tree, path):
    """The names that a file declares or defines, each with whether it overrides, and those that it uses."""
    text = tree.code(path)
    declared, used = {}, set()
    for match in _NAME.finditer(text):
        name, call = match.group(1), match.group(2)
        if name in _KEYWORDS or name.startswith(_MACROS):
            continue
        # A lower-case name with arguments may be a variable's; functions of such names are accessors, without any.
        is_function = call == "()" or (call and name[0].isupper())
        if is_function and _is_declared(text, match.start(), match.end()):
            end = min(text.find(mark, match.end()) % (len(text) + 1) for mark in ";{")
            declared[name] = declared.get(name, False) or bool(_VIRTUAL.search(text[match.end():end]))
        elif call or name[0].isupper():
            used.add(name)
    for before, after in _PASTED.findall(text):
        used.add(before + "*" if before else "*" + after)
    return declared, used


def uncalled(tree):
    """For each function that headers of the product declare and nothing in it calls: the headers."""
    places, used = collections.defaultdict(set), set()
    for path in tree.with_suffix(".h", ".cc", ".inc"):
        if not path.startswith(SOURCES):
            continue
        declared, used_here = _scan(tree, path)
        used |= used_here
        if path.endswith(".h"):
            for name, overrides in declared.items():
                if not overrides:
                    places[name].add(path)
    pasted = [name for name in used if "*" in name]
    starts = tuple(name[:-1] for name in pasted if name.endswith("*"))
    ends = tuple(name[1:] for name in pasted if name.startswith("*"))
    return {name: sorted(headers) for name, headers in places.items()
            if name not in used and not (starts and name.startswith(starts)) and not (ends and name.endswith(ends))}


def check(tree):
    found = uncalled(tree)
    problems = [f"{', '.join(headers)}: nothing in the product calls {name}()" for name, headers in sorted(found.items())
                if name not in ALLOWED]
    return problems + [f"tests/architecture/callers.py: {name} is called, or is gone: take it out of ALLOWED"
                       for name in ALLOWED if name not in found and "engine/engine.h" in tree.files]
