// SPDX-License-Identifier: Apache-2.0
//
// `tilewire top`: what the server does now, again and again.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/tool/command.h"
#include "client/tool/screen.h"
#include "client/top/text.h"

namespace tilewire::client {
namespace {

constexpr char kTopExamples[] =
    R"(  tilewire top                            # the server of --server, every 2 s
  tilewire top 10.0.0.7:8001 --interval=0.5
  tilewire top --model=cats               # one model, each of its versions
  tilewire top | cat                      # once: of the next 2 s
  tilewire top --count=30 > minute.txt    # 30 times
  tilewire top --json --count=0 | jq -c '[.at_ms, .requests_per_s, .cores_used]'

In a terminal the screen is drawn anew every --interval until Ctrl-C; elsewhere
one interval is printed. With --count so many are printed in either case. One
that has no end, as with --count=0, goes on where the server restarts; elsewhere
than on a screen, standard error tells from when to when no answer came. Nothing
has to be switched on in the server, and it needs no monitoring port.

A line is a version: requests and rows answered per second; the times from
arrival to answer that half and 99 % of the requests kept to (upper ends of
buckets, so up to a tenth too high); the share of that time which was waiting
for a core (queued); the cores that its requests held, counted when they end;
how many wait and run now, of all the model's versions; errors per second, and
requests refused before they ran. In a narrow terminal the columns that matter
least are left out, then names are cut in the middle. `tilewire slow` tells why
requests were slow, `tilewire explain MODEL --live` where the time within runs
goes.)";

// An answer that takes longer does not say what the server does now.
constexpr absl::Duration kLongestAnswer = absl::Seconds(5);

struct TopOptions {
  std::string address, model;
  bool has_address = false;
  double interval_s = 2;
  std::optional<int64_t> count;  // 0: until it is ended
  bool json = false;
};

class Watch {
 public:
  Watch(const TopOptions& options, std::string address)
      : options_(options), address_(std::move(address)) {
    if (!options.json && !options.count && Screen::IsPossible())
      screen_ = std::make_unique<Screen>();
    const int64_t count = options.count.value_or(isatty(STDOUT_FILENO) ? 0 : 1);
    is_endless_ = count == 0;
    left_ = is_endless_ ? std::numeric_limits<int64_t>::max() : count;
  }

  // Until all intervals are shown. Returns the failure of an answer that ended it.
  absl::Status Run(Client* client);

 private:
  absl::Status Look(Client* client);
  bool MayPass(const absl::Status& failure) const;
  void Show(const TopInterval& top);
  void ShowFailure(const absl::Status& status);
  void EndSilence();

  const TopOptions& options_;
  const std::string address_;
  std::unique_ptr<Screen> screen_;
  int64_t left_ = 0;
  bool is_endless_ = false;
  std::optional<absl::Time> silent_since_;  // told on standard error
  bool has_printed_ = false;
  std::optional<v1::ServerStatusResponse> before_;
};

void Watch::Show(const TopInterval& top) {
  if (screen_ != nullptr) {
    const Screen::Size size = screen_->size();
    return screen_->Draw(TopText(top, address_, {.columns = size.columns, .lines = size.lines}));
  }
  const bool parts = std::exchange(has_printed_, true) && !options_.json;
  absl::PrintF("%s%s", parts ? "\n" : "",
               options_.json ? TopJson(top) : TopText(top, address_, {}));
  std::fflush(stdout);
}

void Watch::ShowFailure(const absl::Status& status) {
  if (screen_ != nullptr) {
    const Screen::Size size = screen_->size();
    return screen_->Draw(NoAnswerText(status.message(), address_, options_.interval_s,
                                      {.columns = size.columns, .lines = size.lines}));
  }
  if (silent_since_) return;
  silent_since_ = absl::Now();
  absl::FPrintF(stderr, "tilewire: %s",
                NoAnswerText(status.message(), address_, options_.interval_s, {}));
}

void Watch::EndSilence() {
  if (!silent_since_) return;
  absl::FPrintF(stderr, "tilewire: %s answers again, after %.1f s\n", address_,
                absl::ToDoubleSeconds(absl::Now() - *silent_since_));
  silent_since_.reset();
}

// Whether a server that has answered once may answer again, for who watches without an end. gRPC
// may cancel a request that meets the server's end.
bool Watch::MayPass(const absl::Status& failure) const {
  return is_endless_ && before_ &&
         (absl::IsUnavailable(failure) || absl::IsDeadlineExceeded(failure) ||
          absl::IsCancelled(failure));
}

// The first answer shows all since the server's start where a screen would be empty else.
absl::Status Watch::Look(Client* client) {
  v1::ServerStatusRequest request;
  request.set_model(options_.model);
  auto status = client->ServerStatus(request, kLongestAnswer);
  if (!status.ok()) return status.status();
  EndSilence();
  if (before_) {
    const auto top = IntervalBetween(*before_, *status);
    if (!top.ok()) return top.status();
    Show(*top);
    --left_;
  } else if (screen_ != nullptr) {
    Show(IntervalSinceStart(*status));
  }
  before_ = *std::move(status);
  return absl::OkStatus();
}

absl::Status Watch::Run(Client* client) {
  absl::Time next = absl::Now();
  while (true) {
    const absl::Status looked = Look(client);
    if (!looked.ok()) {
      if (!MayPass(looked)) return looked;
      ShowFailure(looked);
    }
    if (left_ == 0 || std::ferror(stdout) != 0) return absl::OkStatus();
    next = std::max(next + absl::Seconds(options_.interval_s), absl::Now());
    absl::SleepFor(next - absl::Now());
  }
}

int ReportTop(const absl::Status& status) {
  const int exit_code = Report(status, "Name one of the servers: `tilewire top HOST:PORT`.");
  if (absl::IsUnimplemented(status)) {
    absl::FPrintF(stderr,
                  "The server is an older one or another's: only a tilewire-server tells its "
                  "status. `tilewire models` shows what it has.\n");
  }
  return exit_code;
}

int RunTop(const Server& given, const TopOptions& options) {
  Server server = given;
  if (options.has_address) server.address = options.address;
  if (const absl::Status status = CheckAddress(server.address); !status.ok()) return Refuse(status);
  if (absl::StrContains(server.address, ',')) {
    return Refuse(absl::InvalidArgumentError(
        absl::StrCat("'", server.address, "' is several servers; top watches one")));
  }
  auto client = server.Connect();
  if (!client.ok()) return Report(client.status());
  absl::Status status;
  {
    Watch watch(options, server.address);
    status = watch.Run(client->get());
  }
  return ReportTop(status);
}

}  // namespace

void AddTopCommand(CLI::App* app, const Server& server, int* exit_code) {
  CLI::App* command = app->add_subcommand(
      "top", "Show what the server does now: rates, latencies and cores of each model");
  command->footer(kTopExamples);
  auto options = std::make_shared<TopOptions>();
  const CLI::Option* address =
      command->add_option("address", options->address, "HOST:PORT, in the place of --server");
  command->add_option("--model", options->model, "only this one");
  command->add_option("--interval", options->interval_s, "seconds between two looks")
      ->check(Between(0.1, 3600))
      ->capture_default_str();
  command
      ->add_option("--count", options->count,
                   "how many intervals, 0: until it is ended; by default 0 in a terminal, else 1")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 31));
  command->add_flag("--json", options->json, "a line for each interval, for programs");
  command->callback([=, &server] {
    options->has_address = address->count() > 0;
    *exit_code = RunTop(server, *options);
  });
}

}  // namespace tilewire::client
