#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian 12 packages that Tilewire needs. Quiet when there is nothing to do.
#
#   deploy/install_deps.sh            what building and serving needs
#   deploy/install_deps.sh --tests    and what the tests and benchmarks need (PyTorch, oneDNN, ...)
#   deploy/install_deps.sh --runtime  only what a built server and client need to run
#   deploy/install_deps.sh --list     print the packages of the chosen set, install nothing
#
# Exit status: 0 all there, 1 a package is missing and could not be installed (it is named).
set -euo pipefail

runtime=(libgrpc++1.51 libprotobuf32 libabsl20220623 libtbb12 libspdlog1.10 libfmt9
         libpng16-16 libjpeg62-turbo zlib1g libmicrohttpd12 libprometheus-cpp-core1.0)
build=(g++ bazel-bootstrap bazel-rules-java bazel-rules-proto bazel-platforms bazel-skylib
       libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev
       libtbb-dev libxbyak-dev libspdlog-dev libfmt-dev libcli11-dev nlohmann-json3-dev
       libpng-dev libjpeg-dev zlib1g-dev libmicrohttpd-dev prometheus-cpp-dev)
tests=(clang-format libclang-rt-14-dev libgtest-dev libgmock-dev cmake pkg-config libdnnl-dev libonnx-testdata python3 python3-numpy python3-protobuf
       python3-grpcio python3-venv python3-setuptools python3-wheel python3-torch python3-torchvision
       python3-onnx python3-sklearn mypy nodejs npm
       haproxy prometheus iproute2 openssl python3-yaml util-linux)

packages=("${build[@]}")
list_only=
for option in "$@"; do
  case $option in
    --tests) packages=("${build[@]}" "${tests[@]}") ;;
    --runtime) packages=("${runtime[@]}") ;;
    --list) list_only=1 ;;
    --help) sed -n '3,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "install_deps.sh: unknown option '$option'; --help shows the options" >&2; exit 2 ;;
  esac
done
if [[ $list_only ]]; then printf '%s\n' "${packages[@]}"; exit 0; fi

# The packages that are not installed. One may be provided by another: a nodejs from elsewhere than
# Debian has npm in it.
missing_packages() {
  local package installed
  installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}, ${Provides},\n' | sed -n 's/^.i //p' | tr -d '\n')
  for package in "${packages[@]}"; do [[ " $installed" == *" $package"[,\ ]* ]] || echo "$package"; done
}

mapfile -t missing < <(missing_packages)
[[ ${#missing[@]} -eq 0 ]] && exit 0

sudo=()
if [[ $(id -u) -ne 0 ]]; then
  if sudo -n true 2>/dev/null; then
    sudo=(sudo)
  else
    echo "install_deps.sh: missing packages, and this user may not install them: ${missing[*]}" >&2
    echo "Ask an administrator to run: apt-get install ${missing[*]}" >&2
    exit 1
  fi
fi

echo "Installing ${#missing[@]} Debian packages: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Debian's Java (Bazel runs on it) fails to configure where a slim image has left out the folder of man pages.
if ! { "${sudo[@]}" mkdir -p /usr/share/man/man1 &&
       "${sudo[@]}" apt-get -qq update &&
       "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 \
         install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 15 "$log" >&2
fi
mapfile -t missing < <(missing_packages)
if [[ ${#missing[@]} -ne 0 ]]; then
  echo "install_deps.sh: could not install: ${missing[*]}" >&2
  exit 1
fi
