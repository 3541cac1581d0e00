#include "server/kserve/models.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/catalog/attributes.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

// Clients recognise the words.
absl::Status UnknownModel(absl::string_view name, absl::string_view problem) {
  return MakeError(Reason::kInvalid, absl::StatusCode::kNotFound,
                   absl::StrCat("Request for unknown model: '", name, "' ", problem));
}

}  // namespace

absl::StatusOr<const LoadedOperator*> LookUpModel(const OperatorTable& operators,
                                                  absl::string_view name,
                                                  absl::string_view version) {
  int64_t number = 1;
  // The text is Triton's, which has numbered versions.
  if (!version.empty() && (!absl::SimpleAtoi(version, &number) || number < 0)) {
    return MakeError(
        Reason::kInvalid,
        absl::StrCat("model version should be an integral value >= 0, got '", version, "'"));
  }
  return number == 1 ? operators.Find(name) : nullptr;
}

absl::StatusOr<const LoadedOperator*> FindModel(const OperatorTable& operators,
                                                absl::string_view name, absl::string_view version) {
  OPSERVE_ASSIGN_OR_RETURN(const LoadedOperator* op, LookUpModel(operators, name, version));
  if (op == nullptr) {
    // Where the name is known, the version is the mistake.
    return operators.Find(name) != nullptr
               ? UnknownModel(name, absl::StrCat("version ", version, " is not found"))
               : UnknownModel(name, "is not found");
  }
  if (op->is_available()) return op;
  // Devices that compute it wrong say nothing of the model, which is there.
  const absl::Status refusal = op->CheckAvailable();
  if (absl::IsUnavailable(refusal)) return refusal;
  if (version.empty()) return UnknownModel(name, "has no available versions");
  return MakeError(Reason::kDeviceUnavailable,
                   absl::StrCat("'", name, "' version ", version,
                                " is not at ready state: ", op->unavailable_reason()));
}

absl::string_view DatatypeName(Dtype dtype) {
  const DtypeFacts* const facts = FindDtype(dtype);
  return facts == nullptr ? "<invalid>" : facts->inference;
}

Dtype DtypeOf(absl::string_view datatype) {
  const DtypeFacts* const facts = FindDtypeBy(&DtypeFacts::inference, datatype);
  return facts == nullptr ? v1::DATA_TYPE_UNSPECIFIED : facts->dtype;
}

inference::DataType ToModelDataType(Dtype dtype) {
  // The configuration's enumerators are the protocol's names with a prefix.
  inference::DataType type = inference::TYPE_INVALID;
  return inference::DataType_Parse(absl::StrCat("TYPE_", DatatypeName(dtype)), &type)
             ? type
             : inference::TYPE_INVALID;
}

std::string DatatypeNames(const std::vector<aclDataType>& dtypes) {
  return absl::StrJoin(dtypes, ", ", [](std::string* out, aclDataType dtype) {
    absl::StrAppend(out, "'", DatatypeName(catalog::ToWire(dtype)), "'");
  });
}

absl::Status InvalidInference(const catalog::OperatorDescriptor& model, absl::string_view argument,
                              absl::string_view message) {
  return AtPlace({.operator_name = model.name, .argument = argument},
                 MakeError(Reason::kInvalid, message));
}

}  // namespace opserve::server
