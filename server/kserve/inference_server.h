// The Open Inference Protocol (KServe v2): its service, and the answers to its calls.
#pragma once

#include <functional>
#include <vector>

#include "server/grpc/unary_call.h"
#include "server/kserve/inference_context.h"
#include "server/schedule/lanes/scheduler.h"

namespace opserve::server {

// Thread-safe. Outlives its calls.
class InferenceServer {
 public:
  // The parts behind the methods; all outlive it.
  struct Parts {
    const OperatorTable& operators;
    const OperatorStatistics& statistics;
    const Scheduler& scheduler;
    RequestMetrics& metrics;
    const Authenticator& authenticator;
    ServerCalls& calls;
    std::function<bool()> is_serving;
    NamedRegions* named_regions;  // null: regions by name are not allowed
  };

  // `calls` outlives it, too.
  InferenceServer(Parts parts, CallContext& calls);

  // To be registered with the server.
  AsyncInferenceService& service() { return service_; }

  // For each thread that will poll a queue, before the first call. `counters` outlives it, too.
  void AddPoller(KnownRequestCounters& counters) {
    context_.known.push_back(std::make_unique<KnownInferences>(counters));
  }

  // Wait for one more ModelInfer call on `queue`, and for one of each other kind, as long as the
  // server takes any.
  void ListenForInference(grpc::ServerCompletionQueue* queue);
  void Listen(grpc::ServerCompletionQueue* queue);

 private:
  // Lets `answer` serve the calls of one method; its messages are a Request and a Response.
  template <typename Request, typename Response, typename Base, typename Answer>
  void Add(void (Base::*receive)(grpc::ServerContext*, grpc::ByteBuffer*,
                                 grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>*,
                                 grpc::CompletionQueue*, grpc::ServerCompletionQueue*, void*),
           Answer answer);

  void AddHealthMethods();
  void AddModelMethods();
  void AddSharedMemoryMethods();
  void AddUnsupportedMethods();

  absl::Status ModelReady(const inference::ModelReadyRequest& request,
                          inference::ModelReadyResponse* response) const;
  absl::Status ServerMetadata(inference::ServerMetadataResponse* response) const;
  absl::Status ModelStatistics(const inference::ModelStatisticsRequest& request,
                               inference::ModelStatisticsResponse* response) const;
  absl::Status RepositoryIndex(const inference::RepositoryIndexRequest& request,
                               inference::RepositoryIndexResponse* response) const;

  const Parts parts_;
  AsyncInferenceService service_;
  InferenceContext context_;
  // Each waits for a call of its method on a queue; owns the description of the method.
  std::vector<std::function<void(grpc::ServerCompletionQueue*)>> listen_;
};

}  // namespace opserve::server
