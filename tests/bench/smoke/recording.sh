#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The benchmark measures each of the costs. Its figures are not judged.
set -euo pipefail
"$1" --calls 100 | tee "$TEST_TMPDIR/out.txt"
for what in "a flight record" "counts and histograms" "the time of a row"; do
  [[ $(grep -cE "^$what.* [12] threads +[0-9.]+ ns" "$TEST_TMPDIR/out.txt") == 2 ]]
done
