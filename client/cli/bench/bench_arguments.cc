#include "client/cli/bench/bench_arguments.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/cli/arrays/closest_name.h"
#include "client/cli/arrays/random_tensor.h"
#include "client/cli/arrays/run_arguments.h"
#include "client/cli/text/output.h"
#include "client/cli/text/time_text.h"
#include "proto/dtypes/dtype.h"
#include "proto/status/status_macros.h"

namespace opserve::cli {
namespace {

constexpr char kDefaultShape[] = "256,1024";
constexpr int kListedTensors = 2;
constexpr uint32_t kDefaultClosedConcurrency = 1;
constexpr uint32_t kDefaultOpenConcurrency = 64;
constexpr uint32_t kMaxConcurrency = 1024;  // each has a thread
constexpr double kMaxRate = 1e6;            // more than one thread can even count
constexpr absl::Duration kShortestLoad = absl::Milliseconds(1);
constexpr absl::Duration kLongestLoad = absl::Hours(24);
constexpr int64_t kMaxInputBytes = int64_t{1} << 31;  // of a message, about
// Any number, always the same, so that runs are comparable.
constexpr uint64_t kInputSeed = 20231114;

struct InputSpec {
  std::string name;
  bool is_list;
  DataType dtype;
  std::vector<int64_t> shape;
};

// The texts of a flag's arguments.
struct InputTexts {
  std::vector<std::string> named = {};  // of each input, in the operator's order; empty: not named
  std::string others = {};              // of all that are not; empty: not said
};

// Reads [NAME=]TEXT arguments of a flag; one without a name is for all that are not named.
// A second text for the same inputs is refused, since one of the two would have no effect.
absl::StatusOr<InputTexts> TextOfInputs(const v1::OperatorDescriptor& descriptor,
                                        absl::string_view flag,
                                        const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  for (const v1::InputDescriptor& input : descriptor.inputs()) names.push_back(input.name());
  InputTexts texts{.named = std::vector<std::string>(names.size())};
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    const std::string name = equals == std::string::npos ? "" : argument.substr(0, equals);
    std::string* text = &texts.others;
    if (equals != std::string::npos) {
      const auto named = std::find(names.begin(), names.end(), name);
      if (named == names.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("--", flag, " \"", argument, "\": ", UnknownName("input", name, names)));
      }
      text = &texts.named[named - names.begin()];
    }
    if (!text->empty()) {
      const std::string whose = name.empty() ? "" : absl::StrCat(" of input \"", name, "\"");
      return absl::InvalidArgumentError(absl::StrCat("--", flag, whose, " is given twice"));
    }
    *text = equals == std::string::npos ? argument : argument.substr(equals + 1);
    if (text->empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag, " \"", argument, "\": expected [NAME=]VALUE"));
    }
  }
  return texts;
}

// A text for this input before one for all inputs, and the default last.
absl::string_view FirstSaid(absl::string_view named, absl::string_view others,
                            absl::string_view usual) {
  if (!named.empty()) return named;
  return others.empty() ? usual : others;
}

absl::StatusOr<std::vector<int64_t>> ParseInputShape(absl::string_view text) {
  absl::StatusOr<std::vector<int64_t>> shape = ParseShape(text);
  if (shape.ok()) return shape;
  return absl::InvalidArgumentError(
      absl::StrCat("--shape \"", text, "\": ", shape.status().message()));
}

// FLOAT where the input takes it, else the first dtype of its description.
absl::string_view UsualDataType(const v1::InputDescriptor& input) {
  const auto& dtypes = input.dtypes();
  if (dtypes.empty() || std::find(dtypes.begin(), dtypes.end(), kFloat) != dtypes.end()) {
    return DataTypeName(kFloat);
  }
  return DataTypeName(static_cast<DataType>(dtypes[0]));
}

absl::StatusOr<DataType> ParseInputDataType(const v1::InputDescriptor& input,
                                            absl::string_view text) {
  const std::optional<DataType> dtype = ParseDataType(text);
  if (!dtype) {
    return absl::InvalidArgumentError(absl::StrCat("--dtype \"", text, "\" is not ", DtypeNames()));
  }
  // Refused here and not by the daemon, before a large tensor is made and sent.
  if (std::find(input.dtypes().begin(), input.dtypes().end(), *dtype) == input.dtypes().end()) {
    const std::string taken =
        absl::StrJoin(input.dtypes(), ", ", [](std::string* out, int accepted) {
          absl::StrAppend(out, DataTypeName(static_cast<DataType>(accepted)));
        });
    return absl::InvalidArgumentError(
        absl::StrCat("input \"", input.name(), "\" takes ", taken, ", not ", DataTypeName(*dtype)));
  }
  return *dtype;
}

// Takes the bytes of `shape` off *bytes_left; an error if there are not so many.
absl::Status TakeBytes(const std::vector<int64_t>& shape, DataType dtype, int64_t* bytes_left) {
  const auto element_bytes = static_cast<int64_t>(DataTypeBytes(dtype));
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    // By division: the product of the extents may overflow before it is compared.
    if (extent > *bytes_left / element_bytes / elements) {
      return absl::InvalidArgumentError(
          absl::StrCat("--shape ", absl::StrJoin(shape, ","), ": inputs of more than ",
                       FormatBytes(kMaxInputBytes), " do not fit a message; ask for smaller ones"));
    }
    elements *= extent;
  }
  *bytes_left -= elements * element_bytes;
  return absl::OkStatus();
}

}  // namespace

