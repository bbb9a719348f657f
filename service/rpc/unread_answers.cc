// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/unread_answers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tilewire::service {

void UnreadAnswers::Shard::Unlink(UnreadAnswer* answer) {
  (answer->before_ != nullptr ? answer->before_->after_ : first) = answer->after_;
  (answer->after_ != nullptr ? answer->after_->before_ : last) = answer->before_;
}

UnreadAnswers::Shard& UnreadAnswers::ShardOf(const UnreadAnswer* answer) {
  return shards_[absl::HashOf(answer) % shards_.size()];
}

void UnreadAnswers::Add(UnreadAnswer* answer, int64_t bytes) {
  Shard& shard = ShardOf(answer);
  threading::MutexLock lock(&shard.mutex);
  answer->since_ = clock_->Now();  // with the lock held: a shard's are in the order of their times
  answer->bytes_ = bytes;
  answer->state_ = UnreadAnswer::State::kListed;
  answer->before_ = shard.last;
  answer->after_ = nullptr;
  (shard.last != nullptr ? shard.last->after_ : shard.first) = answer;
  shard.last = answer;
}

absl::Status UnreadAnswers::Remove(UnreadAnswer* answer, bool written) {
  using State = UnreadAnswer::State;
  Shard& shard = ShardOf(answer);
  State state;
  {
    threading::MutexLock lock(&shard.mutex);
    state = std::exchange(answer->state_, State::kOutside);
    if (state == State::kListed) shard.Unlink(answer);
    if (state == State::kEnded) ended_bytes_.fetch_sub(answer->bytes_);
  }
  if (written || state != State::kListed || absl::ToUnixNanos(clock_->Now()) < shutdown_ns_.load())
    return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the server ended before the answer of ",
                                             answer->bytes_, " bytes was read (--drain_timeout)"));
}

absl::Time UnreadAnswers::WaitsSince(Shard* shard) {
  threading::MutexLock lock(&shard->mutex);
  return shard->first == nullptr ? absl::InfiniteFuture() : shard->first->since_;
}

absl::Status UnreadAnswers::Reason(const UnreadAnswer& answer, bool is_short) const {
  const std::string unread =
      absl::StrFormat("the answer of %d bytes was not read within %.1f s", answer.bytes_,
                      absl::ToDoubleSeconds(clock_->Now() - answer.since_));
  if (!is_short) return absl::DeadlineExceededError(absl::StrCat(unread, " (--write_timeout)"));
  return absl::ResourceExhaustedError(
      absl::StrCat(unread, ", and others need the memory that it holds (--max_work_mb)"));
}

std::optional<int64_t> UnreadAnswers::EndFirst(Shard* shard, absl::Time since, bool is_short) {
  threading::MutexLock lock(&shard->mutex);
  UnreadAnswer* const answer = shard->first;
  if (answer == nullptr || answer->since_ > since) return std::nullopt;
  const absl::Status why = Reason(*answer, is_short);  // without memory for it nothing has changed
  shard->Unlink(answer);
  answer->state_ = UnreadAnswer::State::kEnded;
  ended_bytes_.fetch_add(answer->bytes_);
  answer->EndUnread(why);
  return answer->bytes_;
}

void UnreadAnswers::EndForMemory(int64_t missing, absl::Time since) {
  while (missing > 0) {
    Shard* longest = &shards_[0];
    for (Shard& shard : shards_) {
      if (WaitsSince(&shard) < WaitsSince(longest)) longest = &shard;
    }
    const std::optional<int64_t> ended = EndFirst(longest, since, /*is_short=*/true);
    if (!ended) return;
    missing -= *ended;
  }
}

absl::Time UnreadAnswers::EndLate() {
  const absl::Time now = clock_->Now();
  absl::Time next = absl::InfiniteFuture();
  for (Shard& shard : shards_) {
    while (EndFirst(&shard, now - timeout_, /*is_short=*/false).has_value()) {
    }
    next = std::min(next, WaitsSince(&shard) + timeout_);
  }
  // Answers ended earlier are about to give back their memory.
  const int64_t missing = admission_->TakeShortage() - ended_bytes_.load();
  if (missing > 0) EndForMemory(missing, now - kGrace);
  return next;
}

}  // namespace tilewire::service
