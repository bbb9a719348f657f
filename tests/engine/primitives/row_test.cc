// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {

Bytes ExecuteAllWays(const Created& primitive, const Inputs& inputs, int output,
                     const Bytes& before) {
  using threading::Team;
  static threading::Arena* const two = new threading::Arena(2);
  static threading::Arena* const seven = new threading::Arena(7);
  const Bytes serial = Execute(*primitive.library, inputs, output, before, Team::Serial());
  EXPECT_TRUE(serial == Execute(*primitive.library, inputs, output, before, Team(two)))
      << primitive.library->name() << ": other bytes on two threads";
  EXPECT_TRUE(serial == Execute(*primitive.user, inputs, output, before, Team(seven)))
      << primitive.user->name() << ": other bytes on seven threads";
  EXPECT_TRUE(serial == Execute(*primitive.user, inputs, output, before, Team::Serial()))
      << primitive.user->name() << ": other bytes in user mode";
  return serial;
}

std::vector<std::vector<float>> WrittenWhereverItBegins(const Created& primitive, ExecuteArgs args,
                                                        int output, const MemoryDesc& md) {
  std::vector<std::vector<float>> found;
  for (size_t offset : {0, 16}) {
    auto lines = AlignedBuffer::Allocate(md.SizeBytes() + offset);
    EXPECT_TRUE(lines.ok());
    if (!lines.ok()) continue;
    args.Set(output, lines->data() + offset);
    EXPECT_THAT(primitive.library->Execute(args, threading::Team::Serial()), IsOk());
    const auto* const begin = reinterpret_cast<const uint8_t*>(lines->data() + offset);
    found.push_back(Unpack<float>(md, Bytes(begin, begin + md.SizeBytes())));
  }
  return found;
}

}  // namespace tilewire::testing
