// SPDX-License-Identifier: Apache-2.0
#include "service/wire/typed_contents.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tilewire::service {
namespace {

struct Field {
  absl::string_view name;
  int64_t count;
};

// `allowed` holds `elements` elements and every other field none.
absl::Status CheckFields(const inference::InferTensorContents& contents, absl::string_view allowed,
                         int64_t elements) {
  const Field fields[] = {{"bool_contents", contents.bool_contents_size()},
                          {"int_contents", contents.int_contents_size()},
                          {"int64_contents", contents.int64_contents_size()},
                          {"uint_contents", contents.uint_contents_size()},
                          {"uint64_contents", contents.uint64_contents_size()},
                          {"fp32_contents", contents.fp32_contents_size()},
                          {"fp64_contents", contents.fp64_contents_size()},
                          {"bytes_contents", contents.bytes_contents_size()}};
  for (const Field& field : fields) {
    if (field.name != allowed && field.count > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(field.name, " is set; its datatype needs ", allowed));
    }
    if (field.name == allowed && field.count != elements) {
      return absl::InvalidArgumentError(
          absl::StrCat(allowed, " has ", field.count, " elements, the shape needs ", elements));
    }
  }
  return absl::OkStatus();
}

template <typename Element, typename Values>
absl::StatusOr<absl::string_view> Narrowed(const Values& values, std::string* converted) {
  using Limits = std::numeric_limits<Element>;
  converted->reserve(values.size() * sizeof(Element));
  for (const auto value : values) {
    if (static_cast<int64_t>(value) < Limits::min() ||
        static_cast<int64_t>(value) > Limits::max()) {
      return absl::InvalidArgumentError(absl::StrCat("value ", value, " is outside ",
                                                     static_cast<int>(Limits::min()), " to ",
                                                     static_cast<int>(Limits::max())));
    }
    const Element element = static_cast<Element>(value);
    converted->append(reinterpret_cast<const char*>(&element), sizeof(element));
  }
  return *converted;
}

template <typename Values>
absl::string_view View(const Values& values) {
  return absl::string_view(reinterpret_cast<const char*>(values.data()),
                           values.size() * sizeof(*values.data()));
}

// The field that holds elements of the type; "" for a type that travels raw only.
absl::string_view FieldOf(DataType type) {
  switch (type) {
    case DataType::kF32:
      return "fp32_contents";
    case DataType::kF64:
      return "fp64_contents";
    case DataType::kBool:
      return "bool_contents";
    case DataType::kS8:
    case DataType::kS16:
    case DataType::kS32:
      return "int_contents";
    case DataType::kS64:
      return "int64_contents";
    case DataType::kU8:
    case DataType::kU16:
    case DataType::kU32:
      return "uint_contents";
    case DataType::kU64:
      return "uint64_contents";
    default:
      return "";
  }
}

}  // namespace

absl::StatusOr<absl::string_view> TypedBytes(const inference::InferTensorContents& contents,
                                             DataType type, int64_t elements,
                                             std::string* converted) {
  const absl::string_view field = FieldOf(type);
  if (field.empty())
    return absl::InvalidArgumentError("this datatype travels in raw_input_contents only");
  ABSL_RETURN_IF_ERROR(CheckFields(contents, field, elements));
  switch (type) {
    case DataType::kF32:
      return View(contents.fp32_contents());
    case DataType::kF64:
      return View(contents.fp64_contents());
    case DataType::kBool:
      return View(contents.bool_contents());
    case DataType::kS8:
      return Narrowed<int8_t>(contents.int_contents(), converted);
    case DataType::kS16:
      return Narrowed<int16_t>(contents.int_contents(), converted);
    case DataType::kS32:
      return View(contents.int_contents());
    case DataType::kS64:
      return View(contents.int64_contents());
    case DataType::kU8:
      return Narrowed<uint8_t>(contents.uint_contents(), converted);
    case DataType::kU16:
      return Narrowed<uint16_t>(contents.uint_contents(), converted);
    case DataType::kU32:
      return View(contents.uint_contents());
    default:
      return View(contents.uint64_contents());
  }
}

}  // namespace tilewire::service
