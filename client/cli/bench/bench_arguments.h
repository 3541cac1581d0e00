// The arguments of `opserve bench`, and the request that they describe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/request.h"
#include "opserve/v1/operator.pb.h"

namespace opserve::cli {

// Transports of requests: each a call of its own, or all in one session (ConnectOptions::session),
// or each with tensors in shared memory.
enum class BenchTransport { kUnary, kSession, kSharedMemory };

struct BenchArguments {
  std::string operator_name;
  std::vector<std::string> shapes;      // [NAME=]EXTENT,... or [NAME=]scalar
  std::vector<std::string> dtypes;      // [NAME=]DTYPE
  std::vector<std::string> attributes;  // NAME=VALUE
  std::vector<uint32_t> concurrency;    // empty: the default
  std::optional<double> rate;
  BenchTransport transport = BenchTransport::kSession;
  bool prepare = false;  // the request is a prepared program; not with shared memory
  absl::Duration warmup = absl::Seconds(1);
  absl::Duration duration = absl::Seconds(10);
};

// Readers of flags, as CLI11 wants them: they return "" for a valid text, else the complaint.
std::string ReadConcurrency(const std::string& text, std::vector<uint32_t>* concurrency);
std::string ReadRate(const std::string& text, std::optional<double>* rate);
std::string ReadTransport(const std::string& text, BenchTransport* transport);
std::string ReadWarmup(const std::string& text, absl::Duration* warmup);
std::string ReadDuration(const std::string& text, absl::Duration* duration);

// The tensors of inputs that are tensors or lists of tensors, each with its name: that of the
// input, or "tensors.2" in a list.
struct BenchTensor {
  std::string name;
  Tensor tensor;
};
std::vector<BenchTensor> TensorsOf(const std::vector<NamedInput>& inputs);

// The value of --concurrency, or its default.
std::vector<uint32_t> ConcurrencyOf(const BenchArguments& arguments);

// "unary", "session", "shm"
std::string TransportText(BenchTransport transport);

// The call that the arguments describe. It owns its inputs: random numbers from 0.25 to 1, the same
// with every run, of which no operator makes NaN, nor anything infinite or subnormal that would
// take another time to compute with; integers and BOOL are 0 and 1. Lists have two tensors.
// Optional inputs are left out unless an argument names them. An input that does not take FLOAT has
// the first of its dtypes, if no argument says another.
//
// kInvalidArgument: a name that the operator does not have or is given twice; a shape, dtype or
// value that does not fit; inputs of more than a message can have.
absl::StatusOr<Invocation> BuildBenchInvocation(const v1::OperatorDescriptor& descriptor,
                                                const BenchArguments& arguments);

}  // namespace opserve::cli
