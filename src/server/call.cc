// SPDX-License-Identifier: Apache-2.0
#include "server/call.h"

#include <algorithm>
#include <utility>

namespace facet {
namespace {

constexpr int kClientWent = 499;

std::string WithoutPort(const std::string& peer) {
  const size_t colon = peer.rfind(':');
  return peer.substr(0, colon);
}

}  // namespace

Call::Call(HttpRequest request, std::shared_ptr<HttpExchange> exchange, std::string id,
           HttpHeaders headers, OnDone on_done)
    : request_(std::move(request)),
      exchange_(std::move(exchange)),
      headers_(std::move(headers)),
      on_done_(std::move(on_done)) {
  headers_.emplace_back("x-request-id", id);
  record_.id = std::move(id);
  record_.peer = WithoutPort(request_.peer);
  record_.method = request_.method;
  record_.path = request_.path;
  record_.route = "other";
}

Call::~Call() {
  if (!is_done_) {
    record_.error = "server_error";
    End(500);
  }
}

std::string Call::TakeBody() { return std::exchange(request_.body, {}); }

void Call::AddHeader(std::string name, std::string value) {
  headers_.emplace_back(std::move(name), std::move(value));
}

void Call::Respond(HttpResponse response) {
  const int status = response.status;
  response.headers.insert(response.headers.end(), headers_.begin(), headers_.end());
  exchange_->Respond(std::move(response));
  End(status);
}

void Call::Respond(const Json& body) { Respond(HttpResponse{.body = body.Dump()}); }

void Call::Fail(const ApiError& error) {
  NoteError(error);
  HttpResponse response = ErrorResponse(error);
  if (error.status == 503) {
    response.headers.emplace_back("retry-after", "1");
  }
  Respond(std::move(response));
}

void Call::StartStream() { exchange_->StartStream(headers_); }

void Call::Write(std::string bytes) { exchange_->Write(std::move(bytes)); }

void Call::EndStream(const ApiError* error) {
  if (error != nullptr) {
    NoteError(*error);
  }
  exchange_->EndStream();
  End(200);
}

void Call::SetOnClosed(std::function<void()> on_closed) {
  exchange_->SetOnClosed(std::move(on_closed));
}

void Call::MarkClosed() { is_closed_ = true; }

void Call::NoteError(const ApiError& error) {
  record_.error = error.code.empty() ? error.type : error.code;
}

void Call::End(int status) {
  if (std::exchange(is_done_, true)) {
    return;
  }
  record_.status = is_closed_ ? kClientWent : status;
  record_.total_s = std::chrono::duration<double>(Clock::now() - arrival_).count();
  on_done_(record_);
}

std::string GivenRequestId(const HttpRequest& request) {
  constexpr size_t kMaxBytes = 128;
  constexpr std::string_view kSigns = "._:-";
  const std::string* given = request.Header("x-request-id");
  const auto is_safe = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kSigns.find(c) != std::string_view::npos;
  };
  if (given == nullptr || given->empty() || given->size() > kMaxBytes ||
      !std::all_of(given->begin(), given->end(), is_safe)) {
    return "";
  }
  return *given;
}

}  // namespace facet
