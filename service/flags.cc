// SPDX-License-Identifier: Apache-2.0
#include "service/flags.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/precision.h"
#include "engine/primitive_engine.h"
#include "service/granted_memory.h"
#include "service/unknown_variables.h"
#include "service/version.h"

namespace tilewire::service {
namespace {

constexpr char kDescription[] =
    "tilewire-server - serves ONNX models and single primitives over gRPC on the CPU\n";
constexpr char kFooter[] =
    "\nEvery flag has a default from the environment: TILEWIRE_PORT for --port, and so on.\n"
    "\nExamples\n"
    "  tilewire-server --model=resnet50.onnx\n"
    "  tilewire-server --model=cats=cats_v3.onnx --model=dogs=/srv/dogs\n"
    "  tilewire-server --model_repository=models --host=127.0.0.1 --port=0\n"
    "  tilewire-server --list_implementations\n"
    "  tilewire-server --probe --port=8001\n"
    "\nSignals: TERM, INT and QUIT drain, a second one of these ends at once; HUP looks for models "
    "again; USR1 and USR2 log the counts of requests.\n"
    "\nExit status: 0 drained cleanly, 1 a failure while serving, 2 bad configuration (nothing was "
    "served).\n";

// What the command line gives before it becomes options.
struct Numbers {
  int64_t max_message_mb = 64;
  int64_t max_work_mb = 0;
  int64_t transport_mb = 512;
  int64_t max_queue_per_model = 0;
  int64_t max_queue_ms = 10'000;
  int64_t slow_ms = 10'000;
  int64_t write_timeout = 30, keepalive = 30, max_idle = 1800, max_age = 43'200;
  int64_t drain_timeout = 30;
  std::vector<std::string> models;
  std::string model_name;
  std::vector<std::string> services = {"inference", "primitives", "plans"};
  std::string ready = "all";
  int64_t primitive_cache_mb = 64;
  std::string max_isa = "best";
  std::string convolution_algorithm = "auto";
  std::string precision = "exact";
  bool probe = false;
};

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

// What requests and connections may cost.
void AddLimits(CLI::App* app, Flags* flags, Numbers* numbers) {
  ServerOptions* server = &flags->server;
  const auto seconds = CLI::Range(1, 1'000'000);
  Add(app, "max_queue", &server->queue.max_waiting, "Requests that may wait; more are UNAVAILABLE")
      ->check(CLI::Range(1, 1000000));
  Add(app, "max_queue_per_model", &numbers->max_queue_per_model,
      "Of these, requests of one model; 0: three quarters")
      ->check(CLI::Range(0, 1000000));
  Add(app, "max_queue_ms", &numbers->max_queue_ms, "Longest time that a request may wait")
      ->check(CLI::Range(1, 3'600'000));
  Add(app, "max_message_mb", &numbers->max_message_mb, "Largest message, both ways")
      ->check(CLI::Range(1, 2047));
  Add(app, "max_work_mb", &numbers->max_work_mb,
      "Memory of all requests together: messages, activations, answers; 0: half of what is granted")
      ->check(CLI::Range(0, 1 << 24));
  Add(app, "max_operations", &server->primitives.max_operations,
      "Operations of one described primitive")
      ->check(NumberFrom(1));
  Add(app, "max_reference_operations", &server->primitives.max_reference_operations,
      "The same, where only a reference implementation takes it; 0: none")
      ->check(NumberFrom(0));
  Add(app, "transport_mb", &numbers->transport_mb, "Memory of all connections together")
      ->check(CLI::Range(16, 1 << 20));
  Add(app, "max_connections_per_peer", &server->transport.max_connections_per_peer,
      "Open connections of one address (IPv6: of a /64 network); 0: no bound")
      ->check(CLI::Range(0, 1'000'000));
  Add(app, "max_streams", &server->transport.max_streams, "Calls at once per connection")
      ->check(CLI::Range(1, 1'000'000));
  Add(app, "max_metadata_bytes", &server->transport.max_metadata_bytes, "Headers of a call")
      ->check(CLI::Range(1024, 1 << 20));
  Add(app, "keepalive", &numbers->keepalive, "Seconds of silence after which a peer is asked")
      ->check(seconds);
  Add(app, "max_idle", &numbers->max_idle, "Seconds after which an unused connection is closed")
      ->check(seconds);
  Add(app, "max_age", &numbers->max_age,
      "Seconds after which a client is told to reconnect; up to 0.4 of --drain_timeout, draining "
      "waits for it, and clients that ignore health lose no request")
      ->check(seconds);
  Add(app, "write_timeout", &numbers->write_timeout,
      "Seconds that a client may take to read a large answer")
      ->check(seconds);
  app->add_flag("--accept_compressed", server->transport.accept_compressed,
                "Accept gzip and deflate: 1.5 MB may then inflate to 2 GB before it is refused")
      ->envname("TILEWIRE_ACCEPT_COMPRESSED");
}

// What is served, from the start to the end.
void AddLifeCycle(CLI::App* app, Flags* flags, Numbers* numbers) {
  app->add_option("--services", numbers->services,
                  "What is served besides health, any of: inference,primitives,plans")
      ->delimiter(',')
      ->capture_default_str()
      ->envname("TILEWIRE_SERVICES")
      ->check(CLI::IsMember({"inference", "primitives", "plans"}));
  app->add_flag("--reflection", flags->server.reflection,
                "Serve gRPC's reflection; each of its streams takes a thread")
      ->envname("TILEWIRE_REFLECTION");
  Add(app, "ready", &numbers->ready, "Ready when all models are, or any")
      ->check(CLI::IsMember({"all", "any"}));
  Add(app, "drain_delay", &flags->drain_delay,
      "Seconds between not being ready and closing the port, after SIGTERM")
      ->check(CLI::Range(0, 3600));
  Add(app, "drain_timeout", &numbers->drain_timeout,
      "Seconds after which requests that still run are cancelled")
      ->check(CLI::Range(0, 3600));
  Add(app, "slow_ms", &numbers->slow_ms, "A request that takes longer gets a line in the log")
      ->check(CLI::Range(1, 3'600'000));
}

// What the numbers mean to the server.
void ApplyNumbers(const Numbers& numbers, ServerOptions* server) {
  server->transport.max_message_bytes = numbers.max_message_mb << 20;
  server->transport.transport_bytes = std::max(numbers.transport_mb, 2 * numbers.max_message_mb)
                                      << 20;
  server->transport.keepalive = absl::Seconds(numbers.keepalive);
  server->transport.max_idle = absl::Seconds(numbers.max_idle);
  server->transport.max_age = absl::Seconds(numbers.max_age);
  server->queue.max_waiting_per_model = static_cast<int>(
      numbers.max_queue_per_model > 0 ? numbers.max_queue_per_model
                                      : (3 * int64_t{server->queue.max_waiting} + 3) / 4);
  server->queue.max_wait = absl::Milliseconds(numbers.max_queue_ms);
  server->max_work_bytes =
      numbers.max_work_mb > 0 ? numbers.max_work_mb << 20 : GrantedMemory() / 2;
  server->write_timeout = absl::Seconds(numbers.write_timeout);
  server->drain_timeout = absl::Seconds(numbers.drain_timeout);
  server->slow_request = absl::Milliseconds(numbers.slow_ms);
  const auto serves = [&numbers](const char* service) {
    return absl::c_linear_search(numbers.services, service);
  };
  server->serve_inference = serves("inference");
  server->serve_primitives = serves("primitives");
  server->serve_plans = serves("plans");
  server->ready_when_any = numbers.ready == "any";
}

void AddOptions(CLI::App* app, Flags* flags, Numbers* numbers) {
  // Their defaults come from the environment after parsing: a flag outdoes the other's default.
  app->add_option("--model_repository", flags->model_repository,
                  "Directory with <model>/<version>/model.onnx (TILEWIRE_MODEL_REPOSITORY)");
  app->add_option("--model", numbers->models,
                  "Serve this ONNX file, or this folder that is one model; NAME=PATH gives it a "
                  "name; may be given several times; one of the two is required (TILEWIRE_MODEL)")
      ->allow_extra_args(false);
  Add(app, "model_name", &numbers->model_name, "The name of the one --model");
  Add(app, "host", &flags->server.host, "Address to listen on");
  Add(app, "port", &flags->server.port, "gRPC port; 0 picks a free one and prints it")
      ->check(CLI::Range(0, 65535));
  Add(app, "threads", &flags->engine.threads, "Compute threads; 0: the cores that are granted")
      ->check(CLI::Range(0, 1024));
  Add(app, "threads_per_request", &flags->engine.threads_per_request,
      "Threads that one request may use; 0: all")
      ->check(CLI::Range(0, 1024));
  Add(app, "pin_threads", &flags->pin_threads,
      "true: where there is a compute thread per core, each stays on its own; false: they move");
  Add(app, "max_isa", &numbers->max_isa,
      absl::StrCat("No instruction set above: ", cpu::IsaNames(" | "), " | best"));
  Add(app, "convolution_algorithm", &numbers->convolution_algorithm,
      "auto: Winograd where it is estimated to be faster; direct: never")
      ->check(CLI::IsMember({"auto", "direct"}));
  Add(app, "precision", &numbers->precision,
      "Products of f32: exact; fast: also by three of bf16 each; bf16: also by one, with 8 bits; a "
      "model's config.pbtxt may name its own")
      ->check(CLI::IsMember({"exact", "fast", "bf16"}));
  Add(app, "primitive_cache_mb", &numbers->primitive_cache_mb, "Compiled code that is kept")
      ->check(CLI::Range(0, 65536));
  Add(app, "log_level", &flags->log_level, "trace | debug | info | warning | error | off")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}));
  Add(app, "verbose", &flags->verbose,
      "Lines on standard error: 0 none, 1 each execution, 2 each creation too")
      ->check(CLI::IsMember({0, 1, 2}));
  Add(app, "dump_jit", &flags->dump_jit,
      "Write each generated kernel to DIR/<name>.<n>.bin (objdump -D -b binary -m i386:x86-64 "
      "-M intel FILE); TILEWIRE_PERF_MAP=1 names them for perf")
      ->check(CLI::ExistingDirectory);
  app->add_flag("--list_implementations", flags->list_implementations,
                "Print primitive x instruction set x type, mark what this machine uses, exit");
  app->add_flag("--probe", numbers->probe,
                "Ask the server at --host and --port for its health, exit: 0 if it serves, else 1; "
                "without them, the server that is process 1 of this container");
  AddLimits(app, flags, numbers);
  AddLifeCycle(app, flags, numbers);
  app->set_version_flag("--version", absl::StrCat("tilewire-server ", kVersion));
}

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int Fail(const std::string& what) {
  std::fprintf(stderr, "tilewire-server: %s\n", what.c_str());
  return 2;
}

