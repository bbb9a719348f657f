// SPDX-License-Identifier: Apache-2.0
#include "engine/network/constant.h"

#include <utility>

#include "engine/base/status_macros.h"

namespace tilewire::network {

int64_t BytesOfElement(const Constant& constant) {
  if (constant.is_float) return sizeof(float);
  return constant.integers == DataType::kS32 ? sizeof(int64_t) : SizeOf(constant.integers);
}

ConstantPtr MakeInts(std::string name, Dims dims, std::vector<int64_t> values) {
  auto constant = std::make_shared<Constant>();
  constant->name = std::move(name);
  constant->dims = std::move(dims);
  constant->ints = std::move(values);
  return constant;
}

ConstantPtr MakeFloats(std::string name, Dims dims, std::vector<float> values) {
  auto owned = std::make_shared<const std::vector<float>>(std::move(values));
  auto constant = std::make_shared<Constant>();
  constant->name = std::move(name);
  constant->dims = std::move(dims);
  constant->is_float = true;
  constant->floats = *owned;
  constant->owner = std::move(owned);
  return constant;
}

ConstantPtr MakeDoubles(std::string name, Dims dims, std::vector<double> values) {
  auto constant = std::make_shared<Constant>(
      *MakeFloats(std::move(name), std::move(dims), {values.begin(), values.end()}));
  constant->doubles = std::make_shared<const std::vector<double>>(std::move(values));
  return constant;
}

absl::StatusOr<ConstantPtr> InMemory(const ConstantPtr& constant) {
  const bool in_memory = constant->is_float ? constant->owner != nullptr : !constant->ints.empty();
  if (constant->stored == nullptr || in_memory) return constant;
  auto loaded = std::make_shared<Constant>(*constant);
  ABSL_ASSIGN_OR_RETURN(HeldFloats held, constant->stored->Load());
  if (!constant->is_float) {
    loaded->ints.assign(held.values.begin(), held.values.end());
    return loaded;
  }
  loaded->floats = held.values;
  loaded->owner = std::move(held.owner);
  return loaded;
}

absl::StatusOr<HeldBytes> StoredNumbers::LoadBytes() const {
  ABSL_ASSIGN_OR_RETURN(const HeldFloats held, Load());
  auto bytes = std::make_shared<std::vector<int8_t>>();
  for (float number : held.values)
    bytes->push_back(static_cast<int8_t>(static_cast<int32_t>(number)));
  return HeldBytes{*bytes, bytes};
}

absl::StatusOr<HeldFloats> LoadNumbers(const Constant& constant) {
  if (constant.is_float && constant.owner != nullptr)
    return HeldFloats{constant.floats, constant.owner};
  if (constant.stored != nullptr) return constant.stored->Load();
  auto numbers =
      std::make_shared<const std::vector<float>>(constant.ints.begin(), constant.ints.end());
  return HeldFloats{*numbers, numbers};
}

absl::StatusOr<HeldBytes> LoadBytes(const Constant& constant) {
  if (constant.stored != nullptr) return constant.stored->LoadBytes();
  auto bytes =
      std::make_shared<const std::vector<int8_t>>(constant.ints.begin(), constant.ints.end());
  return HeldBytes{*bytes, bytes};
}

ConstantPtr Reshaped(const Constant& constant, std::string name, Dims dims) {
  auto reshaped = std::make_shared<Constant>(constant);
  reshaped->name = std::move(name);
  if (reshaped->dims != dims) reshaped->quantized = nullptr;
  reshaped->dims = std::move(dims);
  return reshaped;
}

}  // namespace tilewire::network
