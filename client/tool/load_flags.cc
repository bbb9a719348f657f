// SPDX-License-Identifier: Apache-2.0
#include "client/tool/load_flags.h"

#include <string>

#include "client/load/objective.h"
#include "client/tool/command.h"

namespace tilewire::client {
namespace {

// An option that is right if `parse` says so.
template <typename Parse>
CLI::Validator Parses(Parse parse, const char* what) {
  return CLI::Validator(
      [parse](const std::string& text) { return std::string(parse(text).status().message()); },
      what);
}

absl::StatusOr<absl::Duration> ParseBound(const std::string& text) {
  absl::Duration bound;
  if (!absl::ParseDuration(text, &bound) || bound <= absl::ZeroDuration() ||
      bound == absl::InfiniteDuration())
    return absl::InvalidArgumentError(absl::StrCat(text, " is not a duration such as 20ms"));
  return bound;
}

constexpr char kLoop[] = "Loop";

// The options of the search for a rate, which excludes other loops.
void AddSearchOptions(CLI::App* command, const std::vector<CLI::Option*>& loops, LoadFlags* flags) {
  CLI::Option* p99 =
      command
          ->add_option("--p99", flags->p99, "the bound of --find_rate on the 99th percentile: 20ms")
          ->check(Parses(ParseBound, "DURATION"))
          ->group(kLoop);
  CLI::Option* find_rate =
      command
          ->add_flag("--find_rate", flags->find_rate,
                     "search for the highest rate at which p99 keeps its bound and nothing fails")
          ->needs(p99)
          ->group(kLoop);
  for (CLI::Option* loop : loops) find_rate->excludes(loop);
  command
      ->add_option("--first_rate", flags->first_rate,
                   "where --find_rate begins; 0: half of what two callers reach")
      ->check(Between(0, 1e6))
      ->capture_default_str()
      ->group(kLoop);
  command
      ->add_option("--precision", flags->precision,
                   "of --find_rate: the width of its range at which it ends before its time")
      ->check(Between(0.001, 1))
      ->capture_default_str()
      ->group(kLoop);
  command
      ->add_option("--search_time", flags->search_time_s,
                   "seconds that --find_rate takes at most; 0: as 40 runs take, and at least 240")
      ->check(Between(0, 1e6))
      ->capture_default_str()
      ->group(kLoop);
}

void AddLoopOptions(CLI::App* command, LoadFlags* flags) {
  CLI::Option* concurrency =
      command
          ->add_option("--concurrency", flags->concurrency,
                       "callers of a closed loop, each on its own connection; several numbers: "
                       "one loop after the other")
          ->delimiter(',')
          ->check(CLI::Range(1, 10000))
          ->capture_default_str()
          ->group(kLoop);
  CLI::Option* rate = command
                          ->add_option("--rate", flags->rates,
                                       "requests per second of an open loop; several numbers: "
                                       "one loop after the other")
                          ->delimiter(',')
                          ->check(Between(0.001, 1e6))
                          ->excludes(concurrency)
                          ->group(kLoop);
  CLI::Option* profile = command
                             ->add_option("--profile", flags->profile,
                                          "an open loop whose rate changes: 100:10s,100-400:30s is "
                                          "10 s at 100/s, then 30 s up to 400/s")
                             ->check(Parses(RateProfile::Parse, "STAGES"))
                             ->excludes(concurrency)
                             ->excludes(rate)
                             ->group(kLoop);
  CLI::Option* think =
      command
          ->add_option("--think", flags->think,
                       "mean pause of a closed loop's caller between an answer and its next "
                       "request: 20ms")
          ->check(Parses(ParseBound, "DURATION"))
          ->excludes(rate)
          ->excludes(profile)
          ->group(kLoop);
  command->add_option("--think_times", flags->think_times, "of these pauses")
      ->check(CLI::IsMember({"exponential", "constant"}))
      ->needs(think)
      ->capture_default_str()
      ->group(kLoop);
  AddSearchOptions(command, {concurrency, rate, profile, think}, flags);
}

void AddPaceOptions(CLI::App* command, LoadFlags* flags) {
  constexpr char kPace[] = "Pace and length";
  command->add_option("--arrivals", flags->arrivals, "gaps between the requests of an open loop")
      ->check(CLI::IsMember({"poisson", "constant"}))
      ->capture_default_str()
      ->group(kPace);
  command
      ->add_option("--seed", flags->seed, "of the gaps, the pauses, the mix and the random inputs")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 53))
      ->capture_default_str()
      ->group(kPace);
  command->add_option("--connections", flags->connections, "that an open loop sends on")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str()
      ->group(kPace);
  command->add_option("--threads", flags->threads, "that take answers")
      ->check(CLI::Range(1, 256))
      ->capture_default_str()
      ->group(kPace);
  command
      ->add_option("--max_waiting", flags->max_waiting,
                   "answers outstanding in an open loop; requests beyond stay unsent")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str()
      ->group(kPace);
  command->add_option("--warm_up", flags->warm_up_s, "seconds before counting begins")
      ->check(Between(0, 1e6))
      ->capture_default_str()
      ->group(kPace);
  command->add_option("--duration", flags->duration_s, "seconds; of --find_rate: the shortest run")
      ->check(Between(0.01, 1e6))
      ->default_str("10; with --find_rate 2")
      ->group(kPace);
  command->add_option("--requests", flags->requests, "stop after this many instead")
      ->check(AtLeastOne())
      ->group(kPace);
  command->add_option("--timeout", flags->timeout_s, "seconds for one answer")
      ->check(Between(0.001, 1e6))
      ->capture_default_str()
      ->group(kPace);
}

