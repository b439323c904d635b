// SPDX-License-Identifier: Apache-2.0
#include "chat/messages.h"

#include <gtest/gtest.h>

#include <string>

namespace facet {
namespace {

Json Parse(std::string_view text) {
  auto parsed = ParseJson(text, "test");
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? *std::move(parsed) : Json();
}

std::string MessagesError(std::string_view messages) {
  const Status status = CheckMessages(Parse(messages));
  return status.ok() ? "ok" : status.error().Message();
}

std::string ToolsError(std::string_view tools) {
  const Status status = CheckTools(Parse(tools));
  return status.ok() ? "ok" : status.error().Message();
}

struct Case {
  std::string_view input;
  std::string_view error;
};

TEST(CheckMessagesTest, SaysWhichMessageIsWrong) {
  constexpr Case kCases[] = {
      {R"("Hi")", "messages: a string, wanted an array"},
      {R"([])", "messages: an empty array, wanted at least one message"},
      {R"([{"role":"user","content":"a"},"b"])", "messages[1]: a string, wanted an object"},
      {R"([{"role":"user","content":"a"},{"role":"user","content":"a"},{"role":"robot"}])",
       "messages[2].role: \"robot\", wanted system, developer, user, assistant or tool"},
      {R"([{"content":"a"}])",
       "messages[0].role: nothing, wanted system, developer, user, assistant or tool"},
      {R"([{"role":["user"],"content":"a"}])",
       "messages[0].role: an array, wanted system, developer, user, assistant or tool"},
      {R"([{"role":"user"}])",
       "messages[0].content: nothing, wanted a string or an array of parts"},
      {R"([{"role":"system","content":null}])",
       "messages[0].content: null, wanted a string or an array of parts"},
      {R"([{"role":"user","content":7}])",
       "messages[0].content: an integer, wanted a string or an array of parts"},
      {R"([{"role":"assistant","content":{}}])",
       "messages[0].content: an object, wanted a string or an array of parts"},
      {R"([{"role":"user","content":["a"]}])",
       "messages[0].content[0]: a string, wanted a content part"},
      {R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]}])",
       "messages[0].content[1].image_url: nothing, wanted an object with url"},
      {R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"a","detail":"hi"}}]}])",
       "messages[0].content[0].image_url.detail: \"hi\", wanted low, auto or high"},
      {R"([{"role":"system","content":[{"type":"image_url","image_url":"a"}]}])",
       "messages[0].content[0].type: \"image_url\", wanted text (media are for messages of role "
       "user or tool)"},
      {R"([{"role":"assistant","content":[{"type":"smell"}]}])",
       "messages[0].content[0].type: \"smell\", wanted text"},
      {R"([{"role":"user","content":[{"type":"smell"}]}])",
       "messages[0].content[0].type: \"smell\", wanted text, image_url, input_audio, audio_url, "
       "video_url, image, audio or video"},
      {R"([{"role":"user","content":[{"type":"text"}]}])",
       "messages[0].content[0].text: nothing, wanted a string"},
      {R"([{"role":"user","content":"a","name":1}])",
       "messages[0].name: an integer, wanted a string"},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(MessagesError(c.input), c.error) << c.input;
  }
}

