#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what the product's sources measure: sizes, circles, duplicates, conditional code, locks.

  python3 tests/architecture/measures.py                 the table
  python3 tests/architecture/measures.py --duplicates    each pair of places that share code

Two places share code if 40 tokens in a row are the same, about six lines; comments and directives do not count, and a
longer run is one pair.
"""

import collections
import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)

import circles  # noqa: E402
import sizes  # noqa: E402
from tree import SOURCES, Tree  # noqa: E402

_SHARED = 40
_DIRECTIVE = re.compile(r"^[ \t]*#.*|//[^\n]*", re.MULTILINE)
_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\w+|[^\w\s]|\n')
_CONDITION = re.compile(r"^[ \t]*#[ \t]*if(?!ndef \w+_H_$)", re.MULTILINE)
_LOCKS = re.compile(r"\bABSL_(?:PT_)?(?:GUARDED_BY|LOCKS_EXCLUDED|(?:EXCLUSIVE|SHARED)_LOCKS_REQUIRED|LOCKABLE"
                    r"|SCOPED_LOCKABLE|(?:EXCLUSIVE_|SHARED_)?(?:UN)?LOCK_FUNCTION|ACQUIRED_(?:BEFORE|AFTER))\b")
_LINK = re.compile(r"\]\(([\w/.]+\.(?:cc|proto))\)")


def sources(tree):
    return [path for path in tree.with_suffix(".h", ".cc", ".inc") if path.startswith(SOURCES)]


def function_lines(tree):
    """The lengths of all functions, ascending."""
    return sorted(lines for path in sources(tree) for _, lines, _ in sizes.functions(tree.code(path)))


def _tokens(text):
    """[(line, token)] of code."""
    line, found = 1, []
    for token in _TOKEN.findall(_DIRECTIVE.sub("", text)):
        if token == "\n":
            line += 1
        else:
            found.append((line, token))
    return found


def duplicates(tree):
    """[(tokens, (file, line), (file, line))] of pairs of places that share code, the longest first."""
    code, seen = {path: _tokens(tree.text(path)) for path in sources(tree)}, collections.defaultdict(list)
    for path, tokens in code.items():
        texts = [token for _, token in tokens]
        for i in range(len(texts) - _SHARED + 1):
            seen[hash(tuple(texts[i:i + _SHARED]))].append((path, i))
    pairs = {(a, b) for places in seen.values() for i, a in enumerate(places) for b in places[i + 1:]}
    found = []
    for (a, i), (b, j) in pairs:
        if ((a, i - 1), (b, j - 1)) in pairs:
            continue  # inside a run
        length = 0
        while ((a, i + length), (b, j + length)) in pairs:
            length += 1
        found.append((length + _SHARED - 1, (a, code[a][i][0]), (b, code[b][j][0])))
    return sorted(found, reverse=True)


def life_of_a_request(tree):
    """The files that README names, in its order."""
    text = tree.text("README.md")
    return list(dict.fromkeys(_LINK.findall(text[text.index("## The life of a request"):text.index("## Rooms")])))


def measures(tree):
    """[(what, figure)]."""
    lines = {path: tree.text(path).count("\n") for path in sources(tree)}
    functions = function_lines(tree)
    folders = collections.Counter(os.path.dirname(path) for path in lines)
    largest, fullest = max(lines, key=lines.get), max(folders, key=folders.get)
    conditions = sum(len(_CONDITION.findall(tree.text(path))) for path in lines)
    engine = sum(count for path, count in lines.items() if path.startswith("engine/"))
    return [
        ("functions over 60 lines", f"{sum(count > 60 for count in functions)} of {len(functions)}"),
        ("lines of a function, p90", functions[len(functions) * 9 // 10]),
        ("largest source file", f"{lines[largest]} lines, {largest}"),
        ("folder with most files", f"{folders[fullest]}, {fullest}"),
        ("#if outside guards", f"{conditions}, {1000 * conditions / sum(lines.values()):.2f} per 1000 lines"),
        ("lock annotations", sum(len(_LOCKS.findall(tree.text(path))) for path in lines)),
        ("circles of units", len(circles.circles(tree))),
        ("pairs of places that share code", len(duplicates(tree))),
        ("files in the life of a request", len(life_of_a_request(tree))),
        ("lines of the engine", engine),
        ("lines of the product", sum(lines.values())),
    ]


def main():
    tree = Tree(os.path.dirname(os.path.dirname(HERE)))
    if sys.argv[1:] == ["--duplicates"]:
        for tokens, (first, at), (second, there) in duplicates(tree):
            print(f"{tokens:3} tokens  {first}:{at}  {second}:{there}")
        return
    for what, figure in measures(tree):
        print(f"{what:40} {figure}")


if __name__ == "__main__":
    main()
