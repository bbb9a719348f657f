// SPDX-License-Identifier: Apache-2.0
#include "service/schedule/dispatcher.h"

#include <algorithm>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "engine/threading/urgent_work.h"
#include "service/schedule/time_slice.h"

namespace tilewire::service {
namespace {

// How long the tokens must be expected to stay busy for the express thread to take short work. It
// is also how often it looks while they are.
constexpr absl::Duration kExpressPatience = absl::Microseconds(500);
// The same for work of unknown time, which may be long itself.
constexpr absl::Duration kUntimedPatience = absl::Milliseconds(20);

// Work that takes no longer runs on the thread that submits it, where one piece at a time comes, as
// from a single caller: waking another thread would take about as long as the work. Where several
// come at once, the thread that submits is needed to receive the others.
constexpr absl::Duration kShorterThanAWakeUp = absl::Microseconds(250);
// Pieces that found nothing that ran or waited, less three for each that did not; a single caller's
// next request may come before the last one's end was noted.
constexpr int kOneAtATime = 16;
constexpr int kMostCounted = 32;

// At least what one core does in a second: where nothing of a model has run, it tells which work is
// short. No other work is refused for such a guess, which therefore has a bound.
constexpr double kOperationsPerSecond = 5e9;
constexpr absl::Duration kMostGuessed = absl::Milliseconds(20);  // more than FairQueue::kShortWork

}  // namespace

Dispatcher::Dispatcher(threading::Arena* arena, const DispatcherOptions& options,
                       const Clock* clock)
    : arena_(arena),
      options_(options),
      clock_(clock == nullptr ? &real_clock_ : clock),
      threads_(arena->threads()),
      last_end_(clock_->Now()) {
  if (options_.express) {
    express_ = std::make_unique<threading::BackgroundThread>(
        "tw-express", [this] { RunBeside(/*untimed=*/false); });
    untimed_ = std::make_unique<threading::BackgroundThread>(
        "tw-untimed", [this] { RunBeside(/*untimed=*/true); });
  }
}

Dispatcher::~Dispatcher() {
  WaitIdle();
  {
    threading::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  express_ = nullptr;
  untimed_ = nullptr;
}

absl::Duration Dispatcher::MeasuredTime(const WorkTerms& terms) const {
  return terms.time_varies ? absl::ZeroDuration() : costs_.Expected(terms.cost_key);
}

absl::Duration Dispatcher::ExpectedTime(const Work& work) const {
  const WorkTerms& terms = work.terms();
  const absl::Duration measured = MeasuredTime(terms);
  if (measured > absl::ZeroDuration() || terms.time_varies) return measured;
  const int64_t operations = work.Operations().value_or(0);
  const absl::Duration likely = costs_.AtItsRate(terms.model, operations);
  if (likely > absl::ZeroDuration()) return likely;
  return std::min(absl::Seconds(operations / kOperationsPerSecond), kMostGuessed);
}

absl::Status Dispatcher::Submit(Work* work) {
  const WorkTerms& terms = work->terms();
  bool new_token = false;
  Taken here;
  {
    threading::MutexLock lock(&mutex_);
    const absl::Time now = clock_->Now();
    const absl::Duration measured = MeasuredTime(terms);
    const absl::Duration expected = ExpectedTime(*work);
    const absl::Status refused = Refuse(work, now, expected);
    if (!refused.ok()) return refused;
    if (spare_.empty()) spare_.emplace_front();
    spare_.front().model.reserve(terms.model.size());  // so that Start() allocates nothing for it
    const bool alone = queue_.size() == 0 && running_.empty();
    if (alone) last_end_ = now;
    came_alone_ = std::clamp(came_alone_ + (alone ? 1 : -3), 0, kMostCounted);
    if (terms.work_class == WorkClass::kBackground) {
      background_.push_back(work);
    } else {
      queue_.Push(work, expected, std::min(terms.deadline, now + options_.max_wait));
    }
    new_token = !AllBusy();
    if (new_token) ++tokens_;
    if (queue_.short_in_order() > 0 && AllBusy() && BusyFor(now) >= kExpressPatience)
      threading::UrgentWork::Expect();
    if (new_token && RunsAtOnce(*work, measured)) here = Take(/*with_background=*/false);
  }
  if (here.work != nullptr) {
    RunHere(here);
  } else {
    StartTokens(new_token ? 1 : 0);
  }
  return absl::OkStatus();
}

bool Dispatcher::RunsAtOnce(const Work& work, absl::Duration measured) const {
  const bool shorter = measured > absl::ZeroDuration() && measured <= kShorterThanAWakeUp;
  return options_.express && came_alone_ >= kOneAtATime && shorter && queue_.size() == 1 &&
         work.terms().may_run_serially && work.Operations().has_value();
}

// The token goes on in the arena where other work has come meanwhile.
void Dispatcher::RunHere(const Taken& taken) {
  taken.work->Run(Lane::kExpress);
  int tokens = 0;
  {
    threading::MutexLock lock(&mutex_);
    tokens = EndRun(taken, Lane::kExpress);
    if (queue_.size() > 0 || !background_.empty()) {
      ++tokens;
    } else {
      --tokens_;
    }
  }
  StartTokens(tokens);
}

bool Dispatcher::Withdraw(Work* work) {
  threading::MutexLock lock(&mutex_);
  if (work->terms().work_class == WorkClass::kForeground) return queue_.Remove(work);
  const auto found = std::find(background_.begin(), background_.end(), work);
  if (found == background_.end()) return false;
  background_.erase(found);
  return true;
}

absl::Time Dispatcher::TakeExpired(absl::Time now, std::vector<Work*>* expired) {
  *expired = queue_.TakeExpired(now);
  absl::Time next = queue_.NextExpiry();
  for (auto it = background_.begin(); it != background_.end();) {
    const absl::Time deadline = (*it)->terms().deadline;
    next = deadline <= now ? next : std::min(next, deadline);
    if (deadline <= now) expired->push_back(*it);
    it = deadline <= now ? background_.erase(it) : std::next(it);
  }
  return next;
}

absl::Time Dispatcher::EndExpired() {
  const absl::Time now = clock_->Now();
  std::vector<Work*> expired;
  absl::Time next;
  int new_tokens = 0;
  {
    threading::MutexLock lock(&mutex_);
    next = TakeExpired(now, &expired);
    new_tokens = LacksToken() ? 1 : 0;
    tokens_ += new_tokens;
  }
  EndTooLate(expired, now);
  StartTokens(new_tokens);
  return next;
}

void Dispatcher::StartTokens(int count) {
  int started = 0;
  try {
    for (; started < count; ++started) arena_->Enqueue([this] { RunToken(); });
  } catch (const std::bad_alloc&) {
    threading::MutexLock lock(&mutex_);
    tokens_ -= count - started;
  }
}

bool Dispatcher::LacksToken() const {
  return tokens_ == 0 && (queue_.in_order() > 0 || (!background_.empty() && !background_runs_));
}

bool Dispatcher::WaitsForAnother(const Work& work) const {
  return preparing_.contains(work.terms().cost_key) && !work.Operations().has_value();
}

int Dispatcher::EndPreparation(uint64_t cost_key) {
  preparing_.erase(cost_key);
  const auto unparked = queue_.Unpark(cost_key);
  const int tokens = static_cast<int>(std::min<int64_t>(unparked, threads_ - tokens_));
  tokens_ += tokens;
  return tokens;
}

void Dispatcher::Prepared(Work* work) {
  if (!work->prepares_) return;
  work->prepares_ = false;
  int tokens = 0;
  {
    threading::MutexLock lock(&mutex_);
    tokens = EndPreparation(work->terms().cost_key);
  }
  StartTokens(tokens);
}

Dispatcher::Taken Dispatcher::Start(Work* work) {
  const WorkTerms& terms = work->terms();
  const bool background = terms.work_class == WorkClass::kBackground;
  background_runs_ |= background;
  if (spare_.empty()) spare_.emplace_front();
  Running& run = spare_.front();
  run.model = terms.model;  // into the memory of past ones
  const std::optional<int64_t> operations = work->Operations();
  run = {.model = std::move(run.model),
         .cost_key = terms.cost_key,
         .start = clock_->Now(),
         .expected = MeasuredTime(terms),
         .charged = work->expected_,
         .operations = operations.value_or(0),
         .background = background,
         .time_varies = terms.time_varies};
  running_.splice(running_.begin(), spare_, spare_.begin());
  work->prepares_ = work->makes_ = terms.cost_key != 0 && !operations.has_value();
  if (work->prepares_) preparing_[terms.cost_key] = &running_.front();
  return {work, running_.begin()};
}

Work* Dispatcher::PopReady(Work* (FairQueue::*pop)()) {
  Work* work = (queue_.*pop)();
  while (work != nullptr && WaitsForAnother(*work)) {
    queue_.Park(work);
    work = (queue_.*pop)();
  }
  return work;
}

Dispatcher::Taken Dispatcher::Take(bool with_background) {
  Work* work = PopReady(&FairQueue::Pop);
  const bool may_begin = with_background && !background_runs_ && turns_waited_for_ == 0;
  if (work == nullptr && may_begin && !background_.empty()) {
    work = background_.front();
    background_.pop_front();
  }
  return work == nullptr ? Taken{} : Start(work);
}

int Dispatcher::EndRun(const Taken& taken, Lane lane) {
  const Running& ran = *taken.place;
  last_end_ = clock_->Now();
  const absl::Duration time = last_end_ - ran.start;
  if (ran.background) {
    background_runs_ = false;
  } else {
    queue_.Charge(ran.model, time, ran.charged);
    const bool is_first = ran.expected == absl::ZeroDuration();
    if ((lane == Lane::kArena || is_first) && !ran.time_varies) {
      costs_.Record(ran.cost_key, time);
      costs_.RecordRate(ran.model, ran.operations, time);
    }
  }
  // Where it failed, the next one tries.
  const auto prepared = preparing_.find(ran.cost_key);
  const bool failed = prepared != preparing_.end() && prepared->second == &ran;
  const int tokens = failed ? EndPreparation(ran.cost_key) : 0;
  spare_.splice(spare_.begin(), running_, taken.place);
  return tokens;
}

// The end of one piece and the begin of the next are one visit to the lock.
void Dispatcher::RunToken() {
  Taken taken;
  std::vector<Work*> expired;
  while (true) {
    const absl::Time now = clock_->Now();
    int new_tokens = 0;
    {
      threading::MutexLock lock(&mutex_);
      if (taken.work != nullptr) new_tokens = EndRun(taken, Lane::kArena);
      TakeExpired(now, &expired);
      taken = Take(/*with_background=*/true);
      // The token ends with the last of what it ends: WaitIdle() counts tokens.
      if (taken.work == nullptr && expired.empty() && new_tokens == 0) {
        --tokens_;
        return;
      }
    }
    StartTokens(new_tokens);
    EndTooLate(expired, now);
    expired.clear();
    if (taken.work != nullptr) taken.work->Run(Lane::kArena);  // may destroy the work
  }
}

void Dispatcher::RunWaiting() {
  Taken taken;
  while (true) {
    int new_tokens = 0;
    {
      threading::MutexLock lock(&mutex_);
      if (taken.work != nullptr) new_tokens = EndRun(taken, Lane::kArena);
      taken = Take(/*with_background=*/false);
    }
    StartTokens(new_tokens);
    if (taken.work == nullptr) return;
    taken.work->Run(Lane::kArena);
  }
}

void Dispatcher::BeginBackground(absl::Duration longest) {
  threading::MutexLock lock(&mutex_);
  ++turns_waited_for_;
  const auto free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !background_runs_; };
  mutex_.Await(absl::Condition(&free));
  background_runs_ = true;
  --turns_waited_for_;
  const auto quiet = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return queue_.size() == 0; };
  mutex_.AwaitWithTimeout(absl::Condition(&quiet), longest);
}

