// SPDX-License-Identifier: Apache-2.0
#include "client/tool/open_layouts.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/amount_text.h"
#include "google/protobuf/message.h"

namespace tilewire::client {
namespace {

constexpr int kRunsOfOpenLayouts = 5;
constexpr double kMuchSlower = 3;

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The message of the operation inside `desc`; null where there is none.
Message* OperationOf(v1::PrimitiveDesc* desc) {
  const auto* reflection = desc->GetReflection();
  const auto* choice = desc->GetDescriptor()->FindOneofByName("operation");
  const FieldDescriptor* field = reflection->GetOneofFieldDescriptor(*desc, choice);
  return field == nullptr ? nullptr : reflection->MutableMessage(desc, field);
}

bool IsNamed(const v1::MemoryDesc& tensor) {
  return tensor.layout_case() != v1::MemoryDesc::LAYOUT_NOT_SET && tensor.tag() != "any";
}

// The same primitive with every layout left open that it may choose; nothing where none is named.
std::optional<v1::PrimitiveDesc> WithOpenLayouts(const v1::PrimitiveDesc& desc) {
  v1::PrimitiveDesc open = desc;
  Message* operation = OperationOf(&open);
  if (operation == nullptr || operation->GetDescriptor()->name() == "Reorder") return std::nullopt;
  const bool has_weights = operation->GetDescriptor()->FindFieldByName("weights") != nullptr;
  bool named = false;
  std::vector<const FieldDescriptor*> fields;
  operation->GetReflection()->ListFields(*operation, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated() || field->message_type() != v1::MemoryDesc::descriptor()) continue;
    auto* tensor =
        static_cast<v1::MemoryDesc*>(operation->GetReflection()->MutableMessage(operation, field));
    named |= IsNamed(*tensor);
    if (has_weights || field->name() == "dst") {
      tensor->set_tag("any");
    } else {
      tensor->clear_layout();
    }
  }
  return named ? std::optional(std::move(open)) : std::nullopt;
}

}  // namespace

std::string CostOfNamedLayouts(Client* client, const v1::PrimitiveDesc& desc,
                               const PrimitiveRuns& named) {
  const std::optional<v1::PrimitiveDesc> open = WithOpenLayouts(desc);
  if (!open) return "";
  auto runs = CreateOn(client, *open);
  if (!runs.ok() || !TimeRuns(client, *open, kRunsOfOpenLayouts, &*runs).ok()) return "";
  // The fastest, because what else the machine does makes some of a few short runs slow.
  const absl::Duration asked = named.kernel.Percentile(0), best = runs->kernel.Percentile(0);
  if (asked <= kMuchSlower * best) return "";
  return absl::StrFormat(
      "named layouts   cost %.1f times the %s of %s, which layouts of its choice would take:\n"
      "                leave the layouts out where you can\n",
      absl::FDivDuration(asked, best), LatencyText(best), runs->created.implementation());
}

}  // namespace tilewire::client
