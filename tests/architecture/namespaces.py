# SPDX-License-Identifier: Apache-2.0
"""The tests of the engine's contracts stand in tilewire::testing, as what supports them does.

Only what gtest looks for beside a type, how it is printed, stands in the type's own namespace.
"""

import re

_OPENED = re.compile(r"^namespace tilewire \{$(.*?)^\}", re.MULTILINE | re.DOTALL)


def _opens_the_products(text):
    return any("PrintTo(" not in block for block in _OPENED.findall(text))


def check(tree):
    return [f"{path}: a test stands in namespace tilewire::testing, not in tilewire"
            for path in tree.with_suffix(".cc", ".h") if path.startswith("tests/") and _opens_the_products(tree.text(path))]
