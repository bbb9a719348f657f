// SPDX-License-Identifier: Apache-2.0
#include "client/load.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace tilewire::client {
namespace {

constexpr double kMostMessageBytes = 2e9;  // of protobuf

// What the callers of one load share. Thread-safe.
class LoadState {
 public:
  LoadState(const LoadOptions& options, absl::Time start)
      : options_(options), start_(start), expected_(options.inputs.size()) {}

  // The number of the next request; -1 when the load is over.
  int64_t Next() {
    absl::MutexLock lock(&mutex_);
    const bool over = options_.requests > 0 ? issued_ >= options_.requests
                                            : absl::Now() - start_ >= options_.duration;
    return over || stopped_ ? -1 : issued_++;
  }

  // A server that refuses everything is not asked a million times.
  void Fail(const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    ++report_.errors;
    if (report_.first_error.empty()) report_.first_error = status.ToString();
    if (report_.errors >= kMaxErrors && report_.answered == 0) stopped_ = true;
  }

  void Answer(size_t input, absl::Duration latency, Result result) {
    absl::MutexLock lock(&mutex_);
    ++report_.answered;
    report_.latencies.Add(latency);
    if (!expected_[input]) expected_[input] = std::make_shared<const Result>(std::move(result));
  }

  void Mismatch(std::string what) {
    absl::MutexLock lock(&mutex_);
    ++report_.mismatches;
    if (report_.first_error.empty()) report_.first_error = std::move(what);
  }

  std::shared_ptr<const Result> Expected(size_t input) {
    absl::MutexLock lock(&mutex_);
    return expected_[input];
  }

  void Leave() {
    absl::MutexLock lock(&mutex_);
    ++left_;
  }

  // True once all callers left; waits for it a moment.
  bool Finished() {
    absl::MutexLock lock(&mutex_);
    const auto all_left = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return left_ == options_.concurrency;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&all_left), absl::Milliseconds(100));
  }

  // With the percentiles only at the end: a live line does not need them.
  LoadReport Report(bool final) {
    absl::MutexLock lock(&mutex_);
    LoadReport report;
    if (final) report.latencies = report_.latencies;
    report.answered = report_.answered;
    report.errors = report_.errors;
    report.mismatches = report_.mismatches;
    report.first_error = report_.first_error;
    report.elapsed = absl::Now() - start_;
    return report;
  }

 private:
  static constexpr int64_t kMaxErrors = 100;

  const LoadOptions& options_;
  const absl::Time start_;
  absl::Mutex mutex_;
  std::vector<std::shared_ptr<const Result>> expected_
      ABSL_GUARDED_BY(mutex_);  // first answer, per input
  LoadReport report_ ABSL_GUARDED_BY(mutex_);
  int64_t issued_ ABSL_GUARDED_BY(mutex_) = 0;
  int left_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

// Empty if both are the same; else what differs.
std::string Difference(const Result& expected, const Result& result) {
  if (expected.outputs.size() != result.outputs.size()) return "another number of outputs";
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    const Tensor &a = expected.outputs[i], &b = result.outputs[i];
    if (a.name != b.name || a.shape != b.shape || a.bytes != b.bytes) {
      return absl::StrCat("output '", b.name, "' differs from the first answer to the same input");
    }
  }
  return "";
}

void CallUntilOver(Client* client, const LoadOptions& options, LoadState* state) {
  for (int64_t number = state->Next(); number >= 0; number = state->Next()) {
    const size_t input = number % options.inputs.size();
    const absl::Time sent = absl::Now();
    absl::StatusOr<Result> result =
        client->Infer(options.model, options.inputs[input], options.infer);
    const absl::Duration latency = absl::Now() - sent;
    if (!result.ok()) {
      state->Fail(result.status());
      continue;
    }
    const std::shared_ptr<const Result> expected = state->Expected(input);
    if (expected == nullptr) {
      state->Answer(input, latency, *result);
      // Two callers may both hold a first answer: the one that was kept judges the other.
      if (std::string what = Difference(*state->Expected(input), *result); !what.empty())
        state->Mismatch(what);
      continue;
    }
    if (std::string what = Difference(*expected, *result); !what.empty()) state->Mismatch(what);
    state->Answer(input, latency, {});
  }
  state->Leave();
}

int64_t SizeOfDatatype(absl::string_view datatype) {
  static constexpr std::pair<const char*, int> kSizes[] = {
      {"BOOL", 1}, {"UINT8", 1}, {"INT8", 1},  {"UINT16", 2}, {"INT16", 2},
      {"FP16", 2}, {"BF16", 2},  {"FP32", 4},  {"INT32", 4},  {"UINT32", 4},
      {"FP64", 8}, {"INT64", 8}, {"UINT64", 8}};
  for (const auto& [name, size] : kSizes) {
    if (datatype == name) return size;
  }
  return 0;
}

}  // namespace

absl::StatusOr<LoadReport> RunLoad(const ClientFactory& connect, const LoadOptions& options,
                                   const LoadProgress& progress) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < options.concurrency; ++i) {
    absl::StatusOr<std::unique_ptr<Client>> client = connect();
    if (!client.ok()) return client.status();
    clients.push_back(*std::move(client));
  }
  LoadState state(options, absl::Now());
  std::vector<std::thread> callers;
  for (const auto& client : clients)
    callers.emplace_back(CallUntilOver, client.get(), std::cref(options), &state);
  while (!state.Finished()) progress(state.Report(/*final=*/false));
  for (std::thread& caller : callers) caller.join();
  return state.Report(/*final=*/true);
}

absl::StatusOr<Tensor> RandomInput(const TensorMetadata& metadata, int64_t batch, int64_t free_size,
                                   Layout layout, uint64_t seed) {
  const int64_t size = SizeOfDatatype(metadata.datatype);
  if (size == 0) {
    return absl::UnimplementedError(absl::StrCat("no random input of datatype ", metadata.datatype,
                                                 " for '", metadata.name, "'"));
  }
  Tensor tensor;
  tensor.name = metadata.name;
  tensor.datatype = metadata.datatype;
  double bytes = size;
  tensor.shape = ClosedShape(metadata, batch, free_size);
  for (int64_t dim : tensor.shape) bytes *= dim;
  if (bytes > kMostMessageBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("input '%s' of %d rows takes %.0f MB; a message holds 2 GB at most",
                        metadata.name, batch, bytes / 1e6));
  }
  const auto count = static_cast<int64_t>(bytes) / size;
  if (layout == Layout::kNhwc && tensor.shape.size() >= 3) {
    tensor.layout = layout;
    std::rotate(tensor.shape.begin() + 1, tensor.shape.begin() + 2, tensor.shape.end());
  }
  tensor.bytes.resize(count * size);
  uint64_t state = seed * 2 + 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX
    if (metadata.datatype == "FP32" || metadata.datatype == "FP64") {
      const float value = static_cast<float>(state >> 40) * 0x1p-24f;
      const double wide = value;
      std::memcpy(&tensor.bytes[i * size], size == 4 ? static_cast<const void*>(&value) : &wide,
                  size);
    } else {
      tensor.bytes[i * size] =
          static_cast<char>((state >> 60) & 1);  // 0 or 1: a value of every type
    }
  }
  return tensor;
}

}  // namespace tilewire::client
