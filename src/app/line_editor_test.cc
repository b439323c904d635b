// SPDX-License-Identifier: Apache-2.0
#include "app/line_editor.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

using Event = LineEditor::Event;

constexpr std::string_view kLeft = "\x1b[D";
constexpr std::string_view kRight = "\x1b[C";
constexpr std::string_view kUp = "\x1b[A";
constexpr std::string_view kDown = "\x1b[B";

class LineEditorTest : public ::testing::Test {
 protected:
  /// The last event that is not kNone.
  Event Type(std::string_view bytes) {
    Event last = Event::kNone;
    for (const char byte : bytes) {
      const Event event = editor_.Feed(byte);
      last = event == Event::kNone ? last : event;
    }
    return last;
  }
  /// The text with | at the cursor.
  std::string State() const {
    std::string text = editor_.text();
    return text.insert(editor_.cursor(), "|");
  }

  History history_;
  LineEditor editor_{&history_, {"/help", "/reset", "/system", "/save"}};
};

TEST_F(LineEditorTest, InsertsAndMoves) {
  Type("helo");
  Type(kLeft);
  Type("l");
  EXPECT_EQ(State(), "hell|o");
  Type("\x01>");
  EXPECT_EQ(State(), ">|hello");
  Type("\x05<");
  EXPECT_EQ(State(), ">hello<|");
  Type("\x1b[H");
  Type(kRight);
  EXPECT_EQ(State(), ">|hello<");
  Type("\x1b[F\x1b[1~\x1b[4~");
  EXPECT_EQ(State(), ">hello<|");
}

TEST_F(LineEditorTest, DeletesWholeCharacters) {
  Type("ae\xcc\x81👩‍👩‍👧");
  Type("\x7f");
  EXPECT_EQ(State(), "ae\xcc\x81|");
  Type(kLeft);
  EXPECT_EQ(State(), "a|e\xcc\x81");
  Type("\x1b[3~");
  EXPECT_EQ(State(), "a|");
  Type("\x08\x08");
  EXPECT_EQ(State(), "|");
}

TEST_F(LineEditorTest, KillsAndYanks) {
  Type("one two three");
  Type("\x17");
  EXPECT_EQ(State(), "one two |");
  Type("\x15");
  EXPECT_EQ(State(), "|");
  Type("\x19");
  EXPECT_EQ(State(), "one two |");
  Type("\x01\x0b");
  EXPECT_EQ(State(), "|");
  Type(
      "\x19\x1b"
      "b\x1b"
      "d");
  EXPECT_EQ(State(), "one | ");
}

TEST_F(LineEditorTest, MovesByWords) {
  Type("one two");
  Type("\x1b[1;5D");
  EXPECT_EQ(State(), "one |two");
  Type(
      "\x1b"
      "b");
  EXPECT_EQ(State(), "|one two");
  Type("\x1b[1;5C");
  EXPECT_EQ(State(), "one| two");
}

TEST_F(LineEditorTest, SubmitsOnEnter) {
  EXPECT_EQ(Type("hi\r"), Event::kSubmit);
  EXPECT_EQ(editor_.Take(), "hi");
  EXPECT_EQ(State(), "|");
}

TEST_F(LineEditorTest, ContinuesAfterABackslash) {
  EXPECT_EQ(Type("a\\\rb"), Event::kNone);
  EXPECT_EQ(State(), "a\nb|");
  EXPECT_EQ(Type("\r"), Event::kSubmit);
  EXPECT_EQ(editor_.Take(), "a\nb");
}

TEST_F(LineEditorTest, BreaksTheLineWithAltEnterAndCtrlJ) {
  EXPECT_EQ(Type("a\x1b\rb\nc"), Event::kNone);
  EXPECT_EQ(State(), "a\nb\nc|");
}

TEST_F(LineEditorTest, ABlockEndsWithItsQuotes) {
  EXPECT_EQ(Type("\"\"\"first\rsecond\r"), Event::kNone);
  EXPECT_EQ(Type("\"\"\"\r"), Event::kSubmit);
  EXPECT_EQ(editor_.Take(), "first\nsecond\n");
}

TEST_F(LineEditorTest, PastedTextDoesNotSubmit) {
  EXPECT_EQ(Type("\x1b[200~one\r\ntwo\rthree\x1b[31m\x03\x1b[201~!"), Event::kNone);
  EXPECT_EQ(State(), "one\ntwo\nthree[31m!|");
}

TEST_F(LineEditorTest, APasteThatIsTooLongIsDropped) {
  Type("\x1b[200~" + std::string(size_t{5} << 20, 'x') + "\x1b[201~y");
  EXPECT_LT(editor_.text().size(), size_t{4} << 20);
  EXPECT_TRUE(editor_.text().ends_with('y'));
}

