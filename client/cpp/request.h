// A call's request and response: plain structures, to be filled in by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "client/cpp/resident_tensor.h"
#include "client/cpp/shared_range.h"
#include "client/cpp/tensor.h"
#include "opserve/v1/operator_service.pb.h"

namespace opserve {

inline constexpr absl::Duration kDefaultTimeout = absl::Seconds(30);

struct View;

// An input of a prepared program (PreparedProgram) that comes with each of its calls: contiguous,
// row-major. Of a list of donated or replaced tensors: a resident tensor then.
struct InputOf {
  uint32_t number = 0;  // position among the inputs of a call
  DataType dtype = v1::DATA_TYPE_UNSPECIFIED;
  std::vector<int64_t> shape = {};

  // The input seen with its two axes exchanged. Requires: it has two.
  View T() const;
};

// Elements of a tensor of the daemon's, seen in another shape and order. Of `base`'s own dtype;
// `base` is contiguous.
struct View {
  std::variant<OutputOf, InputOf, ResidentTensor> base = {};
  DataType dtype = v1::DATA_TYPE_UNSPECIFIED;
  std::vector<int64_t> shape = {};
  std::vector<int64_t> strides = {};  // in elements, none negative; empty: contiguous, row-major
  int64_t offset = 0;                 // of the first element, in elements
};

// Elements that are part of the program, at most 4096 bytes.
struct Literal {
  DataType dtype = v1::DATA_TYPE_UNSPECIFIED;
  std::vector<int64_t> shape = {};
  std::vector<int64_t> strides = {};  // as of a View; one element with strides of 0 fills a shape
  std::string elements = {};          // little-endian
};

// The value of an input, or a tensor of an input that is a list.
using ListedTensor =
    std::variant<Tensor, OutputOf, ResidentTensor, SharedTensor, InputOf, View, Literal>;

struct NamedInput {
  std::string name = {};
  std::variant<Tensor, OutputOf, ResidentTensor, SharedTensor, InputOf, View, Literal,
               std::vector<ListedTensor>>
      value = {};
};

// The value of an attribute that is a text.
struct Text {
  std::string value = {};

  friend bool operator==(const Text& a, const Text& b) = default;
};

// A number with a dtype. A plain number serves as well: it is INT64, BOOL or DOUBLE.
struct Scalar {
  DataType dtype = v1::DATA_TYPE_UNSPECIFIED;
  std::variant<int64_t, double> value = {};  // int64_t: integers and BOOL

  friend bool operator==(const Scalar& a, const Scalar& b) = default;
};

// A string is one of the names the catalogue gives to numbers ("mean").
using AttributeValue = std::variant<int64_t, bool, double, std::string, Text, DataType, Scalar,
                                    std::vector<int64_t>, std::vector<bool>, std::vector<double>>;

struct NamedAttribute {
  std::string name = {};
  AttributeValue value = {};
};

struct OutputDataType {
  std::string output = {};
  DataType dtype = v1::DATA_TYPE_UNSPECIFIED;
};

// One call of one operator; see the catalogue (Client::ListOperators) for the names.
struct Invocation {
  std::string operator_name = {};
  std::vector<NamedInput> inputs = {};             // in any order; optional ones may be left out
  std::vector<NamedAttribute> attributes = {};     // those left out have their defaults
  std::vector<OutputDataType> output_dtypes = {};  // those left out have their defaults
  // Of the masked outputs, those to compute; each that is named here or above is, and if any is,
  // the others are left out. None named: all are computed.
  std::vector<std::string> masked_outputs = {};
};

// An output that stays with the daemon as a new resident tensor.
struct KeptOutput {
  OutputOf output = {};

  // How long it is kept from the end of the call on; zero: the daemon's default. One that is longer
  // than the daemon allows is refused with kInvalidArgument.
  absl::Duration lease = absl::ZeroDuration();
};

// An output that becomes the content of a resident tensor of its dtype and shape; the handle
// stays. Requests that use the tensor meanwhile wait, in the order of their arrival.
struct ReplacedTensor {
  std::variant<ResidentTensor, InputOf> tensor = {};
  OutputOf output = {};

  // That the tensor must have, else the request is refused with kFailedPrecondition and nothing is
  // done; not in a prepared program. Nothing: any.
  std::optional<uint64_t> version = {};
};

struct Request {
  // The program, in order. An input may be the output of an earlier invocation.
  std::vector<Invocation> invocations = {};

  // Results wanted, in this order. Empty: the outputs of the last invocation, or none if any output
  // is kept or replaces a tensor.
  std::vector<OutputOf> results = {};

  // Where results go, in the order of `results` (one, if that is empty): shared memory, or nothing
  // for one that is sent. May be shorter; the others are sent. A range has exactly the result's
  // size and overlaps no other and no input; its contents are undefined unless the call ends well.
  std::vector<std::optional<SharedRange>> destinations = {};

  // Outputs that stay on the device and do not travel, each named once. Each becomes a tensor or,
  // if the call fails, none. One that is among `results` too is sent as well.
  //
  // A request that keeps, replaces or donates tensors carries an identity, by which the daemon
  // knows a repetition after a lost connection: it runs once, and the repetition gets its answer.
  std::vector<KeptOutput> kept = {};

  // Resident tensors that change if the request succeeds, each named once.
  std::vector<ReplacedTensor> replaced = {};

  // Resident tensors that the request uses and gives up, none twice: once it has succeeded they are
  // gone, unless they are replaced too. Their memory may become an output's.
  std::vector<std::variant<ResidentTensor, InputOf>> donated = {};

  bool want_receipt = false;

  // Which of the tenant's own requests go first: PRIORITY_LOW, _NORMAL or _HIGH. Requests of other
  // tenants are not affected.
  v1::Priority priority = v1::PRIORITY_NORMAL;

  // While the daemon remembers the key (10 minutes), the same request with it is run once, and each
  // repetition gets the same answer; another request with it is refused with kInvalidArgument. At
  // most 64 bytes; empty: no key. Not with shared memory.
  std::string idempotency_key = {};

  // From the start of the call; in a stream, from the request's arrival at the daemon.
  absl::Duration timeout = kDefaultTimeout;
};

struct Response {
  std::vector<Result> results = {};  // in the order asked for
  // In the order of Request::kept, and then of Request::replaced: these with their new versions.
  std::vector<ResidentTensor> kept = {};
  std::optional<v1::Receipt> receipt = {};
};

}  // namespace opserve
