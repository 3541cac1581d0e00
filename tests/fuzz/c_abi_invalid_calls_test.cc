// Random calls of the operators through the C ABI, most of them wrong in one or more ways. Each
// gives a documented code; nothing crashes, and nothing is left alive.
//
// OPSERVE_TEST_SEED repeats a run, OPSERVE_FUZZ_CALLS makes it longer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_kl_div_backward.h"
#include "aclnnop/aclnn_kl_div_target_backward.h"
#include "aclnnop/aclnn_l1_loss_backward.h"
#include "aclnnop/aclnn_logsoftmax_backward.h"
#include "ops/host_cann/opserve/host_cann.h"
#include "tests/conformance/device_fixture.h"
#include "tests/fuzz/error_text.h"
#include "tests/fuzz/odd_tensor.h"
#include "tests/seed.h"

namespace opserve::host_cann {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// One odd call after another on one device. Descriptors, executors and memory live for one call.
class InvalidCallsTest : public conformance::DeviceTest {
 protected:
  void SetUp() override {
    rng_.seed(TestSeed(20240607));
    ASSERT_EQ(aclrtCreateStream(&destroyed_stream_), ACL_SUCCESS);
    ASSERT_EQ(aclrtDestroyStream(destroyed_stream_), ACL_SUCCESS);
  }

  // aclnn functions have few codes.
  aclnnStatus Documented(aclnnStatus status) {
    static const std::set<aclnnStatus> codes = {ACLNN_SUCCESS, ACLNN_ERR_PARAM_NULLPTR,
                                                ACLNN_ERR_PARAM_INVALID, ACLNN_ERR_RUNTIME_ERROR,
                                                ACLNN_ERR_INNER_NULLPTR};
    EXPECT_TRUE(codes.count(status) == 1) << status;
    ++seen_[status];
    LookAtErrorText(status);
    return status;
  }

  // Servers pass it on to whoever called.
  void LookAtErrorText(int32_t status) {
    const char* text = status == 0 ? nullptr : aclGetRecentErrMsg();
    if (text == nullptr) return;
    EXPECT_THAT(GivenAway(text), testing::IsEmpty()) << text;
  }

  // Runtime functions have many codes, in blocks.
  aclError DocumentedRuntime(aclError status) {
    const bool documented =
        status == 0 || (status >= 100000 && status <= 100045) ||
        (status >= 107000 && status <= 107045) || (status >= 200000 && status <= 200007) ||
        (status >= 207000 && status <= 207021) || (status >= 507000 && status <= 507916);
    EXPECT_TRUE(documented) << status;
    ++seen_[status];
    LookAtErrorText(status);
    return status;
  }

  // Arguments of one call that is right: a common shape and dtype.
  std::vector<TensorSpec> RightArguments() {
    Dims shape(Below(rng_, 5));
    int64_t count = 1;
    for (int64_t& extent : shape) count *= extent = 1 + Below(rng_, 5);
    const aclDataType dtype = Pick(rng_, std::array{ACL_FLOAT, ACL_FLOAT16, ACL_BF16});
    TensorSpec spec{shape,
                    std::nullopt,
                    0,
                    dtype,
                    ACL_FORMAT_ND,
                    shape,
                    static_cast<size_t>(count) * (dtype == ACL_FLOAT ? 4 : 2)};
    return std::vector<TensorSpec>(4, spec);
  }

  void* AddressOf(const TensorSpec& spec) {
    void* own = buffers_.emplace_back(spec.allocated_bytes).address();
    switch (spec.address) {
      case TensorSpec::Address::kOwn:
        return own;
      case TensorSpec::Address::kOther:
        return buffers_.front().address();
      case TensorSpec::Address::kNull:
        return nullptr;
      case TensorSpec::Address::kMisaligned:
        return static_cast<char*>(own) + 1;
      case TensorSpec::Address::kFreed:
        freed_.push_back(own);
        return own;
      case TensorSpec::Address::kNowhere:
        return reinterpret_cast<void*>(Pick(rng_, kOddNumbers));
    }
    return nullptr;
  }

