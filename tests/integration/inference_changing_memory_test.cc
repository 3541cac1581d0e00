// The Open Inference Protocol: shared memory whose owner changes it while it is used.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/inference_calls.h"
#include "tests/integration/inference_shared_memory.h"

namespace opserve::server {
namespace {

using inference::ModelInferRequest;
using ::testing::HasSubstr;

// Check 37.
TEST_F(InferenceSharedMemoryTest, AnObjectThatShrinksFailsItsRequestsOnly) {
  SharedObject object(3 * kTensorBytes);
  WriteInputs(object, 0);
  ASSERT_TRUE(Register("r", object.name(), 0, 3 * kTensorBytes).ok());
  object.Resize(kTensorBytes / 2);
  ModelInferRequest from = OnesInference(kPlacedElements);
  from.mutable_raw_input_contents()->DeleteSubrange(1, 1);
  Place("r", 0, kTensorBytes, from.mutable_inputs(1));
  ModelInferRequest into = OnesInference(kPlacedElements);
  into.add_outputs()->set_name("grad_input");
  Place("r", 2 * kTensorBytes, kTensorBytes, into.mutable_outputs(0));
  for (const ModelInferRequest& request : {from, into}) {
    const grpc::Status status = Infer(*stub_, request).status;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("has become smaller"));
  }
  EXPECT_EQ(object.size(), kTensorBytes / 2);  // it was not made to grow
  EXPECT_TRUE(IsAllOnes(Infer(*stub_, OnesInference(kPlacedElements)).response, kPlacedElements));
  object.Resize(3 * kTensorBytes);
  EXPECT_TRUE(Infer(*stub_, into).status.ok());
}

// Check 37 at any moment: its owner cuts the object off and enlarges it again, removes its name,
// punches holes in it and puts another one in its place, all the time. Requests that use it succeed
// or say that it is smaller; those beside them notice nothing.
TEST_F(InferenceSharedMemoryTest, AnObjectThatKeepsChangingHarmsNobody) {
  constexpr int64_t kElements = 1 << 18;
  constexpr uint64_t kBytes = kElements * sizeof(float);
  constexpr int kChanges = 10'000;
  SharedObject object(2 * kBytes);
  ASSERT_TRUE(Register("r", object.name(), 0, 2 * kBytes).ok());
  // Changes are made while a request that uses the object is under way.
  std::atomic<bool> is_in_use = false;
  std::atomic<int> num_ended = 0;
  std::atomic<bool> is_over = false;
  std::thread owner([&] {
    for (int i = 0; i < kChanges; ++i) {
      while (!is_in_use) std::this_thread::yield();
      switch (i % 4) {
        case 0: {
          const int ended = num_ended;
          object.Resize(kBytes / 2);
          // Now and then until a request has met it.
          while (i % 400 == 0 && num_ended == ended) std::this_thread::yield();
          object.Resize(2 * kBytes);
          break;
        }
        case 1:
          shm_unlink(object.name().c_str());
          break;
        case 2:
          EXPECT_EQ(fallocate(object.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kBytes),
                    0);
          break;
        default: {
          const int other = shm_open(object.name().c_str(), O_CREAT | O_RDWR, 0600);
          EXPECT_GE(other, 0);
          close(other);
        }
      }
    }
    is_over = true;
  });
  std::thread bystander([&] {
    while (!is_over) {
      const InferResult result = Infer(*stub_, OnesInference(kPlacedElements));
      EXPECT_TRUE(result.status.ok()) << result.status.error_message();
      EXPECT_TRUE(IsAllOnes(result.response, kPlacedElements));
    }
  });
  ModelInferRequest request = OnesModel(kElements);
  request.add_raw_input_contents(OnesInput(0, 1));
  request.add_raw_input_contents(OnesInput(2, kElements));
  Place("r", 0, kBytes, request.mutable_inputs(1));
  request.add_outputs()->set_name("grad_input");
  Place("r", kBytes, kBytes, request.mutable_outputs(0));
  int failed = 0;
  while (!is_over) {
    is_in_use = true;
    const grpc::Status status = Infer(*stub_, request).status;
    is_in_use = false;
    ++num_ended;
    if (status.ok()) continue;
    ++failed;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("the shared memory has become smaller"));
  }
  owner.join();
  bystander.join();
  EXPECT_GT(failed, 0) << "no request met the changes";
  EXPECT_TRUE(Infer(*stub_, request).status.ok());
  EXPECT_EQ(daemon_.HeldByRequests(), 0);
}

}  // namespace
}  // namespace opserve::server
