// SPDX-License-Identifier: Apache-2.0
#include "service/wire/classification.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/memory/narrow_floats.h"

namespace tilewire::service {
namespace {

absl::Status Refusal(const Dims& dims) {
  return absl::InvalidArgumentError(absl::StrCat(
      "parameter 'classification': the output is ", DimsToString(dims),
      ", not rows of classes [N,C] (or [N,C,1,1]) or one row [C] (or [1,C], [C,1,1])"));
}

struct Rows {
  int64_t rows = 1, classes = 1;
  bool are_told = false;  // in the shape of the answer
};

// Nothing where the dimensions are not those of rows.
std::optional<Rows> RowsOf(absl::Span<const int64_t> dims, bool has_batch) {
  if (dims.empty()) return std::nullopt;
  if (has_batch) {
    const std::optional<Rows> row = RowsOf(dims.subspan(1), /*has_batch=*/false);
    if (!row.has_value() || row->are_told) return std::nullopt;
    return Rows{.rows = dims[0], .classes = row->classes, .are_told = true};
  }
  const auto larger = absl::c_count_if(dims, [](int64_t dim) { return dim != 1; });
  if (larger < 2)
    return Rows{.classes = absl::c_accumulate(dims, int64_t{1}, std::multiplies<int64_t>())};
  // A batch that is not open.
  if (larger == 2 && dims.size() > 1 && dims[0] != 1 && dims[1] != 1)
    return Rows{.rows = dims[0], .classes = dims[1], .are_told = true};
  return std::nullopt;
}

// Whether the first of `rank` dimensions counts rows, whatever it is.
bool HasBatch(const TensorSpec& spec, size_t rank) {
  return rank > 1 && (spec.any_rank || (!spec.dims.empty() && spec.dims[0] < 0));
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

// Dimensions that are open may turn out to be 1.
absl::Status CheckClassified(const TensorSpec& spec) {
  if (spec.any_rank) return absl::OkStatus();
  Dims dims = spec.dims;
  for (int64_t& dim : dims) dim = dim < 0 ? 1 : dim;
  return RowsOf(dims, HasBatch(spec, dims.size())).has_value() ? absl::OkStatus()
                                                               : Refusal(spec.dims);
}

absl::StatusOr<Classes> Classify(const OutputTensor& output, const TensorSpec& spec, int64_t most,
                                 absl::Span<const absl::string_view> labels, ChargeClasses charge) {
  const std::optional<Rows> found = RowsOf(output.dims, HasBatch(spec, output.dims.size()));
  if (!found.has_value()) return Refusal(output.dims);
  const int64_t per_row = std::min(most, found->classes);
  Classes answer = {.shape = found->are_told ? Dims{found->rows, per_row} : Dims{per_row}};
  ABSL_ASSIGN_OR_RETURN(answer.bytes,
                        EncodeAs(spec.type, reinterpret_cast<const uint8_t*>(output.bytes.data()),
                                 {.rows = found->rows,
                                  .classes = found->classes,
                                  .element_bytes = SizeOf(spec.type),
                                  .most = per_row,
                                  .labels = labels,
                                  .charge = charge}));
  return answer;
}

}  // namespace tilewire::service
