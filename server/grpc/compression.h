// Why the daemon's servers take no compressed messages.
#pragma once

#include "grpc/impl/codegen/compression_types.h"
#include "grpc/impl/codegen/grpc_types.h"
#include "grpcpp/server_builder.h"

namespace opserve::server {

// Has compressed requests answered with UNIMPLEMENTED before they are inflated, and offers clients
// no compression. gRPC (1.51) inflates a whole message before it compares its size with the limit,
// so 64 KiB on the wire would take 64 MiB of memory, whatever the limit is.
inline void RefuseCompression(grpc::ServerBuilder* builder) {
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  // Nothing is left for gRPC's filters of messages to do, which each call would go through.
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

}  // namespace opserve::server
