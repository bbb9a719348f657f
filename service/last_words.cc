// SPDX-License-Identifier: Apache-2.0
#include "service/last_words.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace tilewire::service {
namespace {

constexpr std::string_view kNoThread =
    "tilewire-server: the system refuses a thread; raise the limits of memory and threads\n";

// Allocates nothing.
[[noreturn]] void Say(std::string_view words) {
  (void)!write(STDERR_FILENO, words.data(), words.size());
  _exit(1);
}

[[noreturn]] void OnTerminate() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    Say("tilewire-server: the system refuses memory; raise the limit of this process\n");
  } catch (const std::system_error&) {
    Say(kNoThread);
  } catch (const std::runtime_error& error) {  // TBB throws nothing more precise
    const std::string_view what = error.what();
    for (const int refused : {EAGAIN, ENOMEM}) {
      if (what.find(strerror(refused)) != what.npos) Say(kNoThread);
    }
  } catch (...) {
  }
  std::abort();
}

}  // namespace

void EndPlainlyWithoutMemory() { std::set_terminate(OnTerminate); }

}  // namespace tilewire::service
