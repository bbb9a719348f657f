#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the C++ client library, its headers and what CMake and pkg-config need to find it.
#
#   client/install.sh --prefix=/usr/local               builds it first
#   client/install.sh --prefix=DIR --built=BUILT        takes what Bazel built in the folder BUILT
#
# A program then includes "client/client.h" and is built by one of
#
#   g++ -std=c++20 main.cc $(pkg-config --cflags --libs tilewire_client)
#   find_package(tilewire_client REQUIRED)              in CMake, and
#   target_link_libraries(main tilewire_client::tilewire_client)
set -euo pipefail

prefix= built=
for option in "$@"; do
  case $option in
    --prefix=*) prefix=${option#*=} ;;
    --built=*) built=${option#*=} ;;
    --help) sed -n '3,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "install.sh: unknown option '$option'; --help shows the options" >&2; exit 2 ;;
  esac
done
[[ $prefix ]] || { echo "install.sh: --prefix=DIR is missing" >&2; exit 2; }
source=$(cd "$(dirname "$0")/.." && pwd)
if [[ ! $built ]]; then
  (cd "$source" && bazel build --noshow_progress //client //protos:model_service_cc_proto \
    //protos:model_config_cc_proto //protos:open_inference_cc_proto //protos:tilewire_cc_proto)
  built=$source/bazel-bin
fi

include=$prefix/include/tilewire_client lib=$prefix/lib
mkdir -p "$include/client" "$include/protos" "$lib/pkgconfig" "$lib/cmake/tilewire_client"
prefix=$(cd "$prefix" && pwd)
archives=("$built/client/libclient.a")
install -m 644 "$source/client"/{client,connection,tensor}.h "$include/client/"
for proto in model_service open_inference tilewire; do
  archives+=("$built/protos/lib${proto}_cc_proto.a")
  install -m 644 "$built/protos/$proto.pb.h" "$built/protos/$proto.grpc.pb.h" "$include/protos/"
done
archives+=("$built/protos/libmodel_config_cc_proto.a")
install -m 644 "$built/protos/model_config.pb.h" "$include/protos/"

# One archive of all.
archive=$lib/libtilewire_client.a
rm -f "$archive"
{ echo "create $archive"; printf 'addlib %s\n' "${archives[@]}"; echo save; echo end; } | ar -M

cat >"$lib/pkgconfig/tilewire_client.pc" <<PC
prefix=$prefix
Name: tilewire_client
Description: Client of Tilewire and other servers of the Open Inference Protocol
Version: $(sed -n 's/.*kVersion\[\] = "\(.*\)".*/\1/p' "$source/client/tool/version.h")
Requires: grpc++ protobuf absl_statusor absl_status absl_synchronization absl_strings absl_time
Cflags: -I\${prefix}/include/tilewire_client
Libs: -L\${prefix}/lib -ltilewire_client
PC

cat >"$lib/cmake/tilewire_client/tilewire_client-config.cmake" <<'CMAKE'
get_filename_component(_tilewire_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_package(PkgConfig REQUIRED)
set(ENV{PKG_CONFIG_PATH} "${_tilewire_prefix}/lib/pkgconfig:$ENV{PKG_CONFIG_PATH}")
pkg_check_modules(tilewire_client_pc REQUIRED IMPORTED_TARGET tilewire_client)
if(NOT TARGET tilewire_client::tilewire_client)
  add_library(tilewire_client::tilewire_client INTERFACE IMPORTED)
  target_link_libraries(tilewire_client::tilewire_client INTERFACE PkgConfig::tilewire_client_pc)
  target_compile_features(tilewire_client::tilewire_client INTERFACE cxx_std_20)
endif()
CMAKE
echo "installed $archive"
