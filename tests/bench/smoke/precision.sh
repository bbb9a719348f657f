#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The benchmark runs on the built-in model and has a line for each precision. Its figures are not judged.
set -euo pipefail
"$1" --images=2 --rounds=1 deploy/models/digits/1/model.onnx | tee "$TEST_TMPDIR/out.txt"
grep -q "^digits .*exact .*relative L2 0.0e+00 " "$TEST_TMPDIR/out.txt"
test "$(grep -c "^digits .* same largest [0-2] of 2 " "$TEST_TMPDIR/out.txt")" = 3
