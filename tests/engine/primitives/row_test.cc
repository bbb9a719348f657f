// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {

Bytes ExecuteAllWays(const Created& primitive, const Inputs& inputs, int output,
                     const Bytes& before) {
  using threading::Team;
  static threading::Arena* const arena = new threading::Arena(2);
  const Bytes serial = Execute(*primitive.library, inputs, output, before, Team::Serial());
  for (const auto& one : {primitive.library, primitive.user}) {
    EXPECT_TRUE(serial == Execute(*one, inputs, output, before, Team(arena)))
        << one->name() << ": other bytes on two threads";
  }
  EXPECT_TRUE(serial == Execute(*primitive.user, inputs, output, before, Team::Serial()))
      << primitive.user->name() << ": other bytes in user mode";
  return serial;
}

}  // namespace tilewire::testing