std::string ReadConcurrency(const std::string& text, std::vector<uint32_t>* concurrency) {
  concurrency->clear();
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    uint32_t number = 0;
    if (!absl::SimpleAtoi(part, &number) || number < 1 || number > kMaxConcurrency) {
      return absl::StrCat("\"", text, "\" is not a number from 1 to ", kMaxConcurrency,
                          ", or several such as 1,4,16");
    }
    concurrency->push_back(number);
  }
  return "";
}

std::string ReadRate(const std::string& text, std::optional<double>* rate) {
  double number = 0;
  // The negation also catches NaN.
  if (!absl::SimpleAtod(text, &number) || !(number > 0 && number <= kMaxRate)) {
    return absl::StrCat("\"", text, "\" is not a number of requests per second above 0 and up to ",
                        static_cast<int64_t>(kMaxRate));
  }
  *rate = number;
  return "";
}

std::string ReadTransport(const std::string& text, BenchTransport* transport) {
  for (const BenchTransport known :
       {BenchTransport::kUnary, BenchTransport::kSession, BenchTransport::kSharedMemory}) {
    if (text != TransportText(known)) continue;
    *transport = known;
    return "";
  }
  return absl::StrCat("\"", text, "\" is not unary, session or shm");
}

std::string ReadWarmup(const std::string& text, absl::Duration* warmup) {
  // Zero is below the shortest load, but a run without a warm-up makes sense.
  if (absl::ParseDuration(text, warmup) && *warmup == absl::ZeroDuration()) return "";
  return ReadDuration(text, warmup);
}

std::string ReadDuration(const std::string& text, absl::Duration* duration) {
  if (std::string error = ReadTime(text, duration); !error.empty()) return error;
  if (*duration >= kShortestLoad && *duration <= kLongestLoad) return "";
  return absl::StrCat("\"", text, "\" is not between ", absl::FormatDuration(kShortestLoad),
                      " and ", absl::FormatDuration(kLongestLoad));
}

// Tensors of lists count each, under names such as "tensors.0".
std::vector<BenchTensor> TensorsOf(const std::vector<NamedInput>& inputs) {
  std::vector<BenchTensor> tensors;
  for (const NamedInput& input : inputs) {
    if (const auto* tensor = std::get_if<Tensor>(&input.value)) {
      tensors.push_back({.name = input.name, .tensor = *tensor});
    } else if (const auto* list = std::get_if<std::vector<ListedTensor>>(&input.value)) {
      for (size_t i = 0; i < list->size(); ++i) {
        tensors.push_back(
            {.name = absl::StrCat(input.name, ".", i), .tensor = std::get<Tensor>((*list)[i])});
      }
    }
  }
  return tensors;
}

std::vector<uint32_t> ConcurrencyOf(const BenchArguments& arguments) {
  if (!arguments.concurrency.empty()) return arguments.concurrency;
  // An open loop needs threads to spare, or its requests wait for each other.
  return {arguments.rate ? kDefaultOpenConcurrency : kDefaultClosedConcurrency};
}

std::string TransportText(BenchTransport transport) {
  switch (transport) {
    case BenchTransport::kSession:
      return "session";
    case BenchTransport::kSharedMemory:
      return "shm";
    default:
      return "unary";
  }
}

absl::StatusOr<Invocation> BuildBenchInvocation(const v1::OperatorDescriptor& descriptor,
                                                const BenchArguments& arguments) {
  Invocation invocation{.operator_name = descriptor.name()};
  OPSERVE_ASSIGN_OR_RETURN(std::vector<NamedAttribute> attributes,
                           ParseAttributes(descriptor, arguments.attributes));
  invocation.attributes = std::move(attributes);
  OPSERVE_ASSIGN_OR_RETURN(const InputTexts shapes,
                           TextOfInputs(descriptor, "shape", arguments.shapes));
  OPSERVE_ASSIGN_OR_RETURN(const InputTexts dtypes,
                           TextOfInputs(descriptor, "dtype", arguments.dtypes));

  // All are checked before the first takes memory.
  std::vector<InputSpec> specs;
  int64_t bytes_left = kMaxInputBytes;
  for (int i = 0; i < descriptor.inputs_size(); ++i) {
    const v1::InputDescriptor& input = descriptor.inputs(i);
    // Named for this input alone: a text for all others does not bring in optional ones.
    if (input.optional() && shapes.named[i].empty() && dtypes.named[i].empty()) continue;
    OPSERVE_ASSIGN_OR_RETURN(
        const std::vector<int64_t> shape,
        ParseInputShape(FirstSaid(shapes.named[i], shapes.others, kDefaultShape)));
    OPSERVE_ASSIGN_OR_RETURN(
        const DataType dtype,
        ParseInputDataType(input, FirstSaid(dtypes.named[i], dtypes.others, UsualDataType(input))));
    for (int j = 0; j < (input.list() ? kListedTensors : 1); ++j) {
      OPSERVE_RETURN_IF_ERROR(TakeBytes(shape, dtype, &bytes_left));
    }
    specs.push_back(
        {.name = input.name(), .is_list = input.list(), .dtype = dtype, .shape = shape});
  }
  // One sequence for all inputs, so that no two of them are equal.
  std::mt19937_64 random(kInputSeed);
  for (const InputSpec& spec : specs) {
    NamedInput& input = invocation.inputs.emplace_back(NamedInput{.name = spec.name});
    if (!spec.is_list) {
      input.value = RandomTensor(spec.dtype, spec.shape, random);
      continue;
    }
    std::vector<ListedTensor> list;
    for (int j = 0; j < kListedTensors; ++j) {
      list.push_back(RandomTensor(spec.dtype, spec.shape, random));
    }
    input.value = std::move(list);
  }
  return invocation;
}

}  // namespace opserve::cli
