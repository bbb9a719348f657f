# SPDX-License-Identifier: Apache-2.0
"""C++ files are as clang-format leaves them, with the style at the top of the tree; lines end at column 100."""

import os
import re
import shutil
import subprocess

MAX_COLUMNS = 100
STYLE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", ".clang-format")


def check(tree):
    """deploy/install_deps.sh --tests installs clang-format."""
    if shutil.which("clang-format") is None:
        return ["clang-format is not installed: run deploy/install_deps.sh --tests"]
    files = tree.with_suffix(".h", ".cc")
    if not files:
        return []
    style = f"--style=file:{os.path.realpath(STYLE)}"
    run = subprocess.run(["clang-format", style, "--dry-run", *files], cwd=tree.root,
                         capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return [run.stderr.strip()[-500:]]
    places = dict.fromkeys(re.findall(r"^([\w./-]+:\d+):\d+: warning", run.stderr, re.MULTILINE))
    return [f"{place}: not formatted; run clang-format -i" for place in places]


def check_columns(tree):
    """The formatter leaves comments alone, so their width is checked here."""
    return [f"{path}:{number}: {len(line)} columns, at most {MAX_COLUMNS}"
            for path in tree.with_suffix(".h", ".cc", ".inc", ".proto")
            for number, line in enumerate(tree.text(path).splitlines(), 1)
            if len(line) > MAX_COLUMNS]
