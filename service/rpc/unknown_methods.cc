// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/unknown_methods.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "service/wire/status_text.h"

namespace tilewire::service {

// One call. It deletes itself once it is answered.
class UnknownMethods::Call {
 public:
  explicit Call(UnknownMethods* owner) : owner_(owner) {}

  void Ask(grpc::ServerCompletionQueue* queue) {
    owner_->service_.RequestCall(&context_, &stream_, queue, queue, arrived_.tag());
  }

 private:
  // Not OK when the server shuts down: nothing else will happen then.
  void Arrived(bool ok) {
    if (!ok) {
      delete this;
      return;
    }
    UnknownMethods* const owner = owner_;  // another thread may see this call's end
    owner->asked_.store(false);
    FinishCall(
        [this] {
          return grpc::Status(grpc::StatusCode::UNIMPLEMENTED,
                              absl::StrCat("no such method: ", Quoted(context_.method())));
        },
        [this](const grpc::Status& status) { stream_.Finish(status, written_.tag()); });
    owner->AwaitNext();
  }
  void Written(bool) { delete this; }

  UnknownMethods* const owner_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  EventOf<Call, &Call::Arrived> arrived_{this};
  EventOf<Call, &Call::Written> written_{this};
};

// If memory for another call runs out, the queue's next look tries again.
void UnknownMethods::AwaitNext() {
  if (asked_.exchange(true)) return;
  if (!queue_->AskFor([this] { return std::make_unique<Call>(this); })) asked_.store(false);
}

void UnknownMethods::Await(CallQueue* queue) {
  queue_ = queue;
  queue->Add([this] { AwaitNext(); });
}

}  // namespace tilewire::service
