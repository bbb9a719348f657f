// SPDX-License-Identifier: Apache-2.0
#ifndef SERVICE_LAST_WORDS_H_
#define SERVICE_LAST_WORDS_H_

namespace tilewire::service {

// From now on, where the system refuses memory or a thread to what cannot go on without, which
// happens while the server starts, the process says so and ends with exit status 1, not with a
// signal. All else that ends it ends it as before.
void EndPlainlyWithoutMemory();

}  // namespace tilewire::service

#endif  // SERVICE_LAST_WORDS_H_
