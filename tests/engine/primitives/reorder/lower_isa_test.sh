#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The tests of BINARY hold on machines with less than this one: each instruction set that is named is the best there.
#
#   lower_isa_test.sh BINARY ISA...
set -euo pipefail
binary=$1
shift
for isa in "$@"; do
  echo "== $isa"
  TILEWIRE_MAX_ISA=$isa "$binary"
done