  aclTensor* Create(const TensorSpec& spec) {
    ++num_calls_;
    if (spec.handle == TensorSpec::Handle::kNull) return nullptr;
    if (spec.handle == TensorSpec::Handle::kMadeUp) {
      return reinterpret_cast<aclTensor*>(Pick(rng_, kOddNumbers));
    }
    aclTensor* tensor =
        aclCreateTensor(spec.shape.data(), spec.shape.size(), spec.dtype,
                        spec.strides ? spec.strides->data() : nullptr, spec.offset, spec.format,
                        spec.storage.data(), spec.storage.size(), AddressOf(spec));
    if (spec.handle == TensorSpec::Handle::kDestroyed) {
      Documented(aclDestroyTensor(tensor));
    } else {
      tensors_.push_back(tensor);
    }
    return tensor;
  }

  void ReadProperties(const aclTensor* tensor) {
    int64_t* dims = nullptr;
    uint64_t count = 0;
    if (Documented(aclGetViewShape(tensor, Below(rng_, 4) == 0 ? nullptr : &dims, &count)) == 0) {
      delete[] dims;
    }
    void* address = nullptr;
    Documented(aclGetRawTensorAddr(tensor, Below(rng_, 4) == 0 ? nullptr : &address));
    num_calls_ += 2;
  }

  // Stage one of a random operator. The executor stays null on failure.
  aclOpExecutor* StageOne(const std::array<aclTensor*, 4>& t, uint64_t* workspace_size) {
    aclOpExecutor* executor = nullptr;
    aclOpExecutor** executor_out = Below(rng_, 50) == 0 ? nullptr : &executor;
    if (Below(rng_, 50) == 0) workspace_size = nullptr;
    const int64_t attribute = Below(rng_, 3) == 0 ? Pick(rng_, kOddNumbers) : 0;
    const bool log_target = Below(rng_, 2) == 0;
    aclnnStatus status = ACLNN_SUCCESS;
    switch (Below(rng_, 4)) {
      case 0:
        status = aclnnKlDivBackwardGetWorkspaceSize(t[0], t[1], t[2], attribute, log_target, t[3],
                                                    workspace_size, executor_out);
        break;
      case 1:
        status = aclnnKlDivTargetBackwardGetWorkspaceSize(t[0], t[1], t[2], attribute, log_target,
                                                          t[3], workspace_size, executor_out);
        break;
      case 2:
        status = aclnnL1LossBackwardGetWorkspaceSize(t[0], t[1], t[2], attribute, t[3],
                                                     workspace_size, executor_out);
        break;
      case 3:
        status = aclnnLogSoftmaxBackwardGetWorkspaceSize(t[0], t[1], attribute, t[3],
                                                         workspace_size, executor_out);
        break;
    }
    ++num_calls_;
    EXPECT_EQ(Documented(status) == ACLNN_SUCCESS, executor != nullptr);
    return executor;
  }

  void StageTwo(uint64_t workspace_size, aclOpExecutor* executor) {
    constexpr decltype(&aclnnKlDivBackward) kStageTwos[] = {
        aclnnKlDivBackward, aclnnKlDivTargetBackward, aclnnL1LossBackward, aclnnLogSoftmaxBackward};
    // Large workspaces are not worth their memory here: claim them, and let the device find out.
    void* workspace = buffers_.emplace_back(std::min<uint64_t>(workspace_size, 1 << 16)).address();
    aclrtStream stream = stream_;
    switch (Below(rng_, 12)) {
      case 0:
        executor = nullptr;
        break;
      case 1:
        executor = reinterpret_cast<aclOpExecutor*>(Pick(rng_, kOddNumbers));
        break;
      case 2:
        workspace = nullptr;
        break;
      case 3:
        workspace_size /= 2;
        break;
      case 4:
        workspace_size = Pick(rng_, kOddNumbers);
        break;
      case 5:
        stream = nullptr;
        break;
      case 6:
        stream = destroyed_stream_;
        break;
      case 7:
        stream = reinterpret_cast<aclrtStream>(Pick(rng_, kOddNumbers));
        break;
      case 8:
        workspace = static_cast<char*>(workspace) + 8;
        break;
    }
    Documented(Pick(rng_, kStageTwos)(workspace, workspace_size, executor, stream));
    ++num_calls_;
  }

