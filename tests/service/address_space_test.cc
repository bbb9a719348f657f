// SPDX-License-Identifier: Apache-2.0
#include "service/address_space.h"

#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace tilewire::service {
namespace {

int Heaps() {
  char* text = nullptr;
  size_t bytes = 0;
  FILE* stream = open_memstream(&text, &bytes);
  malloc_info(0, stream);
  fclose(stream);
  const std::string info(text, bytes);
  free(text);
  int heaps = 0;
  for (size_t at = info.find("<heap "); at != std::string::npos; at = info.find("<heap ", at + 1))
    ++heaps;
  return heaps;
}

// Threads that allocate at the same time, so that none takes the heap of one that has ended.
void AllocateInThreads(int count) {
  std::latch all(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&all] {
      void* volatile block = malloc(1000);
      all.arrive_and_wait();
      free(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// In a process of its own: other tests of this binary have started threads, which keep their heaps.
TEST(AddressSpaceDeathTest, ThreadsShareAsManyHeapsAsThereMayBe) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's allocator has no heaps";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto heaps_of_six_threads = [] {
    BoundHeaps(2);
    AllocateInThreads(6);
    std::exit(Heaps());
  };
  EXPECT_EXIT(heaps_of_six_threads(), testing::ExitedWithCode(2), "");
}

}  // namespace
}  // namespace tilewire::service
