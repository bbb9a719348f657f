#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The benchmark runs every pair of layouts, and prints the largest ratios. Its figures are not judged.
set -euo pipefail
printf '%s\n' 'tiny 1 1 16 8 32 8 3 1 1' 'depthwise 1 17 17 8 17 8 3 1 1' >"$TEST_TMPDIR/shapes.txt"
"$1" --shapes "$TEST_TMPDIR/shapes.txt" --seconds 0.01 | tee "$TEST_TMPDIR/out.txt"
for row in tiny depthwise largest; do grep -qE "^$row( +[0-9.]+( us)?){8}" "$TEST_TMPDIR/out.txt"; done
