// SPDX-License-Identifier: Apache-2.0
#include "client/tensor_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tilewire::client {
namespace {

struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};

double Number(Half half) {
  const int exponent = half.bits >> 10 & 31, fraction = half.bits & 1023;
  const double size = exponent == 31  ? (fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                                                       : std::numeric_limits<double>::infinity())
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return half.bits >> 15 != 0 ? -size : size;
}

double Number(Bfloat bfloat) {
  const uint32_t bits = static_cast<uint32_t>(bfloat.bits) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

template <typename T>
double Number(T value) {
  return static_cast<double>(value);
}

std::string Text(bool value) { return value ? "true" : "false"; }
std::string Text(float value) { return absl::StrFormat("%.9g", value); }
std::string Text(double value) { return absl::StrFormat("%.17g", value); }
std::string Text(Half value) { return absl::StrFormat("%.5g", Number(value)); }
std::string Text(Bfloat value) { return absl::StrFormat("%.4g", Number(value)); }
template <typename T>
std::string Text(T value) {
  return absl::StrCat(static_cast<int64_t>(value));
}
std::string Text(uint64_t value) { return absl::StrCat(value); }

// Calls take(element) for the first `most` elements, which are of type T.
template <typename T, typename Take>
absl::Status Walk(const Tensor& tensor, int64_t most, const Take& take) {
  if (tensor.bytes.size() % sizeof(T) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("output '", tensor.name, "' has ", tensor.bytes.size(), " bytes of ",
                     tensor.datatype, ": the last element is cut short"));
  }
  const auto count = static_cast<int64_t>(tensor.bytes.size() / sizeof(T));
  for (int64_t i = 0; i < std::min(count, most); ++i) {
    T value;
    std::memcpy(&value, tensor.bytes.data() + i * sizeof(T), sizeof(T));
    take(value);
  }
  return absl::OkStatus();
}

template <typename Take>
absl::Status WalkElements(const Tensor& tensor, int64_t most, const Take& take) {
  const absl::string_view type = tensor.datatype;
  if (type == "BOOL") return Walk<bool>(tensor, most, take);
  if (type == "UINT8") return Walk<uint8_t>(tensor, most, take);
  if (type == "INT8") return Walk<int8_t>(tensor, most, take);
  if (type == "UINT16") return Walk<uint16_t>(tensor, most, take);
  if (type == "INT16") return Walk<int16_t>(tensor, most, take);
  if (type == "UINT32") return Walk<uint32_t>(tensor, most, take);
  if (type == "INT32") return Walk<int32_t>(tensor, most, take);
  if (type == "UINT64") return Walk<uint64_t>(tensor, most, take);
  if (type == "INT64") return Walk<int64_t>(tensor, most, take);
  if (type == "FP16") return Walk<Half>(tensor, most, take);
  if (type == "BF16") return Walk<Bfloat>(tensor, most, take);
  if (type == "FP32") return Walk<float>(tensor, most, take);
  if (type == "FP64") return Walk<double>(tensor, most, take);
  return absl::InvalidArgumentError(
      absl::StrCat("output '", tensor.name, "' is of type ", type, ", which is not shown"));
}

}  // namespace

bool IsFloatingPoint(absl::string_view datatype) {
  constexpr absl::string_view kTypes[] = {"FP16", "BF16", "FP32", "FP64"};
  return absl::c_linear_search(kTypes, datatype);
}

absl::StatusOr<std::vector<double>> NumbersOf(const Tensor& tensor) {
  std::vector<double> numbers;
  const absl::Status status =
      WalkElements(tensor, std::numeric_limits<int64_t>::max(),
                   [&](const auto& value) { numbers.push_back(Number(value)); });
  if (!status.ok()) return status;
  return numbers;
}

absl::StatusOr<std::vector<std::string>> TextsOf(const Tensor& tensor, int64_t most) {
  std::vector<std::string> texts;
  const absl::Status status =
      WalkElements(tensor, most, [&](const auto& value) { texts.push_back(Text(value)); });
  if (!status.ok()) return status;
  return texts;
}

}  // namespace tilewire::client
