#include "server/device/memory/allocation_replay.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/status/status_macros.h"
#include "server/device/memory/allocation_log.h"

namespace opserve::server {
namespace {

// Beyond any address and any size, and far from where sums overflow.
constexpr uint64_t kMost = uint64_t{1} << 56;
constexpr size_t kRequestWords = 6;

// Runs the daemon's own heap on addresses that are never touched. A lending is found again by its
// number, as both heaps count alike.
class Replayer {
 public:
  absl::StatusOr<AllocationReplay> Run(std::istream& log) {
    std::string line;
    if (!std::getline(log, line) || line != kAllocationLogHeader) {
      return absl::InvalidArgumentError(
          absl::StrCat("line 1 is not \"", kAllocationLogHeader, "\": this is no allocation log"));
    }
    for (replay_.lines = 1; !replay_.is_full && std::getline(log, line);) {
      ++replay_.lines;
      if (log.eof()) break;  // cut off: the daemon was killed while it wrote
      if (absl::Status status = Take(line); !status.ok()) {
        return absl::Status(status.code(),
                            absl::StrCat("line ", replay_.lines, ": ", status.message()));
      }
    }
    replay_.bytes = heap_.bytes();
    replay_.largest_idle_bytes = heap_.largest_idle_bytes();
    replay_.merges = heap_.merges();
    return replay_;
  }

 private:
  absl::Status Take(absl::string_view line) {
    std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    const absl::string_view verb = words[0];
    // Every word but the first is a number.
    words_.clear();
    for (size_t i = 1; i < words.size(); ++i) {
      uint64_t number = 0;
      // The unknown tenant is the one number beyond all sizes.
      const bool is_tenant = words[i] == absl::StrCat(kUnknownTenant);
      if (!absl::SimpleAtoi(words[i], &number) || (number > kMost && !is_tenant)) {
        return absl::InvalidArgumentError(absl::StrCat("word ", i + 1, " is not a number"));
      }
      words_.push_back(number);
    }
    // A verb for each change that MemoryHeap logs.
    if (verb == "region") return AddRegion();
    if (verb == "retired") return Lend(&MemoryHeap::TakeRetired);
    if (verb == "idle") return Lend(&MemoryHeap::TakeIdle);
    if (verb == "merged") return Lend(&MemoryHeap::TakeMerged);
    if (verb == "tenant") return SetTenant();
    if (verb == "return") return Return();
    if (verb == "leave") return Leave();
    if (verb == "join") return Join();
    if (verb == "stream_idle") return OnStream(&MemoryHeap::StreamIsIdle);
    if (verb == "aborted") return OnStream(&MemoryHeap::StreamWasAborted);
    if (verb == "remove") return Remove();
    if (verb == "forget") return Forget();
    if (verb == "state") return Compare();
    if (verb == "full") {
      // The log has reached its size: nothing follows.
      replay_.is_full = true;
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError("begins with no word of a log");
  }

  absl::Status ExpectWords(size_t count) const {
    if (words_.size() == count) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("has ", words_.size(), " numbers, must have ", count));
  }

  static aclrtStream StreamOf(uint64_t number) {
    return reinterpret_cast<aclrtStream>(static_cast<uintptr_t>(number));  // never dereferenced
  }

  absl::StatusOr<BlockRequest> RequestFrom(size_t first) const {
    BlockRequest request;
    request.requested_bytes = words_[first];
    request.least_bytes = words_[first + 1];
    request.class_bytes = words_[first + 2];
    request.most_bytes = words_[first + 3];
    request.stream = StreamOf(words_[first + 4]);
    request.tenant = words_[first + 5];
    // The heap takes these for granted, and the file may come from anywhere.
    const bool is_sound = request.least_bytes > 0 && request.least_bytes % kBlockAlignment == 0 &&
                          request.class_bytes % kBlockAlignment == 0 &&
                          request.least_bytes <= request.class_bytes &&
                          request.class_bytes <= request.most_bytes;
    if (is_sound) return request;
    return absl::InvalidArgumentError("the sizes of the request are not those of a pool");
  }

  // The heap of the daemon numbered lendings in the same order.
  void AddLending(MemoryBlock* block) { lent_.emplace(++replay_.lendings, block); }

