#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the tree against its own rules; each rule is also shown to notice what it forbids."""

import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)

import callers  # noqa: E402
import circles  # noqa: E402
import door  # noqa: E402
import english  # noqa: E402
import formatting  # noqa: E402
import identifiers  # noqa: E402
import includes  # noqa: E402
import merged  # noqa: E402
import mirror  # noqa: E402
import names  # noqa: E402
import namespaces  # noqa: E402
import passes  # noqa: E402
import self_contained  # noqa: E402
import sizes  # noqa: E402
from tree import Tree  # noqa: E402

CHECKS = {
    "include direction": includes.check,
    "circles of units": circles.check,
    "callers of functions": callers.check,
    "files of a folder": sizes.check_folders,
    "file length": sizes.check_files,
    "function length": sizes.check_functions,
    "top level": names.check_top_level,
    "file and class names": names.check_file_names,
    "words": names.check_words,
    "licenses": names.check_licenses,
    "a README in each room": names.check_readmes_exist,
    "paths in documents": names.check_readme_paths,
    "a reference for each primitive": names.check_references,
    "files for instruction sets": names.check_name_plates,
    "the list of operators": names.check_operator_list,
    "headers of the doors": door.check,
    "includes of all that is used": self_contained.check,
    "format": formatting.check,
    "columns": formatting.check_columns,
    "names in comments and documents": identifiers.check,
    "order of passes": passes.check,
    "names in merged sources": merged.check,
    "tests of operators and primitives": mirror.check,
    "namespaces of tests": namespaces.check,
    "plain English": english.check,
}

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
LONG_BODY = "  x();\n" * 61
OPERATORS = "engine/onnx/ops/"
ROWS_OF_OPERATORS = "TILEWIRE_OPERATORS(Tile) = {\n};\n"
A_TEST = "TEST(TileTest, Repeats) {\n}\n"
PASSES = "engine/network/passes/"
ROW_OF_A_PASS = '    {"fuse_gelu", FuseGelu, "", "early, while the pattern is whole"},\n'

# Each breaks one rule, which the check must notice: (check, path, text).
VIOLATIONS = [
    (includes.check, "engine/onnx/a.cc", '#include "engine/primitives/primitive.h"\n'),
    (includes.check, "engine/memory/a.h", '#include "engine/runtime/plan.h"\n'),
    (includes.check, "engine/runtime/a.cc", '#include <tbb/parallel_for.h>\n'),
    (includes.check, "engine/primitives/sum/a.cc", '#include "engine/primitives/eltwise/b.h"\n'),
    (includes.check, "client/a.cc", '#include "engine/primitive_engine.h"\n'),
    (includes.check, "service/a.cc", '#include "engine/runtime/plan.h"\n'),
    (includes.check, "service/schedule/a.cc", '#include "grpcpp/grpcpp.h"\n'),
    (includes.check, "service/schedule/a.cc", '#include "engine/engine.h"\n'),
    (includes.check, "service/wire/a.cc", '#include "service/rpc/b.h"\n'),
    (sizes.check_files, "engine/a.h", SPDX + "\n" * 200),
    (sizes.check_files, "engine/a.cc", SPDX + "\n" * 500),
    (sizes.check_functions, "engine/a.cc", "void F() {\n" + LONG_BODY + "}\n"),
    (sizes.check_functions, "engine/a.h",
     "namespace n {\nclass ABSL_LOCKABLE A final : B {\n int G() const {\n" + LONG_BODY + "}\n};\n}\n"),
    (names.check_top_level, "scripts/a.sh", ""),
    (names.check_file_names, "engine/string_utils.h", ""),
    (names.check_file_names, "engine/a.h", "class CacheManager : Base {};\n"),
    (names.check_words, "engine/a.h", "// " + names.BANNED_WORDS[0] + ": later\n"),
    (names.check_words, "deploy/a.sh", "cd /work" + "/main\n"),
    (names.check_licenses, "engine/a.h", "#include <vector>\n"),
    (names.check_readmes_exist, "engine/base/a.h", ""),
    (names.check_readme_paths, "README.md", "see `engine/nowhere.h`\n"),
    (names.check_readme_paths, "README.md", "see [it](docs/nowhere.md)\n"),
    (names.check_references, "engine/primitives/sum/table.cc",
     '{kAnyCpu, {{"reference", R, C, {.is_reference = true}}}});\n'),
    (names.check_references, "engine/primitives/sum/reference.cc",
     '{kAnyCpu, {{"reference", R, C}}});\n'),
    (names.check_references, "engine/primitives/sum/reference.cc",
     '{kAnyCpu, {{"plain", R, C, {.is_reference = true}}}});\n'),
    (names.check_references, "engine/primitives/sum/reference.cc",
     'TILEWIRE_DEFINE_PRIMITIVE(Sum, sum, {kAnyCpu, {{"more", R, C, {.is_reference = true}}}});\n'),
    (names.check_name_plates, "engine/primitives/sum/avx2_dense.cc", "int F() { return G(8); }\n"),
    (names.check_operator_list, "engine/onnx/ops/arithmetic/unary.cc",
     '      {"Abs", 1, 1, "", BuildAbs},\n'),
    (formatting.check, "engine/a.cc", "int  x;\n"),
    (formatting.check_columns, "engine/a.h", "// " + "x" * 98 + "\n"),
    (self_contained.check, "engine/a.cc", "#include <memory>\nstd::vector<int> x;\n"),
    (english.check, "engine/a.h", "// SPDX-License-Identifier: Apache-2.0\n//\n// What a thing does.\n"),
    (english.check, "engine/a.cc", "int x;  // Of a thing.\n"),
    (english.check, "tests/a.py", '""' + '"Those of a thing.' + '""' + '"\n'),
    (identifiers.check, "engine/a.h", "// Like `RenamedLongAgo` in its file.\n"),
    (identifiers.check, "engine/a.h", "// Called by RenamedLongAgo().\n"),
    (identifiers.check, "engine/a.h", "// See engine/nowhere.h.\n"),
    (identifiers.check, "engine/README.md", "The flag is `renamed_long_ago`.\n"),
    (mirror.check, OPERATORS + "tile.cc", ROWS_OF_OPERATORS),
    (mirror.check, "tests/" + OPERATORS + "tile_test.cc", A_TEST),
    (mirror.check, "engine/primitives/sum/table.cc", ""),
    (namespaces.check, "tests/engine/a_test.cc", "namespace tilewire {\nTEST(ATest, Does) {\n}\n}  // namespace tilewire\n"),
    (passes.check, PASSES + "passes.cc", "constexpr Pass kPasses[] = {};\n"),
    (passes.check, PASSES + "passes.cc", ROW_OF_A_PASS),
    (english.check, "engine/a.h", "// What lies behind the axis.\n"),
    (english.check, "engine/a.h", "// One value a\n// channel.\n"),
    (english.check, "engine/a.cc", 'return Error("is no number");\n'),
    (english.check, "engine/README.md", "Nobody reads it.\n"),
    (english.check, "engine/BUILD", "# One value a\n# channel.\n"),
    (english.check, "tests/a.py", '""' + '"Waits for whoever\nholds it.' + '"""\n'),
]

