// SPDX-License-Identifier: Apache-2.0
#include "engine/network/elementwise.h"

#include <algorithm>

#include "engine/base/checked_math.h"
#include "engine/functions/integer_functions.h"

namespace tilewire::network {
namespace {

std::optional<int64_t> PowInts(int64_t base, int64_t exponent) {
  if (exponent < 0 || exponent > 64) return std::nullopt;
  std::optional<int64_t> result = 1;
  for (int64_t i = 0; i < exponent && result; ++i) result = CheckedMul(*result, base);
  return result;
}

}  // namespace

std::optional<int64_t> EvaluateInts(Function function, const int64_t* x) {
  int64_t difference;
  switch (function) {
    case Function::kAdd:
      return CheckedAdd(x[0], x[1]);
    case Function::kSub:
      if (__builtin_sub_overflow(x[0], x[1], &difference)) return std::nullopt;
      return difference;
    case Function::kMul:
      return CheckedMul(x[0], x[1]);
    case Function::kDiv:
    case Function::kMod:
    case Function::kFloorMod:
      if (x[1] == 0 || (x[0] == INT64_MIN && x[1] == -1)) return std::nullopt;
      break;
    case Function::kPower:
      return PowInts(x[0], x[1]);
    case Function::kPRelu:
      return x[0] < 0 ? CheckedMul(x[0], x[1]) : x[0];
    case Function::kAbs:
    case Function::kNegate:
      if (x[0] == INT64_MIN) return std::nullopt;
      break;
    default:
      break;
  }
  if (!functions::TakesIntegers(function)) return std::nullopt;
  return functions::EvaluateIntegers({function}, x);
}

std::optional<Dims> Broadcast(const Dims& a, const Dims& b) {
  const size_t rank = std::max(a.size(), b.size());
  Dims dst(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t from_a = i + a.size() >= rank ? a[i + a.size() - rank] : 1;
    const int64_t from_b = i + b.size() >= rank ? b[i + b.size() - rank] : 1;
    if (from_a != from_b && from_a != 1 && from_b != 1) return std::nullopt;
    dst[i] = from_a == 1 ? from_b : from_a;
  }
  return dst;
}

}  // namespace tilewire::network