void AddRequestOptions(CLI::App* command, LoadFlags* flags) {
  constexpr char kRequests[] = "Requests";
  CLI::Option* model = command->add_option("--model", flags->model, "the model to call");
  model->group(kRequests);
  command
      ->add_option("--mix", flags->mix,
                   "models to call in a mix, as NAME[@BATCH][:SHARE]: digits:3,digits@8:1")
      ->excludes(model)
      ->check(Parses(ParseMix, "PARTS"))
      ->group(kRequests);
  command->add_option("--batch", flags->batch, "rows per request")
      ->check(AtLeastOne())
      ->capture_default_str()
      ->group(kRequests);
  command->add_option("--layout", flags->layout, "of inputs and outputs")
      ->check(CLI::IsMember({"nchw", "nhwc"}))
      ->capture_default_str()
      ->group(kRequests);
  command->add_option("--inputs", flags->distinct, "different random inputs, sent in turn")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str()
      ->group(kRequests);
  CLI::Option* array = command->add_option(
      "--array", flags->arrays,
      "[INPUT=]FILE.npy: rows to send in turn instead, one file per input, in --layout");
  array->group(kRequests);
  CLI::Option* image = command->add_option(
      "--image", flags->images, "pictures to send in turn instead (PGM, PPM, PNG, JPEG)");
  image->check(CLI::ExistingFile)->excludes(array)->group(kRequests);
  command
      ->add_option("--free_size", flags->free_size,
                   "for a dimension, other than the batch, that a request chooses")
      ->check(AtLeastOne())
      ->capture_default_str()
      ->group(kRequests);
  AddPreparationOptions(command, &flags->pictures);
}

void AddAnswerOptions(CLI::App* command, LoadFlags* flags) {
  constexpr char kAnswers[] = "Answers and reports";
  command
      ->add_option("--record", flags->record,
                   "write the answer to each different request to this file")
      ->check(Writable())
      ->group(kAnswers);
  command
      ->add_option("--golden", flags->golden,
                   "compare with the answers in this file, not with the first ones")
      ->check(CLI::ExistingFile)
      ->group(kAnswers);
  command
      ->add_option("--tolerance", flags->tolerance,
                   "by which floats may differ, relative to the larger of 1 and what is expected")
      ->check(Between(0, 1e6))
      ->capture_default_str()
      ->group(kAnswers);
  command
      ->add_flag("--split", flags->split,
                 "ask the server where the time of each request went (parameter `timing`)")
      ->group(kAnswers);
}

}  // namespace

void AddRecordOptions(CLI::App* command, RecordFlags* flags) {
  constexpr char kAnswers[] = "Answers and reports";
  command
      ->add_option("--require", flags->require,
                   "conditions that decide on the exit status: p99<20ms,errors=0,rate>=100")
      ->check(Parses(Objective::Parse, "CONDITIONS"))
      ->group(kAnswers);
  command->add_option("--json", flags->json, "write everything that was measured to this file")
      ->check(Writable())
      ->group(kAnswers);
  command->add_option("--csv", flags->csv, "write a table of runs, parts and seconds to this file")
      ->check(Writable())
      ->group(kAnswers);
  command->add_option("--html", flags->html, "write a page with charts to this file")
      ->check(Writable())
      ->group(kAnswers);
}

void AddLoadOptions(CLI::App* command, LoadFlags* flags) {
  AddRequestOptions(command, flags);
  AddLoopOptions(command, flags);
  AddPaceOptions(command, flags);
  AddAnswerOptions(command, flags);
  AddRecordOptions(command, &flags->report);
}

}  // namespace tilewire::client
