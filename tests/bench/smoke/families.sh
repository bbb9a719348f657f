#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The benchmark runs, one small operation of each kind for a moment, and prints a summary of each family. Its figures
# are not judged.
set -euo pipefail
operations="$TEST_TMPDIR/operations.txt"
awk '!/^#/ && !seen[$3]++ { gsub(/ in=[0-9]+/, " in=7"); gsub(/ c=[0-9]+/, " c=32"); gsub(/ o=[0-9]+/, " o=32");
  gsub(/ g=[0-9]+/, " g=1"); print }' "$2" "$3" > "$operations"
"$1" --operations "$operations" --seconds 0.001 | tee "$TEST_TMPDIR/out.txt"
test "$(grep -c '^family .* geometric mean' "$TEST_TMPDIR/out.txt")" = "$(cut -d' ' -f1 "$operations" | sort -u | wc -l)"