TEST_F(LineEditorTest, GoesThroughTheHistoryAndBack) {
  ASSERT_TRUE(history_.Add("first").ok());
  ASSERT_TRUE(history_.Add("second").ok());
  Type("draft");
  Type(kUp);
  EXPECT_EQ(State(), "second|");
  Type(kUp);
  Type(kUp);
  EXPECT_EQ(State(), "first|");
  Type(kDown);
  Type(kDown);
  EXPECT_EQ(State(), "draft|");
  Type(kDown);
  EXPECT_EQ(State(), "draft|");
}

TEST_F(LineEditorTest, UpMovesWithinTheTextFirst) {
  ASSERT_TRUE(history_.Add("old").ok());
  Type("abc\ndefg");
  Type(kUp);
  EXPECT_EQ(State(), "abc|\ndefg");
  Type(kDown);
  EXPECT_EQ(State(), "abc\ndef|g");
  Type(kUp);
  Type(kUp);
  EXPECT_EQ(State(), "old|");
}

TEST_F(LineEditorTest, CtrlCEmptiesThenInterrupts) {
  EXPECT_EQ(Type("abc\x03"), Event::kNone);
  EXPECT_EQ(State(), "|");
  EXPECT_EQ(Type("\x03"), Event::kInterrupt);
}

TEST_F(LineEditorTest, CtrlDDeletesThenEnds) {
  Type("ab\x01");
  EXPECT_EQ(Type("\x04"), Event::kNone);
  EXPECT_EQ(State(), "|b");
  EXPECT_EQ(Type("\x04\x04"), Event::kEnd);
}

TEST_F(LineEditorTest, CompletesCommands) {
  Type("/h\t");
  EXPECT_EQ(State(), "/help |");
  Type("\x15/s\t");
  EXPECT_EQ(State(), "/s|");
  Type("a\t");
  EXPECT_EQ(State(), "/save |");
  Type("\x15x\t");
  EXPECT_EQ(State(), "x|");
}

TEST_F(LineEditorTest, TakesCharactersBytewiseAndDropsBrokenOnes) {
  Type("\xe6\x97");
  EXPECT_EQ(State(), "|");
  Type("\xa5");
  EXPECT_EQ(State(), "日|");
  Type("\xff\xc3x\xc2\x9b");
  EXPECT_EQ(State(), "日x|");
}

TEST_F(LineEditorTest, UnknownSequencesDoNothing) {
  Type("a\x1b[99;99z\x1bOP\x1b[");
  EXPECT_TRUE(editor_.is_in_escape());
  editor_.EndEscape();
  Type("b");
  EXPECT_EQ(State(), "ab|");
  Type("\x1b[" + std::string(100, '1') + "c");
  EXPECT_TRUE(editor_.text().starts_with("ab"));
}

TEST_F(LineEditorTest, RendersWrappedRows) {
  Type("hello world");
  EditorScreen screen = editor_.Render("> ", 9, 10);
  EXPECT_EQ(screen.rows, (std::vector<std::string>{"> hello ", "world"}));
  EXPECT_EQ(screen.cursor_row, 1);
  EXPECT_EQ(screen.cursor_column, 5);
  Type(
      "\x15"
      "abcdef");
  screen = editor_.Render("> ", 9, 10);
  EXPECT_EQ(screen.rows, (std::vector<std::string>{"> abcdef", ""}));
  EXPECT_EQ(screen.cursor_row, 1);
  EXPECT_EQ(screen.cursor_column, 0);
}

TEST_F(LineEditorTest, RendersWideCharactersAndLines) {
  Type("日本語日\nx\ty");
  const EditorScreen screen = editor_.Render("> ", 10, 10);
  EXPECT_EQ(screen.rows, (std::vector<std::string>{"> 日本語", "日",
                                                   "  xy"}));  // Tab completes; it is not typed.
  EXPECT_EQ(screen.cursor_row, 2);
  EXPECT_EQ(screen.cursor_column, 4);
}

TEST_F(LineEditorTest, RendersTheRowsAroundTheCursor) {
  for (int line = 0; line < 20; ++line) {
    Type(std::to_string(line) + "\n");
  }
  const EditorScreen screen = editor_.Render("> ", 20, 5);
  EXPECT_EQ(screen.rows, (std::vector<std::string>{"  16", "  17", "  18", "  19", "  "}));
  EXPECT_EQ(screen.cursor_row, 4);
}

}  // namespace
}  // namespace facet
