// SPDX-License-Identifier: Apache-2.0
//
// The arguments of a primitive that is measured: buffers with numbers in [-1, 1), or with any bytes
// where the type is not f32. Thread-compatible.
#ifndef TESTS_BENCH_FILLED_ARGUMENTS_H_
#define TESTS_BENCH_FILLED_ARGUMENTS_H_

#include <utility>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/memory/memory_desc.h"
#include "engine/primitives/primitive.h"
#include "tests/support/random_tensor.h"

namespace tilewire::bench {

class FilledArguments {
 public:
  void Add(int arg, const MemoryDesc& desc) {
    AlignedBuffer buffer = *AlignedBuffer::Allocate(desc.SizeBytes());
    if (desc.data_type() == DataType::kF32) {
      testing::FillUniform({reinterpret_cast<float*>(buffer.data()), buffer.size() / sizeof(float)},
                           arg);
    } else {
      testing::FillGarbage(buffer.data(), buffer.size(), arg);
    }
    args_.Set(arg, buffer.data());
    buffers_.push_back(std::move(buffer));
  }
  const ExecuteArgs& args() const { return args_; }

 private:
  ExecuteArgs args_;
  std::vector<AlignedBuffer> buffers_;
};

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_FILLED_ARGUMENTS_H_
