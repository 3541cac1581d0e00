// Internal: the numbers by which a daemon knows the repetitions of a client's requests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_set.h"
#include "absl/synchronization/mutex.h"
#include "opserve/v1/operator_service.pb.h"

namespace opserve {

// Numbers requests that must not run twice, and remembers which of them may still be repeated.
// Thread-safe.
class RequestNumbers {
 public:
  // A number in use. When the ticket is gone, its request is repeated no more. It may outlive the
  // RequestNumbers.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept = default;
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket();

   private:
    friend class RequestNumbers;
    struct InUse {
      absl::Mutex mutex;
      absl::btree_set<uint64_t> numbers ABSL_GUARDED_BY(mutex);
    };
    Ticket(std::shared_ptr<InUse> in_use, uint64_t number)
        : in_use_(std::move(in_use)), number_(number) {}
    void Release();

    std::shared_ptr<InUse> in_use_;  // null: of no request
    uint64_t number_ = 0;
  };

  RequestNumbers();

  // A new number, written to *identity with what a daemon may forget.
  Ticket Take(v1::RequestIdentity* identity);

 private:
  const std::string client_;  // random
  const std::shared_ptr<Ticket::InUse> in_use_ = std::make_shared<Ticket::InUse>();
  uint64_t last_number_ ABSL_GUARDED_BY(in_use_->mutex) = 0;
};

}  // namespace opserve
