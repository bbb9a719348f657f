#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The calls of Triton's clients, replayed; arguments name single checks of triton_calls.py.
set -euo pipefail
exec /usr/bin/python3 tests/integration/triton_calls.py service/tilewire-server deploy/models "$@"
