// SPDX-License-Identifier: Apache-2.0
//
// Work that is submitted while memory runs out, at each allocation in turn: it is either refused by
// std::bad_alloc and left alone, or runs; what comes after it runs.
#include <cstdlib>
#include <new>

#include "tests/service/schedule/dispatcher_fixture.h"

namespace {

// Allocations on this thread that still succeed; -1: all.
thread_local int allocations_left = -1;

}  // namespace

void* operator new(size_t size) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace tilewire::service {
namespace {

constexpr int kMostAllocations = 40;

class DispatcherMemoryTest : public DispatcherTest {
 protected:
  // False if it throws.
  bool Submits(RecordedWork* work, int allocations) {
    allocations_left = allocations;
    bool submitted = true;
    try {
      EXPECT_TRUE(dispatcher_->Submit(work).ok());
    } catch (const std::bad_alloc&) {
      submitted = false;
    }
    allocations_left = -1;
    return submitted;
  }
  // Returns how many of all were submitted.
  int SubmitWithEachNumberOfAllocations(const WorkTerms& terms,
                                        const std::function<void()>& first) {
    int count = 0;
    for (int allocations = 0; allocations < kMostAllocations; ++allocations) {
      first();
      RecordedWork *work = Make(terms), *next = Make(terms);
      const bool submitted = Submits(work, allocations);
      EXPECT_FALSE(!submitted && dispatcher_->Withdraw(work)) << allocations << " left it queued";
      dispatcher_->EndExpired();  // as the server's timer does
      if (submitted) work->Wait();
      EXPECT_TRUE(dispatcher_->Submit(next).ok());
      next->Wait();
      dispatcher_->WaitIdle();
      EXPECT_EQ(work->ran(), submitted) << allocations;
      count += submitted ? 1 : 0;
    }
    return count;
  }

  const WorkTerms terms_ = TermsOf("a name that is longer than a string holds by itself");
};

TEST_F(DispatcherMemoryTest, WorkIsLeftAloneOrRunsWhereMemoryRunsOutWhileItIsSubmitted) {
  const int submitted = SubmitWithEachNumberOfAllocations(terms_, [this] { Start(kNoExpress); });
  EXPECT_GT(submitted, 0);
  EXPECT_LT(submitted, kMostAllocations) << "nothing allocates: this test tests nothing";
}

TEST_F(DispatcherMemoryTest, WorkOfAModelThatHasRunTakesNoMemoryToSubmitButItsToken) {
  Start(kNoExpress);
  Learn(terms_, absl::Milliseconds(1));
  EXPECT_EQ(SubmitWithEachNumberOfAllocations(terms_, [] {}), kMostAllocations);
}

TEST_F(DispatcherMemoryTest, WorkThatRunsAtOnceTakesNoMemoryToSubmit) {
  Start();
  Learn(terms_, absl::Microseconds(50), /*runs=*/40);
  RecordedWork* work = Make(terms_);
  EXPECT_TRUE(Submits(work, 0));
  EXPECT_TRUE(work->ran()) << "on this thread";
}

TEST_F(DispatcherMemoryTest, BackgroundWorkIsLeftAloneOrRuns) {
  WorkTerms terms = terms_;
  terms.work_class = WorkClass::kBackground;
  EXPECT_GT(SubmitWithEachNumberOfAllocations(terms, [this] { Start(kNoExpress); }), 0);
}

}  // namespace
}  // namespace tilewire::service
