#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Lays out the root folder of an image that holds nothing but the server: its stripped binary, the
# libraries that it loads, their licences, the built-in model.
#
#   deploy/image_root.sh SERVER FOLDER    the built binary; the folder to make
set -euo pipefail

server=$1 root=$2
source=$(cd "$(dirname "$0")/.." && pwd)
# Libraries of which the binary holds only what their headers define.
headers=(libxbyak-dev libcli11-dev)

mkdir -p "$root/usr/local/bin" "$root/etc"
install -m 755 "$server" "$root/usr/local/bin/tilewire-server"
strip "$root/usr/local/bin/tilewire-server"

# The loader and every library at the path where the loader looks for it.
mapfile -t libraries < <(ldd "$server" | grep -oE '/[^ ]+' | sort)
[[ ${#libraries[@]} -gt 5 ]] || { echo "image_root.sh: ldd names no libraries of $server" >&2; exit 1; }
packages=("${headers[@]}")
for library in "${libraries[@]}"; do
  install -D -m 755 "$(readlink -f "$library")" "$root$library"
  # dpkg knows a file by the path before /lib and /usr/lib became one, or by the one after.
  real=$(readlink -f "$library")
  owner=$(dpkg -S "$real" 2>/dev/null || dpkg -S "${real#/usr}")
  packages+=("${owner%%:*}")
done

licenses=$root/usr/share/doc
install -D -m 644 "$source/deploy/LICENSE" "$licenses/tilewire/LICENSE"
mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
for package in "${packages[@]}"; do
  install -D -m 644 "/usr/share/doc/$package/copyright" "$licenses/$package/copyright"
done
# The texts that those files refer to.
grep -rhoE '/usr/share/common-licenses/[A-Za-z0-9.+-]*[A-Za-z0-9]' "$licenses" | sort -u |
  while read -r text; do
    [[ -f $text ]] && install -D -m 644 "$(readlink -f "$text")" "$root$text"
  done || true

# Names for the user id.
echo 'tilewire:x:10001:10001:tilewire-server:/:/usr/sbin/nologin' >"$root/etc/passwd"
echo 'tilewire:x:10001:' >"$root/etc/group"

# The models without the files that they were made and judged with.
for model in "$source"/deploy/models/*/; do
  name=$(basename "$model")
  mkdir -p "$root/models/$name"
  cp -rL "$model"labels.txt "$model"[0-9]* "$root/models/$name/"
done
chmod -R a+rX,go-w "$root"
