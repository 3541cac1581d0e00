// Internal: resident tensors to and from the daemon, in chunks.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/cpp/resident_tensor.h"
#include "client/cpp/tensor.h"
#include "client/cpp/transfer_options.h"
#include "client/cpp/transport.h"

namespace opserve {

// As Client::Upload.
absl::StatusOr<ResidentTensor> UploadTensor(Transport& transport, const Tensor& tensor,
                                            const UploadOptions& options);

// As Client::Download.
absl::StatusOr<Result> DownloadTensor(Transport& transport, const std::string& handle,
                                      const DownloadOptions& options);

}  // namespace opserve
