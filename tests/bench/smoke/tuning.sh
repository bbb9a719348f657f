#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The built-in model, tuned with two seeds: the budget is kept, and its QDQ file has the tuned model's bits in a server.
# Times are not judged.
set -euo pipefail
exec /usr/bin/python3 tests/bench/tuning/tuning_accuracy.py --folder="$TEST_TMPDIR" --seeds=2 \
    --budget='top1_changed(logits)<=1%' --precisions=exact,int8 --time=90s --turns=0 \
    --tool=client/tilewire --server=service/tilewire-server digits
