// SPDX-License-Identifier: Apache-2.0
#include "tests/support/avx_vnni/dot_product.h"

#include <cstring>

namespace tilewire::testing {
namespace {

template <typename Element>
Element ElementOf(const VectorBytes& vector, int index) {
  Element element;
  std::memcpy(&element, vector.data() + index * sizeof(Element), sizeof(Element));
  return element;
}

// The products of one lane, which s64 holds.
template <typename A, typename B>
int64_t LaneProducts(const VectorBytes& a, const VectorBytes& b, int lane) {
  constexpr int kCount = 4 / sizeof(A);
  int64_t products = 0;
  for (int i = lane * kCount; i < (lane + 1) * kCount; ++i)
    products += int64_t{ElementOf<A>(a, i)} * ElementOf<B>(b, i);
  return products;
}

bool IsVectorCode(const VexPrefix& prefix) {
  return prefix.is_vex && prefix.map == VexPrefix::kMap0F38 && prefix.w == 0 &&
         prefix.pp == VexPrefix::k66;
}

// vmovups and vmovdqu.
bool IsWholeLoad(const VexPrefix& prefix, uint8_t opcode) {
  return prefix.map == VexPrefix::kMap0F &&
         ((opcode == 0x10 && prefix.pp == VexPrefix::kNoPrefix) ||
          (opcode == 0x6F && prefix.pp == VexPrefix::kF3));
}

}  // namespace

std::optional<DotProduct> DecodeDotProduct(const uint8_t* code) {
  const VexPrefix prefix(code);
  const uint8_t opcode = code[3], modrm = code[4];
  const bool is_known = opcode == 0x50 || opcode == 0x52;
  if (!IsVectorCode(prefix) || !is_known || modrm >> 6 != 3) return std::nullopt;
  return DotProduct{.of_words = opcode == 0x52,
                    .lanes = prefix.l != 0 ? 8 : 4,
                    .sum = (modrm >> 3 & 7) | prefix.r << 3,
                    .a = prefix.v,
                    .b = (modrm & 7) | prefix.b << 3};
}

std::optional<VectorLoad> DecodeVectorLoad(const uint8_t* code) {
  const VexPrefix prefix(code);
  const uint8_t opcode = code[prefix.length];
  const uint8_t* const modrm = code + prefix.length + 1;
  const bool broadcasts = IsVectorCode(prefix) && opcode == 0x58;
  const bool loads = prefix.is_vex && IsWholeLoad(prefix, opcode);
  if (prefix.v != 0 || (!broadcasts && !loads)) return std::nullopt;
  VectorLoad load;
  load.broadcasts = broadcasts;
  load.lanes = prefix.l != 0 ? 8 : 4;
  load.to = (*modrm >> 3 & 7) | prefix.r << 3;
  const uint8_t* const end = DecodeMemoryOperand(modrm, {prefix.x, prefix.b}, &load.from);
  if (end == nullptr) return std::nullopt;
  load.length = static_cast<int>(end - code);
  return load;
}

VectorBytes Compute(const DotProduct& what, const VectorBytes& sum, const VectorBytes& a,
                    const VectorBytes& b) {
  VectorBytes result = {};
  for (int lane = 0; lane < what.lanes; ++lane) {
    const int64_t products = what.of_words ? LaneProducts<int16_t, int16_t>(a, b, lane)
                                           : LaneProducts<uint8_t, int8_t>(a, b, lane);
    const auto wrapped = static_cast<uint32_t>(ElementOf<int32_t>(sum, lane) + products);
    std::memcpy(result.data() + lane * sizeof(wrapped), &wrapped, sizeof(wrapped));
  }
  return result;
}

}  // namespace tilewire::testing
