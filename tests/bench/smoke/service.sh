#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The benchmark runs and prints its lines. Its figures are not judged.
set -euo pipefail
"$1" --rounds=1 --calls=3 --seconds=0.1 | tee "$TEST_TMPDIR/out.txt"
for line in latency caller rate allocations order throughput; do grep -q "^$line " "$TEST_TMPDIR/out.txt"; done
