// SPDX-License-Identifier: Apache-2.0
//
// The kernels of channel_blocking.h: their arguments and configuration, and the part of their code
// that is the same for every instruction set. A transposing kernel takes a tile of as many pixels
// as a register has floats at a time: it loads one register per row of the source, transposes in
// registers and stores one register per row of the destination. Rows of the source that do not
// exist are zeros (channels) or left as they are (pixels, whose lanes are not stored).
#ifndef ENGINE_PRIMITIVES_REORDER_CHANNEL_BLOCKING_GENERATOR_H_
#define ENGINE_PRIMITIVES_REORDER_CHANNEL_BLOCKING_GENERATOR_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/vector_unit.h"
#include "engine/memory/data_type.h"

namespace tilewire::reorder {

// The arguments of a kernel. Steps are in bytes.
struct ChannelBlockingArgs {
  const std::byte* src;  // first channel of the group, first pixel of the run
  std::byte* dst;
  const float* scales;  // one per lane of the group, 0 for lanes of padding
  int64_t src_step;     // from row to row: channels where neighbours are pixels, pixels otherwise
  int64_t dst_step;
  jit::LoopCount pixels;
  // For a copying kernel: groups whose rows are copied pixel after pixel, the steps from one to the
  // next, and from the end of the last one to the next pixel.
  jit::LoopCount groups;
  int64_t src_group_step, dst_group_step, src_return, dst_return;
  const int32_t* offsets;  // scattered: one per row of dst, bytes from dst
};

struct ChannelBlockingConfig {
  bool transposes = false;
  bool to_lanes = false;  // of the transposing kernels: dst has the channels as neighbours
  int channels = 0;       // of the group; 0 only towards blocks
  int readable = 16;      // lanes of a row of channels that may be read from src,
  int stored = 16;        // and those to be written to dst
  DataType src_type = DataType::kF32, dst_type = DataType::kF32;  // both f32: bits are moved
  bool scaled = false, adds = false;
  float sum_scale = 1;
  bool scattered = false;  // a transposing kernel to_lanes whose rows of dst are not evenly spaced
};

class ChannelBlockingGenerator : public jit::Generator {
 protected:
  // A tile is as many rows as a register has lanes. Results of a transposition are in registers
  // `result`, `result` + 1, ...
  ChannelBlockingGenerator(absl::string_view name, const ChannelBlockingConfig& config,
                           const VectorUnit& unit, int result)
      : Generator(name, 32768),
        config_(config),
        unit_(unit),
        tile_(unit.lanes()),
        result_(result) {}

  virtual void Prepare() = 0;       // once
  virtual void BeginPartial() = 0;  // from here on pixels_ < tile
  // Constants for the rows of a tile, which is partial or not.
  virtual void BeginLoads(bool partial) = 0;
  virtual void BeginStores(bool partial) = 0;
  // The row at row_, in f32; `index` is a register's number.
  virtual void LoadRow(int index, bool partial) = 0;
  virtual void StoreRow(int index, bool partial) = 0;
  virtual void AddRow(int index, bool partial) = 0;  // += sum_scale * what dst holds
  virtual void EmitTranspose() = 0;
  virtual void EmitTables() = 0;
  // Loads `rows` whole rows from row_ on, which it leaves at the last one, and transposes them.
  // Only where LoadsTransposed().
  virtual void LoadTransposed(int /*rows*/) {}
  virtual bool LoadsTransposed() const { return false; }
  Xbyak::Xmm Vector(int index) const { return unit_.Vector(index); }
  // The begin of EmitTranspose(): vectors 0 to tile - 1 are rows of a matrix, the next ones are
  // overwritten. Then lane l (128 bits) of vector 4g + q holds rows 4g .. 4g+3 of column 4l + q.
  void InterleaveRows();

  // Whether the lanes of a row are pixels (else channels).
  bool LoadsPixels() const { return config_.transposes && config_.to_lanes; }
  bool StoresPixels() const { return config_.transposes && !config_.to_lanes; }

  // Arguments arrive in rdi.
  const Xbyak::Reg64 src_ = rsi, dst_ = rdx;
  const Xbyak::Reg64 src_step_ = r8, dst_step_ = r9;
  const Xbyak::Reg64 pixels_ = rcx;  // not yet moved
  const Xbyak::Reg64 row_ = r10;     // walks over the rows of a tile
  const Xbyak::Reg64 scales_ = r12, offsets_ = r15, groups_ = rbp;
  const Xbyak::Reg64 spare_ = rax;
  const ChannelBlockingConfig config_;
  const VectorUnit unit_;
  const int tile_, result_;

 private:
  void Emit() final;
  void EmitCopy();
  void EmitTiles();
  void EmitTile(bool partial);
  void EmitAdvance();
  void LoadRows(int rows, bool partial);
  void StoreRows(int rows, bool partial);
  void StopAfter(int rows, const Xbyak::Label& done);
  void Scale(int index);
};

}  // namespace tilewire::reorder

#endif  // ENGINE_PRIMITIVES_REORDER_CHANNEL_BLOCKING_GENERATOR_H_
