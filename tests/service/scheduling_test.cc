// SPDX-License-Identifier: Apache-2.0
//
// Admission, cancellation, deadlines and draining: runs are held at a gate.
#include <gmock/gmock.h>

#include <future>
#include <new>
#include <thread>

#include "absl/synchronization/notification.h"
#include "grpcpp/health_check_service_interface.h"
#include "tests/service/served_fixture.h"

namespace tilewire::service {
namespace {

class SchedulingTest : public ServedFixture {
 protected:
  // Runs wait until `open_` is notified, one at a time: threads beside the queue would take what
  // waits once the first has run for a while.
  void StartGated(int max_queue) {
    options_.queue.express = false;
    engine_.on_run = [this] {
      if (!entered_.HasBeenNotified()) entered_.Notify();
      open_.WaitForNotification();
    };
    Start(max_queue);
  }
  std::future<grpc::StatusCode> InferLater(grpc::ClientContext* context) {
    return std::async(std::launch::async, [this, context] {
      inference::ModelInferResponse response;
      return stub_->ModelInfer(context, GoodRequest(), &response).error_code();
    });
  }

  absl::Notification entered_, open_;
};

TEST_F(SchedulingTest, FullQueueIsUnavailableWithPushback) {
  StartGated(1);
  // One runs, one waits: the third of three is refused, whichever it is.
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::future<grpc::StatusCode>> codes;
  for (int i = 0; i < 3; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    codes.push_back(InferLater(contexts.back().get()));
  }
  int refused = -1;
  while (refused < 0) {
    for (int i = 0; i < 3; ++i) {
      if (codes[i].wait_for(std::chrono::milliseconds(1)) == std::future_status::ready) refused = i;
    }
  }
  open_.Notify();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(codes[i].get(), i == refused ? grpc::StatusCode::UNAVAILABLE : grpc::StatusCode::OK);
  }
  EXPECT_EQ(contexts[refused]->GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1);
}

TEST_F(SchedulingTest, ARequestThatMemoryCannotBeHadForEndsAloneAndTheServerServesOn) {
  bool exhausted = true;
  engine_.on_run = [&exhausted] {
    if (exhausted) throw std::bad_alloc();
  };
  Start();
  inference::ModelInferResponse response;
  EXPECT_EQ(Infer(GoodRequest(), &response).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  exhausted = false;
  EXPECT_TRUE(Infer(GoodRequest(), &response).ok());
}

TEST_F(SchedulingTest, CancelledRequestEndsAndTheServerServesOn) {
  StartGated(4);
  grpc::ClientContext context;
  std::future<grpc::StatusCode> code = InferLater(&context);
  entered_.WaitForNotification();
  context.TryCancel();
  EXPECT_EQ(code.get(), grpc::StatusCode::CANCELLED);
  open_.Notify();
  inference::ModelInferResponse response;
  EXPECT_TRUE(Infer(GoodRequest(), &response).ok());
}

TEST_F(SchedulingTest, AWaitingRequestThatIsCancelledLeavesTheQueueAtOnce) {
  StartGated(4);
  grpc::ClientContext running, waiting;
  std::future<grpc::StatusCode> first = InferLater(&running);
  entered_.WaitForNotification();
  const int64_t held = server_->admission()->bytes();
  std::future<grpc::StatusCode> second = InferLater(&waiting);
  EXPECT_TRUE(Happens([&] { return server_->admission()->bytes() > held; }));
  waiting.TryCancel();
  EXPECT_EQ(second.get(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Happens([&] { return server_->admission()->bytes() == held; }))
      << "it still waits for the first one";
  EXPECT_TRUE(Happens([&] { return server_->log().Requests(absl::StatusCode::kCancelled) == 1; }));
  open_.Notify();
  EXPECT_EQ(first.get(), grpc::StatusCode::OK);
}

TEST_F(SchedulingTest, ARunThatIsCancelledEndsBetweenItsSteps) {
  engine_.endless = true;
  engine_.on_run = [this] { entered_.Notify(); };
  Start();
  grpc::ClientContext context;
  std::future<grpc::StatusCode> code = InferLater(&context);
  entered_.WaitForNotification();
  context.TryCancel();
  EXPECT_EQ(code.get(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Happens([&] { return server_->log().Requests(absl::StatusCode::kCancelled) == 1; }))
      << "it computes on";
  engine_.endless = false;
}

TEST_F(SchedulingTest, DeadlineEndsAWaitingRequest) {
  StartGated(4);
  grpc::ClientContext running, late;
  std::future<grpc::StatusCode> first = InferLater(&running);
  entered_.WaitForNotification();
  late.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(20));
  EXPECT_EQ(InferLater(&late).get(), grpc::StatusCode::DEADLINE_EXCEEDED);
  open_.Notify();
  EXPECT_EQ(first.get(), grpc::StatusCode::OK);
}

TEST_F(SchedulingTest, ADrainServesUntilThePortClosesAndFinishesWhatWasAdmitted) {
  StartGated(4);
  grpc::ClientContext running, later;
  std::future<grpc::StatusCode> admitted = InferLater(&running);
  entered_.WaitForNotification();
  server_->StartDrain();
  EXPECT_FALSE(server_->Ready());
  std::future<grpc::StatusCode> after = InferLater(&later);
  open_.Notify();
  EXPECT_EQ(admitted.get(), grpc::StatusCode::OK);
  EXPECT_EQ(after.get(), grpc::StatusCode::OK) << "balancers have not noticed yet";
  server_->Drain();
}

TEST_F(SchedulingTest, PortInUseIsAnError) {
  Start();
  ServerOptions options;
  options.host = "127.0.0.1";
  options.port = server_->port();
  const auto second = Server::Start(&engine_, models_.get(), options);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), ::testing::HasSubstr("in use"));
  options.host = "192.0.2.1";  // reserved for documentation: not this machine's
  EXPECT_EQ(Server::Start(&engine_, models_.get(), options).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace tilewire::service
