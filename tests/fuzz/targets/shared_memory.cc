// A connection for shared memory, from its packets to its answers, as the daemon treats it but
// without a socket: a model says which registrations are granted, and the session agrees; nothing
// is mapped that is not registered, and nothing stays behind.
//
// Input: packets, each as a byte that chooses what descriptors come with it, its size in two bytes,
// its bytes.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "google/protobuf/stubs/logging.h"
#include "opserve/v1/shared_memory.pb.h"
#include "server/shm/shared_memory_session.h"
#include "tests/fuzz/targets/check.h"
#include "tests/fuzz/targets/input.h"

namespace opserve::server {
namespace {

using fuzz::Check;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kFileBytes = 4 * kPage;
constexpr uint64_t kMaxBytes = 8 * kPage;
constexpr uint32_t kMaxRegions = 3;
constexpr size_t kMaxPackets = 32;

// What a packet may come with: a file that can be shared comes first.
enum Attached { kSealed, kNothing, kUnsealed, kReadOnly, kPipe, kTwo, kAttachedKinds };

FileDescriptor MemoryFile(int seals) {
  FileDescriptor file(memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  Check(ftruncate(file.get(), kFileBytes) == 0, "there is memory");
  Check(fcntl(file.get(), F_ADD_SEALS, seals) == 0, "it can be sealed");
  return file;
}

std::vector<FileDescriptor> Attach(Attached kind) {
  std::vector<FileDescriptor> files;
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_SEAL;
  switch (kind) {
    case kNothing:
    case kAttachedKinds:
      break;
    case kUnsealed:
      files.push_back(MemoryFile(0));
      break;
    case kReadOnly: {
      const FileDescriptor file = MemoryFile(kSeals);
      files.emplace_back(
          open(("/proc/self/fd/" + std::to_string(file.get())).c_str(), O_RDONLY | O_CLOEXEC));
      break;
    }
    case kPipe: {
      int ends[2];
      Check(pipe2(ends, O_CLOEXEC) == 0, "there is a pipe");
      files.emplace_back(ends[0]);
      const FileDescriptor other(ends[1]);
      break;
    }
    case kTwo:
      files.push_back(MemoryFile(kSeals));
      [[fallthrough]];
    case kSealed:
      files.push_back(MemoryFile(kSeals));
  }
  return files;
}

// What the protocol says.
class Model {
 public:
  // Whether the packet is granted.
  bool Take(const std::string& bytes, Attached attached) {
    v1::SharedMemoryRequest request;
    if (bytes.size() > 4096 || !request.ParseFromString(bytes)) return false;
    if (!request.token().empty()) {  // there are none; after the first request there may be none
      is_over_ = !is_identified_;
      return false;
    }
    is_identified_ = true;
    if (request.has_register_region()) return Register(request.register_region(), attached);
    if (attached != kNothing) return false;
    if (request.has_unregister_region()) {
      return regions_.erase(request.unregister_region().region()) == 1;
    }
    return request.has_list_regions();
  }

  bool is_over() const { return is_over_; }
  const std::map<uint64_t, uint64_t>& regions() const { return regions_; }  // sizes by id

 private:
  bool Register(const v1::RegisterRegion& region, Attached attached) {
    if (attached != kSealed && !(attached == kReadOnly && region.read_only())) return false;
    if (region.size() == 0 || region.offset() % kPage != 0 || region.offset() > kFileBytes ||
        region.size() > kFileBytes - region.offset()) {
      return false;
    }
    uint64_t used = region.size();
    for (const auto& [id, size] : regions_) used += size;
    if (used > kMaxBytes || regions_.size() >= kMaxRegions) return false;
    return regions_.emplace(region.region(), region.size()).second;
  }

  bool is_identified_ = false;
  bool is_over_ = false;
  std::map<uint64_t, uint64_t> regions_;
};

TenantsConfig OneTenant() {
  TenantsConfig config;
  TenantConfig& tenant = config.tenants.emplace_back();
  tenant.name = config.anonymous = "fuzz";
  tenant.shared_memory_bytes = kMaxBytes;
  tenant.shared_memory_regions = kMaxRegions;
  return config;
}

void CheckAnswer(const v1::SharedMemoryResponse& response, bool is_granted) {
  Check(response.has_error() != is_granted, "granted if and only if the protocol says so");
  if (is_granted) {
    Check(response.connection().size() == SharedRegions::kKeyBytes, "the key is told");
    return;
  }
  Check(!response.error().message().empty(), "a refusal says why");
  Check(response.error().details_size() == 1, "a refusal has a detail");
}

void CheckRegions(SharedMemorySession& session, const SharedRegions& regions,
                  const SharedMemoryQuota& quota, const Model& model) {
  v1::SharedMemoryRequest request;
  request.mutable_list_regions();
  v1::SharedMemoryResponse list;
  Check(list.ParseFromString(
            session.Answer({.bytes = request.SerializeAsString(), .descriptors = {}})),
        "the answer can be read");
  Check(static_cast<size_t>(list.regions_size()) == model.regions().size(), "all are listed");
  uint64_t bytes = 0;
  for (const v1::SharedRegionStatus& region : list.regions()) {
    const auto found = model.regions().find(region.region());
    Check(found != model.regions().end() && found->second == region.size(), "as registered");
    const auto mapped = regions.Find(/*tenant=*/0, list.connection(), region.region());
    Check(mapped.ok() && (*mapped)->size() == region.size(), "what is listed can be used");
    // Touches the last byte: nothing was cut off.
    const auto mapping = (*mapped)->MappingOf(region.size());
    Check(mapping.ok(), "what is listed is mapped");
    static_cast<void>(*static_cast<volatile char*>((*mapping)->data() + region.size() - 1));
    bytes += region.size();
  }
  Check(quota.tenant_bytes().OfSlot(0) == bytes, "all bytes are counted");
}

void Converse(fuzz::Input input) {
  static const auto* const tenants = new Tenants(OneTenant());
  static auto* const metrics = new RequestMetrics({}, {});
  static auto* const quota = new SharedMemoryQuota;
  static auto* const regions = new SharedRegions(
      [](int32_t /*device*/, auto /*registration*/) { Check(false, "no device has any"); }, *quota);
  {
    SharedMemorySession session({*tenants, *regions, *metrics}, /*uid=*/1);
    Model model;
    for (size_t i = 0; i < kMaxPackets && !input.AtEnd() && !session.is_over(); ++i) {
      const auto attached = static_cast<Attached>(input.Byte() % kAttachedKinds);
      const uint16_t size = input.Short();
      const std::string bytes(input.Take(size));
      const std::vector<FileDescriptor> files = Attach(attached);
      const bool is_granted = model.Take(bytes, attached);
      v1::SharedMemoryResponse response;
      Check(response.ParseFromString(session.Answer({.bytes = bytes, .descriptors = files})),
            "the answer can be read");
      CheckAnswer(response, is_granted);
      Check(session.is_over() == model.is_over(), "over if and only if nobody knows whose it is");
    }
    if (session.is_identified()) CheckRegions(session, *regions, *quota, model);
  }
  Check(quota->tenant_bytes().OfSlot(0) == 0, "nothing stays behind");
  Check(quota->tenant_regions().OfSlot(0) == 0, "nothing stays behind");
}

}  // namespace
}  // namespace opserve::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const quiet = new google::protobuf::LogSilencer;  // of UTF-8 complaints
  static_cast<void>(quiet);
  opserve::server::Converse(opserve::fuzz::Input(data, size));
  return 0;
}
