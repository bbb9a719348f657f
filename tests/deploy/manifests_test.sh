#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The manifests of Kubernetes and KServe against the server; see manifests.py.
set -euo pipefail
run=(env PYTHONPATH=tests/integration /usr/bin/python3 tests/deploy/manifests.py
     service/tilewire-server deploy/models)
status=0
TILEWIRE_OWN_MNT=1 tests/support/in_namespaces.sh "${run[@]}" || status=$?
[[ $status -ne 77 ]] || exec "${run[@]}"
exit "$status"
