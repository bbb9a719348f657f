// SPDX-License-Identifier: Apache-2.0
//
// A tensor whose elements are known before anything runs: an initializer, or a result of folding.
// Floating-point types are held as f32, integer types and bool as int64. Immutable.
#ifndef ENGINE_NETWORK_CONSTANT_H_
#define ENGINE_NETWORK_CONSTANT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/memory/data_type.h"
#include "engine/memory/dims.h"
#include "engine/memory/small_type.h"
#include "engine/network/quantization_params.h"

namespace tilewire::network {

// Floats in memory and their owner.
struct HeldFloats {
  absl::Span<const float> values;
  std::shared_ptr<const void> owner;
};

// The same for 8-bit integers; those of type u8 are the same bytes.
struct HeldBytes {
  absl::Span<const int8_t> values;
  std::shared_ptr<const void> owner;
};

// Numbers that are read from their file, or computed, only when needed. Thread-safe. Errors:
//   kFailedPrecondition  the file was written to, or became shorter, since the model was opened
//   kResourceExhausted   memory
class StoredNumbers {
 public:
  virtual ~StoredNumbers() = default;
  virtual absl::StatusOr<HeldFloats> Load() const = 0;
  // For numbers that are all integers of one 8-bit type.
  virtual absl::StatusOr<HeldBytes> LoadBytes() const;
  // OK if Load() gives what it would have given when the model was opened.
  virtual absl::Status Check() const { return absl::OkStatus(); }
};

struct Constant;
using ConstantPtr = std::shared_ptr<const Constant>;

// Real numbers and the 8-bit integers that stand for them.
struct Quantized {
  ConstantPtr integers;
  int axis = 0;
  std::vector<QuantizationParams> params;  // one, or one for each index of `axis`
};

struct Constant {
  std::string name;  // of the tensor in the file; unique in a model
  Dims dims;
  bool is_float = false;
  DataType integers = DataType::kS32;  // of integers: kU8, kS8, or kS32 for all others
  DataType declared = DataType::kF32;  // of an initializer: its type in the model
  SmallType small = SmallType::kNone;  // of an initializer: the type that `declared` holds
  bool is_sparse = false;              // of an initializer: in the file
  std::shared_ptr<const std::vector<double>> doubles;  // of f64: what `floats` round; may be null
  absl::Span<const float> floats;     // row-major, borrowed from `owner`; none while only `stored`
  std::shared_ptr<const void> owner;  // keeps `floats` alive
  std::shared_ptr<const StoredNumbers> stored;  // null: in memory only
  std::vector<int64_t> ints;                    // row-major; none while only `stored`
  std::shared_ptr<const Quantized> quantized;   // the integers `floats` came from; may be null

  int64_t count() const { return ElementCount(dims).value_or(0); }
};

// The bytes of one element in a file.
int64_t BytesOfElement(const Constant& constant);

ConstantPtr MakeInts(std::string name, Dims dims, std::vector<int64_t> values);
ConstantPtr MakeFloats(std::string name, Dims dims, std::vector<float> values);
// The same of type f64; its `floats` are the nearest.
ConstantPtr MakeDoubles(std::string name, Dims dims, std::vector<double> values);
// The constant with its elements in memory; errors are those of StoredNumbers.
absl::StatusOr<ConstantPtr> InMemory(const ConstantPtr& constant);
// The elements of any constant as floats. Errors are those of StoredNumbers.
absl::StatusOr<HeldFloats> LoadNumbers(const Constant& constant);
// The elements of a constant of u8 or s8. Errors are those of StoredNumbers.
absl::StatusOr<HeldBytes> LoadBytes(const Constant& constant);
// The same elements, not copied, under other dims (of the same count).
ConstantPtr Reshaped(const Constant& constant, std::string name, Dims dims);

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_CONSTANT_H_
