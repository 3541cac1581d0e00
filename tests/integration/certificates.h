// Authorities and what they have signed, made by OpenSSL's command line, as NAME.pem and NAME.key
// in a directory.
#pragma once

#include <memory>
#include <string>

#include "grpcpp/security/server_credentials.h"
#include "tests/unit/client/test_server.h"

namespace opserve {

// "ca" has signed "server" (daemon.test and 127.0.0.1), "expired", "elsewhere" and "client"
// (client.test); "other_ca" has signed "foreign" and "stranger". What fails aborts the program.
class Certificates {
 public:
  Certificates();

  std::string File(const std::string& name) const { return directory_.File(name + ".pem"); }
  std::string Key(const std::string& name) const { return directory_.File(name + ".key"); }

  // Signs one more. `days`: how long it is valid; `subject`: as subjectAltName has it;
  // empty: there is none. The common name is `name`.
  void Sign(const std::string& name, const std::string& authority, int days,
            const std::string& subject) const;

  // Writes File("crl"): what "ca" has revoked, of which `name` is one from now on ("": none).
  void WriteRevocations(const std::string& name) const;

  // Puts `from` in the place of `to`, as who renews a certificate would.
  void Replace(const std::string& to, const std::string& from) const;

  // Of a server that shows `name` and, if told so, wants a certificate that "ca" has signed.
  std::shared_ptr<grpc::ServerCredentials> ServerCredentials(const std::string& name,
                                                             bool is_mutual = false) const;

 private:
  std::string KeyOf(const std::string& name) const;
  void OpenSsl(const std::string& arguments) const;

  TemporaryDirectory directory_;
};

}  // namespace opserve
