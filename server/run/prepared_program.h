// A program that was checked, bound and planned once, to be called by many requests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/program/bind_program.h"
#include "server/program/operator_table.h"
#include "server/program/program.h"

namespace opserve::server {

// Never changes, so any number of threads may call it at once.
class PreparedProgram {
 public:
  // Errors: kInvalidArgument for what belongs to the calls, else those of BindProgram.
  static absl::StatusOr<PreparedProgram> Make(const ProgramRequest& request,
                                              absl::Span<const ProgramInput> inputs,
                                              const OperatorTable& operators,
                                              const ProgramLimits& limits,
                                              ResidentLookup find_resident);

  // Binds the inputs of one call. `payload_bytes`: the size of each payload of its message. Looks
  // at no operator, infers no shape but where attributes change, and plans no memory.
  //
  // kInvalidArgument    an input is missing, is one too many or has not its size; an attribute that
  //                     does not exist, or changes the program's outputs; a version of no input
  // Errors of the lookups, too.
  absl::StatusOr<ProgramCall> Bind(const PreparedRequest& call,
                                   absl::Span<const uint64_t> payload_bytes,
                                   ResidentLookup find_resident, RegionLookup find_region) const;

  // A resident tensor that the program itself names.
  struct NamedResident {
    std::string handle;
    TensorSpec spec;
  };

  // Keeps the message that it was made of, so that another daemon can make it; before it is shared.
  void KeepRequest(std::string request);

  const Program& program() const { return *program_; }
  // As KeepRequest kept it; else empty.
  const std::string& request() const { return request_; }
  std::vector<NamedResident> NamedResidents() const;
  // Host memory of the program itself. What its runs leave behind is in Program::host_account, too.
  uint64_t host_bytes() const { return host_bytes_; }

 private:
  // A resident tensor that calls use.
  struct Resident {
    TensorSpec spec;
    std::string handle;  // empty: it comes with each call
  };

  PreparedProgram() = default;
  absl::Status BindResidents(const PreparedRequest& call, ResidentLookup find_resident,
                             ProgramCall* bound) const;
  static absl::Status BindVersions(const PreparedRequest& call,
                                   absl::Span<BoundResident* const> given);
  absl::Status BindWindows(const PreparedRequest& call, RegionLookup find_region,
                           ProgramCall* bound) const;
  absl::Status BindAttributes(const PreparedRequest& call, ProgramCall* bound) const;

  std::shared_ptr<const Program> program_;
  std::vector<Resident> residents_;   // by position in Program::residents
  std::vector<Dtype> window_dtypes_;  // by position in Program::windows
  std::string request_;
  uint64_t host_bytes_ = 0;
};

}  // namespace opserve::server
