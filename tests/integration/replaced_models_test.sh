#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Models that change on disk while the real server serves them; arguments name single checks.
set -euo pipefail
exec /usr/bin/python3 tests/integration/replaced_models.py service/tilewire-server deploy/models "$@"
