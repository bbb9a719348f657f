#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Lets libFuzzer (Debian's libclang-rt-14-dev) invent inputs for each decoder, under the address sanitizer, and prints
# executions and coverage. An input that ends a decoder is kept; copied into corpus/<decoder> it is run by every test.
#
#   tests/fuzz/run_fuzzers.sh                              ten million executions of each
#   tests/fuzz/run_fuzzers.sh --executions=100000 onnx_file infer_request
#
# Exit status 0 only if every decoder survived. Inputs that reach something new gather in $FUZZ_CORPUS (a folder that
# goes unless it is named), inputs that end a decoder in $FUZZ_FINDINGS (default: fuzz_findings). An input may take
# $FUZZ_TIMEOUT seconds (10) by the clock: give more where the process may be stopped meanwhile.
set -uo pipefail
cd "$(dirname "$0")/../.."

executions=10000000
decoders=()
for argument in "$@"; do
  case $argument in
    --executions=*) executions=${argument#*=} ;;
    --*) sed -n '3,12s/^# \{0,1\}//p' "$0"; exit 2 ;;
    *) decoders+=("$argument") ;;
  esac
done
[[ ${#decoders[@]} -eq 0 ]] && decoders=(infer_request execute_request name_request onnx_file descriptor)

targets=("${decoders[@]/#///tests/fuzz:}")
bazel build --noshow_progress --config=fuzz "${targets[@]/%/_fuzzer}" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
findings=$(realpath -m "${FUZZ_FINDINGS:-fuzz_findings}")
mkdir -p "$findings"
for decoder in "${decoders[@]}"; do
  cp -L "bazel-bin/tests/fuzz/${decoder}_fuzzer" "$work/"  # one program for the whole run, whatever is built meanwhile
done

status=0
for decoder in "${decoders[@]}"; do
  found=${FUZZ_CORPUS:-$work/corpus}/$decoder
  mkdir -p "$found"
  nice -n 19 "$work/${decoder}_fuzzer" -runs="$executions" -max_len=1024 -timeout="${FUZZ_TIMEOUT:-10}" -rss_limit_mb=4096 \
    -artifact_prefix="$findings/$decoder-" -print_final_stats=1 "$found" "tests/fuzz/corpus/$decoder" \
    >"$work/$decoder.log" 2>&1 || { status=1; tail -n 40 "$work/$decoder.log"; }
  done_runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$decoder.log")
  reached=$(grep -oE 'cov: [0-9]+ ft: [0-9]+' "$work/$decoder.log" | tail -1)
  echo "$decoder: ${done_runs:-?} executions, ${reached:-no coverage}"
done
rmdir "$findings" 2>/dev/null
exit $status