  absl::Status AddRegion() {
    OPSERVE_RETURN_IF_ERROR(ExpectWords(2 + kRequestWords));
    OPSERVE_ASSIGN_OR_RETURN(const BlockRequest request, RequestFrom(2));
    const uint64_t address = words_[0];
    const uint64_t bytes = words_[1];
    if (bytes % kBlockAlignment != 0 || bytes < request.least_bytes || address == 0) {
      return absl::InvalidArgumentError("the region is not one of a pool");
    }
    void* const allocation = reinterpret_cast<void*>(static_cast<uintptr_t>(address));
    AddLending(heap_.AddRegion(allocation, bytes, request).block);
    return absl::OkStatus();
  }

  absl::Status Lend(MemoryHeap::Lent (MemoryHeap::*take)(const BlockRequest&)) {
    OPSERVE_RETURN_IF_ERROR(ExpectWords(kRequestWords));
    OPSERVE_ASSIGN_OR_RETURN(const BlockRequest request, RequestFrom(0));
    // The function is that of the verb: if the books are the same, it finds the same block.
    const MemoryHeap::Lent lent = (heap_.*take)(request);
    // The books have gone another way, which is not a mistake in the file.
    if (lent.block == nullptr) return absl::DataLossError("there is no such block to lend");
    AddLending(lent.block);
    return absl::OkStatus();
  }

  absl::StatusOr<MemoryBlock*> Lending() const {
    const auto found = lent_.find(words_[0]);
    if (found != lent_.end()) return found->second;
    return absl::InvalidArgumentError(absl::StrCat("nothing is lent as ", words_[0]));
  }

  absl::Status SetTenant() {
    OPSERVE_RETURN_IF_ERROR(ExpectWords(2));
    OPSERVE_ASSIGN_OR_RETURN(MemoryBlock* const block, Lending());
    heap_.SetTenant(block, words_[1]);
    return absl::OkStatus();
  }

  absl::Status Return() {
    OPSERVE_RETURN_IF_ERROR(ExpectWords(1));
    OPSERVE_ASSIGN_OR_RETURN(MemoryBlock* const block, Lending());
    lent_.erase(words_[0]);
    heap_.Return(block);
    return absl::OkStatus();
  }

  absl::Status Leave() {
    OPSERVE_RETURN_IF_ERROR(ExpectWords(1));
    OPSERVE_ASSIGN_OR_RETURN(MemoryBlock* const block, Lending());
    heap_.LeaveStream(block);
    return absl::OkStatus();
  }

  absl::Status Join() {
    OPSERVE_RETURN_IF_ERROR(ExpectWords(2));
    OPSERVE_ASSIGN_OR_RETURN(MemoryBlock* const block, Lending());
    heap_.JoinStream(block, StreamOf(words_[1]));
    return absl::OkStatus();
  }

  absl::Status OnStream(void (MemoryHeap::*change)(aclrtStream)) {
    OPSERVE_RETURN_IF_ERROR(ExpectWords(1));
    (heap_.*change)(StreamOf(words_[0]));
    return absl::OkStatus();
  }

  absl::Status Remove() {
    OPSERVE_RETURN_IF_ERROR(ExpectWords(1));
    // A region is known by its address.
    for (MemoryRegion* region : heap_.IdleRegions()) {
      if (reinterpret_cast<uintptr_t>(region->allocation) != words_[0]) continue;
      heap_.Remove(region);
      return absl::OkStatus();
    }
    return absl::DataLossError("there is no such idle region");
  }

  absl::Status Forget() {
    OPSERVE_RETURN_IF_ERROR(ExpectWords(0));
    heap_.Forget();
    return absl::OkStatus();
  }

  absl::Status Compare() {
    OPSERVE_RETURN_IF_ERROR(ExpectWords(7));
    if (words_ != heap_.Sums()) {
      return absl::DataLossError(absl::StrCat("the sums are ", absl::StrJoin(heap_.Sums(), " "),
                                              ", the log has ", absl::StrJoin(words_, " ")));
    }
    ++replay_.states;
    return absl::OkStatus();
  }

  MemoryHeap heap_;
  absl::flat_hash_map<uint64_t, MemoryBlock*> lent_;
  std::vector<uint64_t> words_;  // the numbers of a line
  AllocationReplay replay_;
};

}  // namespace

absl::StatusOr<AllocationReplay> ReplayAllocationLog(std::istream& log) {
  return Replayer().Run(log);
}

}  // namespace opserve::server
