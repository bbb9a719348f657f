// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "engine/memory/element_types.h"
#include "tests/support/oracle/operations.h"

namespace tilewire::testing {

Elements Compute(const network::Literal& literal, const Operands& operands) {
  const network::ConstantPtr constant = network::InMemory(literal.constant).value();
  if (operands.type == DataType::kF64 && constant->doubles != nullptr)
    return {constant->doubles->begin(), constant->doubles->end()};
  Elements elements(constant->floats.begin(), constant->floats.end());
  elements.insert(elements.end(), constant->ints.begin(), constant->ints.end());
  return elements;
}

// Integers wrap around in others; real numbers become the nearest integers towards zero, NaN 0.
double Converted(double number, DataType from, DataType to) {
  if (to == DataType::kBool) return number != 0 ? 1.0 : 0.0;
  if (!IsIntegerType(to))
    return to == DataType::kF32 && IsIntegerType(from) ? static_cast<float>(number) : number;
  double result = 0;
  VisitIntegerOrDouble(to, [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      const auto least = static_cast<double>(Limits::min()),
                 most = static_cast<double>(Limits::max());
      if (std::isnan(number)) return;
      if (number >= least && number <= most) {
        result = std::trunc(number);
      } else if (IsIntegerType(from) && std::abs(number) < 0x1p63) {
        result = static_cast<double>(static_cast<T>(static_cast<int64_t>(number)));
      } else {
        result = number < least ? least : most;
      }
    }
  });
  return result;
}

Elements Compute(const network::Convert& convert, const Operands& operands) {
  return ForEach(operands.dst, [&](const Dims& index) {
    double number = operands.srcs[0].AtBroadcast(index);
    DataType from = operands.src_types[0];
    for (const DataType between : convert.via) {
      number = Converted(number, from, between);
      from = between;
    }
    return Converted(number, from, operands.type);
  });
}

Elements Compute(const network::Reshape&, const Operands& operands) {
  return operands.srcs[0].elements;
}

Elements Compute(const network::Transpose& transpose, const Operands& operands) {
  return ForEach(operands.dst, [&](const Dims& index) {
    Dims from(index.size(), 0);
    for (size_t d = 0; d < index.size(); ++d) from[transpose.order[d]] = index[d];
    return operands.srcs[0].AtBroadcast(from);
  });
}

Elements Compute(const network::Concat& concat, const Operands& operands) {
  return ForEach(operands.dst, [&](const Dims& index) {
    Dims from = index;
    size_t s = 0;
    while (from[concat.axis] >= operands.srcs[s].dims[concat.axis])
      from[concat.axis] -= operands.srcs[s++].dims[concat.axis];
    return operands.srcs[s].AtBroadcast(from);
  });
}

// The formula of engine/primitives/shuffle/shuffle.h.
Elements Compute(const network::Shuffle& shuffle, const Operands& operands) {
  const int64_t size = operands.dst[shuffle.axis], group = shuffle.group_size;
  return ForEach(operands.dst, [&](const Dims& index) {
    Dims from = index;
    const int64_t v = index[shuffle.axis] / (size / group),
                  u = index[shuffle.axis] % (size / group);
    from[shuffle.axis] = u * group + v;
    return operands.srcs[0].AtBroadcast(from);
  });
}

Elements Compute(const network::Select& select, const Operands& operands) {
  return ForEach(operands.dst, [&](const Dims& index) {
    Dims from = index;
    bool fill = false;
    for (size_t d = 0; d < index.size(); ++d) {
      int64_t rest = index[d];
      for (const IndexRun& run : select.from[d]) {
        if (rest >= 0 && rest < run.count) {
          from[d] = run.start + rest * run.step;
          fill = fill || run.start < 0;
        }
        rest -= run.count;
      }
    }
    return fill ? select.fill : operands.srcs[0].AtBroadcast(from);
  });
}

Elements Compute(const network::GatherChannels& gather, const Operands& operands) {
  return ForEach(operands.dst, [&](const Dims& index) {
    Dims from = index;
    from[1] = gather.from[index[1]].channel;
    return operands.srcs[gather.from[index[1]].src].AtBroadcast(from);
  });
}

Elements Compute(const network::Gather& gather, const Operands& operands) {
  const Shaped &src = operands.srcs[0], &indices = operands.srcs[1];
  const size_t axis = gather.axis;
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < src.dims.size(); ++d) (d < axis ? outer : inner) *= src.dims[d];
  inner /= src.dims[axis];
  Elements dst;
  const double size = static_cast<double>(src.dims[axis]);
  for (int64_t o = 0; o < outer; ++o) {
    for (const double index : indices.elements) {
      // The engine refuses these; and what it computed may differ where this is close.
      if (!(std::trunc(index) >= -size && index < size)) {
        dst.insert(dst.end(), inner, std::numeric_limits<double>::quiet_NaN());
        continue;
      }
      const int64_t at = static_cast<int64_t>(index) + (index <= -1 ? src.dims[axis] : 0);
      const auto first = src.elements.begin() + (o * src.dims[axis] + at) * inner;
      dst.insert(dst.end(), first, first + inner);
    }
  }
  return dst;
}

}  // namespace tilewire::testing
