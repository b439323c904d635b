// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace facet {
namespace {

Json Parsed(std::string_view text) {
  Result<Json> json = ParseJson(text, "x.json");
  EXPECT_TRUE(json.ok()) << text;
  return json.ok() ? *std::move(json) : Json("unreadable");
}

std::string ErrorOf(std::string_view text, const JsonLimits& limits = {}) {
  const Result<Json> json = ParseJson(text, "x.json", limits);
  return json.ok() ? "no error" : json.error().Message();
}

TEST(JsonParseTest, KnowsEveryKind) {
  EXPECT_TRUE(Parsed("null").is_null());
  EXPECT_TRUE(Parsed("true").as_bool());
  EXPECT_FALSE(Parsed("false").as_bool(true));
  EXPECT_EQ(Parsed("-12").as_int(), -12);
  EXPECT_EQ(Parsed("2.5e3").as_double(), 2500.0);
  EXPECT_EQ(Parsed("\"a\\u00e9\\ud83d\\ude00\\n\"").as_string(), "a\xC3\xA9\xF0\x9F\x98\x80\n");
  EXPECT_EQ(Parsed("[1, [2], {}]").items().size(), 3u);
  EXPECT_EQ(Parsed(" {\"a\" : {\"b\" : [true]}} ")["a"]["b"].items()[0], Json(true));
}

TEST(JsonParseTest, NamesKinds) {
  EXPECT_EQ(Json().KindName(), "null");
  EXPECT_EQ(Json(true).KindName(), "true or false");
  EXPECT_EQ(Json(1).KindName(), "an integer");
  EXPECT_EQ(Json(1.5).KindName(), "a number");
  EXPECT_EQ(Json(UINT64_MAX).KindName(), "an integer");
  EXPECT_EQ(Json("").KindName(), "a string");
  EXPECT_EQ(Json(Json::Array()).KindName(), "an array");
  EXPECT_EQ(Json(Json::Object()).KindName(), "an object");
}

TEST(JsonParseTest, IntegersAreExact) {
  EXPECT_EQ(Parsed("9223372036854775807").as_int(), INT64_MAX);
  EXPECT_EQ(Parsed("-9223372036854775808").as_int(), INT64_MIN);
  EXPECT_EQ(Parsed("9007199254740993").as_int(), 9007199254740993);  // no double holds it
  for (const std::string_view digits :
       {"9223372036854775808", "18446744073709551615", "18446744073709551616",
        "-9223372036854775809", "1000000000000000019884624838656"}) {
    const Json big = Parsed(digits);
    EXPECT_TRUE(big.is_big_integer()) << digits;
    EXPECT_TRUE(big.is_number());
    EXPECT_FALSE(big.is_integer());
    EXPECT_EQ(big.as_big_integer().digits, digits);
    EXPECT_EQ(big.Dump(), digits);
    EXPECT_EQ(big.as_int(-1), -1);
    EXPECT_EQ(big.as_double(), std::strtod(std::string(digits).c_str(), nullptr));
  }
}

TEST(JsonParseTest, DoublesWithoutFractionReadAsIntegers) {
  EXPECT_EQ(Parsed("128.0").as_int(), 128);
  EXPECT_EQ(Parsed("1e3").as_int(), 1000);
  EXPECT_EQ(Parsed("1.5").as_int(7), 7);
  EXPECT_EQ(Parsed("1e300").as_int(7), 7);
  EXPECT_TRUE(Parsed("1e3").is_double());
}

TEST(JsonParseTest, OfRepeatedKeysTheLastCounts) {
  const Json json = Parsed(R"({"a":1,"b":2,"a":3})");
  EXPECT_EQ(json["a"].as_int(), 3);
  ASSERT_EQ(json.members().size(), 3u);
  EXPECT_EQ(json.members()[0].first, "a");
  EXPECT_EQ(json.members()[1].first, "b");
  EXPECT_EQ(json.Dump(), R"({"a":1,"b":2,"a":3})");
}

TEST(JsonParseTest, ErrorsGiveTheByte) {
  EXPECT_EQ(ErrorOf(""), "x.json, byte 1: broken JSON, wanted valid JSON");
  EXPECT_EQ(ErrorOf("{\"a\":}"), "x.json, byte 6: broken JSON, wanted valid JSON");
  EXPECT_EQ(ErrorOf("[1,2"), "x.json, byte 5: broken JSON, wanted valid JSON");
  EXPECT_EQ(ErrorOf("[1,]"), "x.json, byte 4: broken JSON, wanted valid JSON");
  EXPECT_EQ(ErrorOf("1 2"), "x.json, byte 3: broken JSON, wanted valid JSON");
  EXPECT_EQ(ErrorOf("{} x"), "x.json, byte 4: broken JSON, wanted valid JSON");
  EXPECT_EQ(ErrorOf("// note\n1"), "x.json, byte 1: broken JSON, wanted valid JSON");
}

TEST(JsonParseTest, RefusesWhatJsonDoesNotHave) {
  for (const std::string_view text : {"NaN",
                                      "Infinity",
                                      "'a'",
                                      "01",
                                      "+1",
                                      "1.",
                                      ".5",
                                      "tru",
                                      "\"a\nb\"",
                                      "\"\\x\"",
                                      "\"\\ud800\"",
                                      "\"\xC0\xAF\"",
                                      "\"\xED\xA0\x80\"",
                                      "\"\xFF\"",
                                      "\"",
                                      "{\"a\" 1}",
                                      "{a:1}",
                                      "[1 2]",
                                      "1e400",
                                      "]",
                                      "}",
                                      "{]",
                                      "[}"}) {
    EXPECT_FALSE(ParseJson(text, "x.json").ok()) << text;
  }
}

TEST(JsonParseTest, RefusesMoreBytesThanTheLimit) {
  EXPECT_EQ(ErrorOf("[1,2,3]", {6, 10}), "x.json: 7 bytes of JSON, wanted at most 6");
  EXPECT_EQ(ErrorOf("[1,2,3]", {7, 10}), "no error");
}

TEST(JsonParseTest, RefusesMoreDepthThanTheLimit) {
  EXPECT_EQ(ErrorOf("[[1]]", {100, 2}), "no error");
  EXPECT_EQ(ErrorOf("[[[1]]]", {100, 2}),
            "x.json: JSON nested too deeply, wanted at most 2 levels");
  EXPECT_EQ(ErrorOf("{\"a\":[{}]}", {100, 2}),
            "x.json: JSON nested too deeply, wanted at most 2 levels");
  const std::string hostile(1000000, '[');
  EXPECT_EQ(ErrorOf(hostile), "x.json: JSON nested too deeply, wanted at most 200 levels");
  std::string objects;
  for (int i = 0; i < 100000; ++i) {
    objects += "{\"a\":";
  }
  EXPECT_EQ(ErrorOf(objects), "x.json: JSON nested too deeply, wanted at most 200 levels");
  // Width is not depth.
  std::string wide = "[[]";
  for (int i = 0; i < 1000; ++i) {
    wide += ",[]";
  }
  EXPECT_EQ(ErrorOf(wide + "]"), "no error");
}

TEST(JsonReadTest, AnotherKindGivesTheNeutralValue) {
  const Json text("x");
  EXPECT_EQ(text.as_int(3), 3);
  EXPECT_EQ(text.as_double(0.5), 0.5);
  EXPECT_TRUE(text.as_bool(true));
  EXPECT_TRUE(text.items().empty());
  EXPECT_TRUE(text.members().empty());
  EXPECT_EQ(text.as_big_integer().digits, "0");
  EXPECT_EQ(Json(1).as_string(), "");
  EXPECT_TRUE(text["a"]["b"].is_null());
  EXPECT_EQ(text.Find("a"), nullptr);
  EXPECT_FALSE(Parsed("[1]").contains("a"));
  EXPECT_TRUE(Parsed("{\"a\":null}").contains("a"));
}

TEST(JsonReadTest, UnsignedNumbersKeepTheirValue) {
  EXPECT_EQ(Json(uint64_t{7}).as_int(), 7);
  EXPECT_EQ(Json(static_cast<uint64_t>(INT64_MAX)).as_int(), INT64_MAX);
  EXPECT_EQ(Json(UINT64_MAX).as_big_integer().digits, "18446744073709551615");
}

TEST(JsonWriteTest, BuildsArraysAndObjects) {
  Json json;
  json.Set("b", 1);
  json.Set("a", Json::MakeArray({1, "two", 3.0, nullptr, true}));
  json.Set("b", "again");
  Json list;
  list.Append(Json::MakeObject({{"k", "v"}}));
  json.Set("list", list);
  EXPECT_EQ(json.Dump(), R"({"b":"again","a":[1,"two",3.0,null,true],"list":[{"k":"v"}]})");
}

TEST(JsonWriteTest, IndentBreaksLines) {
  EXPECT_EQ(
      Parsed(R"({"a":[1,{}],"b":[],"c":{"d":null}})").Dump(2),
      "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": [],\n  \"c\": {\n    \"d\": null\n  }\n}");
}

TEST(JsonWriteTest, EscapesWhatMustBe) {
  EXPECT_EQ(Json(std::string("\"\\/\b\f\n\r\t\x01\x1f\x7f\0", 12)).Dump(),
            "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\\u0000\"");
  EXPECT_EQ(Json("\xE2\x82\xAC").Dump(), "\"\xE2\x82\xAC\"");
  EXPECT_EQ(Json("a\xFF").Dump(), "\"a\xEF\xBF\xBD\"");
  EXPECT_EQ(Json::MakeObject({{"\xFF", 1}}).Dump(), "{\"\xEF\xBF\xBD\":1}");
}

TEST(JsonWriteTest, NumbersReadBackAsThemselves) {
  for (const double value : {0.0, -0.0, 1.0, 0.1, -2.5, 1e22, 1e-7, 5e-324, 1.7976931348623157e308,
                             1.0 / 3.0, 9007199254740993.0, 123456789.125}) {
    const Json json = Parsed(Json(value).Dump());
    EXPECT_TRUE(json.is_double()) << value;
    EXPECT_EQ(std::signbit(json.as_double()), std::signbit(value));
    EXPECT_EQ(json.as_double(), value);
  }
  EXPECT_EQ(Json(1.0).Dump(), "1.0");
  EXPECT_EQ(Json(INT64_MIN).Dump(), "-9223372036854775808");
  EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).Dump(), "null");
  EXPECT_EQ(Json(std::numeric_limits<double>::quiet_NaN()).Dump(), "null");
}

TEST(JsonWriteTest, TextComesBackAfterARoundTrip) {
  const std::string text =
      R"({"z":1,"a":[-0.5,12345678901234567890123,"\u0000",{"":[[],{}]},true,null],"z":"\"","e":"é"})";
  const Json json = Parsed(text);
  EXPECT_EQ(json.Dump(), text);
  EXPECT_EQ(Parsed(json.Dump()), json);
  EXPECT_EQ(Parsed(json.Dump(3)), json);
}

TEST(JsonDeathTest, WritingIntoAnotherKindAborts) {
  Json text("x");
  EXPECT_DEATH(text.Append(1), "CHECK failed: is_array\\(\\)");
  EXPECT_DEATH(text.Set("a", 1), "CHECK failed: is_object\\(\\)");
}

}  // namespace
}  // namespace facet
