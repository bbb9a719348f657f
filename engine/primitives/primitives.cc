// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/primitives.h"

#include "absl/types/span.h"
#include "engine/memory/key_bytes.h"

namespace tilewire {
namespace {

// An overload per primitive: what std::visit dispatches to.
struct Create {
  const Attributes& attributes;
  const CreateOptions& options;

  using Result = absl::StatusOr<std::shared_ptr<const Primitive>>;
#define TILEWIRE_PRIMITIVE(Name, name)              \
  Result operator()(const Name##Desc& desc) const { \
    return Create##Name(desc, attributes, options); \
  }
#include "engine/primitives/primitive_list.inc"
#undef TILEWIRE_PRIMITIVE
};

template <typename Desc>
void AppendRows(PrimitiveKind kind, absl::Span<const Implementation<Desc>> table,
                std::vector<ImplementationRow>* rows) {
  for (const Implementation<Desc>& row : table) rows->push_back({row, kind, row.cost != nullptr});
}

}  // namespace

PrimitiveKind KindOf(const OpDesc& desc) { return static_cast<PrimitiveKind>(desc.index()); }

absl::StatusOr<std::shared_ptr<const Primitive>> CreatePrimitive(const OpDesc& desc,
                                                                 const Attributes& attributes,
                                                                 const CreateOptions& options) {
  return std::visit(Create{attributes, options}, desc);
}

std::string PrimitiveKey(const OpDesc& desc, const Attributes& attributes,
                         const CreateOptions& options) {
  std::string key(1, static_cast<char>(desc.index()));
  AppendBytes(options.max_isa.bits(), &key);
  std::visit([&key](const auto& d) { AppendKey(d, &key); }, desc);
  attributes.AppendKey(&key);
  AppendBytes(options.reference_only, &key);
  const cpu::Machine& machine = options.machine;
  for (const double number :
       {machine.fmas_of_32_bytes, machine.fmas_of_64_bytes, machine.reached_of_32_bytes,
        machine.reached_of_64_bytes, machine.bf16_gain, machine.memory_bytes_per_fma,
        machine.hidden_reading, machine.transform_of_16_points, machine.transform_of_36_points,
        machine.spilling, machine.cycles_of_byte_read, machine.cycles_of_byte_written})
    AppendBytes(number, &key);
  // Last, so that it needs no length: everything before it has one or is of a fixed size.
  key.append(options.only.data(), options.only.size());
  return key;
}

std::vector<ImplementationRow> AllImplementations() {
  std::vector<ImplementationRow> rows;
#define TILEWIRE_PRIMITIVE(Name, name) \
  AppendRows(PrimitiveKind::k##Name, Name##Implementations(), &rows);
#include "engine/primitives/primitive_list.inc"
#undef TILEWIRE_PRIMITIVE
  return rows;
}

}  // namespace tilewire