TEST(CheckMessagesTest, SaysWhichCallIsWrong) {
  constexpr Case kCases[] = {
      {R"([{"role":"assistant","tool_calls":{}}])",
       "messages[0].tool_calls: an object, wanted an array"},
      {R"([{"role":"assistant","tool_calls":["f"]}])",
       "messages[0].tool_calls[0]: a string, wanted a tool call"},
      {R"([{"role":"assistant","tool_calls":[{"function":"f"}]}])",
       "messages[0].tool_calls[0].function: a string, wanted an object"},
      {R"([{"role":"assistant","tool_calls":[{"function":{"name":""}}]}])",
       "messages[0].tool_calls[0].function.name: \"\", wanted a name"},
      {R"([{"role":"assistant","tool_calls":[{"name":"f","id":3}]}])",
       "messages[0].tool_calls[0].id: an integer, wanted a string"},
      {R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":[1]}}]}])",
       "messages[0].tool_calls[0].function.arguments: an array, wanted an object, or its text"},
      {R"([{"role":"assistant","tool_responses":[1]}])",
       "messages[0].tool_responses[0]: an integer, wanted a tool response"},
      {R"([{"role":"assistant","tool_responses":[{"name":1}]}])",
       "messages[0].tool_responses[0].name: an integer, wanted a string"},
      {R"([{"role":"user","content":"a","tool_calls":[]}])",
       "messages[0].tool_calls: a member of a message of role user, wanted it only in messages of "
       "role assistant"},
      {R"([{"role":"user","content":"a"},{"role":"tool","content":"b"}])",
       "messages[1].role: \"tool\", wanted it only after an assistant message with tool_calls"},
      {R"([{"role":"assistant","tool_calls":[{"name":"f"}]},{"role":"tool"}])",
       "messages[1].content: nothing, wanted a string or an array of parts"},
      {R"([{"role":"assistant","tool_calls":[{"name":"f"}]},{"role":"user","content":"a"},)"
       R"({"role":"tool","content":"b"}])",
       "messages[2].role: \"tool\", wanted it only after an assistant message with tool_calls"},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(MessagesError(c.input), c.error) << c.input;
  }
}

TEST(CheckMessagesTest, TakesWhatClientsSend) {
  EXPECT_EQ(MessagesError(R"([
    {"role":"developer","content":[{"type":"text","text":"a"}]},
    {"role":"user","content":[]},
    {"role":"assistant","content":null,"refusal":null,"tool_calls":[
      {"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}, {"name":"g"}]},
    {"role":"tool","tool_call_id":"1","content":{"t":1}},
    {"role":"tool","content":null},
    {"role":"assistant","tool_calls":null}])"),
            "ok");
}

TEST(CheckMessagesTest, ShortensWhatItShows) {
  std::string role;
  for (int i = 0; i < 30; ++i) {
    role += "é";
  }
  const Json messages = Json::MakeArray({Json::MakeObject({{"role", role}})});
  EXPECT_EQ(CheckMessages(messages).error().Message(),
            "messages[0].role: \"" + role.substr(0, 40) +
                "...\", wanted system, developer, user, assistant or tool");
}

TEST(CheckMessagesTest, HasLimits) {
  const Json message = Json::MakeObject({{"role", "user"}, {"content", "a"}});
  EXPECT_TRUE(CheckMessages(Json::Array(kMaxMessages, message)).ok());
  EXPECT_EQ(CheckMessages(Json::Array(kMaxMessages + 1, message)).error().Message(),
            "messages: 16385 items, wanted at most 16384");
  const Json part = Json::MakeObject({{"type", "text"}, {"text", "a"}});
  const Json parts =
      Json::MakeObject({{"role", "user"}, {"content", Json::Array(kMaxParts + 1, part)}});
  EXPECT_EQ(CheckMessages(Json::MakeArray({parts})).error().Message(),
            "messages[0].content: 1025 items, wanted at most 1024");
  const Json call = Json::MakeObject({{"name", "f"}});
  const Json calls =
      Json::MakeObject({{"role", "assistant"}, {"tool_calls", Json::Array(kMaxCalls + 1, call)}});
  EXPECT_EQ(CheckMessages(Json::MakeArray({calls})).error().Message(),
            "messages[0].tool_calls: 1025 items, wanted at most 1024");
}

TEST(CheckToolsTest, SaysWhichToolIsWrong) {
  constexpr Case kCases[] = {
      {"null", "ok"},
      {"[]", "ok"},
      {R"([{"type":"function","function":{"name":"f","description":null,"parameters":null}}])",
       "ok"},
      {R"([{"name":"f","parameters":{}}])", "ok"},
      {"{}", "tools: an object, wanted an array"},
      {"[1]", "tools[0]: an integer, wanted an object"},
      {R"([{"name":"f"},{"type":"web_search","name":"s"}])",
       "tools[1].type: \"web_search\", wanted function"},
      {R"([{"type":"function"}])", "tools[0].name: nothing, wanted a name"},
      {R"([{"function":{}}])", "tools[0].function.name: nothing, wanted a name"},
      {R"([{"function":{"name":"f","description":1}}])",
       "tools[0].function.description: an integer, wanted a string"},
      {R"([{"function":{"name":"f","parameters":"{}"}}])",
       "tools[0].function.parameters: \"{}\", wanted an object"},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(ToolsError(c.input), c.error) << c.input;
  }
  const Json tool = Json::MakeObject({{"name", "f"}});
  EXPECT_EQ(CheckTools(Json::Array(kMaxTools + 1, tool)).error().Message(),
            "tools: 1025 items, wanted at most 1024");
}

TEST(CheckSizeTest, CountsAllThatIsHeld) {
  size_t left = 1000;
  EXPECT_TRUE(CheckSize(Parse(R"({"key":["text",1,null]})"), "x", left).ok());
  EXPECT_EQ(left, 1000 - (5 * 16 + 3 + 4));
  EXPECT_TRUE(CheckSize(Parse("123456789012345678901234567890"), "x", left).ok());
  EXPECT_EQ(left, 1000 - (5 * 16 + 3 + 4) - (16 + 30));
  left = 100;
  EXPECT_EQ(CheckSize(Json(std::string(85, 'a')), "tools", left).error().Message(),
            "tools: too much text, wanted at most 33554432 bytes in all");
}

TEST(CheckSizeTest, RefusesDeepNesting) {
  Json value(1);
  for (int i = 1; i < kMaxRequestDepth; ++i) {
    value = Json::MakeArray({std::move(value)});
  }
  size_t left = kMaxRequestBytes;
  EXPECT_TRUE(CheckSize(value, "messages", left).ok());
  value = Json::MakeArray({std::move(value)});
  EXPECT_EQ(CheckSize(value, "messages", left).error().Message(),
            "messages: more than 200 levels, wanted less nesting");
}

std::string Rewritten(std::string_view messages, const Rewriting& rewriting) {
  const Json parsed = Parse(messages);
  EXPECT_TRUE(CheckMessages(parsed).ok()) << messages;
  return RewriteMessages(parsed, rewriting).Dump();
}

TEST(RewriteMessagesTest, LeavesOfMediaOnlyWhatTheyAre) {
  EXPECT_EQ(Rewritten(R"([{"role":"user","content":[{"type":"text","text":"a"},
      {"type":"image_url","image_url":{"url":"data:,"}},
      {"type":"input_audio","input_audio":{"data":"QUJD","format":"wav"}},
      {"type":"video","frames":["data:,"],"fps":1}]}])",
                      {}),
            R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"image"},)"
            R"({"type":"audio"},{"type":"video"}]}])");
}

