// SPDX-License-Identifier: Apache-2.0
//
// The command-line client.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "client/amount_text.h"
#include "client/tool/command.h"
#include "client/tool/help_format.h"
#include "client/tool/version.h"

namespace {

constexpr char kDescription[] =
    R"(tilewire - talks to a tilewire-server, or any Open Inference Protocol server

  tilewire models
  tilewire infer --model=digits --top=3 photo.png
  tilewire evaluate --model=digits --images=images.u8 --labels=labels.u8 --shape=3x24x20
  tilewire load --model=digits --concurrency=2 --duration=10
  tilewire report monday.json tuesday.json --html=comparison.html
  tilewire explain digits --runs=20
  tilewire explain digits --live
  tilewire slow digits
  tilewire top
  tilewire check exported/*.onnx
  tilewire check /srv/models
  tilewire train cats.onnx --folder=pictures --hold_out=0.1 -o trained.onnx
  tilewire tune cats.onnx --images=pictures --budget="l2<=1e-2" --qdq=int8.onnx
  tilewire primitive convolution --src=1x64x56x56 --weights=64x64x3x3 --padding=1 --relu
  tilewire implementations
  tilewire probe)";

constexpr char kFooter[] = R"(`tilewire COMMAND --help` explains a command's options.

Exit status: 0 success, 1 the server, an answer or a checked file failed, 2 bad command line,
130, 143 and 129 if Ctrl-C, SIGTERM or SIGHUP ended a load, a top, a training or a tuning)";

std::string CommandNames(const CLI::App& app) {
  return absl::StrJoin(
      app.get_subcommands({}), ", ",
      [](std::string* out, const CLI::App* command) { absl::StrAppend(out, command->get_name()); });
}

void AddCommands(CLI::App* app, const tilewire::client::Server& server, int* exit_code) {
  tilewire::client::AddModelsCommand(app, server, exit_code);
  tilewire::client::AddInferCommand(app, server, exit_code);
  tilewire::client::AddEvaluateCommand(app, server, exit_code);
  tilewire::client::AddLoadCommand(app, server, exit_code);
  tilewire::client::AddReportCommand(app, exit_code);
  tilewire::client::AddExplainCommand(app, server, exit_code);
  tilewire::client::AddSlowCommand(app, server, exit_code);
  tilewire::client::AddTopCommand(app, server, exit_code);
  tilewire::client::AddCheckCommand(app, exit_code);
  tilewire::client::AddTrainCommand(app, exit_code);
  tilewire::client::AddTuneCommand(app, exit_code);
  tilewire::client::AddPrimitiveCommand(app, server, exit_code);
  tilewire::client::AddImplementationsCommand(app, server, exit_code);
  tilewire::client::AddProbeCommand(app, server, exit_code);
}

// An unknown word tells the user more than the command that is missing.
int RefuseCommand(const CLI::App& app, const CLI::RequiredError& error) {
  const std::vector<std::string> words = app.remaining();
  if (!app.get_subcommands().empty() || words.empty()) return app.exit(error), 2;
  return tilewire::client::Refuse(absl::InvalidArgumentError(
      absl::StrCat("'", words[0], "' is not a command; commands are ", CommandNames(app))));
}

// The parser's words about an error, in which arguments are as they were given.
std::string FailureText(const CLI::App* app, const CLI::Error& error) {
  std::string shown;
  for (absl::string_view line : absl::StrSplit(CLI::FailureMessage::simple(app, error), '\n'))
    absl::StrAppend(&shown, shown.empty() ? "" : "\n", tilewire::client::ShownText(line));
  return shown;
}

// The parser would take the argument after "--name=" for the value.
absl::Status CheckValues(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (!absl::StartsWith(argument, "--") || !absl::EndsWith(argument, "=")) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(argument, " has no value; leave it out for the default"));
  }
  return absl::OkStatus();
}

// The exit code; 1 in the place of 0 if the output could not be written, as on a full disk.
int AfterPrinting(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  std::fprintf(stderr, "tilewire: standard output cannot be written to\n");
  return exit_code == 0 ? 1 : exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  // Debian's Abseil looks for cycles of locks at every lock, which costs a load test a tenth of its
  // time.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its own
  tilewire::client::Server server;
  std::string host;
  int port = 0;
  int exit_code = 0;
  CLI::App app(kDescription);
  app.footer(kFooter);
  app.formatter(std::make_shared<tilewire::client::HelpFormat>());
  app.failure_message(FailureText);
  app.fallthrough();  // options of the server may stand after the command
  app.require_subcommand(1);
  app.set_version_flag("--version", absl::StrCat("tilewire ", tilewire::client::kVersion));
  app.add_option("--server", server.address, "HOST:PORT of the server")
      ->envname("TILEWIRE_SERVER")
      ->capture_default_str();
  app.add_option("--host", host, "only the host of it");
  app.add_option("--port", port, "only the port of it")->check(CLI::Range(1, 65535));
  app.add_option("--connect_timeout", server.connect_timeout_s, "seconds to wait for a connection")
      ->check(tilewire::client::Between(0.001, 3600.0))
      ->capture_default_str();
  tilewire::client::AddTlsOptions(&app, &server);
  app.parse_complete_callback([&] {
    if (const absl::Status status = tilewire::client::CheckAddress(server.address); !status.ok())
      throw CLI::ValidationError("--server", std::string(status.message()));
    const size_t colon = server.address.rfind(':');
    const std::string given_host = server.address.substr(0, colon);
    const std::string given_port = server.address.substr(colon + 1);
    if (absl::StrContains(host, ':') && !absl::StartsWith(host, "["))
      host = absl::StrCat("[", host, "]");  // of IPv6
    server.address = absl::StrCat(host.empty() ? given_host : host, ":",
                                  port == 0 ? given_port : absl::StrCat(port));
  });
  AddCommands(&app, server, &exit_code);
  if (const absl::Status status = CheckValues({argv + 1, argv + argc}); !status.ok())
    return tilewire::client::Refuse(status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    return RefuseCommand(app, error);
  } catch (const CLI::ParseError& error) {
    return AfterPrinting(app.exit(error) == 0 ? 0 : 2);
  }
  exit_code = AfterPrinting(exit_code);
  // A thread of gRPC may still end a handshake, and would use what the end of main destroys.
  std::fflush(nullptr);
  std::quick_exit(exit_code);
}
