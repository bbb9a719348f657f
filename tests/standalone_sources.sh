#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles every source alone, without merged units and without the headers that the build includes by force, and
# every header by itself; nothing is generated but the protos. A header whose source includes it first is compiled
# with that source. Takes minutes, so it is a check of its own; prints each file that does not stand alone.
#
#   tests/standalone_sources.sh                         the whole tree
#   tests/standalone_sources.sh engine/onnx a/b.cc     some folders and files
set -uo pipefail
cd "$(dirname "$0")/.."

if [[ ${1:-} == --help ]]; then sed -n '3,8s/^# \{0,1\}//p' "$0"; exit 0; fi

bazel build --noshow_progress //protos/... >/dev/null 2>&1 || { echo "cannot build //protos"; exit 1; }
generated=$(bazel info bazel-bin 2>/dev/null)

# The sources, and the headers that no source of the same name includes.
mapfile -t files < <(git ls-files -co --exclude-standard -- "${@:-.}" | while read -r file; do
  case $file in
    *.cc) echo "$file" ;;
    *.h) grep -qsF "#include \"$file\"" "${file%.h}.cc" || echo "$file" ;;
  esac
done)

compile() {
  local file=$1 errors
  if errors=$(g++ -std=c++20 -fsyntax-only -w -x c++ -I. -I"$generated" "$file" 2>&1); then return 0; fi
  echo "$file: $(grep -m1 'error' <<<"$errors" | cut -d: -f2-)"
  return 1
}
export -f compile
export generated

printf '%s\0' "${files[@]}" | xargs -0 -n1 -P"$(nproc)" bash -c 'compile "$1" || exit 1' _
status=$?
echo "${#files[@]} files compiled alone"
((status == 0))
