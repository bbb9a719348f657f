// SPDX-License-Identifier: Apache-2.0
//
// Which answers are ended when their clients do not read them, and when: the time is the test's.
#include "service/rpc/unread_answers.h"

#include <gmock/gmock.h>

#include <deque>
#include <string>

namespace tilewire::service {
namespace {

using ::testing::HasSubstr;

class SetClock final : public Clock {
 public:
  absl::Time Now() const override { return now; }
  absl::Time now = absl::UnixEpoch();
};

// A call whose ticket holds its answer.
class HeldAnswer final : public UnreadAnswer {
 public:
  HeldAnswer(Admission* admission, int64_t bytes) : ticket(admission) {
    EXPECT_TRUE(ticket.Charge(bytes, "an answer").ok());
  }
  void EndUnread(const absl::Status& why) override { ended = why; }

  Ticket ticket;
  absl::Status ended;
};

class UnreadAnswersTest : public ::testing::Test {
 protected:
  // It waits for its reader from now on.
  HeldAnswer* Add(int64_t bytes) {
    answers_.emplace_back(&admission_, bytes);
    unread_.Add(&answers_.back(), bytes);
    return &answers_.back();
  }
  // gRPC is done with it.
  void GiveBack(HeldAnswer* answer) {
    unread_.Remove(answer).IgnoreError();
    answer->ticket.GiveBack(answer->ticket.bytes());
  }
  void Pass(absl::Duration time) {
    clock_.now += time;
    next_ = unread_.EndLate();
  }
  absl::Status Ask(int64_t bytes) {
    Ticket ticket(&admission_);
    return ticket.Charge(bytes, "a request");
  }

  static constexpr absl::Duration kTimeout = absl::Seconds(30);
  SetClock clock_;
  Admission admission_{1000};
  UnreadAnswers unread_{kTimeout, &admission_, &clock_};
  std::deque<HeldAnswer> answers_;
  absl::Time next_;
};

TEST_F(UnreadAnswersTest, AnAnswerEndsAfterTheTimeoutAndNotBefore) {
  const HeldAnswer* const first = Add(10);
  Pass(absl::Seconds(20));
  const HeldAnswer* const second = Add(10);
  EXPECT_EQ(next_, absl::UnixEpoch() + kTimeout);
  Pass(absl::Seconds(10));
  EXPECT_TRUE(absl::IsDeadlineExceeded(first->ended)) << first->ended;
  EXPECT_THAT(std::string(first->ended.message()),
              HasSubstr("10 bytes was not read within 30.0 s"));
  EXPECT_TRUE(second->ended.ok());
  EXPECT_EQ(next_, absl::UnixEpoch() + absl::Seconds(20) + kTimeout);
}

TEST_F(UnreadAnswersTest, AnAnswerThatWasReadIsNotEnded) {
  HeldAnswer* const first = Add(10);
  HeldAnswer* const read = Add(10);
  HeldAnswer* const last = Add(10);
  (void)unread_.Remove(read);
  (void)unread_.Remove(read);  // as what was never added
  Pass(2 * kTimeout);
  EXPECT_TRUE(read->ended.ok());
  EXPECT_FALSE(first->ended.ok());
  EXPECT_FALSE(last->ended.ok());
  EXPECT_EQ(next_, absl::InfiniteFuture());
}

TEST_F(UnreadAnswersTest, WithoutMemoryThoseThatWaitLongestEndUntilAQuarterIsFree) {
  std::deque<HeldAnswer*> answers;
  for (int i = 0; i < 10; ++i) {
    answers.push_back(Add(100));
    Pass(absl::Milliseconds(10));
  }
  EXPECT_TRUE(absl::IsUnavailable(Ask(50)));
  Pass(absl::Seconds(1));
  EXPECT_TRUE(answers[0]->ended.ok()) << "within the grace";
  EXPECT_TRUE(absl::IsUnavailable(Ask(50)));
  Pass(absl::Seconds(1));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(absl::IsResourceExhausted(answers[i]->ended), i < 3)
        << i << ": 250 bytes, rounded up";
  }
  EXPECT_THAT(std::string(answers[0]->ended.message()), HasSubstr("--max_work_mb"));
  EXPECT_TRUE(absl::IsUnavailable(Ask(50))) << "gRPC has not let go of them yet";
  Pass(absl::Milliseconds(5));
  EXPECT_TRUE(answers[3]->ended.ok()) << "enough is about to come back";
  for (int i = 0; i < 3; ++i) GiveBack(answers[i]);
  EXPECT_TRUE(Ask(300).ok());
}

TEST_F(UnreadAnswersTest, WithMemoryToSpareNothingEndsBeforeTheTimeout) {
  const HeldAnswer* const answer = Add(900);
  Pass(absl::Seconds(29));
  EXPECT_TRUE(Ask(100).ok());
  Pass(absl::Milliseconds(5));
  EXPECT_TRUE(answer->ended.ok());
}

TEST_F(UnreadAnswersTest, ALargeRequestGetsTheRoomThatItNeeds) {
  const HeldAnswer* const first = Add(300);
  const HeldAnswer* const second = Add(300);
  const HeldAnswer* const third = Add(300);
  EXPECT_TRUE(absl::IsUnavailable(Ask(650)));
  Pass(absl::Seconds(3));
  EXPECT_EQ(first->ended.ok() + second->ended.ok() + third->ended.ok(), 1);
}

// A plan for a new shape takes from what requests may hold; what they hold already stays.
TEST_F(UnreadAnswersTest, WhereTheBoundSinksBelowWhatIsHeldTheRestEnds) {
  const HeldAnswer* const first = Add(400);
  Pass(absl::Milliseconds(1));
  const HeldAnswer* const second = Add(500);
  admission_.SetMaxBytes(800);
  Pass(absl::Seconds(3));
  EXPECT_FALSE(first->ended.ok());
  EXPECT_TRUE(second->ended.ok());
}

TEST(TicketTest, AnAnswerTakesThePlaceOfWhatTheRequestHeld) {
  Admission admission(1000);
  Ticket ticket(&admission), other(&admission);
  ASSERT_TRUE(ticket.Charge(600, "a request").ok());
  ASSERT_TRUE(other.Charge(400, "a request").ok());
  EXPECT_TRUE(ticket.ChangeTo(600, "an answer").ok()) << "others hold the rest";
  EXPECT_TRUE(absl::IsUnavailable(ticket.ChangeTo(601, "an answer")));
  EXPECT_TRUE(ticket.ChangeTo(100, "an answer").ok());
  EXPECT_EQ(admission.bytes(), 500);
}

}  // namespace
}  // namespace tilewire::service
