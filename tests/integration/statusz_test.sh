#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The status page and the log of the real server; arguments name single checks of statusz.py.
set -euo pipefail
exec /usr/bin/python3 tests/integration/statusz.py service/tilewire-server deploy/models "$@"
