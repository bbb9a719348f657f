#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The benchmark runs, on one tiny shape for a moment, and prints its summary. Its figures are not judged.
set -euo pipefail
shapes="$TEST_TMPDIR/shapes.txt"
echo "tiny 1 1 16 8 32 8 3 1 1" > "$shapes"
for type in f32 u8s8 bf16; do
  "$1" --shapes "$shapes" --seconds 0.01 --type "$type" | tee "$TEST_TMPDIR/out.txt"
  grep -q "^tiny .*convolution/" "$TEST_TMPDIR/out.txt"
  grep -q "^all " "$TEST_TMPDIR/out.txt"
done
