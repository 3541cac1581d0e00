#include "server/shared_memory/shared_memory_quota.h"

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"

namespace opserve::server {

class SharedMemoryQuota::Charge {
 public:
  Charge(SharedMemoryQuota* owner, uint32_t tenant, uint64_t bytes)
      : owner_(*owner), tenant_(tenant), bytes_(bytes) {}
  ~Charge() { owner_.GiveBack(tenant_, bytes_); }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

 private:
  SharedMemoryQuota& owner_;
  const uint32_t tenant_;
  const uint64_t bytes_;
};

absl::StatusOr<std::shared_ptr<void>> SharedMemoryQuota::Take(uint32_t tenant, uint64_t bytes,
                                                              const SharedMemoryLimits& limits) {
  absl::MutexLock lock(&mutex_);
  const auto found = usage_.find(tenant);
  const Usage used = found == usage_.end() ? Usage() : found->second;
  // A reload may have set limits below the use.
  if (used.regions >= limits.max_regions || used.bytes > limits.max_bytes ||
      bytes > limits.max_bytes - used.bytes) {
    return MakeError(Reason::kTenantMemory,
                     absl::StrCat("a region of ", bytes, " bytes more: the tenant has ", used.bytes,
                                  " bytes in ", used.regions, " regions, at most ",
                                  limits.max_bytes, " in ", limits.max_regions, " allowed"),
                     kNeverRetry);
  }
  Usage& usage = usage_[tenant];
  usage.bytes += bytes;
  ++usage.regions;
  tenant_bytes_.Add(tenant, bytes);
  tenant_regions_.Add(tenant, 1);
  // The quota is given back by the last owner of the charge.
  return std::make_shared<Charge>(this, tenant, bytes);
}

void SharedMemoryQuota::GiveBack(uint32_t tenant, uint64_t bytes) {
  tenant_bytes_.Subtract(tenant, bytes);
  tenant_regions_.Subtract(tenant, 1);
  absl::MutexLock lock(&mutex_);
  const auto used = usage_.find(tenant);
  used->second.bytes -= bytes;
  if (--used->second.regions == 0) usage_.erase(used);
}

}  // namespace opserve::server