// Gives the models their names.
std::optional<int> NameModels(const Numbers& numbers, Flags* flags) {
  for (const std::string& text : numbers.models) {
    flags->models.push_back(ParseNamedModel(text));
    if (text[0] == '=') return Fail(absl::StrCat("--model=", text, " has no name before the '='"));
  }
  if (numbers.model_name.empty()) return std::nullopt;
  if (flags->models.size() != 1) {
    return Fail("--model_name is the name of one --model; of several, each is --model=NAME=PATH");
  }
  if (!flags->models[0].name.empty()) return Fail("the --model has a name besides --model_name");
  flags->models[0].name = numbers.model_name;
  return std::nullopt;
}

// Exactly one of the two ways to name models is taken.
std::optional<int> ChooseModels(Numbers* numbers, Flags* flags) {
  if (numbers->models.empty() && flags->model_repository.empty()) {
    const std::string model = FromEnvironment("TILEWIRE_MODEL");
    if (!model.empty()) numbers->models.push_back(model);
    flags->model_repository = FromEnvironment("TILEWIRE_MODEL_REPOSITORY");
  }
  if (numbers->models.empty() && flags->model_repository.empty()) {
    return Fail("one of --model_repository and --model is required (see --help)");
  }
  if (!numbers->models.empty() && !flags->model_repository.empty()) {
    return Fail("--model_repository and --model exclude each other");
  }
  return NameModels(*numbers, flags);
}

}  // namespace

