// SPDX-License-Identifier: Apache-2.0
#include "service/parse_flags.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/precision.h"
#include "engine/primitive_engine.h"
#include "service/flag_list.h"
#include "service/unknown_variables.h"

namespace tilewire::service {
namespace {

constexpr char kDescription[] =
    "tilewire-server - serves ONNX models and single primitives over gRPC on the CPU\n";
constexpr char kFooter[] =
    "\nEvery flag has a default from the environment: TILEWIRE_PORT for --port, and so on.\n"
    "TILEWIRE_MODEL is one model; several are a TILEWIRE_MODEL_REPOSITORY, or --model each.\n"
    "\nExamples\n"
    "  tilewire-server --model=resnet50.onnx\n"
    "  tilewire-server --model=cats=cats_v3.onnx --model=dogs=/srv/dogs\n"
    "  tilewire-server --model_repository=models --host=127.0.0.1 --port=0\n"
    "  tilewire-server --model=resnet50.onnx --trace_file=trace.json --trace_rate=100\n"
    "  tilewire-server --model=resnet50.onnx --otlp_endpoint=localhost:4317\n"
    "  tilewire-server --list_implementations\n"
    "  tilewire-server --probe --port=8001\n"
    "\nSignals: TERM, INT and QUIT drain, a second one of these ends at once; HUP looks for models "
    "again; USR1 and USR2 log the counts of requests.\n"
    "\nExit status: 0 drained cleanly, 1 a failure while serving, a second signal, or one at the "
    "start\nthat may pass (the port is in use, a file is missing, too little memory, too few "
    "threads or\ndescriptors), 2 bad configuration, or no named model loads.\n";

// Translates the flags into the server's options.
void ApplyToServer(const GivenFlags& given, ServerOptions* server) {
  server->transport.keepalive = absl::Seconds(given.keepalive);
  server->transport.max_idle = absl::Seconds(given.max_idle);
  server->transport.max_age = absl::Seconds(given.max_age);
  server->queue.max_waiting_per_model = static_cast<int>(
      given.max_queue_per_model > 0 ? given.max_queue_per_model
                                    : (3 * int64_t{server->queue.max_waiting} + 3) / 4);
  server->queue.max_wait = absl::Milliseconds(given.max_queue_ms);
  server->write_timeout = absl::Seconds(given.write_timeout);
  server->drain_timeout = absl::Seconds(given.drain_timeout);
  server->slow_request = absl::Milliseconds(given.slow_ms);
  const auto serves = [&given](const char* service) {
    return absl::c_linear_search(given.services, service);
  };
  server->serve_inference = serves("inference");
  server->serve_primitives = serves("primitives");
  server->serve_plans = serves("plans");
  server->ready_when_any = given.ready == "any";
  server->access_log = given.access_log == "all"   ? AccessLog::kAll
                       : given.access_log == "off" ? AccessLog::kOff
                                                   : AccessLog::kBad;
  for (const std::string& right : given.open_rights) {
    server->open_rights.Open(right == "repository" ? Right::kRepository : Right::kSettings);
  }
}

MemoryWishes WishesFor(const GivenFlags& given) {
  const auto bytes = [](std::optional<int64_t> megabytes) {
    return megabytes ? std::optional<int64_t>(*megabytes << 20) : std::nullopt;
  };
  return {.message = bytes(given.max_message_mb),
          .transport = bytes(given.transport_mb),
          .work = given.max_work_mb > 0 ? bytes(given.max_work_mb) : std::nullopt,
          .code = bytes(given.primitive_cache_mb)};
}

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int Fail(const std::string& what) {
  std::fprintf(stderr, "tilewire-server: %s\n", what.c_str());
  return 2;
}

// Connections have room for two messages.
std::optional<int> CheckMessages(const GivenFlags& given) {
  if (!given.transport_mb || !given.max_message_mb) return std::nullopt;
  const int64_t transport = *given.transport_mb, message = *given.max_message_mb;
  if (transport >= 2 * message) return std::nullopt;
  return Fail(absl::StrCat("--transport_mb=", transport,
                           " has no room for two messages of --max_message_mb=", message,
                           ": --transport_mb is at least ", 2 * message,
                           " beside it, or --max_message_mb at most ", transport / 2));
}

// Translates the flags into the engine's options; the exit status if one is invalid.
std::optional<int> ApplyToEngine(const GivenFlags& given, EngineOptions* engine) {
  const absl::StatusOr<cpu::Isa> isa = cpu::ParseIsa(given.max_isa);
  if (!isa.ok()) return Fail(absl::StrCat("--max_isa: ", isa.status().message()));
  engine->max_isa = *isa & cpu::BestIsa();
  if (!cpu::Supports(*isa)) {
    std::fprintf(stderr, "tilewire-server: --max_isa=%s is a limit; this CPU ends at %s\n",
                 given.max_isa.c_str(), std::string(cpu::IsaName(cpu::BestIsa())).c_str());
  }
  engine->convolution_algorithm = given.convolution_algorithm == "direct"
                                      ? ConvolutionAlgorithm::kDirect
                                      : ConvolutionAlgorithm::kAuto;
  engine->precision = ParsePrecision(given.precision).value();  // the parser has checked it
  return std::nullopt;
}

// Who decides which models are loaded.
std::optional<int> ApplyControl(const GivenFlags& given, Flags* flags) {
  flags->control = given.model_control == "none"   ? ControlMode::kNone
                   : given.model_control == "poll" ? ControlMode::kPoll
                                                   : ControlMode::kExplicit;
  flags->unload_first = given.swap == "unload_first";
  flags->trial = given.trial == "process";
  if (flags->control == ControlMode::kExplicit) return std::nullopt;
  if (!flags->upload_dir.empty()) {
    return Fail(absl::StrCat("--upload_dir=", flags->upload_dir,
                             " needs --model_control=explicit; otherwise no client loads models"));
  }
  if (flags->load_models.empty()) return std::nullopt;
  return Fail(absl::StrCat("--load_model=", flags->load_models[0],
                           " needs --model_control=explicit; otherwise all models are loaded"));
}

// Flags of traces that go nowhere are a mistake.
std::optional<int> ApplyTraces(const CLI::App& app, const GivenFlags& given, Flags* flags) {
  TraceFlags* traces = &flags->traces;
  traces->form = given.trace_format == "triton" ? TraceForm::kTriton : TraceForm::kChrome;
  const bool has_file = !traces->file.empty(),
             has_sink = has_file || !traces->otlp_endpoint.empty();
  if (!has_file && app.count("--trace_format") > 0) {
    return Fail(absl::StrCat("--trace_format=", given.trace_format,
                             " needs --trace_file=PATH; it is the form of that file"));
  }
  for (const char* name : {"--trace_rate", "--trace_count"}) {
    if (has_sink || app.count(name) == 0) continue;
    return Fail(absl::StrCat(name, "=", absl::StrJoin(app[name]->results(), ","),
                             " needs --trace_file=PATH or --otlp_endpoint=HOST:PORT; without them "
                             "nothing is traced"));
  }
  return std::nullopt;
}

// Gives the models their names.
std::optional<int> NameModels(const GivenFlags& given, Flags* flags) {
  for (const std::string& text : given.models) {
    flags->models.push_back(ParseNamedModel(text));
    if (text[0] == '=') return Fail(absl::StrCat("--model=", text, " has no name before the '='"));
  }
  if (given.model_name.empty()) return std::nullopt;
  if (flags->models.size() != 1) {
    return Fail("--model_name is the name of one --model; of several, each is --model=NAME=PATH");
  }
  if (!flags->models[0].name.empty()) return Fail("the --model has a name besides --model_name");
  flags->models[0].name = given.model_name;
  return std::nullopt;
}

// Exactly one of the two ways to name models is taken.
std::optional<int> ChooseModels(GivenFlags* given, Flags* flags) {
  std::vector<std::string>* const repositories = &flags->model_repositories;
  if (given->models.empty() && repositories->empty()) {
    const std::string model = FromEnvironment("TILEWIRE_MODEL");
    if (!model.empty()) given->models.push_back(model);
    const std::string repository = FromEnvironment("TILEWIRE_MODEL_REPOSITORY");
    if (!repository.empty()) repositories->push_back(repository);
  }
  if (given->models.empty() && repositories->empty()) {
    if (!flags->server.serve_inference) return std::nullopt;  // none is asked for
    return Fail("one of --model_repository and --model is required (see --help)");
  }
  if (!given->models.empty() && !repositories->empty()) {
    return Fail("--model_repository and --model exclude each other");
  }
  return NameModels(*given, flags);
}

// Every flag with its value.
std::vector<Status::Flag> AllFlags(const CLI::App& app) {
  std::vector<Status::Flag> all;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) continue;
    const std::string& name = option->get_lnames()[0];
    if (name == "help" || name == "version") continue;
    const bool given = option->count() > 0;
    all.push_back(
        {name, given ? absl::StrJoin(option->results(), ",") : option->get_default_str(), given});
  }
  return all;
}

}  // namespace

