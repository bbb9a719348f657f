// SPDX-License-Identifier: Apache-2.0
#include "engine/base/line_writer.h"

#include <atomic>
#include <cstdio>

namespace tilewire {
namespace {

void WriteToStderr(absl::string_view line) { std::fwrite(line.data(), 1, line.size(), stderr); }

std::atomic<LineWriter> line_writer = WriteToStderr;

}  // namespace

void SetLineWriter(LineWriter writer) {
  line_writer.store(writer != nullptr ? writer : WriteToStderr);
}

void WriteLine(absl::string_view line) { line_writer.load()(line); }

}  // namespace tilewire
