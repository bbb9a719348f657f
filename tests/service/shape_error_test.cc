// SPDX-License-Identifier: Apache-2.0
#include "service/wire/shape_error.h"

#include "tests/support/fake_engine.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

using tilewire::testing::IsOk;
using tilewire::testing::StatusIs;

class ShapeErrorTest : public ::testing::Test {
 protected:
  std::vector<InputTensor> Batches(int64_t image, int64_t row) {
    std::vector<InputTensor> inputs(2);
    inputs[0].dims = {image, 2, 3, 4};
    inputs[1].dims = {row, 5};
    return inputs;
  }

  const std::function<void()> nothing_;
  const tilewire::testing::FakeModel model_{&nothing_};
};

TEST_F(ShapeErrorTest, AnErrorInsideTheModelBeginsWithBatchesThatDiffer) {
  const absl::Status error = absl::InvalidArgumentError("node 'c': shapes do not fit");
  EXPECT_THAT(WithBatches(error, model_.signature(), Batches(2, 3)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "inputs 'image' and 'row' have batches of 2 and 3: node 'c'"));
  EXPECT_EQ(WithBatches(error, model_.signature(), Batches(3, 3)), error);
  for (const absl::Status& other :
       {absl::CancelledError("cancelled"), absl::InvalidArgumentError("node 'r': a step of 0")}) {
    EXPECT_EQ(WithBatches(other, model_.signature(), Batches(2, 3)), other);
  }
}

TEST_F(ShapeErrorTest, ABatchAboveTheBoundIsRefused) {
  EXPECT_THAT(CheckBatch(model_.signature(), Batches(4, 4), 4), IsOk());
  EXPECT_THAT(CheckBatch(model_.signature(), Batches(1000, 1000), 0), IsOk());
  EXPECT_THAT(CheckBatch(model_.signature(), Batches(1, 5), 4),
              StatusIs(absl::StatusCode::kInvalidArgument, "'row': a batch of 5"));
}

}  // namespace
}  // namespace tilewire::service
