// SPDX-License-Identifier: Apache-2.0
//
// The arguments of a primitive that is measured: buffers with numbers in [-1, 1) of f32 or bf16, or
// with any bytes of another type. Weights in a layout that only a reorder writes are written by
// one: any bytes there may say that they hold infinities, which take a slow way. Thread-compatible.
#ifndef TESTS_BENCH_FILLED_ARGUMENTS_H_
#define TESTS_BENCH_FILLED_ARGUMENTS_H_

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/check.h"
#include "engine/memory/memory_desc.h"
#include "engine/memory/narrow_floats.h"
#include "engine/primitives/primitive.h"
#include "engine/primitives/reorder/reorder.h"
#include "tests/support/random_tensor.h"

namespace tilewire::bench {

class FilledArguments {
 public:
  void Add(int arg, const MemoryDesc& desc) {
    AlignedBuffer buffer = *AlignedBuffer::Allocate(desc.SizeBytes());
    if (desc.format_kind() == FormatKind::kWinograd || desc.format_kind() == FormatKind::kPlanes) {
      FillByReorder(desc, arg, &buffer);
    } else {
      FillElements(desc.data_type(), arg, &buffer);
    }
    args_.Set(arg, buffer.data());
    buffers_.push_back(std::move(buffer));
  }
  const ExecuteArgs& args() const { return args_; }

 private:
  static void FillElements(DataType type, int seed, AlignedBuffer* buffer) {
    if (type == DataType::kF32) {
      testing::FillUniform(
          {reinterpret_cast<float*>(buffer->data()), buffer->size() / sizeof(float)}, seed);
    } else if (type == DataType::kBf16) {
      FillBf16(seed, buffer);
    } else {
      testing::FillGarbage(buffer->data(), buffer->size(), seed);
    }
  }

  static void FillBf16(int seed, AlignedBuffer* buffer) {
    std::vector<float> numbers(buffer->size() / sizeof(uint16_t));
    testing::FillUniform(absl::MakeSpan(numbers), seed);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const uint16_t bits = ToBf16(numbers[i]);
      std::memcpy(buffer->data() + i * sizeof(bits), &bits, sizeof(bits));
    }
  }

  static void FillByReorder(const MemoryDesc& desc, int seed, AlignedBuffer* buffer) {
    const std::string order = std::string("abcdefghijkl").substr(0, desc.rank());
    const MemoryDesc plain = *MemoryDesc::CreatePattern(desc.dims(), DataType::kF32, order);
    AlignedBuffer from = *AlignedBuffer::Allocate(plain.SizeBytes());
    FillElements(DataType::kF32, seed, &from);
    ExecuteArgs args;
    args.Set(kArgSrc, from.data()).Set(kArgDst, buffer->data());
    const auto reorder = CreateReorder({plain, desc}, {}, {});
    TILEWIRE_CHECK(reorder.ok() && (*reorder)->Execute(args, threading::Team::Serial()).ok(),
                   "weights of f32 can be packed");
  }

  ExecuteArgs args_;
  std::vector<AlignedBuffer> buffers_;
};

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_FILLED_ARGUMENTS_H_
