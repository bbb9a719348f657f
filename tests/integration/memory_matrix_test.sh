#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A quick part of what memory_matrix.py tries.
set -euo pipefail
exec /usr/bin/python3 tests/integration/memory_matrix.py service/tilewire-server deploy/models slice
