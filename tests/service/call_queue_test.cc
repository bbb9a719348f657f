// SPDX-License-Identifier: Apache-2.0
//
// Calls on a completion queue: threads that serve it join and leave, and no method is forgotten.
#include "service/front/call_queue.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "engine/threading/mutex.h"
#include "engine/threading/urgent_work.h"
#include "grpcpp/alarm.h"
#include "grpcpp/generic/generic_stub.h"
#include "protos/health.pb.h"
#include "protos/model_service.pb.h"
#include "protos/tilewire.pb.h"
#include "service/rpc/unary_methods.h"
#include "tests/service/served_fixture.h"

namespace tilewire::service {
namespace {

TEST(ThreadDemandTest, AnotherThreadJoinsWhereThoseThatServeAreBusyAndLeavesWhenTheyAreNot) {
  ThreadDemand demand(3);
  EXPECT_EQ(demand.Wanted(0.5, 0), 1) << "one thread has time left";
  EXPECT_EQ(demand.Wanted(0.9, 0), 2);
  EXPECT_EQ(demand.Wanted(1.2, 0), 2) << "two threads have time left, and one is not enough";
  EXPECT_EQ(demand.Wanted(1.9, 0), 3);
  EXPECT_EQ(demand.Wanted(3.0, 0), 3) << "the most";
  EXPECT_EQ(demand.Wanted(0.9, 0), 2) << "two would be less than half busy";
  EXPECT_EQ(demand.Wanted(0.1, 0), 1);
  EXPECT_EQ(demand.Wanted(0.0, 0), 1) << "one always serves";
}

TEST(ThreadDemandTest, AThreadThatIsHeldUpIsReplacedAlsoOnOneCore) {
  ThreadDemand demand(1);
  EXPECT_EQ(demand.most(), 2);
  EXPECT_EQ(demand.Wanted(1.0, 0), 1) << "the load alone does not need it";
  EXPECT_EQ(demand.Wanted(1.0, 1), 2);
  EXPECT_EQ(demand.Wanted(2.0, 2), 2);
  EXPECT_EQ(demand.Wanted(0.0, 0), 1);
}

TEST(FinishCallTest, WithoutMemoryForItsStatusACallEndsWithFewerWords) {
  std::vector<grpc::Status> told;
  const auto finish = [&told](const grpc::Status& status) { told.push_back(status); };
  FinishCall([]() -> grpc::Status { throw std::bad_alloc(); }, finish);
  ASSERT_EQ(told.size(), 1);
  EXPECT_EQ(told[0].error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(told[0].error_message(), "no memory");
}

TEST(FinishCallTest, WithoutMemoryForACopyOfItsStatusACallEndsWithFewerWords) {
  std::vector<grpc::Status> told;
  FinishCall([] { return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such model"); },
             [&told](const grpc::Status& status) {
               if (status.error_code() == grpc::StatusCode::NOT_FOUND) throw std::bad_alloc();
               told.push_back(status);
             });
  ASSERT_EQ(told.size(), 1);
  EXPECT_EQ(told[0].error_message(), "no memory");
}

// On the one thread that computes, until it is let go.
class Gate final : public Work {
 public:
  void Run(Lane) override {
    entered.Notify();
    open.WaitForNotification();
  }
  void End(const absl::Status&) override {}

  threading::Notification entered, open;
};

// ServerLive() is answered at once. ServerReady() holds the thread that received it until `let_go`,
// and then waits for a thread that computes.
class HoldingService final : public inference::GRPCInferenceService::WithRawMethod_ServerLive<
                                 inference::GRPCInferenceService::WithRawMethod_ServerReady<
                                     inference::GRPCInferenceService::AsyncService>> {
 public:
  HoldingService() {
    methods_.Add(MethodNamed("inference.GRPCInferenceService", "ServerLive"), this,
                 &HoldingService::RequestServerLive, &HoldingService::Live);
    methods_.Add(MethodNamed("inference.GRPCInferenceService", "ServerReady"), this,
                 &HoldingService::RequestServerReady, &HoldingService::Ready);
  }
  ~HoldingService() override { dispatcher_.WaitIdle(); }
  void Await(CallQueue* queue) { methods_.Await(&host_, queue); }
  // From when it returns until gate().open, nothing is computed.
  void CloseGate() {
    ASSERT_TRUE(dispatcher_.Submit(&gate_).ok());
    gate_.entered.WaitForNotification();
  }
  Gate& gate() { return gate_; }
  int64_t Cancelled() const { return log_.Requests(absl::StatusCode::kCancelled); }

  threading::Notification held, let_go;

 private:
  class HeldJob final : public Job {
   public:
    explicit HeldJob(HoldingService* service) : service_(service) {}
    absl::Status Prepare(WorkTerms*) override {
      service_->held.Notify();
      service_->let_go.WaitForNotification();
      return absl::OkStatus();
    }
    absl::Status Run(Call&) override { return absl::InternalError("its client has given up"); }

   private:
    HoldingService* const service_;
  };

  UnaryMethods::JobOrAnswer Live(const grpc::ByteBuffer&, grpc::ByteBuffer* response) {
    const grpc::Slice nothing;
    *response = grpc::ByteBuffer(&nothing, 1);
    return OwnedJob();
  }
  UnaryMethods::JobOrAnswer Ready(const grpc::ByteBuffer&, grpc::ByteBuffer*) {
    return OwnedJob(new HeldJob(this));
  }

  Gate gate_;
  threading::Arena arena_{1};
  Dispatcher dispatcher_{&arena_, {.express = false}};
  RequestLog log_{absl::Seconds(10)};
  Admission admission_{1 << 20};
  UnreadAnswers unread_{absl::Seconds(30), &admission_};
  FailureCounts unnamed_;
  const CallHost host_{.dispatcher = &dispatcher_,
                       .admission = &admission_,
                       .unread = &unread_,
                       .log = &log_,
                       .unnamed = &unnamed_};
  UnaryMethods methods_;
};

class CallQueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    calls_ = std::make_unique<CallQueue>(&builder, /*cores=*/1);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    service_.Await(calls_.get());
    calls_->Start([this] { ++early_looks_; });
    stub_ = inference::GRPCInferenceService::NewStub(server_->InProcessChannel({}));
  }
  void TearDown() override {
    server_->Shutdown();
    calls_->End();
  }

  grpc::StatusCode Live() {
    grpc::ClientContext context;
    inference::ServerLiveResponse response;
    return stub_->ServerLive(&context, {}, &response).error_code();
  }
  // Looks until then, as the server's timer does; a test that waits in vain takes a minute.
  bool LooksUntil(const std::function<bool()>& happened) {
    const absl::Time end = SteadyNow() + absl::Minutes(1);
    while (SteadyNow() < end) {
      if (happened()) return true;
      calls_->Look();
    }
    return false;
  }

  HoldingService service_;
  std::atomic<int> early_looks_{0};
  std::unique_ptr<CallQueue> calls_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

// Neither a thread that is held up nor a client that has given up meanwhile delays the others.
TEST_F(CallQueueTest, CallsAreServedAndCancelledWhileTheThreadThatServesIsHeldUp) {
  service_.CloseGate();
  grpc::ClientContext context;
  std::thread held([&] {
    inference::ServerReadyResponse response;
    EXPECT_EQ(stub_->ServerReady(&context, {}, &response).error_code(),
              grpc::StatusCode::CANCELLED);
  });
  service_.held.WaitForNotification();
  std::atomic<int> answered{0};
  std::thread others([&] {
    for (; answered < 20; ++answered) {
      EXPECT_EQ(Live(), grpc::StatusCode::OK);
      if (answered == 0) context.TryCancel();
    }
  });
  EXPECT_TRUE(LooksUntil([&] { return answered == 20; }));
  service_.let_go.Notify();
  EXPECT_TRUE(LooksUntil([&] { return service_.Cancelled() == 1; }))
      << "it waits for a thread that computes, although its client has given up";
  service_.gate().open.Notify();
  held.join();
  others.join();
}

TEST_F(CallQueueTest, WhatHappensAfterALongPauseIsSoonLookedAt) {
  absl::Time next;
  EXPECT_TRUE(LooksUntil([&] {
    next = calls_->Look();
    return next > SteadyNow() + absl::Milliseconds(100);
  }));
  EXPECT_EQ(early_looks_, 0);
  EXPECT_EQ(Live(), grpc::StatusCode::OK);
  EXPECT_EQ(early_looks_, 1) << "it might have held the thread up until " << next;
  EXPECT_EQ(Live(), grpc::StatusCode::OK);
  EXPECT_EQ(early_looks_, 1) << "one look is enough";
}

// An event that happens at once, without a call, and is seen from its own thread and from another.
class SeenEvent final : public Event {
 public:
  void Ask(grpc::CompletionQueue* queue) {
    alarm_.Set(queue, std::chrono::system_clock::now(), tag());
  }
  void Happen(bool) override {
    on_its_thread = threading::UrgentWork::IsUnderWayElsewhere();
    std::thread([&] { on_another = threading::UrgentWork::IsUnderWayElsewhere(); }).join();
    happened.Notify();
  }

  bool on_its_thread = true, on_another = false;
  threading::Notification happened;

 private:
  grpc::Alarm alarm_;
};

// So that the compute threads offer their cores to the thread that receives calls.
TEST_F(CallQueueTest, WhatHappensIsUrgentWhileItDoes) {
  const auto is_urgent = [] { return threading::UrgentWork::IsUnderWayElsewhere(); };
  ASSERT_TRUE(LooksUntil([&] { return !is_urgent(); })) << "something else is";
  SeenEvent* event = nullptr;
  ASSERT_TRUE(calls_->AskFor([&] {
    auto made = std::make_unique<SeenEvent>();
    event = made.get();
    return made;
  }));
  const std::unique_ptr<SeenEvent> owned(event);
  event->happened.WaitForNotification();
  EXPECT_FALSE(event->on_its_thread);
  EXPECT_TRUE(event->on_another);
  EXPECT_TRUE(LooksUntil([&] { return !is_urgent(); })) << "it has happened";
}

class AnswersTest : public ServedFixture {
 protected:
  // A message or a status that is the server's, for an empty request.
  bool Answers(const std::string& method) {
    grpc::GenericStub stub(server_->InProcessChannel());
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareCall(&context, method, &queue);
    call->StartCall(nullptr);
    Happens(&queue);
    const grpc::Slice nothing;
    call->WriteLast(grpc::ByteBuffer(&nothing, 1), {}, nullptr);
    Happens(&queue);
    grpc::ByteBuffer reply;
    call->Read(&reply, nullptr);
    const bool answered = Happens(&queue);
    context.TryCancel();  // a stream goes on
    grpc::Status status;
    call->Finish(&status, nullptr);
    Happens(&queue);
    return answered || status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED;
  }

  static bool Happens(grpc::CompletionQueue* queue) {
    void* tag = nullptr;
    bool ok = false;
    return queue->Next(&tag, &ok) && ok;
  }
};

TEST_F(AnswersTest, ACallOfAMethodThatTheServerDoesNotHaveIsRefusedByName) {
  Start();
  for (int round = 0; round < 3; ++round) {
    grpc::GenericStub stub(server_->InProcessChannel());
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const grpc::Slice nothing;
    const auto call = stub.PrepareUnaryCall(&context, "/inference.GRPCInferenceService/Modelinfer",
                                            grpc::ByteBuffer(&nothing, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer reply;
    grpc::Status status;
    call->Finish(&reply, &status, nullptr);
    Happens(&queue);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
    EXPECT_EQ(status.error_message(),
              "no such method: '/inference.GRPCInferenceService/Modelinfer'");
  }
}

// A method that nothing waits for is never answered.
TEST_F(AnswersTest, EveryMethodOfEveryServiceIsAnswered) {
  options_.primitives.max_operations = 1;
  Start();
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  for (const char* name : {"inference.GRPCInferenceService", "tilewire.v1.PrimitiveService",
                           "tilewire.v1.ModelService", "grpc.health.v1.Health"}) {
    const google::protobuf::ServiceDescriptor* service = pool->FindServiceByName(name);
    ASSERT_NE(service, nullptr) << name;
    for (int i = 0; i < service->method_count(); ++i) {
      const std::string method = absl::StrCat("/", name, "/", service->method(i)->name());
      for (int round = 0; round < 20; ++round) {  // more than gRPC is asked for at a time
        EXPECT_TRUE(Answers(method)) << method << " in round " << round;
      }
    }
  }
}

}  // namespace
}  // namespace tilewire::service
