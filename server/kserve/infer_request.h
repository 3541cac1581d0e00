// A request of the Open Inference Protocol, translated for the daemon's executor.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "inference/grpc_service.pb.h"
#include "opserve/v1/operator.pb.h"
#include "proto/codec/payload_message.h"
#include "server/program/operator_table.h"
#include "server/request/given_request.h"
#include "server/shared_memory/named_regions.h"

namespace opserve::server {

inline constexpr uint32_t kRawInputsField =
    inference::ModelInferRequest::kRawInputContentsFieldNumber;

// The names that a request can use.
struct InferNames {
  const OperatorTable& operators;
  const NamedRegions* regions;  // null: there are none
  uint32_t tenant = 0;          // the regions'
};

// A request that has been translated.
struct InferTask {
  // Refers to the message, and to `values`.
  GivenRequest request;
  std::deque<v1::AttributeValue> values;  // of attributes; they stay where they are
  const LoadedOperator* op = nullptr;
  absl::Duration timeout = absl::InfiniteDuration();
  std::vector<std::shared_ptr<SharedRegion>> regions;  // those that ranges name by position
};

// Translates `request`, whose raw_input_contents are the payloads of `message`, into a program of
// one invocation that has the same payloads. Elements that are in `contents` become
// payloads of `message`.
//
// kInvalidArgument: a mistake that shows before the operator judges the tensors; names it in words
// which clients of this protocol know.  kUnimplemented (reason "shm_disabled"): shared memory,
// without `names.regions`.  Also those of FindModel and NamedRegions::Find.
absl::StatusOr<InferTask> TranslateInferRequest(const inference::ModelInferRequest& request,
                                                const InferNames& names,
                                                codec::PayloadMessage* message);

// A daemon's answer where regions by name are not allowed. kUnimplemented.
absl::Status NamedRegionsAreDisabled();

}  // namespace opserve::server
