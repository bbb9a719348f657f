// SPDX-License-Identifier: Apache-2.0
#include "service/wire/classification.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/memory/narrow_floats.h"

namespace tilewire::service {
namespace {

absl::Status CheckDims(const Dims& dims) {
  bool fits = !dims.empty();
  for (size_t i = 2; i < dims.size(); ++i) fits &= dims[i] == 1 || dims[i] < 0;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("parameter 'classification': the output is ", DimsToString(dims),
                   ", not rows of classes [N,C] (or [N,C,1,1]) or one row [C]"));
}

// The number of type `T` that stands at `bytes`, as a `Value` that holds it exactly.
template <typename T, typename Value = T>
Value Read(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return static_cast<Value>(value);
}

float ReadBf16(const uint8_t* bytes) { return WidenBf16(Read<uint16_t>(bytes)); }
float ReadFp16(const uint8_t* bytes) { return WidenF16(Read<uint16_t>(bytes)); }
int64_t ReadBool(const uint8_t* bytes) { return *bytes != 0 ? 1 : 0; }

// Whether `a` stands before `b`, where both are numbers of a row.
template <typename Value>
bool IsBefore(Value a, int64_t index_a, Value b, int64_t index_b) {
  if constexpr (std::is_floating_point_v<Value>) {
    if (std::isnan(a) || std::isnan(b)) {
      return std::isnan(a) == std::isnan(b) ? index_a < index_b : std::isnan(b);
    }
  }
  return a == b ? index_a < index_b : a > b;
}

template <typename Value>
void AppendElement(Value value, int64_t index, absl::Span<const absl::string_view> labels,
                   std::string* bytes) {
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof(digits), value);
  std::string text(digits, end.ptr);
  absl::StrAppend(&text, ":", index);
  if (index < static_cast<int64_t>(labels.size()) && !labels[index].empty()) {
    absl::StrAppend(&text, ":", labels[index]);
  }
  const auto size = static_cast<uint32_t>(text.size());
  for (int shift = 0; shift < 32; shift += 8) bytes->push_back(static_cast<char>(size >> shift));
  *bytes += text;
}

// Bytes that are charged at a time.
constexpr size_t kChargedBytes = 64 << 10;

struct Wanted {
  int64_t rows, classes, element_bytes, most;
  absl::Span<const absl::string_view> labels;
  ChargeClasses charge;
};

template <typename Value>
absl::StatusOr<std::string> Encode(const uint8_t* values, Value (*read)(const uint8_t*),
                                   const Wanted& wanted) {
  std::vector<Value> row(wanted.classes);
  std::vector<int64_t> order(wanted.classes);
  std::string bytes;
  size_t charged = 0;
  for (int64_t n = 0; n < wanted.rows; ++n) {
    for (Value& value : row) {
      value = read(values);
      values += wanted.element_bytes;
    }
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + wanted.most, order.end(),
                      [&row](int64_t a, int64_t b) { return IsBefore(row[a], a, row[b], b); });
    for (int64_t i = 0; i < wanted.most; ++i) {
      for (; charged <= bytes.size(); charged += kChargedBytes)
        ABSL_RETURN_IF_ERROR(wanted.charge(kChargedBytes));
      AppendElement(row[order[i]], order[i], wanted.labels, &bytes);
    }
  }
  return bytes;
}

absl::StatusOr<std::string> EncodeAs(DataType type, const uint8_t* values, const Wanted& wanted) {
  switch (type) {
    case DataType::kF32:
      return Encode<float>(values, Read<float>, wanted);
    case DataType::kF16:
      return Encode<float>(values, ReadFp16, wanted);
    case DataType::kBf16:
      return Encode<float>(values, ReadBf16, wanted);
    case DataType::kF64:
      return Encode<double>(values, Read<double>, wanted);
    case DataType::kU64:
      return Encode<uint64_t>(values, Read<uint64_t>, wanted);
    case DataType::kS64:
      return Encode<int64_t>(values, Read<int64_t>, wanted);
    case DataType::kS32:
      return Encode<int64_t>(values, Read<int32_t, int64_t>, wanted);
    case DataType::kU32:
      return Encode<int64_t>(values, Read<uint32_t, int64_t>, wanted);
    case DataType::kS16:
      return Encode<int64_t>(values, Read<int16_t, int64_t>, wanted);
    case DataType::kU16:
      return Encode<int64_t>(values, Read<uint16_t, int64_t>, wanted);
    case DataType::kS8:
      return Encode<int64_t>(values, Read<int8_t, int64_t>, wanted);
    case DataType::kU8:
      return Encode<int64_t>(values, Read<uint8_t, int64_t>, wanted);
    default:
      return Encode<int64_t>(values, ReadBool, wanted);
  }
}

}  // namespace

absl::Status CheckClassified(const TensorSpec& spec) {
  return spec.any_rank ? absl::OkStatus() : CheckDims(spec.dims);
}

absl::StatusOr<Classes> Classify(const OutputTensor& output, DataType type, int64_t most,
                                 absl::Span<const absl::string_view> labels, ChargeClasses charge) {
  ABSL_RETURN_IF_ERROR(CheckDims(output.dims));
  const bool is_one_row = output.dims.size() == 1;
  const int64_t rows = is_one_row ? 1 : output.dims[0];
  const int64_t classes = output.dims[is_one_row ? 0 : 1];
  const int64_t per_row = std::min(most, classes);
  Classes answer = {.shape = is_one_row ? Dims{per_row} : Dims{rows, per_row}};
  ABSL_ASSIGN_OR_RETURN(answer.bytes,
                        EncodeAs(type, reinterpret_cast<const uint8_t*>(output.bytes.data()),
                                 {.rows = rows,
                                  .classes = classes,
                                  .element_bytes = SizeOf(type),
                                  .most = per_row,
                                  .labels = labels,
                                  .charge = charge}));
  return answer;
}

}  // namespace tilewire::service
