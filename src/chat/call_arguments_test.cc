// SPDX-License-Identifier: Apache-2.0
#include "chat/call_arguments.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "chat/call_text.h"

namespace facet {
namespace {

/// `'` in `text` stands for nothing else than itself; `~` for the mark of a string.
std::optional<CallArguments> Read(std::string text, const char* schema_text = "{}") {
  std::replace(text.begin(), text.end(), '~', kStringMark);
  const auto schema = ParseJson(schema_text, "schema");
  EXPECT_TRUE(schema.ok());
  FailedSearches failed;
  auto arguments = ReadCallArguments(text, 0, ValueSchema(*schema), &failed);
  if (arguments) {
    EXPECT_TRUE(ParseJson(arguments->json, "arguments").ok()) << arguments->json;
    EXPECT_LE(arguments->end, text.size());
  }
  return arguments;
}

std::string JsonOf(const std::string& text, const char* schema = "{}") {
  const auto arguments = Read(text, schema);
  return arguments ? arguments->json : "refused";
}

TEST(CallArguments, WellFormed) {
  const auto arguments = Read(R"({a:~x, {y}: "z"~,b:-1.50e+07,c:[1,[],{}],d:{e:~~,f:null}}rest)");
  ASSERT_TRUE(arguments.has_value());
  EXPECT_EQ(arguments->json,
            R"({"a":"x, {y}: \"z\"","b":-1.50e+07,"c":[1,[],{}],"d":{"e":"","f":null}})");
  EXPECT_EQ(arguments->n_repairs, 0);
  EXPECT_TRUE(arguments->is_complete);
  EXPECT_EQ(arguments->end, 57u);
  EXPECT_EQ(JsonOf("{ a : 1 , b : [ 1 , 2 ] }"), R"({"a":1,"b":[1,2]})");
  EXPECT_EQ(JsonOf("{a:~\\n \"\t\n~}"), "{\"a\":\"\\\\n \\\"\\t\\n\"}");
}

TEST(CallArguments, Keys) {
  EXPECT_EQ(JsonOf(R"({"a":1,'b':2,~c~:~3~,my key:4,"d e":5})"),
            R"({"a":1,"b":2,"c":"3","my key":4,"d e":5})");
  EXPECT_EQ(JsonOf("{a=1,b=~x~}"), R"({"a":1,"b":"x"})");
  EXPECT_EQ(JsonOf("{a::~x~}"), R"({"a":"x"})");
  EXPECT_EQ(JsonOf("{a~:x~}"), R"({"a":"x"})");
  EXPECT_EQ(JsonOf(R"({"a~b":1,'~c':2})"), R"({"ab":1,"c":2})");
  EXPECT_EQ(JsonOf(R"({"~":1})"), "refused");
  EXPECT_EQ(JsonOf("{~x~}"), "refused");
  EXPECT_EQ(JsonOf("{:1}"), "refused");
  EXPECT_EQ(JsonOf("{a}"), "refused");
  EXPECT_EQ(JsonOf("{a:1,b}"), R"({"a":"1,b"})");
}

TEST(CallArguments, LostDelimiters) {
  EXPECT_EQ(JsonOf("{a:~x,b:~y~}"), R"({"a":"x","b":"y"})");
  EXPECT_EQ(JsonOf("{a:~x,b:5,c:~y~}"), R"({"a":"x","b":5,"c":"y"})");
  EXPECT_EQ(JsonOf("{a:~x}"), R"({"a":"x"})");
  EXPECT_EQ(JsonOf("{a:~x,b:[~y~]}"), R"({"a":"x","b":["y"]})");
  EXPECT_EQ(JsonOf("{a:x~,b:1}"), R"({"a":"x","b":1})");
  EXPECT_EQ(JsonOf("{n:5,a:x~}"), R"({"n":5,"a":"x"})");
  EXPECT_EQ(JsonOf("{l:[~x,~y~]}"), R"({"l":["x","y"]})");
  EXPECT_EQ(JsonOf("{a:~~x~}"), R"({"a":"x"})");
  EXPECT_EQ(JsonOf("{a:~x~~}"), R"({"a":"x"})");
  EXPECT_EQ(JsonOf("{a:~x~y~,b:1}"), R"({"a":"xy","b":1})");
  EXPECT_EQ(JsonOf("{a:~if (x) { y; }"), R"({"a":"if (x) { y; }"})");
}

TEST(CallArguments, ForeignDelimiters) {
  EXPECT_EQ(JsonOf(R"({a:"x",b:'y',c:["p",'q']})"), R"({"a":"x","b":"y","c":["p","q"]})");
  EXPECT_EQ(JsonOf(R"({a:"say \"hi\"\n",b:1})"), R"({"a":"say \"hi\"\n","b":1})");
  EXPECT_EQ(JsonOf(R"({a:"say "hi", then go",b:1})"), R"({"a":"say \"hi\", then go","b":1})");
  EXPECT_EQ(JsonOf(R"({a:'it's',b:1})"), R"({"a":"it's","b":1})");
  EXPECT_EQ(JsonOf(R"({a:"x~,b:~y"})"), R"({"a":"x","b":"y"})");
  EXPECT_EQ(JsonOf(R"({a:"x,b:~y~})"), R"({"a":"x","b":"y"})");
  EXPECT_EQ(JsonOf(R"({a:"x})"), R"({"a":"x"})");
  EXPECT_EQ(JsonOf(R"({a:"x\~,b:"y~"})"), R"({"a":"x\\","b":"y"})");
}

TEST(CallArguments, BareText) {
  EXPECT_EQ(JsonOf("{a:Oslo, Norway,b:1}"), R"({"a":"Oslo, Norway","b":1})");
  EXPECT_EQ(JsonOf("{a:x, b:1}"), R"({"a":"x","b":1})");
  EXPECT_EQ(JsonOf("{u:http://h/p?q=1&r=a:b,n:1}"), R"({"u":"http://h/p?q=1&r=a:b","n":1})");
  EXPECT_EQ(JsonOf("{a:f(x, y: z),b:1}"), "{\"a\":\"f(x, y: z)\",\"b\":1}");
  EXPECT_EQ(JsonOf("{a:smile :( now,b:1}"), R"({"a":"smile :( now","b":1})");
  EXPECT_EQ(JsonOf("{a:,b:}"), R"({"a":"","b":""})");
  EXPECT_EQ(JsonOf("{l:[a b, c]}"), R"({"l":["a b","c"]})");
  EXPECT_EQ(JsonOf("{a:True,b:None,c:TRUE}"), R"({"a":true,"b":null,"c":"TRUE"})");
}

TEST(CallArguments, CommasAndBrackets) {
  EXPECT_EQ(JsonOf("{a:~x~b:1 c:2}"), R"({"a":"x","b":1,"c":2})");
  EXPECT_EQ(JsonOf("{,a:[1,,2,],,b:3,}"), R"({"a":[1,2],"b":3})");
  EXPECT_EQ(JsonOf("{l:[~a~~b~{c:1}[2]]}"), R"({"l":["a","b",{"c":1},[2]]})");
  EXPECT_EQ(JsonOf("(a:1)"), R"({"a":1})");
  EXPECT_EQ(JsonOf("{a:[1]],b:2}"), R"({"a":[1],"b":2})");
  EXPECT_EQ(JsonOf("{a:[1,b:2}"), R"({"a":[1,"b:2"]})");
  EXPECT_EQ(JsonOf("{a:{b:1]}"), R"({"a":{"b":1}})");
  EXPECT_EQ(JsonOf("{{a:1}"), R"({"a":1})");
}

TEST(CallArguments, WhatIsOpenAtTheEndIsClosed) {
  for (const char* text : {"{", "{a:[{b:~x~", "{a:1", "{a:1,", "{a:"}) {
    const auto arguments = Read(text);
    ASSERT_TRUE(arguments.has_value()) << text;
    EXPECT_FALSE(arguments->is_complete) << text;
    EXPECT_GT(arguments->n_repairs, 0) << text;
  }
  EXPECT_EQ(JsonOf("{a:[{b:~x~"), R"({"a":[{"b":"x"}]})");
}

TEST(CallArguments, TheSchemaTypesValues) {
  constexpr const char* kSchema = R"({"properties":{
      "s":{"type":"string"},"sn":{"type":["string","null"]},"i":{"type":"integer"},
      "b":{"type":"boolean"},"e":{"enum":["1","2"]},"l":{"type":"array","items":{"type":"string"}},
      "o":{"type":"object","properties":{"z":{"type":"string"}}},
      "u":{"anyOf":[{"type":"number"},{"type":"string"}]}}})";
  EXPECT_EQ(JsonOf("{s:007,sn:12,i:7,b:true,e:1,u:3}", kSchema),
            R"({"s":"007","sn":"12","i":7,"b":true,"e":"1","u":3})");
  EXPECT_EQ(JsonOf("{s:true,sn:null,b:False,u:x}", kSchema),
            R"({"s":"true","sn":null,"b":false,"u":"x"})");
  EXPECT_EQ(JsonOf("{l:[1,true,null],o:{z:5}}", kSchema),
            R"({"l":["1","true","null"],"o":{"z":"5"}})");
  EXPECT_EQ(JsonOf("{s:None,i:~7~,b:~true~,l:~[1, 2]~,o:~{\"z\": 1}~}", kSchema),
            R"({"s":"None","i":7,"b":true,"l":[1, 2],"o":{"z": 1}})");
  EXPECT_EQ(JsonOf("{i:~seven~,i:007,b:1}", kSchema), R"({"i":"seven","i":"007","b":1})");
  EXPECT_EQ(JsonOf("{s:{\"a\": [1, 2]},i:1}", kSchema), R"({"s":"{\"a\": [1, 2]}","i":1})");
  EXPECT_EQ(JsonOf("{s:{a:~x~},i:1}", kSchema), R"({"s":"{a:\"x\"}","i":1})");
  // Words before a colon are keys where the schema has them, and prose where not.
  EXPECT_EQ(JsonOf("{s:see note, type: x, i:1}", kSchema), R"({"s":"see note, type: x","i":1})");
}

