// Programs that capture streams and replay the graphs, and that make every mistake of it once.

#include <thread>

#include "device_tensor.h"
#include "program.h"

namespace {

constexpr auto kGlobal = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
constexpr auto kThreadLocal = ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL;
constexpr auto kRelaxed = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;

// A device with two streams and a sum to compute.
struct Session {
  Session() {
    CHECK_OK(aclInit(nullptr));
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtCreateStream(&side));
    CHECK_OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    self = MakeTensor({1, 2, 3, 4});
    other = MakeTensor({10, 20, 30, 40});
    out = MakeTensor({0, 0, 0, 0});
    float factor = 1.0f;
    alpha = aclCreateScalar(&factor, ACL_FLOAT);
  }
  ~Session() {
    CHECK_OK(aclDestroyScalar(alpha));
    for (const DeviceTensor& tensor : {self, other, out}) Release(tensor);
    for (void* const workspace : workspaces) CHECK_OK(aclrtFree(workspace));
    CHECK_OK(aclrtDestroyEvent(event));
    CHECK_OK(aclrtDestroyStream(side));
    CHECK_OK(aclrtDestroyStream(stream));
    CHECK_OK(aclrtResetDevice(0));
    CHECK_OK(aclFinalize());
  }

  // Queues or captures out = left + right.
  void Add(const DeviceTensor& left, const DeviceTensor& right, aclrtStream on) {
    void* const workspace = QueueAdd(left, right, alpha, out, on);
    if (workspace != nullptr) workspaces.push_back(workspace);
  }
  std::vector<float> Out() const { return ReadTensor(out, 4); }

  aclrtStream stream = nullptr;
  aclrtStream side = nullptr;
  aclrtEvent event = nullptr;
  DeviceTensor self, other, out;
  aclScalar* alpha = nullptr;
  std::vector<void*> workspaces;
};

