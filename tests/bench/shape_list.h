// SPDX-License-Identifier: Apache-2.0
//
// Lists of square convolutions: a line each, "name batch groups ic in oc out kernel stride
// padding"; # begins a comment.
#ifndef TESTS_BENCH_SHAPE_LIST_H_
#define TESTS_BENCH_SHAPE_LIST_H_

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace tilewire::bench {

struct Shape {
  std::string name;
  int64_t batch, groups, ic, in, oc, out, kernel, stride, padding;

  double GigaFlop() const {
    return 2e-9 * batch * oc * out * out * (ic / groups) * kernel * kernel;
  }
};

// The types that convolutions compute in: f32 throughout; u8 x s8 to u8 with one scale per output
// channel; or products of bf16, of f32 tensors with ours, of bf16 tensors with the peer, which
// keeps f32 ones.
enum class Arithmetic { kF32, kU8S8, kBf16 };

// Lines that do not hold a shape are left out.
inline std::vector<Shape> ReadShapes(const std::string& path) {
  std::vector<Shape> shapes;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    Shape s;
    if (fields >> s.name >> s.batch >> s.groups >> s.ic >> s.in >> s.oc >> s.out >> s.kernel >>
        s.stride >> s.padding) {
      shapes.push_back(s);
    }
  }
  return shapes;
}

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_SHAPE_LIST_H_
