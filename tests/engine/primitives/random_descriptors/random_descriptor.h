// SPDX-License-Identifier: Apache-2.0
//
// A random descriptor of any primitive, with attributes. Most fit their primitive, a quarter are
// spoiled somewhere. Everything follows from the state of `random`.
#ifndef TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_RANDOM_DESCRIPTOR_H_
#define TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_RANDOM_DESCRIPTOR_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/primitives/primitives.h"
#include "tests/engine/primitives/random_descriptors/tensor_maker.h"
#include "tests/support/random_tensor.h"

namespace tilewire::testing {

struct RandomCase {
  OpDesc desc;
  Attributes attributes;
};

// Errors are those of MemoryDesc's factories and of PostOps::Append().
absl::StatusOr<RandomCase> RandomDescriptor(Random& random);

// A forward operation of one of the primitives that training runs, and attributes for any of them.
absl::StatusOr<OpDesc> RandomTrainedOperation(TensorMaker& make);
absl::StatusOr<Attributes> RandomAttributes(TensorMaker& make, const OpDesc& desc);

// Every tensor that a descriptor names; those it lacks are zero descriptors.
std::vector<const MemoryDesc*> TensorsOf(const OpDesc& desc);

// Bytes of all tensors. Strides of 0 and the layout `any` count as if they were dense, and sizes of
// 0 as 1: tensors without elements do not reach the engine from outside, and inside it their other
// sizes are those of real tensors.
double DescribedBytes(const OpDesc& desc);

// Roughly the operations of one execution: products, elements read and elements written.
double Operations(const OpDesc& desc);

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_RANDOM_DESCRIPTOR_H_
