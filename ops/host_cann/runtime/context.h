// A context: streams of one device that belong together, and their options.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "acl/acl.h"
#include "ops/host_cann/runtime/mutex.h"
#include "ops/host_cann/runtime/stream.h"

namespace opserve::host_cann {

class Capture;
class Device;

inline constexpr int kNumSysParamOpts = 4;  // values of aclSysParamOpt

// Thread-safe. Its streams hold it; Close breaks that cycle.
class Context : public std::enable_shared_from_this<Context> {
 public:
  Context(Device& device, bool is_default) : device_(device), is_default_(is_default) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Device& device() const { return device_; }
  bool is_default() const { return is_default_; }

  // False once the context has been destroyed or its device reset.
  bool is_alive() const { return alive_.load(std::memory_order_acquire); }

  // Of the runtime's tables; set once, before others see the context.
  void set_handles(aclrtContext context, aclrtStream default_stream) {
    handle_ = context;
    default_stream_handle_ = default_stream;
  }
  aclrtContext handle() const { return handle_; }
  aclrtStream default_stream_handle() const { return default_stream_handle_; }

  // Creates a stream in this context. Null: the device has no more, or the context is closed.
  std::shared_ptr<Stream> CreateStream(Stream::Config config) ABSL_LOCKS_EXCLUDED(mutex_);
  // Closes a stream and forgets it.
  void RemoveStream(const std::shared_ptr<Stream>& stream) ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<Stream> default_stream() ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<Stream>> streams() ABSL_LOCKS_EXCLUDED(mutex_);

  // Captures of its streams that are under way, and some that have ended.
  void AddCapture(const std::shared_ptr<Capture>& capture) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<Capture>> captures() ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for all streams, then returns and clears one failure; those of other streams stay for
  // their own synchronise. 107027: a stream is captured. Otherwise as Stream::Wait and TakeError.
  aclError Synchronize(Deadline deadline);

  // Closes all streams. The context is not alive afterwards.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

  // The failure after which no stream of the context runs tasks; 0: none.
  aclError stop_code() const { return stop_code_.load(std::memory_order_acquire); }
  void Stop(aclError code);

  void SetOption(aclSysParamOpt opt, int64_t value) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<int64_t> option(aclSysParamOpt opt) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Device& device_;
  const bool is_default_;
  aclrtContext handle_ = nullptr;
  aclrtStream default_stream_handle_ = nullptr;
  std::atomic<bool> alive_{true};
  std::atomic<aclError> stop_code_{ACL_SUCCESS};

  Mutex mutex_;
  std::vector<std::shared_ptr<Stream>> streams_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<Capture>> captures_ ABSL_GUARDED_BY(mutex_);
  std::array<std::optional<int64_t>, kNumSysParamOpts> options_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::host_cann
