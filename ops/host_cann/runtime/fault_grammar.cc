// The text form of faults, described in opserve/host_cann.h.
#include <string>

#include "ops/host_cann/runtime/faults.h"
#include "ops/host_cann/runtime/parse.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// Codes of the ABI have six digits.
constexpr uint64_t kMaxCode = 999999;
constexpr uint64_t kMaxCount = 1'000'000'000'000;
// An hour. For more there is `hang`.
constexpr uint64_t kMaxSlowUs = 3'600'000'000;

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// One fault while it is read. Errors are sentences about a word.
class FaultReader {
 public:
  // The empty string, or the error in the text.
  std::string Read(std::string_view text, Fault* fault) {
    fault_ = fault;
    const std::vector<std::string_view> words = Split(text, ',');
    for (size_t i = 0; i < words.size(); ++i) {
      const size_t equals = words[i].find('=');
      const std::string_view key = words[i].substr(0, equals);
      const bool has_value = equals != std::string_view::npos;
      const std::string_view value = has_value ? words[i].substr(equals + 1) : std::string_view();
      // The first word names the subject and decides which others may follow.
      const std::string error = i == 0 ? ReadSubject(key, value) : ReadWord(key, has_value, value);
      if (!error.empty()) return error;
    }
    return CheckComplete();
  }

 private:
  std::string ReadSubject(std::string_view key, std::string_view value) {
    if (key == "call") {
      fault_->kind = Fault::Kind::kCall;
      if (!StartsWith(value, "acl")) return Concat("\"", value, "\" names no function of the ABI");
    } else if (key == "kernel") {
      fault_->kind = Fault::Kind::kKernel;
      if (value != "*" && !StartsWith(value, "acl")) {
        return Concat("\"", value, "\" names no operator");
      }
    } else if (key == "copies") {
      fault_->kind = Fault::Kind::kCopies;
      if (!value.empty()) return Concat("copies takes no value, \"", value, "\" is given");
    } else if (key == "device") {
      fault_->kind = Fault::Kind::kDevice;
      // The code of a heartbeat that has stopped, unless `code` gives another.
      fault_->code = ACL_ERROR_RT_LOST_HEARTBEAT;
      return ReadNumber(key, value, 0, INT32_MAX, &fault_->device);
    } else {
      return Concat("\"", key, "\" is not one of call, kernel, copies, device");
    }
    fault_->name = value;
    return "";
  }

  std::string ReadWord(std::string_view key, bool has_value, std::string_view value) {
    const Fault::Kind kind = fault_->kind;
    // Calls and launches come one by one and can be counted. A rate of copies and a lost device are
    // states.
    const bool windowed = kind == Fault::Kind::kCall || kind == Fault::Kind::kKernel;
    if (key == "nth" && windowed) return ReadNumber(key, value, 1, kMaxCount, &fault_->window.nth);
    if (key == "count" && windowed) {
      if (value == "all") {
        fault_->window.count = FaultWindow::kAll;
        return "";
      }
      return ReadNumber(key, value, 1, kMaxCount, &fault_->window.count);
    }
    // A kernel's code goes with the kernel: it arrives with its task, not with the call.
    if (key == "code" && kind == Fault::Kind::kKernel) {
      return ReadNumber(key, value, 1, kMaxCode, &fault_->kernel.code);
    }
    if (key == "code" && kind != Fault::Kind::kCopies) {
      return ReadNumber(key, value, 1, kMaxCode, &fault_->code);
    }
    if (key == "slow" && kind == Fault::Kind::kKernel) {
      return ReadNumber(key, value, 1, kMaxSlowUs, &fault_->kernel.slow_us);
    }
    if (key == "slow" && kind == Fault::Kind::kCall) {
      return ReadNumber(key, value, 1, kMaxSlowUs, &fault_->slow_us);
    }
    if (key == "hang" && !has_value && kind == Fault::Kind::kKernel) {
      fault_->kernel.hang = true;
      return "";
    }
    if (key == "sticky" && !has_value && kind == Fault::Kind::kKernel) {
      fault_->kernel.sticky = true;
      return "";
    }
    // The kernel runs, and its first output is inverted.
    if (key == "wrong" && !has_value && kind == Fault::Kind::kKernel) {
      fault_->kernel.wrong = true;
      return "";
    }
    if (key == "on" && kind == Fault::Kind::kKernel) {
      return ReadNumber(key, value, 0, INT32_MAX, &fault_->on);
    }
    if (key == "rate" && kind == Fault::Kind::kCopies) {
      if (ParseByteCount(value, &fault_->bytes_per_second)) return "";
      return Concat("\"rate=", value, "\" is not a number of bytes such as 4096, 64K or 2M");
    }
    if (key == "resets" && kind == Fault::Kind::kDevice) {
      return ReadNumber(key, value, 1, 1000, &fault_->resets);
    }
    if (key == "lost" && !has_value && kind == Fault::Kind::kDevice) {
      // The subject alone would read as a choice of the device; the word says that it is lost.
      lost_ = true;
      return "";
    }
    return Concat("\"", key, "\" does not belong here");
  }

  std::string CheckComplete() const {
    switch (fault_->kind) {
      case Fault::Kind::kCall:
        // Both together would be a fault that fails late; neither would be no fault.
        return (fault_->code != ACL_SUCCESS) + (fault_->slow_us != 0) == 1
                   ? ""
                   : "needs exactly one of code=CODE and slow=US";
      case Fault::Kind::kKernel: {
        const KernelFault& kernel = fault_->kernel;
        if (kernel.sticky && kernel.code == 0) return "sticky needs code=CODE";
        const int effects = (kernel.code != 0) + kernel.hang + (kernel.slow_us != 0) + kernel.wrong;
        return effects == 1 ? "" : "needs exactly one of code=CODE, hang, slow=US and wrong";
      }
      case Fault::Kind::kCopies:
        return fault_->bytes_per_second != 0 ? "" : "rate=BYTES is missing";
      case Fault::Kind::kDevice:
        return lost_ ? "" : "\"lost\" is missing";
    }
    return "";
  }

  template <typename T>
  std::string ReadNumber(std::string_view key, std::string_view value, uint64_t low, uint64_t high,
                         T* number) {
    uint64_t parsed = 0;
    if (!ParseWholeNumber(value, low, high, &parsed)) {
      return Concat("\"", key, "=", value, "\" is not a whole number from ", low, " to ", high);
    }
    *number = static_cast<T>(parsed);
    return "";
  }

  Fault* fault_ = nullptr;
  bool lost_ = false;
};

}  // namespace

bool ParseFaults(std::string_view text, std::vector<Fault>* faults, std::string* error) {
  // All or nothing: with an error in one, none becomes active.
  std::vector<Fault> parsed;
  for (const std::string_view part : Split(text, ';')) {
    Fault fault;
    const std::string problem = FaultReader().Read(part, &fault);
    if (!problem.empty()) {
      *error = Concat("fault ", parsed.size() + 1, " (\"", part, "\"): ", problem);
      return false;
    }
    parsed.push_back(std::move(fault));
  }
  *faults = std::move(parsed);
  return true;
}

}  // namespace opserve::host_cann
