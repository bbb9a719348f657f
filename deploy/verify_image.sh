#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds deploy/Dockerfile and tries its image, without a Docker daemon and without a registry:
# Debian's podman builds and runs; mmdebstrap makes debian:12-slim from Debian's mirror. Needs root.
#
#   deploy/verify_image.sh                        builds, prints the size, tries
#   deploy/verify_image.sh --disk_cache=DIR       Bazel in the build stage reads and fills this cache
#   deploy/verify_image.sh --built=SERVER         only the last stage, around a binary that was built
#   deploy/verify_image.sh --clean                removes what the others leave in --state
#   --state=DIR                                   images and containers; /var/tmp/tilewire-image
#
# Exit status: 0 if the image is small enough and passes every trial, else 1.
set -euo pipefail
cd "$(dirname "$0")/.."

state=/var/tmp/tilewire-image built= cache= clean=
for option in "$@"; do
  case $option in
    --state=*) state=${option#*=} ;;
    --built=*) built=$(readlink -f "${option#*=}") ;;
    --disk_cache=*) cache=$(readlink -f "${option#*=}") ;;
    --clean) clean=1 ;;
    --help) sed -n '3,14s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "verify_image.sh: unknown option '$option'; --help shows the options" >&2; exit 2 ;;
  esac
done
[[ $(id -u) -eq 0 ]] || { echo "verify_image.sh: needs root" >&2; exit 1; }
if [[ $clean ]]; then
  # Podman leaves its storage mounted on itself.
  ! mountpoint -q "$state/root/overlay" || umount "$state/root/overlay"
  rm -rf "$state"
  exit 0
fi
mkdir -p "$state"

