// SPDX-License-Identifier: Apache-2.0
#include "service/flags.h"

#include <cstdio>
#include <cstdlib>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "service/version.h"

namespace tilewire::service {
namespace {

constexpr char kDescription[] =
    "tilewire-server - serves ONNX models and single primitives over gRPC on the CPU\n";
constexpr char kFooter[] =
    "\nEvery flag has a default from the environment: TILEWIRE_PORT for --port, and so on.\n"
    "\nExamples\n"
    "  tilewire-server --model=resnet50.onnx\n"
    "  tilewire-server --model_repository=models --host=127.0.0.1 --port=0\n"
    "  tilewire-server --list_implementations\n"
    "\nExit status: 0 drained cleanly, 1 a failure while serving, 2 bad configuration (nothing was "
    "served).\n";

// What the command line gives before it becomes options.
struct Numbers {
  int64_t max_message_mb = 64;
  int64_t primitive_cache_mb = 64;
  std::string max_isa = "best";
  std::string convolution_algorithm = "auto";
};

// "--port", with its default from TILEWIRE_PORT.
template <typename Value>
CLI::Option* Add(CLI::App* app, const std::string& name, Value* value, const std::string& text) {
  return app->add_option("--" + name, *value, text)
      ->capture_default_str()
      ->envname(absl::StrCat("TILEWIRE_", absl::AsciiStrToUpper(name)));
}

void AddOptions(CLI::App* app, Flags* flags, Numbers* numbers) {
  // Their defaults come from the environment after parsing: a flag outdoes the other's default.
  app->add_option("--model_repository", flags->model_repository,
                  "Directory with <model>/<version>/model.onnx (TILEWIRE_MODEL_REPOSITORY)");
  app->add_option("--model", flags->model,
                  "Serve this one ONNX file; one of the two is required (TILEWIRE_MODEL)");
  Add(app, "host", &flags->server.host, "Address to listen on");
  Add(app, "port", &flags->server.port, "gRPC port; 0 picks a free one and prints it")
      ->check(CLI::Range(0, 65535));
  Add(app, "threads", &flags->engine.threads, "Compute threads; 0: the cores that are granted")
      ->check(CLI::Range(0, 1024));
  Add(app, "threads_per_request", &flags->engine.threads_per_request,
      "Threads that one request may use; 0: all")
      ->check(CLI::Range(0, 1024));
  Add(app, "max_isa", &numbers->max_isa,
      "No instruction set above: baseline | avx2 | avx2_vnni | avx512 | avx512_vnni | "
      "avx512_bf16 | avx512_fp16 | amx | best");
  Add(app, "convolution_algorithm", &numbers->convolution_algorithm,
      "auto: Winograd where it is estimated to be faster; direct: never")
      ->check(CLI::IsMember({"auto", "direct"}));
  Add(app, "max_queue", &flags->server.max_queue, "Requests that may wait; more are UNAVAILABLE")
      ->check(CLI::Range(1, 1000000));
  Add(app, "max_message_mb", &numbers->max_message_mb, "Largest message, both ways")
      ->check(CLI::Range(1, 2047));
  Add(app, "primitive_cache_mb", &numbers->primitive_cache_mb, "Compiled code that is kept")
      ->check(CLI::Range(0, 65536));
  Add(app, "log_level", &flags->log_level, "trace | debug | info | warning | error | off")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}));
  Add(app, "verbose", &flags->verbose,
      "Lines on standard error: 0 none, 1 each execution, 2 each creation too")
      ->check(CLI::IsMember({0, 1, 2}));
  Add(app, "dump_jit", &flags->dump_jit, "Write each generated kernel to DIR/<name>.<n>.bin")
      ->check(CLI::ExistingDirectory);
  app->add_flag("--list_implementations", flags->list_implementations,
                "Print primitive x instruction set x type, mark what this machine uses, exit");
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

}  // namespace

std::optional<int> ParseFlags(int argc, char** argv, Flags* flags) {
  CLI::App app(kDescription, "tilewire-server");
  app.footer(kFooter);
  Numbers numbers;
  AddOptions(&app, flags, &numbers);
  for (const std::string& argument : std::vector<std::string>(argv + 1, argv + argc)) {
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
  flags->engine.primitive_cache_bytes = numbers.primitive_cache_mb << 20;
  flags->server.max_message_bytes = numbers.max_message_mb << 20;
  if (flags->list_implementations) return std::nullopt;
  if (flags->model.empty() && flags->model_repository.empty()) {
    flags->model = FromEnvironment("TILEWIRE_MODEL");
    flags->model_repository = FromEnvironment("TILEWIRE_MODEL_REPOSITORY");
  }
  if (flags->model.empty() && flags->model_repository.empty()) {
    return Fail("one of --model_repository and --model is required (see --help)");
  }
  if (!flags->model.empty() && !flags->model_repository.empty()) {
    return Fail("--model_repository and --model exclude each other");
  }
  return std::nullopt;
}

}  // namespace tilewire::service
