#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The installed C++ client, used from outside the clone by the two ways that client/install.sh
# names: the example of client/README.md, against a double.
set -euo pipefail

installed=$TEST_TMPDIR/installed outside=$TEST_TMPDIR/outside
client/install.sh --prefix="$installed" --built="$PWD"
mkdir -p "$outside"

# The README's lines, as a function that a program around them calls.
readme=$PWD/client/README.md
awk '/^## From C\+\+/ { found = 1 } found && /^```cpp/ { on = 1; next } /^```/ { on = 0; if (found && n++ > 0) exit }
     on' "$readme" >"$TEST_TMPDIR/example"
[[ $(wc -l <"$TEST_TMPDIR/example") -ge 8 ]] || { echo "no example in client/README.md"; exit 1; }
{
  grep -E '^(#include|using)' "$TEST_TMPDIR/example"
  echo '#include <cstdio>'
  echo 'absl::Status Example(const std::vector<float>& pixels) {'
  grep -vE '^(#include|using|$)' "$TEST_TMPDIR/example"
  echo 'return logits.empty() ? absl::InternalError("empty") : absl::OkStatus(); }'
  echo 'int main(int argc, char** argv) {'
  echo '  std::puts(Example(std::vector<float>(24 * 20 * 3)).ToString().c_str());'
  echo '  return argc > 1 && argv != nullptr; }'
} >"$outside/main.cc"

export PKG_CONFIG_PATH=$installed/lib/pkgconfig
cd "$outside"
g++ -std=c++20 main.cc $(pkg-config --cflags --libs tilewire_client) -o by_pkg_config
./by_pkg_config | grep -q "UNAVAILABLE: no server answers at 127.0.0.1:8001" ||
  ./by_pkg_config | grep -qE 'OK|NOT_FOUND'

cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(outside CXX)
find_package(tilewire_client REQUIRED)
add_executable(by_cmake main.cc)
target_link_libraries(by_cmake tilewire_client::tilewire_client)
CMAKE
unset PKG_CONFIG_PATH
cmake -S . -B build -DCMAKE_PREFIX_PATH="$installed" >cmake.log 2>&1 || { cat cmake.log; exit 1; }
cmake --build build >>cmake.log 2>&1 || { cat cmake.log; exit 1; }
[[ -x build/by_cmake ]]
