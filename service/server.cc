// SPDX-License-Identifier: Apache-2.0
#include "service/server.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/primitive_engine.h"
#include "grpc/grpc.h"
#include "grpcpp/health_check_service_interface.h"
#include "service/observe/status.h"
#include "service/observe/steady_time.h"
#include "service/version.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

// How often the timer looks for what has become late, at least.
constexpr absl::Duration kLongestTick = absl::Milliseconds(250);
// The server stops being live when requests have waited this long without any request ending.
constexpr absl::Duration kStuck = absl::Minutes(2);

// The shortest time between two looks at what waits and runs, for monitoring.
constexpr absl::Duration kLoadPause = absl::Milliseconds(200);

// How long memory of past requests is kept after the last one.
constexpr absl::Duration kIdle = absl::Seconds(10);
// Requests that held less together leave nothing that is worth the trouble.
constexpr int64_t kLargePeakBytes = int64_t{64} << 20;

// gRPC varies the age of connections by a tenth.
constexpr double kAgeJitter = 1.1;
constexpr absl::Duration kLastRoundTrip = absl::Milliseconds(200);
// gRPC measures the end of a shutdown by its own clock.
constexpr absl::Duration kClockError = absl::Milliseconds(20);
constexpr absl::Duration kAgePoll = absl::Milliseconds(20);

std::vector<std::string> OtherServices(const ServerOptions& options) {
  std::vector<std::string> names;
  if (options.serve_primitives) names.push_back(v1::PrimitiveService::service_full_name());
  if (options.serve_plans) names.push_back(v1::ModelService::service_full_name());
  return names;
}

}  // namespace

Server::Server(Engine* engine, ModelRepository* models, const ServerOptions& options)
    : engine_(engine),
      models_(models),
      options_(options),
      admission_(options.max_work_bytes,
                 [engine](int64_t more) { engine->CountBesidePooled(more); }),
      log_(options.slow_request, options.access_log),
      unread_(options.write_timeout, &admission_),
      answers_(std::make_shared<AnswerPool>(
          std::min(options.max_idle_answer_bytes, options.max_work_bytes / 4))),
      dispatcher_(&engine->arena(), options.queue),
      inference_(models, Host(),
                 {.live = [this] { return !dispatcher_.Stuck(kStuck); },
                  .ready = [this] { return Ready(); },
                  .draining = [this] { return draining_.load(); },
                  .services = OtherServices(options),
                  .stream_in_flight = options.stream_in_flight,
                  .config = options.config}),
      primitives_(engine, Host(), options.primitives),
      plans_(
          models, &slow_, [this] { return Numbers(); }, Host()),
      reflection_(Host()),
      health_([this](const std::string& name) { return Serves(name); }) {}

CallHost Server::Host() {
  return {.dispatcher = &dispatcher_,
          .admission = &admission_,
          .unread = &unread_,
          .log = &log_,
          .unnamed = &models_->statistics().unnamed(),
          .flights = &flights_,
          .tracer = options_.tracer,
          .answers = answers_.get(),
          .max_message_bytes = options_.transport.max_message_bytes,
          .longest_explanation = options_.longest_explanation,
          .open_rights = options_.open_rights};
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Engine* engine, ModelRepository* models,
                                                      const ServerOptions& options) {
  // For as long as the process lives: gRPC's last shutdown waits up to ten seconds for a poll that
  // nothing wakes if large answers were written before.
  static const bool kept = (grpc_init(), true);
  (void)kept;
  auto server = std::unique_ptr<Server>(new Server(engine, models, options));
  ABSL_ASSIGN_OR_RETURN(
      server->listener_,
      Listener::Open(options.host, options.port, options.transport.max_connections_per_peer));
  ABSL_RETURN_IF_ERROR(server->Build());
  return server;
}

void Server::Register(grpc::Service* service, const char* name, grpc::ServerBuilder* builder) {
  builder->RegisterService(service);
  services_.push_back(name);
}

absl::Status Server::Build() {
  grpc::EnableDefaultHealthCheckService(false);
  grpc::ServerBuilder builder;
  ApplyTransportOptions(options_.transport, &builder);
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  if (options_.serve_inference) {
    Register(&inference_, Inference::service_full_name(), &builder);
  }
  if (options_.serve_primitives) {
    Register(&primitives_, v1::PrimitiveService::service_full_name(), &builder);
  }
  if (options_.serve_plans) {
    Register(&plans_, v1::ModelService::service_full_name(), &builder);
  }
  Register(&health_, grpc::health::v1::Health::service_full_name(), &builder);
  if (options_.reflection) {
    Register(reflection_.alpha(), Reflection::Alpha::service_full_name(), &builder);
    Register(reflection_.v1(), Reflection::V1::service_full_name(), &builder);
  }
  unknown_.AddTo(&builder);
  calls_ = std::make_unique<CallQueue>(&builder, engine_->arena().threads());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::InternalError("gRPC does not start");
  ServeCalls();
  if (options_.accept_at_once) StartAccepting();
  return absl::OkStatus();
}

void Server::ServeCalls() {
  if (options_.serve_inference) inference_.Await(calls_.get());
  if (options_.serve_primitives) primitives_.Await(calls_.get());
  if (options_.serve_plans) plans_.Await(calls_.get());
  health_.Await(calls_.get());
  if (options_.reflection) {
    reflection_.Tell(services_);
    reflection_.Await(calls_.get());
  }
  unknown_.Await(calls_.get());
  timer_ = std::make_unique<Timer>([this] { return Tick(); }, kLongestTick);
  calls_->Start([this] { timer_->CallBy(SteadyNow()); });
}

