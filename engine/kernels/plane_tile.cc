// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/plane_tile.h"

#include <algorithm>

#include "engine/kernels/plane_split.h"

namespace tilewire {
namespace {

constexpr int kATile = 4, kBTile = 6;
// On the stack: the sums, block after block, and after them the stack pointer as it was.
constexpr int kSumsBlockBytes = kPlaneRows * kPlaneLineBytes;
constexpr int kSpilledBytes = kPlaneBlocks * kSumsBlockBytes;

using Planes = std::pair<int, int>;  // of a and of b

// From each to the next only one of the two changes.
std::vector<Planes> PairsOf(int planes) {
  if (planes == 1) return {{0, 0}};
  if (planes == 2) return {{1, 0}, {0, 0}, {0, 1}};
  return {{2, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 2}, {0, 0}};
}

}  // namespace

PlaneTile::PlaneTile(absl::string_view name, int planes, const EpilogueConfig& epilogue)
    : Generator(name),
      planes_(planes),
      epilogue_(epilogue),
      spilled_(this, epilogue, kSumsBlockBytes, kPlaneLineBytes,
               {sums_, chunks_left_, {.dst = dst_, .bias = bias_, .spare = rax, .scratch = {}}}) {}

// The second block takes the pairs backwards, and so begins with the planes that the first one
// ended with. Of the halves the one comes first that the last product was of.
std::vector<PlaneTile::Product> PlaneTile::ProductsOf(int planes, int blocks, int halves) {
  std::vector<Product> products;
  std::vector<Planes> pairs = PairsOf(planes);
  int half = 0;
  for (int block = 0; block < blocks; ++block) {
    for (const auto& [a, b] : pairs) {
      for (int i = 0; i < halves; ++i) {
        if (i > 0) half = 1 - half;
        products.push_back({block, half, a, b});
      }
    }
    std::reverse(pairs.begin(), pairs.end());
  }
  return products;
}

void PlaneTile::Emit() {
  mov(rax, rsp);
  sub(rsp, kSpilledBytes + static_cast<int>(kPlaneLineBytes));
  and_(rsp, -static_cast<int>(kPlaneLineBytes));
  mov(qword[rsp + kSpilledBytes], rax);
  mov(a_, ptr[args_ + offsetof(PlaneTileArgs, a)]);
  mov(b_, ptr[args_ + offsetof(PlaneTileArgs, b)]);
  mov(steps_left_, ptr[args_ + offsetof(PlaneTileArgs, steps)]);
  mov(line_bytes_, kPlaneLineBytes);
  for (int block = 0; block < epilogue_.blocks; ++block) {
    for (int half = 0; half < halves(); ++half) tilezero(SumTile(block, half));
  }
  Xbyak::Label step;
  L(step);
  EmitStep();
  add(a_, static_cast<int>(planes_ * kPlaneStepBytes));
  add(b_, static_cast<int>(planes_ * kPlaneStepBytes));
  dec(steps_left_);
  jnz(step, T_NEAR);
  Finish();
  mov(rsp, qword[rsp + kSpilledBytes]);
  vzeroupper();
  ret();
  spilled_.EmitTables();
}

void PlaneTile::EmitStep() {
  const Xbyak::Tmm a(kATile), b(kBTile);
  int64_t a_loaded = -1, b_loaded = -1;  // bytes from the step's beginning
  for (const Product& product : ProductsOf(planes_, epilogue_.blocks, halves())) {
    const int64_t a_wanted = product.a_plane * kPlaneStepBytes + product.half * kPlaneBlockBytes;
    const int64_t b_wanted = product.b_plane * kPlaneStepBytes + product.block * kPlaneBlockBytes;
    if (b_wanted != b_loaded) tileloadd(b, ptr[b_ + line_bytes_ + static_cast<int>(b_wanted)]);
    if (a_wanted != a_loaded) tileloadd(a, ptr[a_ + line_bytes_ + static_cast<int>(a_wanted)]);
    a_loaded = a_wanted;
    b_loaded = b_wanted;
    tdpbf16ps(SumTile(product.block, product.half), a, b);
  }
}

void PlaneTile::Finish() {
  for (int block = 0; block < epilogue_.blocks; ++block) {
    for (int half = 0; half < halves(); ++half) {
      const int64_t to = block * kSumsBlockBytes + half * kPlaneBlockBytes;
      tilestored(ptr[rsp + line_bytes_ + static_cast<int>(to)], SumTile(block, half));
    }
  }
  mov(dst_, ptr[args_ + offsetof(PlaneTileArgs, dst)]);
  if (epilogue_.bias) mov(bias_, ptr[args_ + offsetof(PlaneTileArgs, bias)]);
  mov(sums_, rsp);
  spilled_.Finish(epilogue_.pixels);
}

}  // namespace tilewire
