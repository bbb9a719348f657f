#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The tests of BINARY hold on machines with less than this one: each instruction set that is named is the best there.
#
#   lower_isa_test.sh BINARY ISA...
set -euo pipefail
binary=$1
shift
for isa in "$@"; do
  if [[ $isa == avx2 ]] && ! grep -qw avx512f /proc/cpuinfo; then
    echo "== $isa: the best of this machine, which the test itself has run on"
    continue
  fi
  echo "== $isa"
  TILEWIRE_MAX_ISA=$isa "$binary"
done
