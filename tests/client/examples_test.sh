#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The examples of the C++ library on real servers, of which one is asked through two addresses.
set -euo pipefail

source tests/integration/start_server.sh
start_server
port=${server_address##*:}
digits=$(client/digits "$server_address,127.0.0.2:1,localhost:$port")
echo "$digits"
[[ $digits =~ ^35[5-9]' of 360 digits are right' ]]
primitive=$(client/primitive "$server_address")
echo "$primitive"
[[ $primitive =~ ^eltwise/.*': 0 2 0 4 0 6'$ ]]
stop_server
! client/digits "$server_address" 2>/dev/null
