// SPDX-License-Identifier: Apache-2.0
//
// Which files the generated code of a piece of work was dumped to: those that this thread writes
// while a record lives. Records nest, and an outer one has the files of the inner ones, too.
//
//   jit::DumpRecord record;
//   ...                        // compiles kernels
//   return record.files();     // {"convolution_avx512_f32_direct.12.bin"}, without the folder
//
// Thread-compatible: a record is used on the thread that made it.
#ifndef ENGINE_JIT_DUMP_RECORD_H_
#define ENGINE_JIT_DUMP_RECORD_H_

#include <string>
#include <vector>

namespace tilewire::jit {

class DumpRecord {
 public:
  DumpRecord();
  ~DumpRecord();
  DumpRecord(const DumpRecord&) = delete;
  DumpRecord& operator=(const DumpRecord&) = delete;

  const std::vector<std::string>& files() const { return files_; }

  // Adds a file to all records of this thread.
  static void Add(const std::string& file);

 private:
  DumpRecord* const outer_;
  std::vector<std::string> files_;
};

}  // namespace tilewire::jit

#endif  // ENGINE_JIT_DUMP_RECORD_H_
