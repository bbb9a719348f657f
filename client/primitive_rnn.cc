// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "client/primitive_fields.h"
#include "client/primitive_words.h"

namespace tilewire::client {
namespace {

int64_t GatesOf(v1::RnnCell cell) {
  switch (cell) {
    case v1::RNN_CELL_VANILLA_RNN:
      return 1;
    case v1::RNN_CELL_LSTM:
      return 4;
    default:
      return 3;
  }
}

void Describe(const std::vector<int64_t>& dims, v1::MemoryDesc* desc) {
  desc->mutable_dims()->Assign(dims.begin(), dims.end());
  desc->set_type(v1::DATA_TYPE_F32);
}

}  // namespace

absl::Status FillRnn(const PrimitiveText& text, const v1::MemoryDesc& src, v1::Rnn* op) {
  const auto cell = ParseEnum<v1::RnnCell>("--algorithm", "RNN_CELL_",
                                           text.algorithm.empty() ? "lstm" : text.algorithm);
  if (!cell.ok()) return cell.status();
  const auto direction =
      ParseEnum<v1::RnnDirection>("--direction", "RNN_DIRECTION_", text.direction);
  if (!direction.ok()) return direction.status();
  if (src.dims_size() != 3) return Invalid("--src", ToText(src), "[T, N, I], which an rnn takes");
  if (text.hidden < 1)
    return Invalid("--hidden", absl::StrCat(text.hidden), "the size of the state, from 1");
  op->set_cell(*cell);
  op->set_direction(*direction);
  *op->mutable_src_layer() = src;
  const int64_t directions = *direction < v1::RNN_DIRECTION_BIDIRECTIONAL_CONCAT ? 1 : 2;
  const int64_t gates = GatesOf(*cell), inputs = src.dims(2), hidden = text.hidden;
  Describe({1, directions, inputs, gates, hidden}, op->mutable_weights_layer());
  Describe({1, directions, hidden, gates, hidden}, op->mutable_weights_iter());
  LetChoose(op->mutable_weights_layer());
  LetChoose(op->mutable_weights_iter());
  if (text.bias) {
    const int64_t biases = *cell == v1::RNN_CELL_LBR_GRU ? gates + 1 : gates;
    Describe({1, directions, biases, hidden}, op->mutable_bias());
    LetChoose(op->mutable_bias());
  }
  const bool doubled = *direction == v1::RNN_DIRECTION_BIDIRECTIONAL_CONCAT;
  return FillDst(text, {src.dims(0), src.dims(1), doubled ? 2 * hidden : hidden}, src.type(),
                 op->mutable_dst_layer());
}

}  // namespace tilewire::client
