// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/quantized/block_quantization.h"

#include <utility>
#include <vector>

#include "engine/base/status_macros.h"

namespace tilewire::reader {

using network::Constant;
using network::ConstantPtr;
using network::HeldBytes;
using network::HeldFloats;
namespace {

// Element `i` of a constant in memory.
float NumberAt(const Constant& constant, int64_t i) {
  return constant.is_float ? constant.floats[i] : static_cast<float>(constant.ints[i]);
}

class DequantizedBlocks final : public network::StoredNumbers {
 public:
  DequantizedBlocks(ConstantPtr numbers, Blocks blocks)
      : numbers_(std::move(numbers)), blocks_(std::move(blocks)) {}

  absl::StatusOr<HeldFloats> Load() const override {
    ABSL_ASSIGN_OR_RETURN(const HeldFloats held, network::LoadNumbers(*numbers_));
    auto reals = std::make_shared<std::vector<float>>(held.values.size());
    if (reals->empty()) return HeldFloats{*reals, reals};
    const Dims& dims = numbers_->dims;
    const int64_t along = dims[blocks_.axis], per_row = blocks_.scales->dims[blocks_.axis];
    int64_t inner = 1;
    for (size_t d = blocks_.axis + 1; d < dims.size(); ++d) inner *= dims[d];
    const int64_t lines = static_cast<int64_t>(held.values.size()) / inner;
    for (int64_t line = 0; line < lines; ++line) {
      const int64_t block = line / along * per_row + BlockOf(line % along);
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t at = block * inner + i;
        const float zero = ZeroAt(at);
        (*reals)[line * inner + i] =
            (held.values[line * inner + i] - zero) * blocks_.scales->floats[at];
      }
    }
    return HeldFloats{*reals, reals};
  }

  int64_t BlockOf(int64_t i) const {
    return blocks_.of_elements.empty() ? i / blocks_.size : blocks_.of_elements[i];
  }

  float ZeroAt(int64_t block) const {
    if (blocks_.zero_points == nullptr) return 0;
    return NumberAt(*blocks_.zero_points, blocks_.zero_points->count() == 1 ? 0 : block);
  }

  absl::Status Check() const override {
    return numbers_->stored == nullptr ? absl::OkStatus() : numbers_->stored->Check();
  }

 private:
  const ConstantPtr numbers_;
  const Blocks blocks_;
};

class UnpackedRows final : public network::StoredNumbers {
 public:
  UnpackedRows(ConstantPtr bytes, int64_t columns, int bits)
      : bytes_(std::move(bytes)), columns_(columns), bits_(bits) {}

  absl::StatusOr<HeldFloats> Load() const override {
    ABSL_ASSIGN_OR_RETURN(const HeldBytes held, LoadBytes());
    auto numbers = std::make_shared<std::vector<float>>();
    numbers->reserve(held.values.size());
    for (const int8_t byte : held.values) numbers->push_back(static_cast<uint8_t>(byte));
    return HeldFloats{*numbers, numbers};
  }

  absl::StatusOr<HeldBytes> LoadBytes() const override {
    ABSL_ASSIGN_OR_RETURN(const HeldBytes held, network::LoadBytes(*bytes_));
    const int64_t rows = bytes_->dims[0], row_bytes = bytes_->count() / rows;
    const int per_byte = 8 / bits_, mask = (1 << bits_) - 1;
    auto integers = std::make_shared<std::vector<int8_t>>();
    integers->reserve(rows * columns_);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t c = 0; c < columns_; ++c) {
        const auto byte = static_cast<uint8_t>(held.values[row * row_bytes + c / per_byte]);
        integers->push_back(static_cast<int8_t>(byte >> (c % per_byte * bits_) & mask));
      }
    }
    return HeldBytes{*integers, integers};
  }

  absl::Status Check() const override {
    return bytes_->stored == nullptr ? absl::OkStatus() : bytes_->stored->Check();
  }

 private:
  const ConstantPtr bytes_;
  const int64_t columns_;
  const int bits_;
};

}  // namespace

Dims DimsOfScales(Dims dims, int axis, int64_t size) {
  dims[axis] = dims[axis] / size + (dims[axis] % size != 0 ? 1 : 0);
  return dims;
}

absl::StatusOr<ConstantPtr> DequantizeBlocks(const ConstantPtr& numbers, Blocks blocks,
                                             std::string name) {
  auto constant = std::make_shared<Constant>();
  constant->name = std::move(name);
  constant->dims = numbers->dims;
  constant->is_float = true;
  auto converted = std::make_shared<const DequantizedBlocks>(numbers, std::move(blocks));
  if (numbers->count() >= kFewConverted) {
    constant->stored = std::move(converted);
    return constant;
  }
  ABSL_ASSIGN_OR_RETURN(HeldFloats held, converted->Load());
  constant->floats = held.values;
  constant->owner = std::move(held.owner);
  return constant;
}

absl::StatusOr<ConstantPtr> UnpackRows(const ConstantPtr& bytes, int64_t columns, int bits,
                                       std::string name) {
  auto constant = std::make_shared<Constant>();
  constant->name = std::move(name);
  constant->dims = {bytes->dims[0], columns};
  constant->integers = DataType::kU8;
  constant->stored = std::make_shared<const UnpackedRows>(bytes, columns, bits);
  if (constant->count() >= kFewConverted) return constant;
  return network::InMemory(std::move(constant));
}

}  // namespace tilewire::reader
