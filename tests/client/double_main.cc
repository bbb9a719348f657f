// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for an Open Inference server, for what is measured and shown of `tilewire load`: it
// serves one model, `tiny`, looks at nothing and answers the same bytes each time, from one thread.
// On demand it takes a known time for each request, one after the other, so that its capacity is
// known; it pauses; it answers every so many wrongly; its speed is noisy (noisy_service.h).
//
//   double --port=0 --service_us=5000      200 requests/s and no more
//   double --port=0 --service_us=5000 --jitter=0.2 --pause_every_s=20 --pause_ms=40
//
// Prints "listening on 127.0.0.1:PORT"; ends on SIGTERM.
#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "protos/open_inference.grpc.pb.h"
#include "tests/client/noisy_service.h"
#include "tests/client/tiny_model.h"

namespace tilewire::client {
namespace {

struct DoubleFlags {
  int port = 0;
  int64_t batch = -1;
  int64_t service_us = 0, corrupt_every = 0, pause_every = 0, pause_ms = 0;
  uint64_t seed = 1;
  Noise noise;  // but for its pauses' length, which is pause_ms
};

using Inference = inference::GRPCInferenceService;

class DoubleService final : public Inference::WithRawMethod_ModelInfer<Inference::Service> {
 public:
  explicit DoubleService(int64_t batch) : batch_(batch) {}

  grpc::Status ModelMetadata(grpc::ServerContext*, const inference::ModelMetadataRequest*,
                             inference::ModelMetadataResponse* response) override {
    *response = TinyMetadata(batch_);
    return grpc::Status::OK;
  }

 private:
  const int64_t batch_;
};

grpc::ByteBuffer Answer(bool corrupt) {
  const grpc::Slice slice(TinyAnswer(corrupt ? '\1' : '\0').SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

// Answers what the completion queue brings; takes `service_us` for each, one after the other.
class Answerer {
 public:
  explicit Answerer(const DoubleFlags& flags) : flags_(flags), service_(flags.batch) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", flags.port),
                             grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    for (int i = 0; i < 1000; ++i) new Call(this);
  }
  int port() const { return port_; }

  [[noreturn]] void Run() {
    std::thread([this] { AnswerInTurn(); }).detach();
    void* tag = nullptr;
    bool ok = false;
    for (;;) {
      if (!queue_->Next(&tag, &ok)) std::abort();
      auto* const call = static_cast<Call*>(tag);
      if (call->answered || !ok) {
        delete call;
        continue;
      }
      new Call(this);
      if (flags_.service_us == 0) {
        call->Finish();
        continue;
      }
      call->came = absl::Now();
      absl::MutexLock lock(&mutex_);
      waiting_.push_back(call);
    }
  }

 private:
  struct Call {
    explicit Call(Answerer* of) : owner(of), writer(&context) {
      owner->service_.RequestModelInfer(&context, &request, &writer, owner->queue_.get(),
                                        owner->queue_.get(), this);
    }
    void Finish() {
      answered = true;
      const int64_t every = owner->flags_.corrupt_every;
      const bool corrupt = every > 0 && ++owner->count_ % every == 0;
      writer.Finish(corrupt ? owner->wrong_ : owner->right_, grpc::Status::OK, this);
    }
    Answerer* const owner;
    bool answered = false;
    absl::Time came;
    grpc::ServerContext context;
    grpc::ByteBuffer request;
    grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer;
  };

  NoisyService Service() const {
    Noise noise = flags_.noise;
    noise.pause_s = static_cast<double>(flags_.pause_ms) / 1e3;
    return NoisyService(static_cast<double>(flags_.service_us) / 1e6, noise, flags_.seed);
  }

  [[noreturn]] void AnswerInTurn() {
    NoisyService service = Service();
    const absl::Time began = absl::Now();
    for (int64_t number = 1;; ++number) {
      mutex_.LockWhen(absl::Condition(
          +[](std::deque<Call*>* waiting) { return !waiting->empty(); }, &waiting_));
      Call* const call = waiting_.front();
      waiting_.pop_front();
      mutex_.Unlock();
      // From when it came: that a sleep takes longer than asked for costs no capacity.
      const double came_s = absl::ToDoubleSeconds(call->came - began);
      if (flags_.pause_every > 0 && number % flags_.pause_every == 0)
        service.Hold(came_s, static_cast<double>(flags_.pause_ms) / 1e3);
      absl::SleepFor(began + absl::Seconds(service.Finish(came_s)) - absl::Now());
      call->Finish();
    }
  }

  const DoubleFlags flags_;
  const grpc::ByteBuffer right_ = Answer(false), wrong_ = Answer(true);
  int port_ = 0;
  int64_t count_ = 0;
  DoubleService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  absl::Mutex mutex_;
  std::deque<Call*> waiting_;
};

}  // namespace
}  // namespace tilewire::client

int main(int argc, char** argv) {
  tilewire::client::DoubleFlags flags;
  CLI::App app("Answers as a server of known capacity would");
  app.add_option("--port", flags.port, "0: any");
  app.add_option("--batch", flags.batch, "the only one that the model says it takes; -1: any");
  app.add_option("--service_us", flags.service_us, "microseconds per request, one after the other");
  app.add_option("--corrupt_every", flags.corrupt_every, "every so many answers are wrong");
  app.add_option("--pause_every", flags.pause_every, "a pause at every so many requests");
  app.add_option("--pause_every_s", flags.noise.pause_every_s,
                 "pauses at random times, so many seconds apart on average");
  app.add_option("--pause_ms", flags.pause_ms, "how long a pause is");
  app.add_option("--jitter", flags.noise.jitter, "deviation of the logarithm of service times");
  app.add_option("--drift", flags.noise.drift, "deviation of the logarithm of the speed");
  app.add_option("--drift_s", flags.noise.drift_s, "after so long the speed is another one");
  app.add_option("--seed", flags.seed, "of the noise");
  CLI11_PARSE(app, argc, argv);
  std::signal(SIGTERM, [](int) { std::_Exit(0); });
  auto* const answerer = new tilewire::client::Answerer(flags);
  std::printf("listening on 127.0.0.1:%d\n", answerer->port());
  std::fflush(stdout);
  answerer->Run();
}
