#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
echo "coverage reports need a tool that Debian does not package" >&2
exit 1
