# SPDX-License-Identifier: Apache-2.0
"""Names: top level, files, classes, references, paths in documents, words that may not stand."""

import glob
import os
import re

TOP_LEVEL = {"WORKSPACE", "BUILD", "service", "engine", "protos", "client", "deploy", "tests",
             "README.md"}

# Put together here, so that this file does not hold them.
BANNED_WORDS = ["TO" + "DO", "FIX" + "ME", "X" + "XX"]
BANNED_PATHS = ["/work" + "/", "../sha" + "red"]
BANNED_FILE_WORDS = {"utils", "util", "common", "helper", "helpers", "manager", "impl", "misc"}
BANNED_FILES = {"data", "info"}
_BANNED_CLASS = re.compile(r"\b(?:class|struct)\s+(\w*(?:Utils|Helper|Manager|Impl))\b[^;]*?\{")

_TEXT = (".h", ".cc", ".inc", ".py", ".sh", ".proto", ".md", ".bzl", ".yaml", ".yml", ".txt", "BUILD",
         "WORKSPACE", "Dockerfile")
_SOURCE = (".h", ".cc", ".py", ".sh", ".proto")


def check_top_level(tree):
    tops = sorted({path.split("/")[0] for path in tree.files})
    return [f"{top}: not one of the top level's entries" for top in tops
            if top not in TOP_LEVEL and not top.startswith(".")]


def check_file_names(tree):
    problems = []
    for path in tree.with_suffix(*_SOURCE):
        stem = os.path.splitext(os.path.basename(path))[0]
        if stem in BANNED_FILES or BANNED_FILE_WORDS & set(stem.split("_")):
            problems.append(f"{path}: a name that says nothing")
    for path in tree.with_suffix(".h", ".cc"):
        for name in _BANNED_CLASS.findall(tree.code(path)):
            problems.append(f"{path}: class {name}: a name that says nothing")
    return problems


def check_words(tree):
    problems = []
    for path in tree.with_suffix(*_TEXT):
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            for word in BANNED_WORDS:
                if re.search(rf"\b{word}\b", line):
                    problems.append(f"{path}:{number}: {word}")
            for machine_path in BANNED_PATHS:
                if machine_path in line:
                    problems.append(f"{path}:{number}: a path of somebody's machine: {machine_path}")
    return problems


def check_licenses(tree):
    return [f"{path}: no SPDX line on top" for path in tree.with_suffix(*_SOURCE)
            if "SPDX-License-Identifier: Apache-2.0" not in "".join(
                tree.text(path).splitlines(keepends=True)[:3])]


def check_readmes_exist(tree):
    rooms = sorted({path.rsplit("/", 1)[0] for path in tree.files
                    if re.fullmatch(r"(engine/\w+|service|client|deploy|protos|tests)/[^/]+", path)})
    return [f"{room}: no README.md" for room in rooms if f"{room}/README.md" not in tree.files]


def _named_paths(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for token in re.findall(r"`([^`\n]+)`", text):
        token = token.split(" ")[0].rstrip(".,:/")
        token = re.sub(r":\d+$", "", token)
        if re.fullmatch(r"[\w./*-]+", token):
            yield token
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            yield target


def _looks_like_ours(token):
    if token.startswith(("/", "~", "-")):
        return False
    first = token.split("/")[0]
    if "/" in token and first in TOP_LEVEL:
        return True
    return re.search(r"\w\.(h|cc|proto|sh|md|bzl)$", token) is not None


def _exists(tree, folder, token, names):
    for base in ("", folder):
        pattern = os.path.normpath(os.path.join(tree.root, base, token))
        if "*" in token and glob.glob(pattern) or os.path.exists(pattern):
            return True
    return "/" not in token and token in names


def check_readme_paths(tree):
    names = {os.path.basename(path) for path in tree.files}
    problems = []
    for path in tree.with_suffix(".md"):
        folder = os.path.dirname(path)
        for token in _named_paths(tree.text(path)):
            if _looks_like_ours(token) and not _exists(tree, folder, token, names):
                problems.append(f"{path}: names `{token}`, which does not exist")
    return problems


def check_operator_list(tree):
    """engine/onnx/README.md lists the operators that have a row in engine/onnx/ops or in the functions' table."""
    table, readme = "engine/onnx/ops", "engine/onnx/README.md"
    files = [path for path in tree.with_suffix(".cc") if path.startswith(table + "/")]
    if not files:
        return []
    known = {name for path in files
             for name in re.findall(r'^ +(?:\{|(?:\w+\()+\{?)"(?:[a-z]+\.)*([A-Z]\w*)",\s*\d',
                               tree.text(path), re.M)}
    functions = "engine/functions/functions.inc"
    if functions in tree.files:
        known |= set(re.findall(r'^TILEWIRE_ONNX\("(\w+)", \d+, \w+, (?!kOnlyInCells)',
                                tree.text(functions), re.M))
    document = tree.text(readme) if readme in tree.files else ""
    section = document.partition("## Operators")[2].partition("**To add")[0]
    listed = set(re.findall(r"`([A-Z]\w*)`", section))
    return ([f"{readme}: operator {name} is not listed" for name in sorted(known - listed)] +
            [f"{readme}: operator {name} is not in {table}" for name in sorted(listed - known)])


def check_references(tree):
    """Each primitive has one row of plain loops, in reference.cc: that which the macro of its table
    adds, or one that stands in a table of all rows; and one for backward at most, in
    reference_backward.cc."""
    folders = {path.split("/")[2] for path in tree.files
               if re.fullmatch(r"engine/primitives/\w+/[^/]+\.cc", path)}
    problems = []
    for folder in sorted(folders):
        texts = [tree.text(path) for path in tree.with_suffix(".cc")
                 if os.path.dirname(path) == f"engine/primitives/{folder}"]
        kinds = [kind for text in texts
                 for kind in re.findall(r'\{\s*"(\w+)",[^{}]*\{[^{}]*is_reference = true', text)]
        kinds += ["reference" for text in texts if "TILEWIRE_DEFINE_PRIMITIVE(" in text]
        if any("TILEWIRE_DEFINE_PRIMITIVE_WITH_BACKWARD(" in text for text in texts):
            kinds += ["reference", "reference_backward"]
        if kinds == ["reference", "reference_backward"]:
            if f"engine/primitives/{folder}/reference_backward.cc" not in tree.files:
                problems.append(f"engine/primitives/{folder}: no reference_backward.cc")
            kinds.pop()
        if kinds != ["reference"]:
            problems.append(f"engine/primitives/{folder}: its references are {kinds}, "
                            "not reference alone")
        if f"engine/primitives/{folder}/reference.cc" not in tree.files:
            problems.append(f"engine/primitives/{folder}: no reference.cc")
    return problems


def check_name_plates(tree):
    """A file for an instruction set holds code of its own, and does not only forward to shared
    functions with an argument that the table could give."""
    return [f"{path}: only forwards; let the row name the shared functions"
            for path in tree.with_suffix(".cc")
            if re.fullmatch(r"engine/primitives/\w+/(avx|amx)\w*\.cc", path)
            and len(tree.text(path).splitlines()) < 30]
