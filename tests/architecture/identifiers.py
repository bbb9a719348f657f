# SPDX-License-Identifier: Apache-2.0
"""Names in documents and comments exist: identifiers, calls, scopes, paths, rows of the
specification."""

import re

_CODE = (".h", ".cc", ".inc", ".py", ".sh", ".proto", ".bzl", ".txt", "BUILD", "WORKSPACE", ".bazelrc",
         "Dockerfile")
_CPP = (".h", ".cc", ".proto", ".inc")
_ROOMS = "engine|service|client|deploy|protos|tests"

_COMMENT = re.compile(r"//[^\n]*")
# kName, CamelCase, snake_case, a call, a scope.
_NAME = re.compile(r"[A-Za-z_]\w*(?:(?:::|\.|->)[A-Za-z_]\w*)*(?:\(\))?")
_LOOKS_LIKE_CODE = re.compile(r"[a-z0-9][A-Z]|\w_\w|::|->|\(\)")
# In comments, without backticks: Name(), Name::Name and paths of files. Lines that are set in by
# three spaces are examples and formulas, which may name what a reader would write.
_EXAMPLE = re.compile(r"^// {3}.*$", re.MULTILINE)
_CALL_OR_SCOPE = re.compile(r"\b(?:[A-Z]\w*::[A-Z]\w*(?:\(\))?|[A-Z]\w*[a-z]\w*\(\))")
_PATH = re.compile(rf"(?<![\w/.-])(?:{_ROOMS})/[\w./-]*\w\.(?:h|cc|inc|txt|py|sh|md|proto)\b")
_CITED_ROW = re.compile(r"rows\.txt,? ((?:[A-Z]\d\d(?:-[A-Z]?\d\d)?(?:, | and )?)+)")
SPECIFICATION = "tests/engine/rows.txt"


def _words(tree):
    """Every word of the code, strings included and comments left out."""
    words = set()
    for path in tree.files:
        if path.endswith(_CODE):
            text = tree.text(path)
            text = _COMMENT.sub("", text) if path.endswith(_CPP) else text
            words.update(re.findall(r"\w+", text))
    words.update(path.rsplit("/", 1)[-1].split(".")[0] for path in tree.files)
    return words


def _prose(tree, path):
    if path.endswith(".md"):
        return re.sub(r"^```.*?^```", "", tree.text(path), flags=re.MULTILINE | re.DOTALL)
    return "\n".join(_COMMENT.findall(tree.text(path)))


def _names(prose, is_document):
    for token in re.findall(r"`([^`\n]+)`", prose):
        if _NAME.fullmatch(token) and _LOOKS_LIKE_CODE.search(token):
            yield token
    if not is_document:
        yield from _CALL_OR_SCOPE.findall(_EXAMPLE.sub("", prose))


def _exists(word, words):
    """A variable TILEWIRE_NAME gives the server's flag --name its default."""
    return word in words or word.startswith("TILEWIRE_") and word[len("TILEWIRE_"):].lower() in words


def _rows(tree):
    if SPECIFICATION not in tree.files:
        return set()
    return set(re.findall(r"^([A-Z]\d\d) \|", tree.text(SPECIFICATION), re.MULTILINE))


def check(tree):
    words, rows, files = _words(tree), _rows(tree), set(tree.files)
    problems = []
    for path in tree.with_suffix(".md", ".h", ".cc", ".proto"):
        prose = _prose(tree, path)
        unknown = [token for token in _names(prose, path.endswith(".md"))
                   if not all(_exists(word, words) for word in re.findall(r"\w+", token))]
        if not path.endswith(".md"):
            unknown += [named for named in _PATH.findall(prose) if named not in files]
        for cited in _CITED_ROW.findall(prose):
            unknown += [f"row {row}" for row in re.findall(r"[A-Z]\d\d", cited) if row not in rows]
        problems += [f"{path}: names `{token}`, which does not exist"
                     for token in dict.fromkeys(unknown)]
    return problems
