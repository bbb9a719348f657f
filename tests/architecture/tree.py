# SPDX-License-Identifier: Apache-2.0
"""The files of the project, and C++ text without its comments and strings."""

import functools
import os
import re
import subprocess


class Tree:
    """The project's own files under one root: what git tracks or would track."""

    def __init__(self, root, files=None):
        self.root = root
        self.files = sorted(files if files is not None else _list_files(root))

    def with_suffix(self, *suffixes):
        return [f for f in self.files if f.endswith(suffixes)]

    @functools.lru_cache(maxsize=None)
    def text(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as file:
            return file.read()

    @functools.lru_cache(maxsize=None)
    def code(self, path):
        """The text without comments and strings."""
        return without_comments_and_strings(self.text(path))

    def exists(self, path):
        return os.path.lexists(os.path.join(self.root, path))


def _list_files(root):
    command = ["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-co", "--exclude-standard"]
    try:
        listing = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        return [f for f in listing.splitlines() if os.path.isfile(os.path.join(root, f))]
    except (OSError, subprocess.CalledProcessError):
        return list(_walk(root))


def _walk(root):
    """Without git: everything but Bazel's links and what Python leaves behind."""
    for folder, folders, names in os.walk(root):
        folders[:] = [d for d in folders
                      if d not in (".git", "__pycache__") and not d.startswith("bazel-")]
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), root)


# The folders of the product's sources.
SOURCES = ("engine/", "service/", "client/")

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def included_by(tree, path):
    """The files of the project that `path` includes."""
    return [header for header in _INCLUDE.findall(tree.text(path)) if header in tree.files]


def reachable(starts, neighbours):
    """`starts`, and everything that `neighbours` of these leads to, directly or not."""
    seen, todo = set(starts), list(starts)
    while todo:
        for other in neighbours(todo.pop()):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


_COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])+'", re.DOTALL)


def without_comments_and_strings(text):
    """The code with the same line breaks, every comment and literal replaced by blanks."""

    def blank(match):
        # The apostrophe of a digit separator (1'000) is not a literal.
        before = text[match.start() - 1:match.start()]
        if match.group().startswith("'") and before.isalnum():
            return match.group()
        return re.sub(r"[^\n]", " ", match.group())

    return _COMMENT_OR_STRING.sub(blank, text)
