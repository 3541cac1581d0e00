// Trains a perceptron by one prepared program a step, as program_training_test.py does in Python:
// forward, loss, backward and AdamW, with parameters that stay on the pool. The test compares the
// losses that this program prints with numpy's.
//
// usage: program_training TARGET DIRECTORY, with the files images, labels (of all steps, one behind
// the other), w1, b1, w2 and b2 in the directory, each of raw elements.

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "client/cpp/client.h"
#include "client/cpp/program.h"

namespace opserve {
namespace {

constexpr int64_t kBatch = 60;
constexpr int64_t kPixels = 64;
constexpr int64_t kHidden = 32;
constexpr int64_t kClasses = 10;

[[noreturn]] void Fail(const std::string& why) {
  std::cerr << why << std::endl;
  std::exit(1);
}

template <typename T>
T Get(absl::StatusOr<T> value) {
  if (!value.ok()) Fail(value.status().ToString());
  return *std::move(value);
}

template <typename T>
std::vector<T> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Fail(path);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const auto* elements = reinterpret_cast<const T*>(bytes.data());
  return {elements, elements + bytes.size() / sizeof(T)};
}

// A parameter, and AdamW's moments of it.
struct State {
  InputOf parameter;
  InputOf m;
  InputOf v;
};

State AddState(Program& p, const std::vector<int64_t>& shape) {
  return {p.Input(kFloat, shape), p.Input(kFloat, shape), p.Input(kFloat, shape)};
}

void Update(Program& p, const State& state, const OutputOf& gradient, const InputOf& done) {
  const auto changed =
      p.ApplyAdamWV2(state.parameter, state.m, state.v, gradient, done,
                     {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .weight_decay = 0.01, .eps = 1e-8});
  p.Replace(state.parameter, changed.var);
  p.Replace(state.m, changed.m);
  p.Replace(state.v, changed.v);
  for (const InputOf& tensor : {state.parameter, state.m, state.v}) p.Donate(tensor);
}

// A step; its inputs are images, labels, the number of steps done, and three tensors for each of
// w1, b1, w2 and b2.
Program Step() {
  Program p;
  const InputOf x = p.Input(kFloat, {kBatch, kPixels});
  const InputOf labels = p.Input(kInt64, {kBatch});
  const InputOf done = p.Input(kInt64, {1});
  const State w1 = AddState(p, {kPixels, kHidden});
  const State b1 = AddState(p, {kHidden});
  const State w2 = AddState(p, {kHidden, kClasses});
  const State b2 = AddState(p, {kClasses});
  const Literal ones = Program::Full<float>({kClasses}, 1);

  const OutputOf hidden = p.Add(p.Matmul(x, w1.parameter), b1.parameter);
  const OutputOf active = p.Relu(hidden);
  const OutputOf log_q = p.LogSoftmax(p.Add(p.Matmul(active, w2.parameter), b2.parameter));
  const auto loss = p.NllLoss(log_q, labels, ones);

  const OutputOf of_log_q =
      p.NllLossBackward(Program::Full<float>({}, 1), log_q, labels, ones, loss.total_weight_out);
  const OutputOf of_logits = p.LogSoftmaxBackward(of_log_q, log_q);
  const OutputOf of_hidden = p.ThresholdBackward(p.Matmul(of_logits, w2.parameter.T()), hidden);
  const View across_active{
      .base = active, .dtype = kFloat, .shape = {kHidden, kBatch}, .strides = {1, kHidden}};

  p.Return(loss.out);
  p.Replace(done, p.Adds(done, {.other = int64_t{1}}));
  Update(p, w1, p.Matmul(x.T(), of_hidden), done);
  Update(p, b1, p.ReduceSum(of_hidden, {.dims = {0}, .dtype = kFloat}), done);
  Update(p, w2, p.Matmul(across_active, of_logits), done);
  Update(p, b2, p.ReduceSum(of_logits, {.dims = {0}, .dtype = kFloat}), done);
  return p;
}

void Train(const std::string& target, const std::string& directory) {
  const std::unique_ptr<Client> client = Get(Client::Connect(target));
  const PreparedProgram step = Get(client->Prepare(Step().request()));
  std::vector<PreparedProgram::Input> inputs(2);  // images and labels, which change
  const std::vector<int64_t> none = {0};
  inputs.emplace_back(Get(client->Upload(Tensor::Of<int64_t>({1}, none))));
  const std::pair<const char*, std::vector<int64_t>> parameters[] = {{"w1", {kPixels, kHidden}},
                                                                     {"b1", {kHidden}},
                                                                     {"w2", {kHidden, kClasses}},
                                                                     {"b2", {kClasses}}};
  for (const auto& [name, shape] : parameters) {
    const std::vector<float> values = ReadFile<float>(directory + "/" + name);
    const std::vector<float> zeros(values.size());
    for (const auto* elements : {&values, &zeros, &zeros}) {
      inputs.emplace_back(Get(client->Upload(Tensor::Of<float>(shape, *elements))));
    }
  }
  const std::vector<float> images = ReadFile<float>(directory + "/images");
  const std::vector<int64_t> labels = ReadFile<int64_t>(directory + "/labels");
  for (size_t begin = 0; begin + kBatch <= labels.size(); begin += kBatch) {
    inputs[0] = Tensor::Of<float>(
        {kBatch, kPixels}, absl::MakeConstSpan(images).subspan(begin * kPixels, kBatch * kPixels));
    inputs[1] = Tensor::Of<int64_t>({kBatch}, absl::MakeConstSpan(labels).subspan(begin, kBatch));
    const Response response = Get(step(inputs));
    std::cout << absl::StrFormat("%.9g\n", Get(response.results[0].values<float>()).front())
              << std::flush;  // the test counts the bytes of each step
  }
}

}  // namespace
}  // namespace opserve

int main(int argc, char** argv) {
  if (argc != 3) opserve::Fail("usage: program_training TARGET DIRECTORY");
  opserve::Train(argv[1], argv[2]);
  return 0;
}
