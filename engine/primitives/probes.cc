// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/probes.h"

namespace tilewire {

std::vector<OpDesc> Probes(PrimitiveKind kind, DataType type) {
  const auto any = [](const auto& descs) {
    return std::vector<OpDesc>(descs.begin(), descs.end());
  };
  switch (kind) {
#define TILEWIRE_PRIMITIVE(Name, name) \
  case PrimitiveKind::k##Name:         \
    return any(Name##Probes(type));
#include "engine/primitives/primitive_list.inc"
#undef TILEWIRE_PRIMITIVE
  }
  return {};
}

std::vector<DataType> TypesOf(const ImplementationRow& row) {
  Attributes attributes;
  attributes.scratchpad_mode = ScratchpadMode::kUser;  // nothing is executed
  attributes.precision = row.traits.precision;
  // The same on every machine.
  const cpu::Isa max_isa = row.traits.runs_another ? cpu::Isa::kAvx512Vnni : row.isa;
  std::vector<DataType> types;
  for (DataType type : {DataType::kF32, DataType::kBf16, DataType::kF16, DataType::kS32,
                        DataType::kS8, DataType::kU8}) {
    for (const OpDesc& probe : Probes(row.kind, type)) {
      if (!CreatePrimitive(probe, attributes, {.max_isa = max_isa, .only = row.name}).ok())
        continue;
      types.push_back(type);
      break;
    }
  }
  return types;
}

}  // namespace tilewire
