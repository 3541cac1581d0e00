// Internal: what a client knows of the results of a prepared program before their answers come.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/data_type.h"
#include "client/cpp/request.h"
#include "opserve/v1/operator_service.pb.h"

namespace opserve {

// A result as it is in every call.
struct KnownResult {
  enum Place { kPayload, kKept, kReplaces };

  OutputOf source = {};
  DataType dtype = v1::DATA_TYPE_UNSPECIFIED;
  std::vector<int64_t> shape = {};
  Place place = kPayload;
  // Of the tensor that it replaces: its handle or, if that comes with each call, its position in
  // PreparedCall.residents.
  std::string handle = {};
  int resident = 0;
};

// The results of a program that was prepared, from the message and the daemon's answer. None: the
// daemon does not know brief answers. kInternal: its answer does not fit the program.
absl::StatusOr<std::vector<KnownResult>> ReadKnownResults(const v1::PrepareRequest& request,
                                                          const v1::PrepareResponse& response);

}  // namespace opserve
