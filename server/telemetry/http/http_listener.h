// Pages to read over HTTP, on a listener of their own.
//
// GET and HEAD of exact paths; 404 and 405 for everything else. A connection carries one request.
// Nothing that clients do is kept, and no answer depends on anything of a request but method, path,
// host and Accept-Encoding.
//
// One thread serves all connections and waits for none of them: a request's head must be there
// within two seconds, an answer taken within ten, and where connections are scarce the oldest one
// makes room for a new one (net/connection_slots.h). So clients that stop in the middle of a
// request, or do not read, keep no others from being answered.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/net/connection_counters.h"
#include "server/net/connection_slots.h"
#include "server/net/file_descriptor.h"
#include "server/net/listener.h"
#include "server/net/spare_descriptor.h"
#include "server/telemetry/http/http_request.h"

namespace opserve::server {

// Thread-safe.
class HttpListener {
 public:
  struct Content {
    int status = 200;
    std::string body;
    std::string location = {};  // where a status of 302 leads
  };
  struct Page {
    std::string path;
    std::string content_type;
    std::function<Content()> content;  // called for each request, on the listener's thread
    // Content-Security-Policy; answers other than HTML need nothing.
    std::string security_policy = "default-src 'none'; frame-ancestors 'none'";
  };

  // Serves `pages` to requests for `hosts`. Objects used by their functions outlive the listener.
  // kResourceExhausted: no more file descriptors.
  static absl::StatusOr<std::unique_ptr<HttpListener>> Start(Listener bound, HttpHosts hosts,
                                                             std::vector<Page> pages);
  // Closes all connections.
  ~HttpListener();
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  const ListenAddress& address() const { return listener_.address(); }
  const ConnectionCounters& connections() const { return counters_; }

 private:
  struct Connection {
    FileDescriptor socket;
    ConnectionSlots::Peer peer;
    std::string received = {};                   // of the head
    std::string answer = {};                     // empty: none, or sent
    size_t sent = 0;                             // bytes of the answer
    ConnectionSlots::Id answer_id = 0;           // of the answer's place in memory; 0: it has none
    bool is_answered = false;                    // further input of the client is thrown away
    absl::Time end_by = absl::InfiniteFuture();  // once it is answered
  };

  HttpListener(Listener listener, HttpHosts hosts, std::vector<Page> pages);
  absl::Status Watch();

  void Run();
  void Accept(int socket, absl::Time now);
  // False: the connection is over.
  bool Serve(ConnectionSlots::Id id, Connection& connection, absl::Time now);
  bool Read(ConnectionSlots::Id id, Connection& connection, absl::Time now);
  bool Write(ConnectionSlots::Id id, Connection& connection, absl::Time now);
  std::string AnswerTo(absl::string_view head) const;
  void End(ConnectionSlots::Id id);
  void EndOverdue(absl::Time now);

  const Listener listener_;
  const HttpHosts hosts_;
  const std::vector<Page> pages_;
  FileDescriptor epoll_;
  FileDescriptor stop_;
  ConnectionCounters counters_;
  // Of the thread.
  SpareDescriptor spare_;
  ConnectionSlots slots_;
  ConnectionSlots answers_;  // that wait in memory for clients that read slowly
  absl::flat_hash_map<ConnectionSlots::Id, Connection> connections_;
  absl::flat_hash_map<ConnectionSlots::Id, ConnectionSlots::Id> connection_of_answer_;
  std::thread thread_;  // last: uses all of the above
};

}  // namespace opserve::server
