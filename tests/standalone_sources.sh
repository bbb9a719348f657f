#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles every source alone, without merged units and without the headers that the build includes by force, and
# every header by itself; nothing is generated but the protos and the status page. A header whose source includes it
# first is compiled with that source. Prints each file that does not stand alone. Takes minutes; tests/run.sh gives it
# a minute, and tests/architecture looks for missing includes in all files without compiling them.
#
#   tests/standalone_sources.sh                         the whole tree
#   tests/standalone_sources.sh engine/onnx a/b.cc     some folders and files
#   tests/standalone_sources.sh --seconds=60            as many as that allows: those of the latest commits first,
#                                                       then others, with each commit in another order
set -uo pipefail
cd "$(dirname "$0")/.."

if [[ ${1:-} == --help ]]; then sed -n '3,11s/^# \{0,1\}//p' "$0"; exit 0; fi
deadline=
if [[ ${1:-} == --seconds=* ]]; then deadline=$((EPOCHSECONDS + ${1#*=})); shift; fi

bazel build --noshow_progress //protos/... //service/observe:statusz_page >/dev/null 2>&1 ||
  { echo "cannot build //protos and the status page"; exit 1; }
generated=$(bazel info bazel-bin 2>/dev/null)

# The sources, and the headers that no source of the same name includes.
files() {
  git ls-files -co --exclude-standard -- "${@:-.}" | while read -r file; do
    case $file in
      *.cc) echo "$file" ;;
      *.h) grep -qsF "#include \"$file\"" "${file%.h}.cc" || echo "$file" ;;
    esac
  done
}

# Sorts the files on standard input: those of the latest commits, then the others, by a hash of the newest commit.
latest_first() {
  local all changed
  all=$(cat)
  [[ -n $all ]] || return 0
  changed=$(git log -20 --name-only --format= 2>/dev/null | sort -u)
  grep -xF "$changed" <<<"$all"
  { grep -vxF "$changed" <<<"$all" || true; } | sort -R --random-source=<(yes "$(git rev-parse HEAD 2>/dev/null)")
}

compile() {
  local file=$1 errors
  [[ -n $deadline ]] && ((EPOCHSECONDS >= deadline)) && return 0
  if errors=$(g++ -std=c++20 -fsyntax-only -w -x c++ -I. -I"$generated" "$file" 2>&1); then
    echo "$file" >>"$compiled"
    return 0
  fi
  echo "$file: $(grep -m1 'error' <<<"$errors" | cut -d: -f2-)"
  return 1
}
compiled=$(mktemp)
trap 'rm -f "$compiled"' EXIT
export -f compile
export generated deadline compiled

if [[ -n $deadline ]]; then files "$@" | latest_first; else files "$@"; fi |
  xargs -r -d '\n' -n1 -P"$(nproc)" bash -c 'compile "$1" || exit 1' _
status=$?
echo "$(wc -l <"$compiled") files compiled alone"
((status == 0))
