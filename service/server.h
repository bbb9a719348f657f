// SPDX-License-Identifier: Apache-2.0
//
// The server: one port with the services, health and, if asked for, reflection. Thread-compatible.
#ifndef SERVICE_SERVER_H_
#define SERVICE_SERVER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "engine/engine.h"
#include "engine/threading/mutex.h"
#include "grpcpp/grpcpp.h"
#include "service/front/call_queue.h"
#include "service/front/health.h"
#include "service/front/listener.h"
#include "service/front/method_table.h"
#include "service/front/transport_options.h"
#include "service/http/watched_server.h"
#include "service/models/model_repository.h"
#include "service/observe/flight_record.h"
#include "service/observe/recent_load.h"
#include "service/observe/request_log.h"
#include "service/observe/slow_requests.h"
#include "service/observe/steady_time.h"
#include "service/rpc/call_host.h"
#include "service/rpc/inference_service.h"
#include "service/rpc/model_service.h"
#include "service/rpc/primitive_service.h"
#include "service/rpc/reflection.h"
#include "service/rpc/unknown_methods.h"
#include "service/schedule/admission.h"
#include "service/schedule/dispatcher.h"
#include "service/schedule/timer.h"
#include "service/trace/tracer.h"

namespace tilewire::service {

struct ServerOptions {
  std::string host = "0.0.0.0";
  int port = 8001;  // 0: any that is free
  TransportOptions transport;
  DispatcherOptions queue;
  // The bytes that all requests may hold together: messages, activations, answers.
  int64_t max_work_bytes = int64_t{2} << 30;
  int64_t max_idle_answer_bytes = AnswerPool::kMaxIdleBytes;
  PrimitiveLimits primitives;
  bool serve_inference = true, serve_primitives = true, serve_plans = true;
  bool reflection = false;
  OpenRights open_rights;
  ConfigDefaults config;
  int stream_in_flight = 16;  // requests of a stream that are read ahead of its answers
  // Until StartAccepting() connections wait in the port's backlog, so that clients that ask for no
  // health find another replica; not longer than kLongestBacklog.
  bool accept_at_once = true;
  bool ready_when_any = false;  // one model suffices; else all have to be ready
  absl::Duration write_timeout = absl::Seconds(30);
  absl::Duration slow_request = absl::Seconds(10);
  AccessLog access_log = AccessLog::kBad;
  absl::Duration drain_timeout = absl::Seconds(30);
  absl::Duration longest_explanation = absl::Minutes(1);  // of a plan, with its timed runs
  Tracer* tracer = nullptr;  // outlives the server; null: nothing is traced
};

class Server {
 public:
  static constexpr absl::Duration kLongestBacklog = absl::Seconds(5);

  // Listens, and answers from then on. Engine and models must outlive the server.
  //   the errors of Listener::Open()
  static absl::StatusOr<std::unique_ptr<Server>> Start(Engine* engine, ModelRepository* models,
                                                       const ServerOptions& options);
  ~Server();  // drains

  int port() const { return listener_->port(); }
  // A connection without a network.
  std::shared_ptr<grpc::Channel> InProcessChannel();

  // Before StartAccepting(): who loads models that clients ask for. Outlives Drain().
  void SetModelControl(ModelControl* control) { inference_.SetModelControl(control); }

  void StartAccepting();

  // To be called when a model's state has changed. Any thread may.
  void ModelsChanged() { health_.Changed(); }
  bool Ready() const;
  const RequestLog& log() const { return log_; }
  Dispatcher* dispatcher() { return &dispatcher_; }
  Admission* admission() { return &admission_; }
  // For the monitoring port, which may outlive Drain() but not the server.
  WatchedServer Watched();

  // From now on the server is not ready, so that balancers look for another; requests are served.
  void StartDrain();
  // StartDrain(); closes the port; if all connections reach their age within half of drain_timeout,
  // waits until they have; lets clients know, and returns when every request has been answered and
  // written, or drain_timeout after the call: what still runs is then cancelled.
  void Drain();

 private:
  Server(Engine* engine, ModelRepository* models, const ServerOptions& options);
  absl::Status Build();
  void Register(grpc::Service* service, const char* name, grpc::ServerBuilder* builder);
  void ServeCalls();
  CallHost Host();
  std::optional<bool> Serves(const std::string& name) const;
  absl::Time Tick();
  void FreeIdleMemory();
  void PublishLoad() ABSL_LOCKS_EXCLUDED(load_mutex_);
  ServerLoad Load() const ABSL_LOCKS_EXCLUDED(load_mutex_);
  ServerNumbers Numbers() const;
  void AwaitAge() const;

  Engine* const engine_;
  ModelRepository* const models_;
  const ServerOptions options_;
  std::atomic<bool> draining_{false};
  // Used by the timer's thread only: when memory was last looked at and freed, and the most that
  // requests held in one look since.
  absl::Time looked_at_memory_ = absl::InfinitePast(), freed_ = absl::InfinitePast();
  int64_t most_held_ = 0;
  absl::Time published_load_ = absl::InfinitePast();
  // Taken by monitoring and the timer; no request takes it.
  mutable threading::Mutex load_mutex_;
  ServerLoad load_ ABSL_GUARDED_BY(load_mutex_);
  Admission admission_;
  RequestLog log_;
  FlightRecorder flights_;
  SlowRequests slow_{&flights_};
  RecentLoad recent_{&flights_};
  UnreadAnswers unread_;
  const std::shared_ptr<AnswerPool> answers_;
  Dispatcher dispatcher_;
  InferenceService inference_;
  PrimitiveService primitives_;
  ModelService plans_;
  Reflection reflection_;
  HealthService health_;
  UnknownMethods unknown_;
  std::vector<std::string> services_;  // full names of those that are registered
  const absl::Time start_ = SteadyNow();
  std::once_flag accepting_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<CallQueue> calls_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Timer> timer_;
};

}  // namespace tilewire::service

#endif  // SERVICE_SERVER_H_
