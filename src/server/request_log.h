// SPDX-License-Identifier: Apache-2.0
// What is known of a request when it is over, and its line in the log. Without logs_text nothing
// that a user or the model wrote is in it.
#pragma once

#include <string>

#include "server/api_reply.h"

namespace facet {

struct RequestRecord {
  std::string id;
  std::string peer;  ///< address without the port
  std::string method;
  std::string path;
  std::string route;       ///< as metrics call it: the path of the route, or "other"
  int status = 0;          ///< 499: the client went before the end
  std::string error;       ///< code of the error, or its type; empty: none
  bool has_reply = false;  ///< the model was asked; what follows is set
  ApiReply::Totals tokens;
  int n_notices = 0;         ///< of the request's media
  std::string finish;        ///< of the first choice, as clients get it
  double first_token_s = 0;  ///< from the request's arrival; 0: no token came
  double total_s = 0;        ///< always set
  double decode_s = 0;       ///< from the first token to the last
  std::string prompt_text;   ///< with logs_text
  std::string reply_text;
};

/// One line without its end, for people.
std::string TextLine(const RequestRecord& record);
/// The same as a JSON object.
std::string JsonLine(const RequestRecord& record);

}  // namespace facet
