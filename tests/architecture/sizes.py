# SPDX-License-Identifier: Apache-2.0
"""Lengths of files and functions, and the number of files in a folder."""

import collections
import os
import re

MAX_LINES = {".h": 200, ".cc": 500, ".py": 500, ".sh": 500}
MAX_FUNCTION_LINES = 60
MAX_FILES = 40  # of a folder

_CONTAINER = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b[^()]*$")
_TABLE = re.compile(r"(=|\breturn)$")


def check_files(tree):
    problems = []
    for suffix, limit in MAX_LINES.items():
        for path in tree.with_suffix(suffix):
            lines = tree.text(path).count("\n")
            if lines > limit:
                problems.append(f"{path}: {lines} lines, at most {limit}")
    return problems


def check_folders(tree):
    files = collections.Counter(os.path.dirname(path) for path in tree.with_suffix(".h", ".cc", ".inc"))
    return [f"{folder}: {count} files, at most {MAX_FILES}"
            for folder, count in sorted(files.items()) if count > MAX_FILES]


def functions(code):
    """(first line, lines, head) of every function body outside functions; lines of tables inside do not count.

    A brace opens a namespace or a class if such a word stands before it and no parenthesis follows the word; it opens
    a function if there is a parenthesis; anything else (initialisers) is skipped. Inside a function, a brace behind
    `=` or `return` opens a table.
    """
    code = re.sub(r"^\s*#.*?(?<!\\)$", "", code, flags=re.MULTILINE | re.DOTALL)
    # Attribute macros with arguments would look like a function's head.
    code = re.sub(r"\b(alignas|ABSL_\w+)\s*\([^()]*\)", " ", code)
    found, stack, head_start, line, table_lines = [], [], 0, 1, 0
    for position, character in enumerate(code):
        if character == "\n":
            line += 1
        elif character == "{":
            head = code[head_start:position].strip()
            inside = any(kind != "container" for kind, _, _ in stack)
            if inside:
                kind = "table" if _TABLE.search(head) and stack[-1][0] != "table" else "inner"
            elif _CONTAINER.search(head):
                kind = "container"
            else:
                kind = "function" if "(" in head else "inner"
            stack.append((kind, line, head))
            head_start = position + 1
        elif character == "}" and stack:
            kind, first, head = stack.pop()
            if kind == "table":
                table_lines += line - first
            if kind == "function":
                found.append((first, line - first + 1 - table_lines, head))
                table_lines = 0
            head_start = position + 1
        elif character == ";":
            head_start = position + 1
    return found


def check_functions(tree):
    problems = []
    for path in tree.with_suffix(".h", ".cc"):
        for first, lines, head in functions(tree.code(path)):
            if lines > MAX_FUNCTION_LINES:
                name = re.sub(r"\s+", " ", head)[-60:]
                problems.append(
                    f"{path}:{first}: {lines} lines, at most {MAX_FUNCTION_LINES}: {name}")
    return problems
