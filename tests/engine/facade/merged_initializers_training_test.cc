// SPDX-License-Identifier: Apache-2.0
//
// Initializers that an exporter made one because they were equal, as in a network that was never
// trained: they learn as if each had been in the file.
#include <fstream>
#include <iterator>

#include "tests/engine/facade/trained_model.h"

namespace tilewire::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Type = onnx::TensorProto;

// Two normalizations whose scales, shifts and statistics are fresh. `merged`: Identity nodes stand
// for all but the first of equal ones, as PyTorch writes them.
OnnxBuilder TwoFreshNorms(bool merged, float first_scale = 1) {
  OnnxBuilder model(13);
  const auto copy_of = [&](const char* first, const char* name, float value) {
    if (merged) {
      model.Node("Identity", {first}, {name});
    } else {
      model.Floats(name, {8}, std::vector<float>(8, value));
    }
  };
  std::vector<float> scale(8, 1);
  scale[0] = first_scale;
  model.Input("x", {-1, 3, 8, 8}).Floats("c1", {8, 3, 3, 3}).Floats("c2", {8, 8, 3, 3});
  model.Floats("w", {4, 8}).Floats("b", {4}).Floats("scale", {8}, scale);
  model.Floats("shift", {8}, std::vector<float>(8, 0));
  copy_of("scale", "variance", 1);
  copy_of("shift", "mean", 0);
  for (const char* name : {"scale2", "variance2"}) copy_of("scale", name, 1);
  for (const char* name : {"shift2", "mean2"}) copy_of("shift", name, 0);
  model.Node("Conv", {"x", "c1"}, {"a"});
  model.Node("BatchNormalization", {"a", "scale", "shift", "mean", "variance"}, {"n"});
  model.Node("Relu", {"n"}, {"r"}).Node("Conv", {"r", "c2"}, {"d"});
  model.Node("BatchNormalization", {"d", "scale2", "shift2", "mean2", "variance2"}, {"n2"});
  model.Node("GlobalAveragePool", {"n2"}, {"g"}).Node("Flatten", {"g"}, {"f"});
  model.Node("Gemm", {"f", "w", "b"}, {"y"}, {Int("transB", 1)}).Output("y");
  return model;
}

// Two products with matrices of zeros, which are large enough to stay in the file.
OnnxBuilder TwoFreshProducts(bool merged) {
  OnnxBuilder model(13);
  const std::vector<float> zeros(128 * 128, 0);
  model.Input("x", {-1, 128}).Floats("w1", {128, 128}, zeros);
  if (merged) {
    model.Node("Identity", {"w1"}, {"w2"});
  } else {
    model.Floats("w2", {128, 128}, zeros);
  }
  model.Node("MatMul", {"x", "w1"}, {"a"}).Node("Add", {"x", "a"}, {"r"});
  model.Node("MatMul", {"r", "w2"}, {"b"}).Node("Add", {"r", "b"}, {"y"}).Output("y");
  return model;
}

const TrainingBatch& SomeImages() {
  static const auto* const images = new TrainingBatch({12, 3, 8, 8}, 4, 3);
  return *images;
}

absl::StatusOr<std::unique_ptr<Trainer>> TrainerAt(const std::string& name,
                                                   const OnnxBuilder& model,
                                                   const TrainingSpec& spec) {
  const std::string path = ::testing::TempDir() + "/" + name;
  WriteFile(path, model.Serialize());
  return CreateTrainer(&EngineOfThreads(1), path, spec);
}

onnx::ModelProto WrittenBy(const Trainer& trainer) {
  const std::string path = ::testing::TempDir() + "/apart.onnx";
  EXPECT_THAT(trainer.WriteModel(path), IsOk());
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  EXPECT_LE(static_cast<int64_t>(bytes.size()), trainer.written_bytes());
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(bytes));
  return model;
}

std::map<std::string, std::string> InitializersOf(const onnx::ModelProto& model) {
  std::map<std::string, std::string> bytes;
  for (const onnx::TensorProto& tensor : model.graph().initializer())
    bytes[tensor.name()] = tensor.raw_data();
  return bytes;
}

TEST(MergedInitializersTest, LearnAsIfEachHadBeenInTheFile) {
  TrainingSpec spec = CrossEntropy(0.1);
  spec.groups = {{.pattern = "scale2", .frozen = true}};
  ASSERT_OK_AND_ASSIGN(auto merged, TrainerAt("merged.onnx", TwoFreshNorms(true), spec));
  ASSERT_OK_AND_ASSIGN(auto apart, TrainerAt("separate.onnx", TwoFreshNorms(false), spec));
  EXPECT_THAT(NotesOf(*apart), IsEmpty());
  EXPECT_THAT(NotesOf(*merged),
              ElementsAre(StartsWith("6 initializers (the first is 'variance') were merged")));
  for (int update = 0; update < 3; ++update) {
    for (Trainer* trainer : {merged.get(), apart.get()})
      EXPECT_THAT(trainer->Update(SomeImages().inputs(), SomeImages().targets(), {}), IsOk());
  }
  const std::vector<std::string> statistics = {"mean", "variance", "mean2", "variance2"};
  EXPECT_EQ(ParametersOf(*merged, statistics), ParametersOf(*apart, statistics));

  const onnx::ModelProto written = WrittenBy(*merged);
  EXPECT_TRUE(InitializersOf(written) == InitializersOf(WrittenBy(*apart)))
      << "also scale2, which stayed while what it was a copy of changed";
  for (const onnx::NodeProto& node : written.graph().node()) EXPECT_NE(node.op_type(), "Identity");
  const std::string path = ::testing::TempDir() + "/again.onnx";
  WriteFile(path, written.SerializeAsString());
  ASSERT_OK_AND_ASSIGN(auto again, CreateTrainer(&EngineOfThreads(1), path, spec));
  EXPECT_THAT(NotesOf(*again), IsEmpty());
  EXPECT_EQ(ParametersOf(*again, statistics), ParametersOf(*merged, statistics));
}