std::optional<int> ParseFlags(int argc, char** argv, Flags* flags) {
  CLI::App app(kDescription, "tilewire-server");
  app.footer(kFooter);
  Numbers numbers;
  AddOptions(&app, flags, &numbers);
  const std::vector<std::string> arguments(argv, argv + argc);
  for (const std::string& argument : arguments) {
    // The parser would take the next argument for the value.
    if (absl::StartsWith(argument, "--") && absl::EndsWith(argument, "="))
      return Fail(absl::StrCat(argument, " has no value; leave it out for the default"));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return Fail(error.what());
  }
  const absl::StatusOr<cpu::Isa> isa = cpu::ParseIsa(numbers.max_isa);
  if (!isa.ok()) return Fail(absl::StrCat("--max_isa: ", isa.status().message()));
  flags->engine.max_isa = *isa & cpu::BestIsa();
  if (!cpu::Supports(*isa)) {
    std::fprintf(stderr, "tilewire-server: --max_isa=%s is a limit; this CPU ends at %s\n",
                 numbers.max_isa.c_str(), std::string(cpu::IsaName(cpu::BestIsa())).c_str());
  }
  flags->engine.convolution_algorithm = numbers.convolution_algorithm == "direct"
                                            ? ConvolutionAlgorithm::kDirect
                                            : ConvolutionAlgorithm::kAuto;
  flags->engine.precision = ParsePrecision(numbers.precision).value();  // one of the names above
  flags->engine.primitive_cache_bytes = numbers.primitive_cache_mb << 20;
  ApplyNumbers(numbers, &flags->server);
  if (numbers.probe) {
    flags->probe = FindProbeTarget(arguments, ReadCommandLine("/proc/1/cmdline"),
                                   {flags->server.host, flags->server.port});
  }
  if (flags->list_implementations || flags->probe) return std::nullopt;
  flags->warnings = UnknownVariables(app);
  return ChooseModels(&numbers, flags);
}

}  // namespace tilewire::service
