// Answers as a client of former days sees them: by the descriptors of that day (tests/data/wire).
#pragma once

#include <memory>
#include <string>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/dynamic_message.h"
#include "google/protobuf/util/message_differencer.h"
#include "tests/integration/wire_recording.h"

namespace opserve::server {

// Not thread-safe.
class FormerClient {
 public:
  // Aborts the test program if tests/data/wire/descriptors.binpb cannot be read.
  FormerClient();
  FormerClient(const FormerClient&) = delete;
  FormerClient& operator=(const FormerClient&) = delete;

  // The first thing that the client misses or finds changed in `now`, an answer to the same call,
  // or empty. Fields that are younger than the client are unknown to it; those that differ from run
  // to run, and texts for people, are passed over (kVarying in the source has them all). Streamed
  // answers with an id may come in any order.
  std::string Difference(const RecordedCall& before, const RecordedCall& now);

  // A message as text, by the descriptors of that day; "?" if it is none of this type.
  std::string Text(const std::string& type, const std::string& bytes);

  // The method of "/package.Service/Method"; null if there was none.
  const google::protobuf::MethodDescriptor* Method(const std::string& name) const;

 private:
  std::unique_ptr<google::protobuf::Message> Decode(const std::string& type,
                                                    const std::string& bytes);
  std::string MessageDifference(const std::string& type, const std::string& before,
                                const std::string& now);
  std::string ErrorDifference(const std::string& before, const std::string& now);
  const google::protobuf::FieldDescriptor* Field(const std::string& name) const;

  google::protobuf::DescriptorPool pool_;
  google::protobuf::DynamicMessageFactory factory_;
  google::protobuf::util::MessageDifferencer same_;
  google::protobuf::util::MessageDifferencer grown_;  // lists of the catalogue may be longer
};

}  // namespace opserve::server
