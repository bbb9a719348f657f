#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The estimates and the claims of this tree on the CPU that it runs on: each row of convolution that says what it
# costs beside what it takes, in each instruction set and precision that the CPU has, and the ratios
# that the tree claims. Prints Markdown, which is kept in tests/bench/figures, a file for each kind of CPU:
#
#   tests/bench/on_this_cpu.sh >tests/bench/figures/zen3.md
#
# Ends with what is to be looked at: choices that lose more than 10 %, estimates that are off by more than 20 %,
# claims that do not hold, and instruction sets that this CPU lacks, of which nothing was measured. Takes at most ten
# minutes beside the build; the machine should do nothing else.
#
#   --seconds=S      for each shape, 0.4 by default
#   --filter=TEXT    only shapes whose name contains this
#   --binaries=A,B   costs_bench and convolution_bench, built before
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

seconds=0.4 filter=() binaries=''
for option in "$@"; do
  case "$option" in
    --seconds=*) seconds=${option#*=} ;;
    --filter=?*) filter=("$option") ;;
    --binaries=*) binaries=${option#*=} ;;
    *) echo "$0: no option '$option'" >&2; exit 2 ;;
  esac
done
if [[ -z $binaries ]]; then
  bazel build //tests/bench:costs_bench //tests/bench:convolution_bench >&2
  binaries=bazel-bin/tests/bench/costs_bench,bazel-bin/tests/bench/convolution_bench
fi
costs=${binaries%,*} against_onednn=${binaries#*,}
shapes=tests/bench/cost_convs.txt
findings=$(mktemp)
trap 'rm -f "$findings"' EXIT

description=$("$costs" --describe)
has() { grep -q "^has:.*\b$1\b" <<<"$description"; }

# The rows of an instruction set and a precision.
costs_table() {
  echo; echo "## Rows up to $1, precision $2"; echo
  "$costs" --shapes="$shapes" --max_isa="$1" --precision="$2" --seconds="$seconds" "${filter[@]}" | tee -a "$findings"
}

# A claim, the ratio that it names, the ratio measured.
claims_table=()
claim() {
  local text=$1 least=$2 measured=$3 verdict=holds
  if [[ -z $measured ]]; then verdict='not measured'
  elif awk -v m="$measured" -v l="$least" 'BEGIN {exit !(m < l)}'; then verdict='**does not hold**'; fi
  claims_table+=("| $text | $least | ${measured:--} | $verdict |")
}

# The measured kilocycles of a row of convolution for a shape, by the last table that has them.
measured() { awk -F'|' -v s=" $1 " -v r=" \`convolution/$2\` " '$2 == s && $3 == r {m = $5} END {gsub(/ /, "", m); print m}' "$findings"; }
smaller() { awk -v a="$1" -v b="$2" 'BEGIN {if (a != "" && b != "") print a < b ? a : b}'; }
ratio() { [[ -n $1 && -n $2 ]] && awk -v a="$1" -v b="$2" 'BEGIN {printf "%.2f", a / b}' || true; }

echo "# $(sed -n 's/^CPU: //p' <<<"$description")"; echo
sed 's/^/- /' <<<"$description"
echo "- one thread; kilocycles per image; weights come from memory; ratio: estimate over measurement"
for isa in avx2 avx512 amx; do
  if has "$isa"; then costs_table "$isa" exact; fi
done
if has amx; then costs_table amx fast; fi
if has avx512_bf16; then costs_table avx512_bf16 bf16; fi
if has amx; then costs_table amx bf16; fi
if ! grep -q '^| .*convolution/' "$findings"; then
  echo "$0: nothing was measured" >&2
  exit 1
fi

# The claims about f32 are about the rows of the widest vectors that this CPU has.
vectors=avx2
if has avx512; then vectors=avx512; fi
claim 'figures/convolution.md: groups of 4 by lanes over blocks of their own, 264 channels at 40x40' 2 \
  "$(ratio "$(measured groups_66_of_4 ${vectors}_f32_direct)" "$(measured groups_66_of_4 ${vectors}_f32_grouped)")"
# CPUs with matrix tiles multiply pairs of bf16 by vectors at half the speed of f32, as engine/README.md says.
for shape in r1x1_256_64 r1x1_1024_256 r3x3s2_128 r3x3s2_512; do
  ! has amx || break
  claim "engine/README.md: bf16 over exact, a 1x1 or strided 3x3 convolution gains 1.6 to 2: $shape" 1.6 \
    "$(ratio "$(measured $shape avx512_f32_direct)" "$(measured $shape avx512_bf16_direct)")"
done
for shape in v3x3_64_224 v3x3_128_112 v3x3_256_56 r3x3_64_56 v3x3_512_28 v3x3_512_14; do
  winograd=$(smaller "$(measured $shape ${vectors}_f32_winograd_4x3)" "$(measured $shape ${vectors}_f32_winograd_2x3)")
  claim "kHandicap in convolution/table.cc: Winograd's f32 is faster than the direct row: $shape" 1.1 \
    "$(ratio "$(measured $shape ${vectors}_f32_direct)" "$winograd")"
done
echo; echo "## Ratios that the tree claims"; echo
echo "| claim | at least | measured | |"; echo "|---|---|---|---|"
printf '%s\n' "${claims_table[@]}"

echo; echo "## Against oneDNN, f32, weights in caches"; echo
echo '```'
"$against_onednn" --shapes="$shapes" --seconds="$seconds" "${filter[@]}" | cut -c1-110
echo '```'

echo; echo "## To be looked at"; echo
grep -h '\*\*the choice takes' "$findings" | sed 's/^| /- /; s/ |.*\*\*the/: the/; s/\*\*.*//' || echo "- no choice loses more than 10 %"
grep -h 'estimates are off' "$findings" | sed 's/^/- /'
printf '%s\n' "${claims_table[@]}" | grep 'does not hold' | sed 's/^| /- /; s/ | / - /g; s/ |$//' || echo "- no claim that could be measured fails"
sed -n 's/^lacks: /- nothing was measured of what this CPU lacks: /p' <<<"$description"
