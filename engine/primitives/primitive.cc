// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/primitive.h"

#include "engine/base/check.h"

namespace tilewire {
namespace {

constexpr absl::string_view kKindNames[] = {
#define TILEWIRE_PRIMITIVE(Name, name) #name,
#include "engine/primitives/primitive_list.inc"
#undef TILEWIRE_PRIMITIVE
};

}  // namespace

absl::string_view PrimitiveKindName(PrimitiveKind kind) {
  return kKindNames[static_cast<size_t>(kind)];
}

std::string ArgName(PrimitiveKind kind, int arg) {
  if (kind == PrimitiveKind::kGather && arg == kArgSrc1) return "indices";
  if (kind != PrimitiveKind::kRnn) return ArgName(arg);
  switch (arg) {
    case kArgSrc:
      return "src_layer";
    case kArgSrc1:
      return "src_iter";
    case kArgWeights:
      return "weights_layer";
    case kArgDst:
      return "dst_layer";
    default:
      return ArgName(arg);
  }
}

ExecuteArgs& ExecuteArgs::Set(int arg, const void* data) {
  // One type for inputs and outputs: an implementation writes only what it owns as an output.
  void* pointer = const_cast<void*>(data);
  for (auto& [name, value] : entries_) {
    if (name == arg) {
      value = pointer;
      return *this;
    }
  }
  entries_.emplace_back(arg, pointer);
  return *this;
}

void* ExecuteArgs::Find(int arg) const {
  for (const auto& [name, value] : entries_) {
    if (name == arg) return value;
  }
  return nullptr;
}

const MemoryDesc& Primitive::Desc(int arg) const {
  static const MemoryDesc* const kZero = new MemoryDesc();
  for (const ArgDesc& entry : info_.args) {
    if (entry.arg == arg) return entry.desc;
  }
  return *kZero;
}

bool Primitive::Writes(int arg) const {
  for (const ArgDesc& entry : info_.args) {
    if (entry.arg == arg) return entry.is_output;
  }
  return false;
}

MemoryDesc Primitive::ScratchpadDesc() const {
  if (info_.scratchpad_mode == ScratchpadMode::kLibrary) return MemoryDesc();
  absl::StatusOr<MemoryDesc> desc =
      MemoryDesc::CreatePattern({info_.scratchpad_bytes}, DataType::kU8, "a");
  TILEWIRE_CHECK(desc.ok(), "a scratchpad has a size");
  return *desc;
}

int64_t Primitive::MemoryConsumptionBytes() const {
  return info_.scratchpad_mode == ScratchpadMode::kLibrary ? info_.scratchpad_bytes : 0;
}

}  // namespace tilewire
