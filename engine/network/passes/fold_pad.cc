// SPDX-License-Identifier: Apache-2.0
//
// The window of a convolution or pooling can take over the elements that a Pad adds before and
// after the spatial dimensions, if they are the ones that the window assumes: zeros, or minus
// infinity for a maximum.
#include <cmath>

#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

struct Padding {
  Dims left, right;
};

// The padding of the spatial dimensions; nullopt for a select that does anything else.
std::optional<Padding> PaddingOf(const Select& select, const Dims& src) {
  Padding padding;
  for (size_t d = 0; d < src.size(); ++d) {
    int64_t sides[2] = {0, 0};
    bool whole = select.from[d].empty();
    for (const IndexRun& run : select.from[d]) {
      if (run.start < 0) {
        sides[whole ? 1 : 0] += run.count;
      } else if (whole || run != IndexRun{0, 1, src[d]}) {
        return std::nullopt;
      } else {
        whole = true;
      }
    }
    if (!whole || (d < 2 && (sides[0] > 0 || sides[1] > 0))) return std::nullopt;
    if (d < 2) continue;
    padding.left.push_back(sides[0]);
    padding.right.push_back(sides[1]);
  }
  return padding;
}

void Add(const Padding& padding, Dims* left, Dims* right) {
  for (size_t i = 0; i < left->size(); ++i) {
    (*left)[i] += padding.left[i];
    (*right)[i] += padding.right[i];
  }
}

bool IsUnpadded(const Pooling& pooling) {
  for (size_t i = 0; i < pooling.kernel.size(); ++i) {
    if (pooling.padding_left[i] != 0 || pooling.padding_right[i] != 0) return false;
  }
  return true;
}

// A window must see at least one element of the source.
bool FitsWindow(const Pooling& pooling) {
  for (size_t i = 0; i < pooling.kernel.size(); ++i) {
    if (pooling.padding_left[i] >= pooling.kernel[i] ||
        pooling.padding_right[i] >= pooling.kernel[i])
      return false;
  }
  return true;
}

// The elements of the Pad counted; those of the pooling's own padding count too only if it says so.
bool Absorb(const Padding& padding, float fill, Pooling* pooling) {
  Pooling wider = *pooling;
  if (wider.algorithm == Pooling::Algorithm::kMax) {
    if (!(std::isinf(fill) && fill < 0)) return false;
  } else {
    if (fill != 0) return false;
    if (wider.algorithm == Pooling::Algorithm::kAvgExcludePadding && !IsUnpadded(wider))
      return false;
    wider.algorithm = Pooling::Algorithm::kAvgIncludePadding;
  }
  Add(padding, &wider.padding_left, &wider.padding_right);
  if (!FitsWindow(wider)) return false;
  *pooling = wider;
  return true;
}

template <typename AnyConvolution>
bool AbsorbZeros(const Padding& padding, float fill, AnyConvolution* convolution) {
  if (fill == 0) Add(padding, &convolution->padding_left, &convolution->padding_right);
  return fill == 0;
}

}  // namespace

void FoldPad(Network* network) {
  ForEachOperation(network, [](Editor& editor, int i) {
    auto* const pooling = editor.As<Pooling>(i);
    auto* const convolution = editor.As<Convolution>(i);
    auto* const computed = editor.As<ComputedConvolution>(i);
    if (convolution == nullptr && computed == nullptr && pooling == nullptr) return;
    const int before = editor.producer(editor.operation(i).srcs[0]);
    const Select* select = editor.As<Select>(before);
    if (select == nullptr) return;
    const ValueId src = editor.operation(before).srcs[0];
    const std::optional<Padding> padding = PaddingOf(*select, editor.dims(src));
    if (!padding) return;
    const bool absorbs = pooling != nullptr       ? Absorb(*padding, select->fill, pooling)
                         : convolution != nullptr ? AbsorbZeros(*padding, select->fill, convolution)
                                                  : AbsorbZeros(*padding, select->fill, computed);
    if (!absorbs) return;
    editor.SetSource(i, 0, src);
  });
}

}  // namespace tilewire::network
