#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The benchmark runs, on one tiny shape for a moment, and prints its summary. Its figures are not judged.
set -euo pipefail
shapes="$TEST_TMPDIR/shapes.txt"
echo "tiny 1 1 16 8 32 8 3 1 1" > "$shapes"
for kind in src weights; do
  "$1" --shapes "$shapes" --seconds 0.01 --batch 2 --kind "$kind" | tee "$TEST_TMPDIR/out.txt"
  grep -q "^tiny .*convolution/" "$TEST_TMPDIR/out.txt"
  grep -q "^1 shapes, geometric means" "$TEST_TMPDIR/out.txt"
done