# Trees of several files that break a rule: (check, {path: text}).
VIOLATIONS_OF_TREES = [
    (mirror.check, {OPERATORS + "tile.cc": ROWS_OF_OPERATORS,
                    "tests/" + OPERATORS + "tile_test.cc": "// None yet.\n"}),
    (door.check, {f"engine/h{i}.h": f'#include "engine/h{i + 1}.h"\n' for i in range(9)}
     | {"engine/h9.h": "", "engine/model.h": '#include "engine/h0.h"\n'}),
    (door.check, {f"engine/h{i}.h": "" for i in range(9)}
     | {"engine/engine.h": "".join(f'#include "engine/h{i}.h"\n' for i in range(9))}),
    (identifiers.check, {"tests/engine/rows.txt": "A01 | x | T.T\n",
                         "engine/a.h": "// Source: tests/engine/rows.txt A02.\n"}),
    (merged.check, {f"engine/onnx/{file}.cc": f"namespace {{\nint Like(const Node& {file}) {{\n}}\n}}  // namespace\n"
                    for file in ("a", "b")}),
    (merged.check, {"engine/onnx/BUILD": "", "engine/onnx/a/a.cc": "namespace {\nstruct Blocks {\n};\n}  // namespace\n",
                    "engine/onnx/b/b.cc": "namespace {\nBlock Blocks(int a) {\n}\n}  // namespace\n"}),
    (circles.check, {"engine/onnx/a.h": "", "engine/onnx/a.cc": '#include "engine/onnx/b.h"\n',
                     "engine/onnx/b.h": '#include "engine/onnx/a.h"\n'}),
    (self_contained.check, {"engine/a.h": "struct Block {\n};\n", "engine/b.cc": "int F(const Block& block);\n"}),
    (self_contained.check, {"engine/a.h": "int LinesOf(int x);\n", "engine/b.cc": "int x = LinesOf(1);\n"}),
    (callers.check, {"engine/a.h": "int Spare(int x);\n", "engine/a.cc": "int Spare(int x) { return x; }\n",
                     "tests/engine/a_test.cc": "int x = Spare(1);\n"}),
    (callers.check, {"service/a.h": "class A {\n  int64_t spare() const { return 1; }\n};\n",
                     "service/b.cc": "int64_t spare = 2;\n"}),
    (sizes.check_folders, {f"engine/onnx/a{i}.cc": "" for i in range(41)}),
    (merged.check, {"tests/engine/primitives/BUILD": "",
                    **{f"tests/engine/primitives/{file}/{file}_test.cc": "namespace {\nstruct Case {\n};\n}  // namespace\n"
                       for file in ("a", "b")}}),
    (merged.check, {"engine/onnx/a.cc": "namespace {\nstruct Blocks {\n};\n}  // namespace\n",
                    "engine/onnx/b.h": "struct Blocks {\n};\n"}),
    (merged.check, {f"engine/onnx/{file}.cc": "namespace {\nconstexpr int kHeight = 2;\n}  // namespace\n"
                    for file in ("a", "b")}),
    (passes.check, {PASSES + "passes.cc": ROW_OF_A_PASS, PASSES + "fuse_gelu.cc": "",
                    PASSES + "fold_pad.cc": ""}),
    (passes.check, {PASSES + "passes.cc": ROW_OF_A_PASS.replace('"early, while the pattern is whole"', '""'),
                    PASSES + "fuse_gelu.cc": ""}),
    (passes.check, {PASSES + "passes.cc": ROW_OF_A_PASS
                    + '    {"fold_pad", FoldPad, "fuse_gelu", "windows are whole by then"},\n',
                    PASSES + "fuse_gelu.cc": "", PASSES + "fold_pad.cc": ""}),
]

