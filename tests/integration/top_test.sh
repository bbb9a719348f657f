#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `tilewire top` beside the real server under load; arguments name single checks of top.py.
set -euo pipefail
exec /usr/bin/python3 tests/integration/top.py service/tilewire-server deploy/models "$@"