void Server::StartAccepting() {
  std::call_once(accepting_, [this] {
    listener_->Start([this](int fd) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
      connection.fd = fd;
      acceptor_->HandleNewConnection(&connection);
    });
  });
}

WatchedServer Server::Watched() {
  return {.models = models_,
          .admission = &admission_,
          .listener = listener_.get(),
          .engine = &engine_->options(),
          .version = kVersion,
          .live = [this] { return !dispatcher_.Stuck(kStuck); },
          .ready = [this] { return Ready(); },
          .draining = [this] { return draining_.load(); },
          .load = [this] { return Load(); },
          .slow = &slow_,
          .recent = &recent_,
          .tracer = options_.tracer,
          .start = start_};
}

ServerNumbers Server::Numbers() const {
  return {.version = kVersion,
          .state = ServerStateName(draining_.load(), Ready()),
          .uptime = SteadyNow() - start_,
          .cores = engine_->options().threads,
          .work = Load().work,
          .throttled_ns = slow_.throttled_ns(),
          .cpu_wait_share = slow_.cpu_wait().share,
          .work_bytes = admission_.HeldByRequests(),
          .work_limit_bytes = admission_.max_bytes(),
          .connections = listener_->OpenConnections()};
}

ServerLoad Server::Load() const {
  threading::MutexLock lock(&load_mutex_);
  return load_;
}

void Server::PublishLoad() {
  const absl::Time now = SteadyNow();
  if (now - published_load_ < kLoadPause) return;
  published_load_ = now;
  ServerLoad load = {.work = dispatcher_.Load(),
                     .primitives = engine_->primitives().cache_statistics(),
                     .plans = engine_->plan_counts(),
                     .idle_answer_bytes = answers_->idle_bytes()};
  threading::MutexLock lock(&load_mutex_);
  load_ = std::move(load);
}

absl::Time Server::Tick() {
  if (SteadyNow() - start_ > kLongestBacklog && !draining_.load()) StartAccepting();
  FreeIdleMemory();
  try {
    PublishLoad();
    const int64_t now_ns = absl::ToUnixNanos(SteadyNow());
    slow_.Look(now_ns);
    recent_.Look(now_ns);
    return std::min({dispatcher_.EndExpired(), unread_.EndLate(), calls_->Look()});
  } catch (const std::bad_alloc&) {  // the next tick tries again
    return SteadyNow();
  }
}

// All of it when nothing runs any more, and when requests hold far less than they once did; what
// nothing has used for a while at any time.
void Server::FreeIdleMemory() {
  const absl::Time now = SteadyNow();
  if (now - looked_at_memory_ < kIdle) return;
  looked_at_memory_ = now;
  answers_->FreeReturnedBefore(now - kIdle);
  const int64_t held = admission_.TakePeak();
  const bool receded = most_held_ >= kLargePeakBytes && held < most_held_ / 4;
  const absl::Time idle_since = dispatcher_.IdleSince();
  const bool idle = now - idle_since >= kIdle && freed_ <= idle_since;
  most_held_ = receded ? held : std::max(held, most_held_);
  if (!receded && !idle) return engine_->FreeIdleMemory(kIdle);
  freed_ = now;
  engine_->FreeIdleMemory(absl::ZeroDuration());
}

Server::~Server() { Drain(); }

bool Server::Ready() const {
  if (draining_.load()) return false;
  return options_.ready_when_any ? models_->AnyReady() || models_->Names().empty()
                                 : models_->AllReady();
}

std::optional<bool> Server::Serves(const std::string& name) const {
  if (name.empty()) return Ready();
  if (name == HealthService::kLiveness) return !dispatcher_.Stuck(kStuck);
  if (options_.serve_inference && name == Inference::service_full_name()) return Ready();
  if (options_.serve_primitives && name == v1::PrimitiveService::service_full_name()) return true;
  if (options_.serve_plans && name == v1::ModelService::service_full_name()) return true;
  const auto served = models_->Find(name, "");
  if (!served.ok()) return std::nullopt;
  return (*served)->state == ModelState::kReady;
}

std::shared_ptr<grpc::Channel> Server::InProcessChannel() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return server_->InProcessChannel(arguments);
}

void Server::StartDrain() {
  draining_.store(true);
  health_.StartDrain();
}

// gRPC 1.51 cancels requests that arrive after Shutdown() and before the client has learned of it.
// A connection that reaches its age loses none: its client is told first, and refused last.
void Server::AwaitAge() const {
  const absl::Duration longest = options_.transport.max_age * kAgeJitter + kLastRoundTrip;
  if (longest > options_.drain_timeout / 2) return;
  const absl::Time end = SteadyNow() + longest;
  while (listener_->OpenConnections() > 0 && SteadyNow() < end) absl::SleepFor(kAgePoll);
}

void Server::Drain() {
  StartDrain();
  if (server_ == nullptr) return;
  std::call_once(accepting_, [] {});  // from now on nothing starts to accept
  listener_->Stop();
  const absl::Time end = SteadyNow() + options_.drain_timeout;
  health_.EndWatches();
  AwaitAge();
  inference_.DrainStreams();
  reflection_.Drain();
  unread_.SetShutdown(end - kClockError);
  server_->Shutdown(absl::ToChronoTime(absl::Now() + (end - SteadyNow())));
  server_->Wait();
  dispatcher_.WaitIdle();
  const bool are_over = inference_.AwaitNoStreams();
  if (!reflection_.AwaitNoStreams() || !are_over)
    spdlog::warn("streams are left at the end of the drain");
  calls_->End();
  timer_ = nullptr;
  calls_ = nullptr;
  server_ = nullptr;
}

}  // namespace tilewire::service
