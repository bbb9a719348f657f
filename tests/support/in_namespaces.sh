#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# in_namespaces.sh COMMAND...: runs it as root of its own user, mount and network namespaces, in
# which 127.0.0.0/8 and an empty, writable /mnt are all there is of the network and below /mnt.
# Exit status 77 with the reason if this machine permits no namespaces.
own=(unshare --user --map-root-user --mount --net)
if ! reason=$("${own[@]}" sh -c 'ip link set lo up && mount -t tmpfs none /mnt' 2>&1); then
  echo "no namespaces here: $reason"
  exit 77
fi
exec "${own[@]}" sh -c 'ip link set lo up && mount -t tmpfs none /mnt && exec "$@"' sh "$@"