bool Dispatcher::TurnAwaited() const {
  threading::MutexLock lock(&mutex_);
  return turns_waited_for_ > 0;
}

void Dispatcher::AwaitNothingWaits(absl::Duration longest) {
  threading::MutexLock lock(&mutex_);
  const auto quiet = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return queue_.size() == 0; };
  mutex_.AwaitWithTimeout(absl::Condition(&quiet), longest);
}

void Dispatcher::EndBackground() {
  bool new_token = false;
  {
    threading::MutexLock lock(&mutex_);
    background_runs_ = false;
    new_token = !background_.empty() && !AllBusy();
    if (new_token) ++tokens_;
  }
  StartTokens(new_token ? 1 : 0);
}

// Work of unknown length, or that has already taken longer than expected, is taken to last as long
// again as it has.
absl::Duration Dispatcher::BusyFor(absl::Time now) const {
  absl::Duration least = absl::InfiniteDuration();
  int with_token = 0;
  for (const Running& running : running_) {
    if (running.beside) continue;
    ++with_token;
    const absl::Duration elapsed = now - running.start;
    const absl::Duration left = running.expected - elapsed;
    least = std::min(least, left > absl::ZeroDuration() ? left : elapsed);
  }
  // The others are about to take work.
  if (with_token < tokens_) return absl::ZeroDuration();
  return least;
}

