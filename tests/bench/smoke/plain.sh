#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The benchmark runs every case in each of its layouts. Its figures are not judged.
set -euo pipefail
"$1" --seconds 0 | tee "$TEST_TMPDIR/out.txt"
for kind in softmax "inner product" matmul deconvolution; do grep -q "^$kind" "$TEST_TMPDIR/out.txt"; done
grep -qE "^  any +[0-9.]+ us +[0-9.]+ +1.00 +1.00  inner_product/" "$TEST_TMPDIR/out.txt"