// A captured sum runs with every replay, on the tensors as they are then.
void CaptureAndReplay() {
  Session session;
  aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
  aclmdlRI during = nullptr, graph = nullptr;
  CHECK_OK(aclmdlRICaptureBegin(session.stream, kGlobal));
  CHECK_OK(aclmdlRICaptureGetInfo(session.stream, &status, &during));
  CHECK_TRUE(status == ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE && during != nullptr);
  session.Add(session.self, session.other, session.stream);
  CHECK_OK(aclmdlRICaptureEnd(session.stream, &graph));
  CHECK_TRUE(graph == during);
  CHECK_OK(aclrtSynchronizeStream(session.stream));
  CHECK_TRUE(session.Out() == std::vector<float>(4));
  CHECK_OK(aclmdlRIDebugPrint(graph));

  CHECK_OK(aclmdlRIExecuteAsync(graph, session.stream));
  CHECK_OK(aclrtSynchronizeStream(session.stream));
  CHECK_TRUE((session.Out() == std::vector<float>{11, 22, 33, 44}));
  const float changed[] = {5, 6, 7, 8};
  CHECK_OK(aclrtMemcpy(session.self.memory, sizeof(changed), changed, sizeof(changed),
                       ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK_OK(aclmdlRIExecute(graph, -1));
  CHECK_TRUE((session.Out() == std::vector<float>{15, 26, 37, 48}));
  CHECK_OK(aclmdlRIDestroy(graph));
}

// A second stream joins the capture by an event and is joined back.
void CaptureTwoStreams() {
  Session session;
  aclmdlRI graph = nullptr;
  CHECK_OK(aclmdlRICaptureBegin(session.stream, kThreadLocal));
  CHECK_OK(aclrtMemsetAsync(session.self.memory, 16, 0, 16, session.stream));
  CHECK_OK(aclrtRecordEvent(session.event, session.stream));
  CHECK_OK(aclrtStreamWaitEvent(session.side, session.event));
  session.Add(session.self, session.other, session.side);
  CHECK_OK(aclrtRecordEvent(session.event, session.side));
  CHECK_OK(aclrtStreamWaitEvent(session.stream, session.event));
  session.Add(session.out, session.other, session.stream);
  CHECK_OK(aclmdlRICaptureEnd(session.stream, &graph));
  for (int i = 0; i < 2; ++i) {
    CHECK_OK(aclmdlRIExecuteAsync(graph, session.side));
    CHECK_OK(aclrtSynchronizeStream(session.side));
    CHECK_TRUE((session.Out() == std::vector<float>{20, 40, 60, 80}));
  }
  CHECK_OK(aclmdlRIDestroy(graph));
}

// An operator of a graph gets other tensors.
void UpdateATask() {
  Session session;
  aclmdlRI graph = nullptr;
  aclrtTaskGrp group = nullptr;
  CHECK_OK(aclmdlRICaptureBegin(session.stream, kGlobal));
  CHECK_OK(aclmdlRICaptureTaskGrpBegin(session.stream));
  session.Add(session.self, session.other, session.stream);
  CHECK_OK(aclmdlRICaptureTaskGrpEnd(session.stream, &group));
  CHECK_OK(aclmdlRICaptureEnd(session.stream, &graph));
  CHECK_OK(aclmdlRICaptureTaskUpdateBegin(session.side, group));
  session.Add(session.other, session.other, session.side);
  CHECK_OK(aclmdlRICaptureTaskUpdateEnd(session.side));
  CHECK_OK(aclmdlRIExecuteAsync(graph, session.side));
  CHECK_OK(aclrtSynchronizeStream(session.side));
  CHECK_TRUE((session.Out() == std::vector<float>{20, 40, 60, 80}));
  CHECK_OK(aclmdlRIDestroy(graph));
}

// The codes of a stream, an event and a graph in a capture.
void CaptureRefusals() {
  Session session;
  aclmdlRI during = nullptr, graph = nullptr;
  CHECK_CODE(aclmdlRICaptureEnd(session.stream, &graph), 107029);
  aclrtEvent outside = nullptr;
  CHECK_OK(aclrtCreateEventExWithFlag(&outside, ACL_EVENT_SYNC));
  CHECK_OK(aclrtRecordEvent(outside, session.side));
  CHECK_OK(aclrtSynchronizeStream(session.side));

  CHECK_OK(aclmdlRICaptureBegin(session.stream, kGlobal));
  CHECK_OK(aclmdlRICaptureGetInfo(session.stream, nullptr, &during));
  CHECK_CODE(aclmdlRIExecuteAsync(during, session.side), 107026);
  CHECK_CODE(aclmdlRIDestroy(during), 107026);
  CHECK_CODE(aclmdlRICaptureBegin(session.stream, kGlobal), 107027);
  CHECK_CODE(aclrtSynchronizeStream(session.stream), 107027);
  CHECK_CODE(aclrtSynchronizeDevice(), 107027);
  CHECK_CODE(aclrtStreamWaitEvent(session.stream, outside), 107024);
  CHECK_OK(aclrtRecordEvent(session.event, session.stream));
  CHECK_CODE(aclrtSynchronizeEvent(session.event), 107028);
  CHECK_CODE(aclrtStreamWaitEvent(nullptr, session.event), 107031);

  // Synchronous use of memory, unless the thread says that it knows better.
  aclmdlRICaptureMode mode = kRelaxed;
  CHECK_CODE(aclrtMemset(session.out.memory, 16, 0, 16), 107030);
  CHECK_OK(aclmdlRICaptureThreadExchangeMode(&mode));
  CHECK_TRUE(mode == kGlobal);
  CHECK_OK(aclrtMemset(session.out.memory, 16, 0, 16));
  CHECK_OK(aclmdlRICaptureThreadExchangeMode(&mode));
  CHECK_TRUE(mode == kRelaxed);

  CHECK_OK(aclrtStreamWaitEvent(session.side, session.event));
  CHECK_CODE(aclmdlRICaptureEnd(session.side, &graph), 107036);
  CHECK_CODE(aclmdlRICaptureEnd(session.stream, &graph), 107025);
  CHECK_TRUE(graph == nullptr);
  CHECK_OK(aclrtDestroyEvent(outside));
}

// Another thread may end a capture in mode RELAXED only.
void EndOnAnotherThread() {
  Session session;
  aclrtContext context = nullptr;
  CHECK_OK(aclrtGetCurrentContext(&context));
  aclmdlRI graph = nullptr;
  const auto end = [&](aclError expected) {
    std::thread([&] {
      CHECK_OK(aclrtSetCurrentContext(context));
      CHECK_CODE(aclmdlRICaptureEnd(session.stream, &graph), expected);
    }).join();
  };
  CHECK_OK(aclmdlRICaptureBegin(session.stream, kGlobal));
  end(107038);
  CHECK_TRUE(graph == nullptr);
  CHECK_OK(aclmdlRICaptureBegin(session.stream, kRelaxed));
  end(ACL_SUCCESS);
  CHECK_OK(aclmdlRIExecute(graph, -1));
  CHECK_OK(aclmdlRIDestroy(graph));
}

// A wait across two captures spoils both.
void InvalidateACapture() {
  Session session;
  aclmdlRI graph = nullptr;
  aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
  CHECK_OK(aclmdlRICaptureBegin(session.stream, kRelaxed));
  CHECK_OK(aclmdlRICaptureBegin(session.side, kRelaxed));
  CHECK_OK(aclrtRecordEvent(session.event, session.stream));
  CHECK_CODE(aclrtStreamWaitEvent(session.side, session.event), 107032);
  CHECK_OK(aclmdlRICaptureGetInfo(session.stream, &status, nullptr));
  CHECK_TRUE(status == ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED);
  CHECK_CODE(aclrtMemsetAsync(session.out.memory, 16, 0, 16, session.stream), 507903);
  CHECK_CODE(aclmdlRICaptureEnd(session.stream, &graph), 507903);
  CHECK_CODE(aclmdlRICaptureEnd(session.side, &graph), 507903);
  session.Add(session.self, session.other, session.stream);
  CHECK_OK(aclrtSynchronizeStream(session.stream));
  CHECK_TRUE((session.Out() == std::vector<float>{11, 22, 33, 44}));
}

// A replay finds that a tensor has moved.
void ReplayWithMovedMemory() {
  Session session;
  aclmdlRI graph = nullptr;
  CHECK_OK(aclmdlRICaptureBegin(session.stream, kGlobal));
  session.Add(session.self, session.other, session.stream);
  CHECK_OK(aclmdlRICaptureEnd(session.stream, &graph));
  Release(session.self);
  session.self = MakeTensor({1, 2, 3, 4});
  CHECK_OK(aclmdlRIExecuteAsync(graph, session.stream));
  CHECK_CODE(aclrtSynchronizeStream(session.stream), 507035);
  CHECK_TRUE(session.Out() == std::vector<float>(4));
  CHECK_OK(aclmdlRIDestroy(graph));
}

}  // namespace

std::vector<Program> CapturePrograms() {
  return {{"capture_and_replay", CaptureAndReplay},
          {"capture_two_streams", CaptureTwoStreams},
          {"update_a_task", UpdateATask},
          {"capture_refusals", CaptureRefusals},
          {"end_on_another_thread", EndOnAnotherThread},
          {"invalidate_a_capture", InvalidateACapture},
          {"replay_with_moved_memory", ReplayWithMovedMemory}};
}
