// The arguments of `opserve run`, checked against the catalogue.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cpp/request.h"
#include "opserve/v1/operator.pb.h"

namespace opserve::cli {

// As written on the command line.
struct RunArguments {
  std::string operator_name;
  std::vector<std::string> inputs;              // NAME=VALUE, of a list NAME.0=VALUE and so on
  std::vector<std::string> attributes;          // NAME=VALUE
  std::vector<std::string> outputs;             // [NAME=]FILE.npy
  std::vector<std::string> output_dtypes;       // [NAME=]DTYPE
  std::vector<std::string> wanted_outputs;      // masked ones; empty: all
  std::vector<std::string> kept_outputs;        // NAME, of a list NAME.0 and so on
  absl::Duration lease = absl::ZeroDuration();  // of kept outputs; zero: the daemon's default
  std::string priority = "normal";              // low, normal or high
  bool shares_memory = false;                   // inputs go there through shared memory
  bool want_receipt = false;
  bool should_verify = false;
  uint64_t seed = 0;                       // of random inputs
  std::istream* standard_input = nullptr;  // of the input "-"; null: there is none
};

struct OutputFile {
  std::string output;
  std::string path;
};

// The source of an input's random numbers: an input is the same whatever the others are, and
// differs from them. `index`: of a tensor in an input that is a list.
std::mt19937_64 RandomOf(uint64_t seed, uint64_t input, std::optional<uint64_t> index);

// The input that a text describes: a file as ReadArrayArgument takes it, or tensor:HANDLE, or
// random:SHAPE[:DTYPE] (as RandomTensor makes it; FLOAT if not said), or
// random:ints(LOW,HIGH):SHAPE[:DTYPE] (as RandomIntegers makes it; INT64 if not said). Its value is
// a Tensor or a ResidentTensor.
// kInvalidArgument and the codes of ReadArrayArgument: none of these; a file that cannot be used.
absl::StatusOr<NamedInput> ReadInput(const std::string& name, absl::string_view text,
                                     std::mt19937_64 random, std::istream* standard_input);

// The attributes that NAME=VALUE arguments describe.
// kInvalidArgument: a name that the operator does not have or is given twice; a required one that
// is missing; a value that does not fit.
absl::StatusOr<std::vector<NamedAttribute>> ParseAttributes(
    const v1::OperatorDescriptor& descriptor, const std::vector<std::string>& arguments);

// The call that the arguments describe; reads the input files. Random inputs are the same for the
// same seed. kInvalidArgument and the codes of ReadArrayArgument: a name that the operator does not
// have, is given twice or is missing; a value that does not fit; a file that cannot be used.
absl::StatusOr<Invocation> BuildInvocation(const v1::OperatorDescriptor& descriptor,
                                           const RunArguments& arguments);

// Whether the invocation computes this output of its operator: masked outputs can be left out.
bool IsComputed(const v1::OperatorDescriptor& descriptor, const Invocation& invocation,
                const v1::OutputDescriptor& output);

// kInvalidArgument: none of the three.
absl::StatusOr<v1::Priority> ParsePriority(const RunArguments& arguments);

// Outputs that stay on the daemon.
// kInvalidArgument: a name that the operator does not have or that is given twice; a lease or a
// verification that fits no kept output.
absl::StatusOr<std::vector<KeptOutput>> BuildKeptOutputs(const v1::OperatorDescriptor& descriptor,
                                                         const RunArguments& arguments);

// Where the results are to be written.
// kInvalidArgument: an output is given twice, two go to standard output ("-"), or a file's name
// says that it is of another kind than .npy.
absl::StatusOr<std::vector<OutputFile>> BuildOutputFiles(const v1::OperatorDescriptor& descriptor,
                                                         const RunArguments& arguments);

// The results of the invocation by their names. The catalogue does not tell how many tensors an
// output list has: of a list, those that `files` name. Empty: they name none of a list.
std::vector<OutputOf> ResultNames(const v1::OperatorDescriptor& descriptor,
                                  const Invocation& invocation,
                                  const std::vector<OutputFile>& files);

}  // namespace opserve::cli
