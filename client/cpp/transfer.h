// Internal: resident tensors to and from the daemon, in chunks.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/resident_tensor.h"
#include "client/cpp/tensor.h"
#include "client/cpp/transfer_options.h"
#include "client/cpp/transport.h"

namespace opserve {

// As Client::Upload.
absl::StatusOr<ResidentTensor> UploadTensor(Transport& transport, const Tensor& tensor,
                                            const UploadOptions& options);

// As Client::Snapshot.
absl::StatusOr<std::vector<SnapshotTensor>> DownloadTensors(Transport& transport,
                                                            const std::vector<std::string>& handles,
                                                            const DownloadOptions& options);

}  // namespace opserve
