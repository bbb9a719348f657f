// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/model_operations.h"

#include <algorithm>
#include <utility>

namespace tilewire::bench {
namespace {

MemoryDesc Laid(Dims dims, absl::string_view pattern, DataType type = DataType::kF32) {
  return *MemoryDesc::CreatePattern(std::move(dims), type, pattern);
}

// The square image of `channels` channels, `in` x `in`.
Dims Square(const Operation& op, int64_t channels, int64_t in) {
  return {op.at("n"), channels, in, in};
}

OpDesc Select(const Operation& op, absl::string_view blocked) {  // every second channel, a border
  const int64_t c = op.at("c"), in = op.at("in");
  return SelectDesc{Laid(Square(op, c, in), blocked),
                    Laid({op.at("n"), c / 2, in, in + 2}, blocked),
                    {{}, {{0, 2, c / 2}}, {}, {{-1, 0, 1}, {0, 1, in}, {-1, 0, 1}}}};
}

OpDesc GatherChannels(const Operation& op, absl::string_view blocked) {  // ShuffleNet's two halves
  const int64_t c = op.at("c"), in = op.at("in");
  GatherChannelsDesc desc;
  desc.srcs.assign(2, Laid(Square(op, c, in), blocked));
  desc.dst = Laid(Square(op, c, in), blocked);
  for (int64_t i = 0; i < c; ++i) desc.channels.push_back({static_cast<int>(i % 2), i / 2});
  return desc;
}

OpDesc Gather(const Operation& op) {  // the rows of a table
  const int64_t c = op.at("c");
  return GatherDesc{0, Laid({op.at("o"), c}, "ab"), Laid({op.at("n"), 1}, "ab"),
                    Laid({op.at("n"), 1, c}, "abc")};
}

OpDesc Quantize(const Operation& op) {
  const Dims dims = Square(op, op.at("c"), op.at("in"));
  const DataType from = op.kind == "quantize" ? DataType::kF32 : DataType::kU8;
  const DataType to = op.kind == "quantize" ? DataType::kU8 : DataType::kF32;
  return QuantizeDesc{Laid(dims, "acdb", from), Laid(dims, "acdb", to), 1, {0.02f}, {128}};
}

OpDesc IntegerSum(const Operation& op) {
  const MemoryDesc image = Laid(Square(op, op.at("c"), op.at("in")), "acdb", DataType::kU8);
  return IntegerSumDesc{{image, image}, image, {0.02f, 0.03f}, {128, 100}, 0.04f, 120, true};
}

OpDesc Interpolate(const Operation& op) {  // twice the height, by two taps
  const int64_t in = op.at("in"), c = op.at("c");
  InterpolateDesc desc{Laid(Square(op, c, in), "abcd"), Laid({op.at("n"), c, 2 * in, in}, "abcd")};
  for (int64_t i = 0; i < 2 * in; ++i) {
    desc.indices.insert(desc.indices.end(), {i / 2, std::min(i / 2 + 1, in - 1)});
    desc.weights.insert(desc.weights.end(), {0.75f, 0.25f});
  }
  return desc;
}

OpDesc MaxWindow(const Operation& op) {
  const MemoryDesc src = Laid(Square(op, op.at("c"), op.at("in")), "abcd");
  const MemoryDesc dst = Laid(Square(op, op.at("c"), op.at("in") / 2), "abcd");
  return MaxWindowDesc{MaxWindowResult::kIndex, src, dst, {2, 2}, {2, 2}, {0, 0}, {0, 0}};
}

OpDesc TopK(const Operation& op) {
  return TopKDesc{Laid({op.at("n"), op.at("c")}, "ab"), Laid({op.at("n"), 5}, "ab"), 1};
}

OpDesc Elementwise(const Operation& op) {
  const MemoryDesc image = Laid(Square(op, op.at("c"), op.at("in")), "abcd");
  return ElementwiseDesc{{functions::Elementwise::Function::kMod}, {image, image}, image};
}

OpDesc Convert(const Operation& op) {
  const Dims image = Square(op, op.at("c"), op.at("in"));
  return ConvertDesc{Laid(image, "abcd", DataType::kU8), Laid(image, "abcd")};
}

}  // namespace

std::optional<OpDesc> ModelDescriptor(const Operation& operation, absl::string_view blocked) {
  const std::string& kind = operation.kind;
  if (kind == "select") return Select(operation, blocked);
  if (kind == "gather_channels") return GatherChannels(operation, blocked);
  if (kind == "gather") return Gather(operation);
  if (kind == "quantize" || kind == "dequantize") return Quantize(operation);
  if (kind == "integer_sum") return IntegerSum(operation);
  if (kind == "interpolate") return Interpolate(operation);
  if (kind == "max_window") return MaxWindow(operation);
  if (kind == "top_k") return TopK(operation);
  if (kind == "elementwise") return Elementwise(operation);
  if (kind == "convert") return Convert(operation);
  return std::nullopt;
}

}  // namespace tilewire::bench
