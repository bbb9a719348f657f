#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The benchmark runs, on one tiny shape for a moment, and prints its summary. Its figures are not judged.
set -euo pipefail
shapes="$TEST_TMPDIR/shapes.txt"
echo "tiny 1 1 16 8 32 8 3 1 1" > "$shapes"
types=(f32 u8s8)
# oneDNN multiplies bf16 on CPUs with AVX-512 alone.
if grep -qw avx512bw /proc/cpuinfo; then types+=(bf16); else echo "skipped: bf16 needs AVX-512"; fi
for type in "${types[@]}"; do
  "$1" --shapes "$shapes" --seconds 0.01 --type "$type" | tee "$TEST_TMPDIR/out.txt"
  grep -q "^tiny .*convolution/" "$TEST_TMPDIR/out.txt"
  grep -q "^all " "$TEST_TMPDIR/out.txt"
done
