// A daemon for tests of clients: generated classes and stock protobuf, on a Unix socket.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "client/cpp/client.h"
#include "grpcpp/server.h"
#include "opserve/v1/operator_service.grpc.pb.h"
#include "tests/unit/client/test_admin_service.h"
#include "tests/unit/client/test_tensor_service.h"

namespace opserve {

// A directory that is removed, with what it holds, at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Knows two operators, "Scale" (inputs x and y, attributes factor, mode and negate) and "Absent",
// which is not available. Execute answers what `execute` says, at first with every result being the
// first input of the last invocation. It knows no sessions until `session` says what to do with
// one.
class TestServer final : public v1::OperatorService::Service {
 public:
  using Handler = std::function<grpc::Status(grpc::ServerContext*, const v1::ExecuteRequest&,
                                             v1::ExecuteResponse*)>;

  using PrepareHandler = std::function<void(const v1::PrepareRequest&, v1::PrepareResponse*)>;

  using SessionStream = grpc::ServerReaderWriter<v1::SessionMessage, v1::SessionMessage>;
  using SessionHandler = std::function<grpc::Status(grpc::ServerContext*, SessionStream*)>;

  TestServer();
  ~TestServer() override;

  std::string target() const { return "unix:" + directory_.File("socket"); }
  std::string admin_target() const { return "unix:" + directory_.File("admin.sock"); }

  // A client whose connection stands, so that a short deadline is the call's alone.
  std::unique_ptr<Client> Connect() const;

  TestTensorService& tensors() { return tensors_; }
  const TestAdminService& admin() const { return admin_; }

  void set_execute(Handler execute) ABSL_LOCKS_EXCLUDED(mutex_);
  void set_session(SessionHandler session) ABSL_LOCKS_EXCLUDED(mutex_);

  // Lists another operator: an OperatorDescriptor, as text.
  void add_operator(const std::string& descriptor) ABSL_LOCKS_EXCLUDED(mutex_);

  // What GetServerStatus answers; at first, two devices, of which one is quarantined.
  void set_status(const v1::GetServerStatusResponse& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // Prepare, which is not known at first, answers what `prepare` says.
  void set_prepare(PrepareHandler prepare) ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes Execute wait for LetGo, then echo. LetGo may be called once; the destructor does it too.
  void HoldCalls();
  void LetGo();

  // Returns once LetGo is called.
  void WaitForLetGo() { let_go_.WaitForNotification(); }

  // The last request that Execute got.
  v1::ExecuteRequest last_request() ABSL_LOCKS_EXCLUDED(mutex_);

  // Answers with the first input of the last invocation under the name "out"; with a zero if that
  // is a resident tensor.
  static grpc::Status Echo(grpc::ServerContext* context, const v1::ExecuteRequest& request,
                           v1::ExecuteResponse* response);

 private:
  grpc::Status ListOperators(grpc::ServerContext* context, const v1::ListOperatorsRequest* request,
                             v1::ListOperatorsResponse* response) override;
  grpc::Status Execute(grpc::ServerContext* context, const v1::ExecuteRequest* request,
                       v1::ExecuteResponse* response) override;
  grpc::Status Prepare(grpc::ServerContext* context, const v1::PrepareRequest* request,
                       v1::PrepareResponse* response) override;
  grpc::Status Session(grpc::ServerContext* context, SessionStream* stream) override;
  grpc::Status GetServerStatus(grpc::ServerContext* context,
                               const v1::GetServerStatusRequest* request,
                               v1::GetServerStatusResponse* response) override;

  TemporaryDirectory directory_;
  TestTensorService tensors_;
  TestAdminService admin_;
  absl::Notification let_go_;
  absl::Mutex mutex_;
  Handler execute_ ABSL_GUARDED_BY(mutex_) = &TestServer::Echo;
  SessionHandler session_ ABSL_GUARDED_BY(mutex_);
  PrepareHandler prepare_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::GetServerStatusResponse> status_ ABSL_GUARDED_BY(mutex_);
  v1::ExecuteRequest last_request_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::OperatorDescriptor> added_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace opserve