TEST(RewriteMessagesTest, DropsNullsWrapsCallsAndParsesArguments) {
  EXPECT_EQ(Rewritten(R"([{"role":"assistant","content":null,"refusal":null,"tool_calls":[
      {"id":"1","type":"function","function":{"name":"f","arguments":" {\"b\":[1,null]} "}},
      {"id":"2","name":"g","arguments":null},
      {"function":{"name":"h","arguments":""}},
      {"function":{"name":"i","arguments":"a:1"}},
      {"function":{"name":"j","arguments":"[1]"}},
      {"function":{"name":"k","arguments":{"x":null}}}]}])",
                      {}),
            R"([{"role":"assistant","tool_calls":[)"
            R"({"id":"1","type":"function","function":{"name":"f","arguments":{"b":[1,null]}}},)"
            R"({"type":"function","id":"2","function":{"name":"g","arguments":{}}},)"
            R"({"function":{"name":"h","arguments":{}}},)"
            R"({"function":{"name":"i","arguments":"a:1"}},)"
            R"({"function":{"name":"j","arguments":"[1]"}},)"
            R"({"function":{"name":"k","arguments":{"x":null}}}]}])");
}

TEST(RewriteMessagesTest, FoldsResults) {
  constexpr std::string_view kCalls =
      R"({"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":{}}},)"
      R"({"id":"2","function":{"name":"g","arguments":{}}}]})";
  constexpr std::string_view kResults =
      R"({"role":"tool","tool_call_id":"2","content":"two"},)"
      R"({"role":"tool","tool_call_id":"1","name":"g","content":[{"type":"text","text":"o"},{"type":"text","text":"ne"}]},)"
      R"({"role":"tool","name":"h","content":{"a":1}},{"role":"tool","tool_call_id":"9","content":null})";
  constexpr std::string_view kFolded =
      R"({"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":{}}},)"
      R"({"id":"2","function":{"name":"g","arguments":{}}}],"tool_responses":[)"
      R"({"name":"g","response":"two"},{"name":"f","response":"one"},)"
      R"({"name":"h","response":{"a":1}},{"name":"unknown","response":null}])";
  const auto list = [](std::initializer_list<std::string_view> items) {
    std::string text = "[";
    for (const std::string_view item : items) {
      text.append(text.size() > 1 ? "," : "").append(item);
    }
    return text + "]";
  };
  const Rewriting folding = {.folds_results = true};
  EXPECT_EQ(Rewritten(list({kCalls, kResults}), folding), list({std::string(kFolded) + "}"}));
  EXPECT_EQ(Rewritten(list({kCalls, kResults, R"({"role":"user","content":"u"})"}), folding),
            list({std::string(kFolded) + "}", R"({"role":"user","content":"u"})"}));
  // The answer belongs to the same turn, unless it calls again.
  EXPECT_EQ(Rewritten(list({kCalls, kResults, R"({"role":"assistant","content":"so"})"}), folding),
            list({std::string(kFolded) + R"(,"content":"so"})"}));
  EXPECT_EQ(Rewritten(list({kCalls, kResults, kCalls}), folding),
            list({std::string(kFolded) + "}",
                  R"({"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f",)"
                  R"("arguments":{}}},{"id":"2","function":{"name":"g","arguments":{}}}]})"}));
}