// Work that would take longer than its wait for a token gains nothing beside the tokens' work: it
// would only overtake what came before it.
Dispatcher::Taken Dispatcher::TakeShort() {
  const absl::Duration wait = BusyFor(clock_->Now());
  if (wait < kExpressPatience) return {};
  Work* work = queue_.PopShort(wait);
  return work == nullptr ? Taken{} : Start(work);
}

Dispatcher::Taken Dispatcher::TakeUntimed() {
  if (BusyFor(clock_->Now()) < kUntimedPatience) return {};
  Work* work = PopReady(&FairQueue::PopUntimed);
  return work == nullptr ? Taken{} : Start(work);
}

void Dispatcher::RunBeside(bool untimed) {
  const absl::Duration patience = untimed ? kUntimedPatience : kExpressPatience;
  if (untimed) AskForOrdinarySlices();  // its work may take long
  const auto wanted = [this, untimed]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const int64_t waiting = untimed ? queue_.untimed_in_order() : queue_.short_in_order();
    return stopping_ || (waiting > 0 && AllBusy());
  };
  const auto stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; };
  while (true) {
    Taken taken;
    {
      threading::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&wanted));
      if (stopping_) return;
      taken = untimed ? TakeUntimed() : TakeShort();
      if (taken.work == nullptr) {
        mutex_.AwaitWithTimeout(absl::Condition(&stopping), patience);
        continue;
      }
      taken.place->beside = true;
    }
    {
      std::optional<threading::UrgentWork> urgent;
      if (!untimed) urgent.emplace();
      taken.work->Run(Lane::kExpress);
      if (!untimed) threading::UrgentWork::Expect();
    }
    int new_tokens = 0;
    {
      threading::MutexLock lock(&mutex_);
      new_tokens = EndRun(taken, Lane::kExpress);
    }
    StartTokens(new_tokens);
  }
}