TEST(MergedInitializersTest, LargeOnesAreTakenApartToo) {
  ASSERT_OK_AND_ASSIGN(auto merged,
                       TrainerAt("merged.onnx", TwoFreshProducts(true), CrossEntropy()));
  ASSERT_OK_AND_ASSIGN(auto apart,
                       TrainerAt("separate.onnx", TwoFreshProducts(false), CrossEntropy()));
  EXPECT_THAT(NotesOf(*merged), ElementsAre(StartsWith("1 initializer ('w2') was merged")));
  const TrainingBatch rows({4, 128}, 4, 5);
  for (int update = 0; update < 3; ++update) {
    for (Trainer* trainer : {merged.get(), apart.get()})
      EXPECT_THAT(trainer->Update(rows.inputs(), rows.targets(), {}), IsOk());
  }
  EXPECT_EQ(ParametersOf(*merged), ParametersOf(*apart));
  EXPECT_NE(merged->Parameter("w1"), merged->Parameter("w2"));
  EXPECT_TRUE(InitializersOf(WrittenBy(*merged)) == InitializersOf(WrittenBy(*apart)));
}

TEST(MergedInitializersTest, WhoseElementsDifferAreOneParameter) {
  ASSERT_OK_AND_ASSIGN(auto trainer,
                       TrainerOf(TwoFreshNorms(true, /*first_scale=*/0.5f), CrossEntropy()));
  EXPECT_THAT(NotesOf(*trainer), ElementsAre(HasSubstr("3 initializers (the first is 'mean')")));
  EXPECT_THAT(trainer->Parameter("variance"), StatusIs(absl::StatusCode::kNotFound, ""));
}

TEST(MergedInitializersTest, KeepTheirTypeInTheFile) {
  for (const auto type : {Type::FLOAT16, Type::BFLOAT16}) {
    OnnxBuilder model(13);
    model.Input("x", {-1, 2}).Node("Cast", {"x"}, {"n"}, {Int("to", type)});
    model.Tensor("shift", {2}, type)->set_raw_data(std::string(4, '\0'));
    model.Node("Identity", {"shift"}, {"more"}).Node("Identity", {"n"}, {"same"});
    model.Node("Add", {"same", "shift"}, {"s"}).Node("Mul", {"more", "s"}, {"m"});
    model.Node("Add", {"s", "m"}, {"t"}).Node("Cast", {"t"}, {"y"}, {Int("to", Type::FLOAT)});
    model.Output("y");
    TrainingSpec spec = CrossEntropy(1);
    ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(model, spec));
    const TrainingBatch batch({4, 2}, 2, 5);
    ASSERT_THAT(trainer->Update(batch.inputs(), batch.targets(), {}), IsOk());
    const onnx::ModelProto written = WrittenBy(*trainer);
    ASSERT_EQ(written.graph().initializer_size(), 2);
    for (const onnx::TensorProto& tensor : written.graph().initializer()) {
      EXPECT_EQ(tensor.data_type(), type);
      EXPECT_THAT(tensor.dims(), ElementsAre(2));
      EXPECT_EQ(tensor.raw_data().size(), 4u);
      EXPECT_NE(tensor.raw_data(), std::string(4, '\0')) << tensor.name() << " learned";
    }
    EXPECT_EQ(written.graph().node(1).op_type(), "Identity") << "what is computed stays as it is";
  }
}

TEST(MergedInitializersTest, OldFilesAndOutputsStayAsTheyAre) {
  OnnxBuilder old = TwoFreshNorms(true);
  old.proto().set_ir_version(3);
  ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(old, CrossEntropy()));
  EXPECT_THAT(NotesOf(*trainer), IsEmpty());
  OnnxBuilder gives(13);
  gives.Input("x", {-1, 2}).Floats("w", {2, 2}).Floats("zeros", {2}, {0, 0});
  gives.Node("Identity", {"zeros"}, {"given"}).Node("Gemm", {"x", "w", "zeros"}, {"y"});
  gives.Output("y").Output("given");
  ASSERT_OK_AND_ASSIGN(trainer, TrainerOf(gives, CrossEntropy()));
  EXPECT_THAT(NotesOf(*trainer), IsEmpty());
}

}  // namespace
}  // namespace tilewire::testing
