#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The benchmark runs, on the built-in model and without a peer, and prints its summary. Its figures are not judged.
set -euo pipefail
"$1" --rounds=1 --batch=1,2 --threads=1 deploy/models/digits/1/model.onnx | tee "$TEST_TMPDIR/out.txt"
grep -q "^load digits .* MB of " "$TEST_TMPDIR/out.txt"
test "$(grep -c "^threads 1 batch [12]: geometric mean" "$TEST_TMPDIR/out.txt")" = 2
