// SPDX-License-Identifier: Apache-2.0
#include "client/training/array_file.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/amount_text.h"
#include "client/tensor.h"
#include "engine/memory/dims.h"

namespace tilewire::client {
namespace {

constexpr char kNpyEnding[] = ".npy";

struct RawType {
  const char* ending;
  const char* datatype;
};
constexpr RawType kBytes = {".u8", "UINT8"};
constexpr RawType kRawTypes[] = {kBytes, {".s32", "INT32"}, {".s64", "INT64"}, {".f32", "FP32"}};

// Null: the name tells none.
const RawType* RawTypeOf(absl::string_view name) {
  for (const RawType& type : kRawTypes) {
    if (absl::EndsWith(name, type.ending)) return &type;
  }
  return nullptr;
}

absl::StatusOr<NpyArray> ParseNpyFile(absl::string_view name, absl::string_view bytes) {
  absl::StatusOr<NpyArray> array = ReadNpy(bytes);
  if (!array.ok())
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", array.status().message()));
  if (array->shape.empty() || array->bytes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is of shape [", ShapeText(array->shape), "], which has no examples"));
  }
  return array;
}

absl::StatusOr<NpyArray> ParseRaw(absl::string_view name, const RawType& type, std::string bytes,
                                  absl::Span<const int64_t> example) {
  const auto elements = ElementCount(Dims(example.begin(), example.end()));
  const int64_t total = static_cast<int64_t>(bytes.size());
  if (!elements || *elements <= 0 || *elements > total) {
    return absl::InvalidArgumentError(absl::StrCat(name, " has ", CountText(total, "byte"),
                                                   ", fewer than one example of ",
                                                   ShapeText(example), " has"));
  }
  const int64_t size = *elements * SizeOfDatatype(type.datatype);
  if (total == 0 || total % size != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " has ", CountText(total, "byte"), ", not a multiple of ", size, ", which one ",
        example.empty() ? "element" : absl::StrCat("example of ", ShapeText(example)), " has"));
  }
  NpyArray array{type.datatype, {example.begin(), example.end()}, std::move(bytes)};
  array.shape.insert(array.shape.begin(), total / size);
  return array;
}

}  // namespace

bool HasShape(absl::string_view name) { return absl::EndsWith(name, kNpyEnding); }

bool HasType(absl::string_view name) { return HasShape(name) || RawTypeOf(name) != nullptr; }

absl::StatusOr<NpyArray> ParseArray(absl::string_view name, std::string bytes,
                                    absl::Span<const int64_t> example) {
  if (HasShape(name)) return ParseNpyFile(name, bytes);
  if (const RawType* type = RawTypeOf(name); type != nullptr)
    return ParseRaw(name, *type, std::move(bytes), example);
  return absl::InvalidArgumentError(absl::StrCat(
      name,
      ": its name does not tell the type of its elements; it must end in .u8, .s32, .s64, "
      ".f32 or .npy"));
}

absl::StatusOr<NpyArray> ParseBytes(absl::string_view name, std::string bytes,
                                    absl::Span<const int64_t> example) {
  return ParseRaw(name, kBytes, std::move(bytes), example);
}

}  // namespace tilewire::client