bool Dispatcher::Stuck(absl::Duration limit) const {
  threading::MutexLock lock(&mutex_);
  return queue_.size() > 0 && clock_->Now() - last_end_ > limit;
}

absl::Time Dispatcher::IdleSince() const {
  threading::MutexLock lock(&mutex_);
  return Idle() ? last_end_ : absl::InfiniteFuture();
}

void Dispatcher::AwaitIdle(absl::Duration longest) {
  threading::MutexLock lock(&mutex_);
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return Idle(); };
  mutex_.AwaitWithTimeout(absl::Condition(&idle), longest);
}

bool Dispatcher::HasRun(uint64_t cost_key) const {
  threading::MutexLock lock(&mutex_);
  return costs_.Expected(cost_key) > absl::ZeroDuration();
}

DispatcherLoad Dispatcher::Load() const {
  DispatcherLoad load;
  threading::MutexLock lock(&mutex_);
  queue_.VisitWaiting([&](const std::string& model, int64_t waiting) {
    load.models[model] = {.waiting = waiting,
                          .predicted_wait = PredictedWait(model, std::numeric_limits<int>::min())};
  });
  for (const Running& running : running_) {
    ++load.models[running.model].running;
    load.busy += running.beside ? 0 : 1;
  }
  return load;
}

void Dispatcher::WaitIdle() {
  threading::MutexLock lock(&mutex_);
  const auto idle = [this]()
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return tokens_ == 0 && Idle(); };
  mutex_.Await(absl::Condition(&idle));
}

}  // namespace tilewire::service
