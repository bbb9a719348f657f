// SPDX-License-Identifier: Apache-2.0
#include "service/flag_list.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/primitive_engine.h"
#include "service/build_id.h"
#include "service/trace/otlp_sink.h"
#include "service/version.h"

namespace tilewire::service {
namespace {

// "--port", with its default from TILEWIRE_PORT.
template <typename Value>
CLI::Option* Add(CLI::App* app, const std::string& name, Value* value, const std::string& text) {
  return app->add_option("--" + name, *value, text)
      ->capture_default_str()
      ->envname(absl::StrCat("TILEWIRE_", absl::AsciiStrToUpper(name)));
}

// CLI::Range lets what is not a number pass.
CLI::Validator NumberFrom(double least) {
  const auto check = [least](const std::string& text) -> std::string {
    double number = 0;
    if (absl::SimpleAtod(text, &number) && number >= least && std::isfinite(number)) return "";
    return absl::StrCat("'", text, "' is not a number from ", least, " up");
  };
  return CLI::Validator(check, absl::StrCat("from ", least), "NumberFrom");
}

// CLI::Validator wants a text: empty for a good value.
std::string CheckVersions(const std::string& text) {
  return std::string(ParseVersions(text).status().message());
}
std::string CheckPort(const std::string& text) {
  return std::string(ParsePort(text).status().message());
}

std::string CheckEndpoint(const std::string& text) {
  return std::string(CheckOtlpEndpoint(text).message());
}
std::string CheckNotAFolder(const std::string& text) {
  std::error_code error;
  return std::filesystem::is_directory(text, error) ? absl::StrCat(text, " is a folder") : "";
}

// Options that name the models and the addresses to listen on.
void AddModels(CLI::App* app, Flags* flags, GivenFlags* given) {
  // Their defaults come from the environment after parsing: a flag outdoes the other's default.
  app->add_option("--model_repository", flags->model_repositories,
                  "Directory with <model>/<version>/model.onnx; may be given several times "
                  "(TILEWIRE_MODEL_REPOSITORY)")
      ->allow_extra_args(false);
  app->add_option("--model", given->models,
                  "Serve this ONNX file, or this folder that is one model; NAME=PATH gives it a "
                  "name; may be given several times; one of the two is required (TILEWIRE_MODEL)")
      ->allow_extra_args(false);
  Add(app, "model_name", &given->model_name, "The name of the one --model");
  Add(app, "versions", &given->versions,
      "Versions that are served of a model whose config.pbtxt does not say: latest:N, the N "
      "highest; or all")
      ->check(CLI::Validator(CheckVersions, "latest:N|all", "Versions"));
  Add(app, "model_control", &given->model_control,
      "Models after the start: poll, as they come to lie on disk; explicit, by RepositoryModelLoad "
      "and RepositoryModelUnload; none, at SIGHUP only")
      ->check(CLI::IsMember({"none", "poll", "explicit"}));
  Add(app, "poll_seconds", &flags->poll_seconds,
      "Seconds between two looks at the files; what is new or changed is loaded once it has stayed "
      "the same for one of them")
      ->check(CLI::Range(0.01, 86'400.0));
  app->add_option("--load_model", flags->load_models,
                  "With --model_control=explicit: a model that is loaded at the start; '*': all; "
                  "may be given several times")
      ->allow_extra_args(false)
      ->envname("TILEWIRE_LOAD_MODEL");
  Add(app, "swap", &given->swap,
      "A version that replaces another is loaded beside it; or unload_first: after it, for want of "
      "memory for both")
      ->check(CLI::IsMember({"beside", "unload_first"}));
  Add(app, "trial", &given->trial,
      "What is loaded after the start is first read, planned and run once in a process of its own, "
      "so that a file that crashes, hangs or eats memory ends only that process; none: it is "
      "loaded at once")
      ->check(CLI::IsMember({"process", "none"}));
  Add(app, "trial_seconds", &flags->trial_seconds, "Seconds that such a trial may take")
      ->check(CLI::Range(1, 86'400));
  Add(app, "upload_dir", &flags->upload_dir,
      "With --model_control=explicit: a folder for files of models that RepositoryModelLoad "
      "brings; without it none are taken");
  Add(app, "max_upload_mb", &flags->max_upload_mb,
      "Megabytes that all of these files may have together")
      ->check(CLI::Range(1, 1 << 20));
  app->add_flag("--strict_config", flags->scan.strict_config,
                "An unknown setting in a config.pbtxt keeps its model from being served; without, "
                "it is a warning")
      ->envname("TILEWIRE_STRICT_CONFIG");
  Add(app, "host", &flags->server.host, "Address to listen on");
  Add(app, "port", &flags->server.port, "gRPC port; 0 picks a free one and prints it")
      ->check(CLI::Range(0, 65535));
}

// How it is computed.
void AddEngine(CLI::App* app, Flags* flags, GivenFlags* given) {
  Add(app, "threads", &flags->engine.threads, "Compute threads; 0: the cores that are granted")
      ->check(CLI::Range(0, 1024));
  Add(app, "threads_per_request", &flags->engine.threads_per_request,
      "Threads that one request may use; 0: all")
      ->check(CLI::Range(0, 1024));
  Add(app, "pin_threads", &flags->pin_threads,
      "true: where there is a compute thread per core, each stays on its own; false: they move");
  Add(app, "max_isa", &given->max_isa,
      absl::StrCat("No instruction set above: ", cpu::IsaNames(" | "), " | best"));
  Add(app, "convolution_algorithm", &given->convolution_algorithm,
      "auto: Winograd where it is estimated to be faster; direct: never")
      ->check(CLI::IsMember({"auto", "direct"}));
  Add(app, "precision", &given->precision,
      "exact: as f32; fast: errors of about 5e-6, faster on CPUs with AMX; bf16: errors of a few "
      "thousandths, faster with AVX-512 BF16 or AMX; a model's config.pbtxt may name its own")
      ->check(CLI::IsMember({"exact", "fast", "bf16"}));
  Add(app, "primitive_cache_mb", &given->primitive_cache_mb,
      "Compiled code that is kept; default: a sixteenth of what is granted, at most 64")
      ->check(CLI::Range(0, 65536));
}

void AddDiagnostics(CLI::App* app, Flags* flags, GivenFlags* given) {
  Add(app, "metrics_port", &given->metrics_port,
      "Port of /metrics, /statusz, /healthz and /readyz over HTTP; 0 picks a free one and prints "
      "it; off: none. The default may be in use by another program")
      ->check(CLI::Validator(CheckPort, "0..65535|off", "Port"));
  Add(app, "metrics_host", &flags->metrics_host, "Address that it listens on");
  app->add_option("--metrics_compatibility", given->metrics_compatibility,
                  "Metrics also under the names of other servers, any of: triton,ovms")
      ->delimiter(',')
      ->envname("TILEWIRE_METRICS_COMPATIBILITY")
      ->check(CLI::IsMember({"triton", "ovms"}));
  Add(app, "log_level", &flags->log_level,
      "trace | debug (each request gets a line) | info | warning | error | off")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}));
  Add(app, "log_format", &given->log_format,
      "Lines on standard error: text; or json, an object each, with the request's and the trace's "
      "id")
      ->check(CLI::IsMember({"text", "json"}));
  Add(app, "access_log", &given->access_log,
      "Requests that get a line in the log: bad (refused, failed or slow), off, or all")
      ->check(CLI::IsMember({"bad", "off", "all"}));
  Add(app, "verbose", &flags->verbose,
      "Lines on standard error: 0 none, 1 each execution, 2 each creation too")
      ->check(CLI::IsMember({0, 1, 2}));
  Add(app, "dump_jit", &flags->dump_jit,
      "Write each generated kernel to DIR/<name>.<n>.bin (objdump -D -b binary -m i386:x86-64 "
      "-M intel FILE); TILEWIRE_PERF_MAP=1 names them for perf")
      ->check(CLI::ExistingDirectory);
}

// Traces of requests.
void AddTraces(CLI::App* app, Flags* flags, GivenFlags* given) {
  TraceFlags* traces = &flags->traces;
  Add(app, "trace_file", &traces->file,
      "Write traces of requests to this file, which no other server writes to, as "
      "/var/log/tilewire/trace.json; at 64 MB the server renames it to PATH.1 and begins a new one")
      ->check(CLI::Validator(CheckNotAFolder, "PATH", "NotAFolder"));
  Add(app, "trace_format", &given->trace_format,
      "Of that file: chrome, for chrome://tracing and Perfetto; or triton, as Triton writes it")
      ->check(CLI::IsMember({"chrome", "triton"}));
  Add(app, "otlp_endpoint", &traces->otlp_endpoint,
      "Send traces to an OpenTelemetry collector, over gRPC without TLS, as localhost:4317")
      ->check(CLI::Validator(CheckEndpoint, "HOST:PORT", "Endpoint"));
  Add(app, "trace_rate", &traces->terms.rate,
      "One request in so many is traced, besides those whose header traceparent says that they are")
      ->check(CLI::Range(uint32_t{1}, std::numeric_limits<uint32_t>::max()));
  Add(app, "trace_count", &traces->terms.count, "Requests that are traced in all; -1: no end")
      ->check(CLI::Range(TraceTerms::kNoEnd, std::numeric_limits<int64_t>::max()));
}

// Options for one task instead of serving.
void AddOtherTasks(CLI::App* app, Flags* flags, GivenFlags* given) {
  app->add_flag("--list_implementations", flags->list_implementations,
                "Print primitive x instruction set x type, mark what this machine uses, exit");
  app->add_flag("--probe", given->probe,
                "Ask the server at --host and --port for its health, exit: 0 if it serves, else 1; "
                "without them, the server that is process 1 of this container");
  app->set_version_flag("--version",
                        absl::StrCat("tilewire-server ", kVersion, " (build ", BuildId(), ")"));
}

// Bounds on the cost of requests and connections.
void AddLimits(CLI::App* app, Flags* flags, GivenFlags* given) {
  ServerOptions* server = &flags->server;
  const auto seconds = CLI::Range(1, 1'000'000);
  Add(app, "max_queue", &server->queue.max_waiting, "Requests that may wait; more are UNAVAILABLE")
      ->check(CLI::Range(1, 1000000));
  Add(app, "max_queue_per_model", &given->max_queue_per_model,
      "Of these, requests of one model; 0: three quarters")
      ->check(CLI::Range(0, 1000000));
  Add(app, "max_queue_ms", &given->max_queue_ms, "Longest time that a request may wait")
      ->check(CLI::Range(1, 3'600'000));
  Add(app, "max_message_mb", &given->max_message_mb,
      "Largest message, both ways; default: half of --transport_mb, at most 64")
      ->check(CLI::Range(1, 2047));
  Add(app, "max_work_mb", &given->max_work_mb,
      "Memory of all requests together: messages, activations, answers; 0: half of what is "
      "granted, less where models leave less")
      ->check(CLI::Range(0, 1 << 24));
  Add(app, "max_operations", &server->primitives.max_operations,
      "Operations of one described primitive")
      ->check(NumberFrom(1));
  Add(app, "max_reference_operations", &server->primitives.max_reference_operations,
      "The same, where only a reference implementation takes it; 0: none")
      ->check(NumberFrom(0));
  Add(app, "transport_mb", &given->transport_mb,
      "Memory of all connections together, at least two messages; default: about a sixth of what "
      "is granted, less beside large models, at most 512")
      ->check(CLI::Range(16, 1 << 20));
  Add(app, "max_connections_per_peer", &server->transport.max_connections_per_peer,
      "Open connections of one address (IPv6: of a /64 network); 0: no bound")
      ->check(CLI::Range(0, 1'000'000));
  Add(app, "max_streams", &server->transport.max_streams, "Calls at once per connection")
      ->check(CLI::Range(1, 1'000'000));
  Add(app, "max_metadata_bytes", &server->transport.max_metadata_bytes, "Headers of a call")
      ->check(CLI::Range(1024, 1 << 20));
  Add(app, "keepalive", &given->keepalive, "Seconds of silence after which a peer is asked")
      ->check(seconds);
  Add(app, "max_idle", &given->max_idle, "Seconds after which an unused connection is closed")
      ->check(seconds);
  Add(app, "max_age", &given->max_age,
      "Seconds after which a client is told to reconnect; up to 0.4 of --drain_timeout, draining "
      "waits for it, and clients that ignore health lose no request")
      ->check(seconds);
  Add(app, "write_timeout", &given->write_timeout,
      "Seconds that a client may take to read an answer; 2 where memory is short")
      ->check(seconds);
  Add(app, "stream_in_flight", &server->stream_in_flight,
      "Requests of a stream that are read ahead of its answers")
      ->check(CLI::Range(1, 1024));
  app->add_flag("--accept_compressed", given->accept_compressed,
                "No longer needed: gzip and deflate are always accepted, and inflated within "
                "--max_message_mb")
      ->envname("TILEWIRE_ACCEPT_COMPRESSED");
}

// Options about the services offered, the start and the shutdown.
void AddLifeCycle(CLI::App* app, Flags* flags, GivenFlags* given) {
  app->add_option("--services", given->services,
                  "What is served besides health, any of: inference,primitives,plans")
      ->delimiter(',')
      ->capture_default_str()
      ->envname("TILEWIRE_SERVICES")
      ->check(CLI::IsMember({"inference", "primitives", "plans"}));
  app->add_option("--open_rights", given->open_rights,
                  "What every client may do beyond asking, any of: repository,settings (load and "
                  "unload models; change the log's level and what is traced)")
      ->delimiter(',')
      ->envname("TILEWIRE_OPEN_RIGHTS")
      ->check(CLI::IsMember({"repository", "settings"}));
  Add(app, "default_max_batch", &flags->server.config.max_batch,
      "The max_batch_size that ModelConfig tells of models whose settings have none")
      ->check(CLI::Range(0, 1'000'000));
  app->add_flag("--reflection", flags->server.reflection, "Serve gRPC's reflection")
      ->envname("TILEWIRE_REFLECTION");
  Add(app, "ready", &given->ready, "Ready when all models are, or any")
      ->check(CLI::IsMember({"all", "any"}));
  Add(app, "warm_up", &given->warm_up,
      "A run of each model on zeros: after it is ready, in the background, or before")
      ->check(CLI::IsMember({"after", "before"}));
  Add(app, "drain_delay", &flags->drain_delay,
      "Seconds between not being ready and closing the port, after SIGTERM")
      ->check(CLI::Range(0, 3600));
  Add(app, "drain_timeout", &given->drain_timeout,
      "Seconds after which requests that still run are cancelled")
      ->check(CLI::Range(0, 3600));
  Add(app, "slow_ms", &given->slow_ms, "A request that takes longer gets a line in the log")
      ->check(CLI::Range(1, 3'600'000));
}

}  // namespace

absl::StatusOr<uint32_t> ParseVersions(const std::string& text) {
  uint32_t latest = 0;
  if (text == "all") return latest;
  const bool is_count = absl::StartsWith(text, "latest:") &&
                        absl::SimpleAtoi(text.substr(sizeof("latest:") - 1), &latest);
  if (is_count && latest > 0) return latest;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is neither 'all' nor 'latest:N' with N from 1 up"));
}

absl::StatusOr<std::optional<int>> ParsePort(const std::string& text) {
  int port = 0;
  if (text == "off") return std::optional<int>();
  if (absl::SimpleAtoi(text, &port) && port >= 0 && port <= 65535) return std::optional(port);
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is neither a port (0 to 65535) nor 'off'"));
}

void AddFlags(CLI::App* app, Flags* flags, GivenFlags* given) {
  AddModels(app, flags, given);
  AddEngine(app, flags, given);
  AddDiagnostics(app, flags, given);
  AddTraces(app, flags, given);
  AddOtherTasks(app, flags, given);
  AddLimits(app, flags, given);
  AddLifeCycle(app, flags, given);
}

}  // namespace tilewire::service
