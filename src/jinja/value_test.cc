// SPDX-License-Identifier: Apache-2.0
#include "jinja/value.h"

#include <gtest/gtest.h>

#include "jinja/compare.h"

namespace facet::jinja {
namespace {

Value Text(const std::string& text) { return Value::String(text, Origin::kTemplate); }

TEST(ValueTest, IntegersKeepTheirDigits) {
  EXPECT_EQ(Value::IntegerFromDigits("-0007").as_integer(), -7);
  EXPECT_EQ(Value::IntegerFromDigits("9223372036854775807").as_integer(), INT64_MAX);
  EXPECT_EQ(Value::IntegerFromDigits("-9223372036854775808").as_integer(), INT64_MIN);
  EXPECT_EQ(Value::IntegerFromDigits("0009223372036854775808").as_digits(), "9223372036854775808");
}

TEST(ValueTest, RepeatedKeysKeepTheFirstPlaceAndTheLastValue) {
  Budget budget{Limits()};
  const auto dict = MakeDict({{Text("b"), Value::Integer(1)},
                              {Value::Integer(1), Value::Integer(2)},
                              {Text("b"), Value::Integer(3)},
                              {Value::Bool(true), Value::Integer(4)}},
                             budget);
  ASSERT_TRUE(dict.ok());
  ASSERT_EQ(dict->as_dict().size(), 2u);
  EXPECT_EQ(dict->as_dict().entries()[0].second.as_integer(), 3);
  EXPECT_EQ(dict->as_dict().Find(Value::Float(1.0))->as_integer(), 4);
  EXPECT_EQ(dict->as_dict().Find("b")->as_integer(), 3);
  EXPECT_EQ(dict->as_dict().Find("c"), nullptr);
}

TEST(ValueTest, ListsAreNoKeys) {
  Budget budget{Limits()};
  const auto list = MakeList({}, budget);
  const auto tuple = MakeTuple({*list}, budget);
  EXPECT_EQ(MakeDict({{*tuple, Value::None()}}, budget).error().Message(),
            "unhashable type: 'list', wanted a key that cannot change");
}

TEST(ValueTest, RangesAreCheckedBeforeTheyAreMade) {
  Budget budget{Limits()};
  EXPECT_EQ(MakeRange({5, 0, -2}, budget)->as_sequence().size(), 3u);
  EXPECT_EQ(MakeRange({INT64_MIN, INT64_MAX, INT64_MAX}, budget)->as_sequence().size(), 3u);
  EXPECT_EQ(MakeRange({0, 100'001, 1}, budget).error().Message(),
            "a range of 100001 numbers, wanted at most 100000");
  EXPECT_EQ(MakeRange({0, 1, 0}, budget).error().Message(),
            "range() with step 0, wanted another step");
}

TEST(ValueTest, GeneratorsAreWalkedOnce) {
  Budget budget{Limits()};
  const auto generator = MakeSequence(Sequence::Kind::kGenerator, {Text("a")}, budget);
  EXPECT_EQ((*Iterate(*generator, budget))->size(), 1u);
  EXPECT_EQ((*Iterate(*generator, budget))->size(), 0u);
  EXPECT_TRUE(generator->IsTrue());
}

TEST(CompareTest, NumbersCompareExactly) {
  Budget budget{Limits()};
  EXPECT_TRUE(*Equal(Value::Bool(true), Value::Float(1.0), budget));
  EXPECT_FALSE(*Equal(Value::Integer(9007199254740993), Value::Float(9007199254740992.0), budget));
  EXPECT_TRUE(
      *Less(Value::IntegerFromDigits("-99999999999999999999"), Value::Integer(INT64_MIN), budget));
  EXPECT_TRUE(*Less(Value::IntegerFromDigits("99999999999999999998"),
                    Value::IntegerFromDigits("99999999999999999999"), budget));
}

TEST(CompareTest, SortingIsStableAndRefusesWhatHasNoOrder) {
  Budget budget{Limits()};
  EXPECT_EQ(*SortedOrder({Text("b"), Text("a"), Text("b"), Text("a")}, false, budget),
            (std::vector<size_t>{1, 3, 0, 2}));
  EXPECT_EQ(*SortedOrder({Text("b"), Text("a"), Text("b"), Text("a")}, true, budget),
            (std::vector<size_t>{0, 2, 1, 3}));
  EXPECT_EQ(SortedOrder({Text("b"), Value::Integer(1)}, false, budget).error().found,
            "'<' not supported between instances of 'int' and 'str'");
}

}  // namespace
}  // namespace facet::jinja