# runc: bookworm's crun refuses machines that have both kinds of control groups.
missing=()
# catatonit: the process that holds a pod's namespaces.
for tool in podman runc mmdebstrap catatonit; do command -v $tool >/dev/null || missing+=("$tool"); done
if [[ ${#missing[@]} -gt 0 ]]; then
  echo "== Installing ${missing[*]}"
  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
      --no-install-recommends "${missing[@]}"; } >"$state/apt.log" 2>&1 || {
    tail -n 15 "$state/apt.log" >&2
    exit 1
  }
fi

# Overlays where the kernel can mount them there; else whole copies.
storage=vfs
trial=$(mktemp -d -p "$state")
mkdir "$trial"/{lower,upper,work,merged}
unshare -m mount -t overlay overlay "$trial/merged" \
  -o "lowerdir=$trial/lower,upperdir=$trial/upper,workdir=$trial/work" 2>/dev/null && storage=overlay
rm -rf "$trial"

podman() {
  command podman --root "$state/root" --runroot "$state/run" --storage-driver $storage \
    --cgroup-manager cgroupfs --events-backend none --runtime "$(command -v runc)" "$@"
}
# Limits that may only be lowered without CAP_SYS_RESOURCE.
limits=(--ulimit nofile=4096:4096 --ulimit nproc=4096:4096)

# Debian 12 without documents, as debian:12-slim is.
make_base() {
  podman image exists docker.io/library/debian:12-slim && return
  echo "== Making debian:12-slim"
  local folder
  folder=$(mktemp -d -p "$state")
  mmdebstrap --quiet --mode=root --format=tar --variant=minbase --skip=output/dev \
    --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    bookworm "$folder/base.tar" >"$state/base.log" 2>&1 || { tail "$state/base.log" >&2; exit 1; }
  podman import -q "$folder/base.tar" docker.io/library/debian:12-slim >/dev/null
  rm -rf "$folder"
}

build_image() {
  local version options=()
  version=$(sed -n 's/.*kVersion\[\] = "\(.*\)".*/\1/p' service/version.h)
  if [[ $built ]]; then
    # The last stage of the same Dockerfile, on a folder that image_root.sh made here.
    local context=$state/context
    rm -rf "$context"
    deploy/image_root.sh "$built" "$context/image"
    sed -e '1,/^FROM scratch/{/^FROM scratch/!d}' -e 's|COPY --from=build /image/|COPY image/|' \
      deploy/Dockerfile >"$context/Dockerfile"
    options=(-f "$context/Dockerfile" "$context")
  else
    make_base
    [[ $cache ]] && options=(-v "$cache:/cache" --build-arg BAZEL_OPTIONS=--disk_cache=/cache)
    options+=(-f deploy/Dockerfile .)
  fi
  echo "== Building the image"
  podman build --isolation oci --network host --pull=never --format docker "${limits[@]}" \
    --build-arg "VERSION=$version" -t tilewire "${options[@]}" >"$state/build.log" 2>&1 || {
    tail -n 40 "$state/build.log" >&2
    exit 1
  }
}


failures=0
check() {  # WHAT COMMAND...
  local what=$1
  shift
  if "$@" >"$state/check.log" 2>&1; then echo "ok: $what"; else
    echo "FAILED: $what"
    tail -n 20 "$state/check.log"
    failures=$((failures + 1))
  fi
}

free_port() {
  /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# start [PODMAN OPTION...] -- [SERVER OPTION...]: as a cluster runs it, and as a user id that the image
# does not know. Podman's timers of health checks need systemd; the checks are run by hand.
start() {
  local options=()
  while [[ $1 != -- ]]; do options+=("$1"); shift; done
  shift
  podman rm -f tilewire-trial >/dev/null 2>&1 || true
  DISABLE_HC_SYSTEMD=true podman run -d --name tilewire-trial --pull=never --network host --read-only \
    --read-only-tmpfs=false --cap-drop=all --security-opt=no-new-privileges --passwd=false \
    --user "$((RANDOM + 20000)):0" "${limits[@]}" "${options[@]}" tilewire "$@" >/dev/null
  for _ in $(seq 300); do
    podman logs tilewire-trial 2>&1 | grep -q '^tilewire-server ready' && return
    sleep 0.1
  done
  podman logs tilewire-trial
  return 1
}

is_healthy() { DISABLE_HC_SYSTEMD=true podman healthcheck run tilewire-trial; }
classifies() { PYTHONPATH=client/python /usr/bin/python3 client/python/examples/digits.py "127.0.0.1:$1"; }
serves() { PYTHONPATH=client/python /usr/bin/python3 -c 'import sys, tilewire
with tilewire.Client(sys.argv[1]) as client:
    assert client.ready(sys.argv[2]), client.models()' "127.0.0.1:$1" "$2"; }
stops_cleanly() {
  podman stop -t 60 tilewire-trial
  [[ $(podman inspect --format '{{.State.ExitCode}}' tilewire-trial) == 0 ]]
}
# The Deployment of deploy/kubernetes as a pod, with `limit` cores. Podman publishes no ports beside
# the host's network, and takes limits that it may only lower from a file.
play() {
  local limit=$1
  printf '[containers]\ndefault_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n' >"$state/limits"
  sed -e '/^          ports:/,/containerPort: 8002/d' -e "s/cpu: \"2\"/cpu: $limit/" \
    deploy/kubernetes/deployment.yaml >"$state/pod.yaml"
  podman rm -f tilewire-trial >/dev/null 2>&1 || true
  podman pod rm -fa >/dev/null
  CONTAINERS_CONF=$state/limits podman kube play --network host "$state/pod.yaml" >/dev/null
  for _ in $(seq 300); do
    podman logs tilewire-pod-0-server >"$state/pod.log" 2>&1
    grep -q '^tilewire-server ready' "$state/pod.log" && return
    sleep 0.1
  done
  cat "$state/pod.log"
  return 1
}
has_threads() { grep -E " $1 threads?, .*, $2 MB for requests" "$state/pod.log"; }

probe_fails() { ! podman exec tilewire-trial /usr/local/bin/tilewire-server --probe --port="$1"; }
has_only() {  # nothing in the image but these folders, and no shell
  local mount
  mount=$(podman image mount tilewire)
  find "$mount" -type f ! -path '*/usr/share/doc/*' ! -path '*/usr/share/common-licenses/*' \
    ! -path '*/lib*/*.so*' ! -path '*/models/*' ! -path '*/etc/passwd' ! -path '*/etc/group' \
    ! -path '*/usr/local/bin/tilewire-server' >"$state/others"
  podman image unmount tilewire >/dev/null
  cat "$state/others"
  [[ ! -s $state/others ]]
}
config() { podman image inspect --format "{{$1}}" tilewire; }

build_image
bytes=$(config .Size)
echo "tilewire: $((bytes / 1000000)).$((bytes / 100000 % 10)) MB"
check "at most 45 MB" test "$bytes" -le 45000000
check "only the server, its libraries, licences and models" has_only
check "a user without rights" test "$(config .Config.User)" = 10001:10001
check "stops on SIGTERM" test "$(config .Config.StopSignal)" = SIGTERM
check "its licence is named" test "$(config 'index .Labels "org.opencontainers.image.licenses"')" = Apache-2.0

port=$(free_port)
check "starts with a port from the environment" start -e "TILEWIRE_PORT=$port" --
check "is healthy" is_healthy
check "classifies the digits" classifies "$port"
check "another port is not healthy" probe_fails "$(free_port)"
check "SIGTERM ends it with status 0" stops_cleanly

mkdir -p "$state/models/mine"
cp -r deploy/models/digits/1 "$state/models/mine/"
port=$(free_port)
check "starts with a port from a flag and a volume" start -v "$state/models:/models:ro" -- --port="$port"
check "is healthy on that port" is_healthy
check "serves the volume's model" serves "$port" mine
check "SIGTERM ends it with status 0 again" stops_cleanly

check "starts as the pod of its Deployment" play '"2"'
check "takes half of the memory limit for requests" has_threads '[0-9]+' 1024
check "classifies the digits in the pod" classifies 8001
check "starts with a limit of 1.5 cores" play 1500m
check "rounds the limit down to one thread" has_threads 1 1024
podman pod rm -fa >/dev/null
podman rm -f tilewire-trial >/dev/null 2>&1 || true
[[ $failures -eq 0 ]]
