// SPDX-License-Identifier: Apache-2.0
//
// Random sizes, types and layouts of single tensors: mostly small and sensible, sometimes empty,
// huge, negative, overlapping or wrong. Everything follows from the state of `random`.
#ifndef TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_RANDOM_LAYOUT_H_
#define TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_RANDOM_LAYOUT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "engine/memory/memory_desc.h"
#include "tests/support/random_choice.h"
#include "tests/support/random_tensor.h"

namespace tilewire::testing {

// A size that a tensor in memory may have: around 1, around vectors and blocks, rarely 0 or large.
int64_t RandomSize(Random& random);
Dims RandomSizes(Random& random, int rank);

// A number that no tensor should have: 0, negative, around 2^31, 2^40, and where sums overflow.
int64_t RandomExtreme(Random& random);

DataType RandomType(Random& random);

// Which layout a tensor gets; one choice can be used for several tensors of a case.
enum class LayoutChoice { kAny, kPlain, kTag, kPattern, kStrides, kPart };
LayoutChoice RandomLayoutChoice(Random& random);

// A layout that fits the rank, for the choice. `seed` decides which: equal seeds give tensors of
// one rank the same tag, pattern or order of strides.
// Errors are those of MemoryDesc's factories.
absl::StatusOr<MemoryDesc> RandomLayout(const Dims& dims, DataType type, LayoutChoice choice,
                                        uint64_t seed);

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_RANDOM_LAYOUT_H_