  // What can be done to an executor besides running it; some calls with one that is gone.
  void Meddle(aclOpExecutor* executor, aclTensor* tensor) {
    const size_t index = Pick(rng_, kOddNumbers);
    switch (Below(rng_, 8)) {
      case 0:
        Documented(aclSetAclOpExecutorRepeatable(executor));
        break;
      case 1:
        Documented(aclDestroyAclOpExecutor(executor));
        break;
      case 2:
        Documented(aclSetInputTensorAddr(executor, index, tensor, &rng_));
        break;
      case 3:
        Documented(aclSetOutputTensorAddr(executor, index, tensor, nullptr));
        break;
      case 4:
        Documented(aclSetTensorAddr(executor, index, tensor, &rng_));
        break;
      case 5:
        Documented(aclSetDynamicTensorAddr(executor, index, 0, nullptr, &rng_));
        break;
      default:
        return;
    }
    ++num_calls_;
  }

  void RunOneCall() {
    std::vector<TensorSpec> specs = RightArguments();
    for (uint64_t n = Below(rng_, 3); n > 0; --n) Spoil(rng_, specs[Below(rng_, specs.size())]);
    buffers_.reserve(specs.size() + 4);  // freed_ and kOther refer to them
    std::array<aclTensor*, 4> tensors;
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i] = Create(specs[i]);
    ReadProperties(Pick(rng_, tensors));

    uint64_t workspace_size = 0;
    aclOpExecutor* executor = StageOne(tensors, &workspace_size);
    Meddle(executor, tensors[0]);
    const bool free_before = Below(rng_, 2) == 0;
    if (free_before) FreeEarly();
    StageTwo(workspace_size, executor);
    if (Below(rng_, 2) == 0) {
      Synchronize();  // the same output again, perhaps on another stream
      StageTwo(workspace_size, executor);
    }
    if (!free_before) FreeEarly();
    Meddle(executor, tensors[0]);

    Synchronize();
    CleanUp(executor);
  }

  void Synchronize() {
    DocumentedRuntime(aclrtSynchronizeStream(stream_));
    DocumentedRuntime(aclrtSynchronizeStream(nullptr));
  }

  // Frees memory that the call, queued or still to come, names.
  void FreeEarly() {
    for (void* address : freed_) {
      for (conformance::DeviceBuffer& buffer : buffers_) {
        if (buffer.address() == address) buffer.Free();
      }
      DocumentedRuntime(aclrtFree(address));
      ++num_calls_;
    }
    freed_.clear();
  }

  void CleanUp(aclOpExecutor* executor) {
    Documented(aclDestroyAclOpExecutor(executor));
    for (const aclTensor* tensor : tensors_) EXPECT_EQ(Documented(aclDestroyTensor(tensor)), 0);
    tensors_.clear();
    buffers_.clear();
  }

  Rng rng_;
  uint64_t num_calls_ = 0;
  std::map<int32_t, int> seen_;  // codes, and how often
  aclrtStream destroyed_stream_ = nullptr;

  // Of the call that is running.
  std::vector<conformance::DeviceBuffer> buffers_;
  std::vector<void*> freed_;
  std::vector<const aclTensor*> tensors_;
};

TEST_F(InvalidCallsTest, GiveDocumentedCodesAndLeaveNothingBehind) {
  constexpr opserveHostCounter kCounters[] = {OPSERVE_HOST_ALLOCATIONS,
                                              OPSERVE_HOST_ALLOCATED_BYTES, OPSERVE_HOST_STREAMS,
                                              OPSERVE_HOST_TENSORS, OPSERVE_HOST_EXECUTORS};
  std::map<opserveHostCounter, int64_t> before;
  for (const opserveHostCounter counter : kCounters) before[counter] = opserveHostCount(counter);
  const uint64_t calls = FromEnvironment("OPSERVE_FUZZ_CALLS", 10000);

  for (uint64_t call = 0; call < calls && !HasFailure(); ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    RunOneCall();
  }

  EXPECT_GE(num_calls_, calls);
  for (const opserveHostCounter counter : kCounters) {
    EXPECT_EQ(opserveHostCount(counter), before[counter]) << "counter " << counter;
  }
  for (const auto& [code, times] : seen_) std::cout << code << ": " << times << "\n";
  // The calls were odd, but not so odd that the first check caught them all.
  for (const int32_t code : {0, ACLNN_ERR_PARAM_NULLPTR, ACLNN_ERR_PARAM_INVALID,
                             ACLNN_ERR_RUNTIME_ERROR, ACLNN_ERR_INNER_NULLPTR}) {
    EXPECT_GT(seen_[code], 0) << code;
  }
}

}  // namespace
}  // namespace opserve::host_cann
