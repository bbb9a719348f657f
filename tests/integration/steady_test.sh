#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Everything that one client may do to the real server; arguments name single checks of steady.py.
set -euo pipefail
exec /usr/bin/python3 tests/integration/steady.py service/tilewire-server deploy/models "$@"