# Each looks like a violation and is none: (check, path, text).
LEGAL = [
    (merged.check, "engine/onnx/a.cc", "namespace {\nint F(int a) {\n}\nint F(float a) {\n}\n}  // namespace\n"),
    (callers.check, "engine/a.h", "inline int Used(int x) { return x; }\nint Uses() { return 2 * Used(1) + sizeof(Uses); }\n"),
    (callers.check, "engine/a.h", "int64_t Read() override;\nint F##Name();\nint FOther();\nRow r = {FOther};\n"),
    (includes.check, "engine/onnx/a.cc", '#include "engine/functions/function.h"\n'),
    (includes.check, "engine/cache/a.cc", '#include "engine/base/status_macros.h"\n'),
    (includes.check, "service/a.cc", '#include "engine/threading/mutex.h"\n'),
    (includes.check, "tests/engine/a.cc", '#include "engine/runtime/plan.h"\n'),
    (sizes.check_functions, "engine/a.cc", "constexpr Row kRows[] = {\n" + "  {1},\n" * 90 + "};\n"),
    (sizes.check_functions, "engine/a.cc",
     "namespace {\nclass A {\n" + "  int F() { return 1'000; }\n" * 90 + "};\n}\n"),
    (sizes.check_functions, "engine/a.cc",
     "void F() {\n  const int rows[] = {\n" + "    {1},\n" * 90 + "  };\n  x();\n}\n"),
    (sizes.check_functions, "engine/a.cc", 'void F() {\n  s = R"(\n' + "{\n" * 9 + ')";\n}\n'),
    (names.check_file_names, "engine/data_type.h", "class DataType {};\n"),
    (names.check_references, "engine/primitives/sum/reference.cc",
     '{kAnyCpu,\n {{"dense", R, C},\n  {"reference",\n R, C, {.is_reference = true}}}});\n'),
    (names.check_references, "engine/primitives/sum/reference.cc",
     'TILEWIRE_DEFINE_PRIMITIVE(Sum, sum, {kAnyCpu, {{"dense", R, C}}});\n'),
    (names.check_name_plates, "engine/primitives/sum/avx2_dense.cc", "int x;\n" * 40),
    (mirror.check, OPERATORS + "weights.cc", "int SharedByOperators() { return 0; }\n"),
    (identifiers.check, "engine/a.h", "// The name is `kName`.\nint kName;\n"),
    (identifiers.check, "engine/a.h", "// Use:\n//\n//   auto x = WhatYouLike();\n"),
    (formatting.check, "engine/a.cc", "int x;\n"),
    (formatting.check_columns, "engine/a.h", "// " + "x" * 97 + "\n"),
    (english.check, "engine/a.h", "// There is no tail, and it is no longer than a block.\n"),
    (english.check, "engine/a.cc", "const int nobody = 0;\n"),
    (english.check, "engine/a.cc", 'Error("What is it?");\n'),
    (self_contained.check, "engine/a.cc", "#include <functional>\nstd::vector<int> x;\n"),
    (english.check, "tests/a.sh", "nobody=65534\n"),
]


def write_tree(folder, texts):
    for path, text in texts.items():
        file = os.path.join(folder, path)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "w", encoding="utf-8") as out:
            out.write(text)
    return Tree(folder, list(texts))


def problems_of(check, texts):
    with tempfile.TemporaryDirectory() as folder:
        return check(write_tree(folder, texts))


class ArchitectureTest(unittest.TestCase):
    def test_the_tree_keeps_its_rules(self):
        tree = Tree(os.path.dirname(os.path.dirname(HERE)))
        self.assertIn("engine/engine.h", tree.files)
        for name, check in CHECKS.items():
            with self.subTest(name):
                problems = check(tree)
                self.assertFalse(problems, "\n" + "\n".join(problems))

    def test_checks_notice_violations(self):
        for check, path, text in VIOLATIONS:
            with self.subTest(check=check.__name__, path=path, text=text[:60]):
                self.assertTrue(problems_of(check, {path: text}))
        for check, texts in VIOLATIONS_OF_TREES:
            with self.subTest(check=check.__name__, texts=list(texts)):
                self.assertTrue(problems_of(check, texts))

    def test_checks_let_legal_code_pass(self):
        for check, path, text in LEGAL:
            with self.subTest(check=check.__name__, path=path, text=text[:60]):
                self.assertEqual(problems_of(check, {path: text}), [])


if __name__ == "__main__":
    unittest.main()
