# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tests of the command line tool: expect() counts in $failures; what the tool printed
# last is in the file $out.

tilewire=client/tilewire
out=$TEST_TMPDIR/out
failures=0

# expect STATUS PATTERN ARGUMENT...: `tilewire ARGUMENT...` ends with STATUS and prints a line that
# matches PATTERN. It waits for a busy server for a minute unless it is told otherwise.
expect() {
  local status=$1 pattern=$2 patience=(--connect_timeout=60)
  shift 2
  [[ $* != *--connect_timeout=* ]] || patience=()
  "$tilewire" "${patience[@]}" "$@" >"$out" 2>&1
  local got=$?
  if [[ $got -ne $status ]] || ! grep -qE -- "$pattern" "$out"; then
    echo "FAILED: tilewire $* ended with $got (want $status) or printed nothing like '$pattern':"
    cat "$out"
    failures=$((failures + 1))
  fi
}

# failed WHAT: counts and tells of a failure.
failed() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}
