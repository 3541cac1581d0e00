#include "server/program/operator_table.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/catalog/catalog.h"
#include "proto/status/error.h"

namespace opserve::server {

namespace {

absl::Status NotOffered(const LoadedOperator& op, GoldenVerdict verdict,
                        absl::string_view problem) {
  const ErrorPlace place{.operator_name = op.descriptor->name};
  if (verdict == GoldenVerdict::kWrong) {
    return CallError(Reason::kOperatorUnavailable, place, problem);
  }
  return AtPlace(place, absl::UnimplementedError(absl::StrCat(op.descriptor->name, ": ", problem)));
}

}  // namespace

std::string LoadedOperator::unavailable_reason() const {
  return is_loaded() ? offer->Lack().problem : lack;
}

absl::Status LoadedOperator::CheckAvailable() const {
  if (is_available()) return absl::OkStatus();
  // The libraries lack it, which is no matter of devices.
  if (!is_loaded()) return NotOffered(*this, GoldenVerdict::kUnsupported, unavailable_reason());
  const GoldenFinding lack = offer->Lack();
  const bool is_wrong = lack.verdict == GoldenVerdict::kWrong;
  return NotOffered(*this, lack.verdict,
                    absl::StrCat(is_wrong ? "no device offers it: " : "", lack.problem));
}

absl::Status LoadedOperator::CheckOfferedBy(int32_t device) const {
  if (!is_loaded()) return CheckAvailable();
  const std::optional<GoldenFinding> finding = offer->FindingOn(device);
  // A device without a finding has not been tried yet.
  if (!finding || finding->is_right()) return absl::OkStatus();
  return NotOffered(*this, finding->verdict,
                    absl::StrCat("device ", device, " does not offer it: ", finding->problem));
}

OperatorTable::OperatorTable(const AclLibrary& acl, std::vector<OperatorPack> packs)
    : packs_(std::move(packs)) {
  for (const catalog::OperatorDescriptor* descriptor : catalog::AllOperators()) {
    Add(*descriptor, acl.FindOperator(descriptor->stage_one.c_str(), descriptor->stage_two.c_str()),
        /*pack=*/"", "the daemon's ACL libraries lack this operator");
  }
  for (OperatorPack& pack : packs_) AddPack(acl, &pack);
}

void OperatorTable::Add(const catalog::OperatorDescriptor& descriptor,
                        AclLibrary::Operator functions, std::string pack, std::string lack) {
  operators_.push_back(
      {.descriptor = &descriptor,
       .stage_one = functions.stage_one,
       .call = std::make_shared<StageOneFunction>(descriptor, functions.stage_one),
       .stage_two = reinterpret_cast<catalog::StageTwoFunction>(functions.stage_two),
       .library = std::move(functions.library),
       .pack = std::move(pack),
       .lack = std::move(lack),
       .index = static_cast<int>(operators_.size())});
  by_name_.emplace(descriptor.name, operators_.size() - 1);
}

void OperatorTable::AddPack(const AclLibrary& acl, OperatorPack* pack) {
  std::vector<AclLibrary::Operator> functions;
  if (!pack->is_refused()) {
    absl::StatusOr<std::vector<AclLibrary::Operator>> loaded = LoadPack(acl, *pack);
    if (loaded.ok()) {
      functions = *std::move(loaded);
    } else {
      pack->Refuse(PackRefusal::kLibrary, std::string(loaded.status().message()));
    }
  }
  // Without functions the operators are listed, and refused by name.
  functions.resize(pack->operators.size());
  // Callers learn the reason; paths of the daemon's machine are for its log.
  const std::string lack = absl::StrCat("the daemon refused its operator pack ", pack->name,
                                        " at its start (", PackRefusalName(pack->refusal), ")");
  for (size_t i = 0; i < functions.size(); ++i) {
    Add(*pack->operators[i].descriptor, std::move(functions[i]), pack->name, lack);
  }
}

const LoadedOperator* OperatorTable::Find(absl::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &operators_[found->second];
}

}  // namespace opserve::server
