#include "client/cpp/request_numbers.h"

#include <cstring>
#include <random>
#include <utility>

namespace opserve {
namespace {

constexpr size_t kClientBytes = 16;

// Of the system's generator: two clients with one name would get each other's answers.
std::string RandomName() {
  std::random_device random;
  std::string name(kClientBytes, '\0');
  for (size_t i = 0; i < kClientBytes; i += sizeof(std::random_device::result_type)) {
    const std::random_device::result_type bytes = random();
    std::memcpy(name.data() + i, &bytes, sizeof(bytes));
  }
  return name;
}

}  // namespace

RequestNumbers::Ticket& RequestNumbers::Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    Release();
    in_use_ = std::move(other.in_use_);
    number_ = other.number_;
  }
  return *this;
}

RequestNumbers::Ticket::~Ticket() { Release(); }

void RequestNumbers::Ticket::Release() {
  const std::shared_ptr<InUse> in_use = std::move(in_use_);
  if (in_use == nullptr) return;
  absl::MutexLock lock(&in_use->mutex);
  in_use->numbers.erase(number_);
}

RequestNumbers::RequestNumbers() : client_(RandomName()) {}

RequestNumbers::Ticket RequestNumbers::Take(v1::RequestIdentity* identity) {
  absl::MutexLock lock(&in_use_->mutex);
  const uint64_t number = ++last_number_;
  // At the end, which is where the largest number belongs.
  in_use_->numbers.insert(in_use_->numbers.end(), number);
  identity->set_client(client_);
  identity->set_number(number);
  // No lower number is repeated any more: the daemon may forget their answers.
  identity->set_answered_below(*in_use_->numbers.begin());
  return Ticket(in_use_, number);
}

}  // namespace opserve