TEST(RewriteMessagesTest, AnAnswerStaysApartWhereItsPlaceIsTaken) {
  constexpr std::string_view kMessages =
      R"([{"role":"assistant","content":"wait","tool_calls":[{"function":{"name":"f","arguments":{}}}]},)"
      R"({"role":"tool","content":"r"},{"role":"assistant","content":"so"}])";
  EXPECT_EQ(
      Rewritten(kMessages, {.folds_results = true}),
      R"([{"role":"assistant","content":"wait","tool_calls":[{"function":{"name":"f","arguments":{}}}],)"
      R"("tool_responses":[{"name":"unknown","response":"r"}]},{"role":"assistant","content":"so"}])");
}

TEST(RewriteMessagesTest, JoinsSystemPartsAndRenames) {
  constexpr std::string_view kMessages =
      R"([{"role":"developer","content":[{"type":"text","text":"Be "},{"type":"text","text":"brief."}]},)"
      R"({"role":"user","content":[{"type":"text","text":"Hi"}]},)"
      R"({"role":"assistant","reasoning":"r","content":"a"},)"
      R"({"role":"assistant","reasoning":"r","reasoning_content":"c","content":"a"}])";
  EXPECT_EQ(Rewritten(kMessages, {}), Parse(kMessages).Dump());
  EXPECT_EQ(Rewritten(kMessages, {.joins_system_parts = true,
                                  .renames_developer = true,
                                  .reasoning_name = "reasoning_content"}),
            R"([{"role":"system","content":"Be brief."},)"
            R"({"role":"user","content":[{"type":"text","text":"Hi"}]},)"
            R"({"role":"assistant","reasoning_content":"r","content":"a"},)"
            R"({"role":"assistant","reasoning":"r","reasoning_content":"c","content":"a"}])");
}

TEST(RewriteToolsTest, WrapsAndDropsNulls) {
  EXPECT_EQ(RewriteTools(Parse(R"([{"type":"function","name":"f","strict":null,"parameters":{}},
      {"type":"function","function":{"name":"g","description":null,"parameters":{"a":null}}}])"))
                .Dump(),
            R"([{"type":"function","function":{"name":"f","parameters":{}}},)"
            R"({"type":"function","function":{"name":"g","parameters":{"a":null}}}])");
}

}  // namespace
}  // namespace facet