TEST(CallArguments, DeepNestingIsRefused) {
  const auto nested = [](size_t depth) {
    return "{a:" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_TRUE(Read(nested(kMaxCallDepth - 1)).has_value());
  EXPECT_FALSE(Read(nested(kMaxCallDepth)).has_value());
  EXPECT_FALSE(Read("{a:" + std::string(100'000, '[')).has_value());
  std::string objects;
  for (int n = 0; n < 100'000; ++n) {
    objects += "{a:";
  }
  EXPECT_FALSE(Read(objects).has_value());
  EXPECT_FALSE(Read(std::string(100'000, '{')).has_value());
}

TEST(CallArguments, LongTextsEndSoon) {
  // Quadratic time would be minutes.
  for (const char* piece : {"[\"a,", "'b,c:", "~x,", "~x~y", "a:(,", "a:~x,", "\",\"",
                            "{a:", "a b:", " ", ",", "]", "(", "1 ", "a=\"~", "\\\"", "x:[~"}) {
    for (const char* begin : {"{k:", "{k:[", "{k:~", "{k:\"", "{"}) {
      std::string text = begin;
      while (text.size() < 100'000) {
        text += piece;
      }
      Read(text);
    }
  }
  const std::string long_value(size_t{1} << 20, 'x');
  EXPECT_EQ(JsonOf("{a:~" + long_value + "~}").size(), long_value.size() + 8);
}

}  // namespace
}  // namespace facet
