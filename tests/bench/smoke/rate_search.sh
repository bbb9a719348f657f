#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The benchmark runs, one search of a server with random arrivals, and prints its row. Its figures are not judged.
set -euo pipefail
"$1" --searches=1 --noise=arrivals | tee "$TEST_TMPDIR/out.txt"
grep -qE '^arrivals +[0-9.]+/s +(0|100) %' "$TEST_TMPDIR/out.txt"
