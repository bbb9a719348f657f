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
    converted->push_back(static_cast<char>(value));
  }
  return *converted;
}

template <typename Values>
absl::string_view View(const Values& values) {
  return absl::string_view(reinterpret_cast<const char*>(values.data()),
                           values.size() * sizeof(*values.data()));
}

}  // namespace

absl::StatusOr<absl::string_view> TypedBytes(const inference::InferTensorContents& contents,
                                             DataType type, int64_t elements,
                                             std::string* converted) {
  switch (type) {
    case DataType::kF32:
      ABSL_RETURN_IF_ERROR(CheckFields(contents, "fp32_contents", elements));
      return View(contents.fp32_contents());
    case DataType::kS32:
      ABSL_RETURN_IF_ERROR(CheckFields(contents, "int_contents", elements));
      return View(contents.int_contents());
    case DataType::kS8:
      ABSL_RETURN_IF_ERROR(CheckFields(contents, "int_contents", elements));
      return Narrowed<int8_t>(contents.int_contents(), converted);
    case DataType::kU8:
      ABSL_RETURN_IF_ERROR(CheckFields(contents, "uint_contents", elements));
      return Narrowed<uint8_t>(contents.uint_contents(), converted);
    default:
      return absl::InvalidArgumentError("this datatype travels in raw_input_contents only");
  }
}

}  // namespace tilewire::service
