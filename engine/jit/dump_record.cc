// SPDX-License-Identifier: Apache-2.0
#include "engine/jit/dump_record.h"

namespace tilewire::jit {
namespace {

thread_local DumpRecord* innermost = nullptr;

}  // namespace

DumpRecord::DumpRecord() : outer_(innermost) { innermost = this; }

DumpRecord::~DumpRecord() { innermost = outer_; }

void DumpRecord::Add(const std::string& file) {
  for (DumpRecord* record = innermost; record != nullptr; record = record->outer_)
    record->files_.push_back(file);
}

}  // namespace tilewire::jit