std::optional<int> ParseFlags(int argc, char** argv, Flags* flags) {
  CLI::App app(kDescription, "tilewire-server");
  app.footer(kFooter);
  GivenFlags given;
  AddFlags(&app, flags, &given);
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
  if (const auto refused = ApplyToEngine(given, &flags->engine)) return refused;
  if (const auto refused = CheckMessages(given)) return refused;
  ApplyToServer(given, &flags->server);
  flags->scan.latest = ParseVersions(given.versions).value();  // the parser has checked it
  flags->server.config.latest = flags->scan.latest;
  if (const auto refused = ApplyControl(given, flags)) return refused;
  if (const auto refused = ApplyTraces(app, given, flags)) return refused;
  flags->warm_up_first = given.warm_up == "before";
  flags->log_form = given.log_format == "json" ? LogForm::kJson : LogForm::kText;
  flags->metrics_dialects = {.triton = absl::c_linear_search(given.metrics_compatibility, "triton"),
                             .ovms = absl::c_linear_search(given.metrics_compatibility, "ovms")};
  flags->metrics_port = ParsePort(given.metrics_port).value();  // the parser has checked it
  flags->metrics_port_is_asked_for = app.count("--metrics_port") > 0;
  flags->memory = WishesFor(given);
  if (given.probe) {
    flags->probe = FindProbeTarget(arguments, ReadCommandLine("/proc/1/cmdline"),
                                   {flags->server.host, flags->server.port});
  }
  if (flags->list_implementations || flags->probe) return std::nullopt;
  flags->warnings = UnknownVariables(app);
  flags->all = AllFlags(app);
  if (given.accept_compressed) {
    flags->warnings.push_back(
        "--accept_compressed is no longer needed: compressed messages are always accepted");
  }
  return ChooseModels(&given, flags);
}

}  // namespace tilewire::service
