// SPDX-License-Identifier: Apache-2.0
#include "app/line_editor.h"

#include <algorithm>
#include <utility>

#include "app/text_width.h"
#include "base/utf8.h"

namespace facet {
namespace {

constexpr std::string_view kBlock = "\"\"\"";
constexpr std::string_view kPasteEnd = "\x1b[201~";
constexpr size_t kMaxTextBytes = size_t{4} << 20;
constexpr size_t kMaxSequenceBytes = 32;
constexpr std::string_view kContinuation = "  ";

constexpr char Ctrl(char letter) { return static_cast<char>(letter & 0x1F); }
constexpr char kEscapeByte = '\x1b';
constexpr char kDeleteByte = '\x7f';

bool IsWordByte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (byte >= '0' && byte <= '9') ||
         ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') || byte == '_';
}

/// Whether the text is a """ block that is not closed yet.
bool IsInBlock(std::string_view text) {
  return text.starts_with(kBlock) && text.find(kBlock, kBlock.size()) == std::string_view::npos;
}

/// Pasted text without what could act on a terminal: line breaks and tabs stay.
std::string CleanPaste(std::string_view paste) {
  std::string clean;
  for (size_t i = 0; i < paste.size(); ++i) {
    const char c = paste[i];
    if (c == '\r') {
      clean += i + 1 < paste.size() && paste[i + 1] == '\n' ? "" : "\n";
    } else if (c == '\n' || c == '\t' ||
               (static_cast<unsigned char>(c) >= 0x20 && c != kDeleteByte)) {
      clean += c;
    }
  }
  return RepairUtf8(clean);
}

/// Lays text out in rows of a given width.
class Layout {
 public:
  Layout(std::string_view prompt, int columns) : columns_(columns) { Add(prompt); }

  void Add(std::string_view text) {
    for (size_t pos = 0; pos < text.size();) {
      const size_t end = NextGrapheme(text, pos);
      AddGrapheme(text.substr(pos, end - pos));
      pos = end;
    }
  }
  void MarkCursor() {
    if (column_ >= columns_) {
      Break("");
    }
    screen_.cursor_row = static_cast<int>(screen_.rows.size()) - 1;
    screen_.cursor_column = column_;
  }
  EditorScreen Take() { return std::move(screen_); }

 private:
  void AddGrapheme(std::string_view grapheme) {
    if (grapheme == "\n") {
      Break(kContinuation);
      return;
    }
    const int width = GraphemeWidth(grapheme);
    if (column_ + width > columns_) {
      Break("");
    }
    screen_.rows.back() += ShownText(grapheme);
    column_ += width;
  }
  void Break(std::string_view indent) {
    screen_.rows.emplace_back(indent);
    column_ = static_cast<int>(indent.size());
  }

  EditorScreen screen_{{""}, 0, 0};
  int column_ = 0;
  int columns_;
};

}  // namespace

LineEditor::LineEditor(const History* history, std::vector<std::string> completions)
    : history_(history), completions_(std::move(completions)) {}

LineEditor::Event LineEditor::Feed(char byte) {
  switch (state_) {
    case State::kPaste:
      OnPaste(byte);
      return Event::kNone;
    case State::kEscape:
      OnEscape(byte);
      return Event::kNone;
    case State::kCsi:
    case State::kSs3: {
      const bool is_final = byte >= 0x40 && byte <= 0x7E;
      if (is_final) {
        const bool was_csi = state_ == State::kCsi;
        state_ = State::kGround;
        if (was_csi || sequence_.empty()) {
          OnSequence(byte);
        }
      } else if (sequence_.size() < kMaxSequenceBytes) {
        sequence_ += byte;
      } else {
        state_ = State::kGround;
      }
      return Event::kNone;
    }
    case State::kGround:
      break;
  }
  if (static_cast<unsigned char>(byte) < 0x20 || byte == kDeleteByte) {
    partial_.clear();
    return OnControl(byte);
  }
  OnText(byte);
  return Event::kNone;
}

void LineEditor::EndEscape() {
  if (is_in_escape()) {
    state_ = State::kGround;
  }
}

std::string LineEditor::Take() {
  std::string taken = std::exchange(text_, {});
  cursor_ = 0;
  history_pos_ = 0;
  draft_.clear();
  if (taken.starts_with(kBlock)) {
    taken.erase(0, kBlock.size());
    const size_t end = taken.find(kBlock);
    if (end != std::string::npos) {
      taken.erase(end, kBlock.size());
    }
  }
  return taken;
}

LineEditor::Event LineEditor::OnControl(char byte) {
  switch (byte) {
    case '\r':
      return OnEnter();
    case '\n':
      Insert("\n");
      break;
    case '\t':
      Complete();
      break;
    case kEscapeByte:
      state_ = State::kEscape;
      break;
    case kDeleteByte:
    case Ctrl('H'):
      DeleteBack();
      break;
    case Ctrl('A'):
      cursor_ = LineBegin();
      break;
    case Ctrl('E'):
      cursor_ = LineEnd();
      break;
    case Ctrl('B'):
      cursor_ = cursor_ > 0 ? PreviousGrapheme(text_, cursor_) : 0;
      break;
    case Ctrl('F'):
      cursor_ = cursor_ < text_.size() ? NextGrapheme(text_, cursor_) : cursor_;
      break;
    case Ctrl('C'):
      if (text_.empty()) {
        return Event::kInterrupt;
      }
      Take();
      break;
    case Ctrl('D'):
      if (text_.empty()) {
        return Event::kEnd;
      }
      DeleteForward();
      break;
    case Ctrl('K'):
      Erase(cursor_, LineEnd() == cursor_ ? std::min(cursor_ + 1, text_.size()) : LineEnd());
      break;
    case Ctrl('U'):
      Erase(LineBegin(), cursor_);
      break;
    case Ctrl('W'):
      Erase(WordBegin(), cursor_);
      break;
    case Ctrl('Y'):
      Insert(killed_);
      break;
    case Ctrl('P'):
      MoveVertically(-1);
      break;
    case Ctrl('N'):
      MoveVertically(1);
      break;
    case Ctrl('L'):
      return Event::kClearScreen;
    case Ctrl('Z'):
      return Event::kSuspend;
    default:
      break;
  }
  return Event::kNone;
}

LineEditor::Event LineEditor::OnEnter() {
  if (IsInBlock(text_)) {
    Insert("\n");
    return Event::kNone;
  }
  if (cursor_ == text_.size() && text_.ends_with('\\')) {
    text_.pop_back();
    --cursor_;
    Insert("\n");
    return Event::kNone;
  }
  cursor_ = text_.size();
  return Event::kSubmit;
}

void LineEditor::OnEscape(char byte) {
  state_ = State::kGround;
  sequence_.clear();
  switch (byte) {
    case '[':
      state_ = State::kCsi;
      break;
    case 'O':
      state_ = State::kSs3;
      break;
    case kEscapeByte:
      state_ = State::kEscape;
      break;
    case '\r':
    case '\n':
      Insert("\n");
      break;
    case 'b':
      cursor_ = WordBegin();
      break;
    case 'f':
      cursor_ = WordEnd();
      break;
    case 'd':
      Erase(cursor_, WordEnd());
      break;
    case kDeleteByte:
      Erase(WordBegin(), cursor_);
      break;
    default:
      break;
  }
}

void LineEditor::OnSequence(char final_byte) {
  const bool is_with_modifier = sequence_.find(';') != std::string::npos;
  switch (final_byte) {
    case 'A':
      MoveVertically(-1);
      break;
    case 'B':
      MoveVertically(1);
      break;
    case 'C':
      cursor_ = is_with_modifier         ? WordEnd()
                : cursor_ < text_.size() ? NextGrapheme(text_, cursor_)
                                         : cursor_;
      break;
    case 'D':
      cursor_ = is_with_modifier ? WordBegin() : cursor_ > 0 ? PreviousGrapheme(text_, cursor_) : 0;
      break;
    case 'H':
      cursor_ = LineBegin();
      break;
    case 'F':
      cursor_ = LineEnd();
      break;
    case '~':
      if (sequence_ == "1" || sequence_ == "7") {
        cursor_ = LineBegin();
      } else if (sequence_ == "4" || sequence_ == "8") {
        cursor_ = LineEnd();
      } else if (sequence_ == "3") {
        DeleteForward();
      } else if (sequence_ == "200") {
        state_ = State::kPaste;
        paste_.clear();
      }
      break;
    default:
      break;
  }
}

void LineEditor::OnPaste(char byte) {
  paste_ += byte;
  if (paste_.ends_with(kPasteEnd)) {
    paste_.resize(paste_.size() - kPasteEnd.size());
    state_ = State::kGround;
    Insert(CleanPaste(paste_));
    paste_.clear();
  } else if (paste_.size() > kMaxTextBytes) {
    paste_.erase(
        0, paste_.size() - kPasteEnd.size());  // The rest of a paste that is too long is dropped.
  }
}

void LineEditor::OnText(char byte) {
  partial_ += byte;
  while (!partial_.empty()) {
    const Utf8Step step = DecodeUtf8(partial_);
    if (step.kind == Utf8Step::Kind::kIncomplete) {
      return;
    }
    const bool is_control = step.character >= 0x80 && step.character < 0xA0;
    if (step.kind == Utf8Step::Kind::kCharacter && !is_control) {
      Insert(std::string_view(partial_).substr(0, static_cast<size_t>(step.size)));
    }
    partial_.erase(0, static_cast<size_t>(step.size));
  }
}

void LineEditor::Insert(std::string_view text) {
  if (text_.size() + text.size() > kMaxTextBytes) {
    return;
  }
  text_.insert(cursor_, text);
  cursor_ += text.size();
}

void LineEditor::Erase(size_t begin, size_t end) {
  if (begin < end) {
    killed_ = text_.substr(begin, end - begin);
    text_.erase(begin, end - begin);
    cursor_ = begin;
  }
}

void LineEditor::DeleteBack() {
  if (cursor_ > 0) {
    const size_t begin = PreviousGrapheme(text_, cursor_);
    text_.erase(begin, cursor_ - begin);
    cursor_ = begin;
  }
}

void LineEditor::DeleteForward() {
  if (cursor_ < text_.size()) {
    text_.erase(cursor_, NextGrapheme(text_, cursor_) - cursor_);
  }
}

void LineEditor::MoveVertically(int direction) {
  // Counted in grapheme clusters, which is exact unless widths differ within the line.
  size_t column = 0;
  for (size_t pos = LineBegin(); pos < cursor_; pos = NextGrapheme(text_, pos)) {
    ++column;
  }
  if (direction < 0 ? LineBegin() == 0 : LineEnd() == text_.size()) {
    ShowHistory(-direction);
    return;
  }
  cursor_ = direction < 0 ? LineBegin() - 1 : LineEnd() + 1;
  const size_t end = LineEnd();
  cursor_ = LineBegin();
  for (; column > 0 && cursor_ < end; --column) {
    cursor_ = NextGrapheme(text_, cursor_);
  }
}

void LineEditor::ShowHistory(int direction) {
  const size_t n_entries = history_ == nullptr ? 0 : history_->entries().size();
  if (direction > 0 ? history_pos_ >= n_entries : history_pos_ == 0) {
    return;
  }
  if (history_pos_ == 0) {
    draft_ = text_;
  }
  history_pos_ += direction > 0 ? 1 : size_t{0} - 1;
  text_ = history_pos_ == 0 ? draft_ : history_->entries()[n_entries - history_pos_];
  cursor_ = text_.size();
}

void LineEditor::Complete() {
  std::string common;
  bool is_unique = true;
  for (const std::string& word : completions_) {
    if (text_.empty() || !word.starts_with(text_)) {
      continue;
    }
    if (common.empty()) {
      common = word;
      continue;
    }
    is_unique = false;
    const auto [mine, other] =
        std::mismatch(common.begin(), common.end(), word.begin(), word.end());
    common.erase(mine, common.end());
  }
  if (cursor_ == text_.size() && common.size() >= text_.size() && !common.empty()) {
    text_ = common + (is_unique ? " " : "");
    cursor_ = text_.size();
  }
}

size_t LineEditor::LineBegin() const {
  const size_t found = cursor_ == 0 ? std::string::npos : text_.rfind('\n', cursor_ - 1);
  return found == std::string::npos ? 0 : found + 1;
}

size_t LineEditor::LineEnd() const { return std::min(text_.find('\n', cursor_), text_.size()); }

size_t LineEditor::WordBegin() const {
  size_t pos = cursor_;
  while (pos > 0 && !IsWordByte(text_[pos - 1])) {
    --pos;
  }
  while (pos > 0 && IsWordByte(text_[pos - 1])) {
    --pos;
  }
  return pos;
}

size_t LineEditor::WordEnd() const {
  size_t pos = cursor_;
  while (pos < text_.size() && !IsWordByte(text_[pos])) {
    ++pos;
  }
  while (pos < text_.size() && IsWordByte(text_[pos])) {
    ++pos;
  }
  return pos;
}

EditorScreen LineEditor::Render(std::string_view prompt, int columns, int max_rows) const {
  Layout layout(prompt, std::max(columns, 8) -
                            1);  // The last column stays free: writing it makes terminals differ.
  layout.Add(std::string_view(text_).substr(0, cursor_));
  layout.MarkCursor();
  layout.Add(std::string_view(text_).substr(cursor_));
  EditorScreen screen = layout.Take();
  const int n_rows = static_cast<int>(screen.rows.size());
  const int n_shown = std::min(n_rows, std::max(max_rows, 1));
  const int first = std::clamp(screen.cursor_row - n_shown / 2, 0, n_rows - n_shown);
  screen.rows.erase(screen.rows.begin() + first + n_shown, screen.rows.end());
  screen.rows.erase(screen.rows.begin(), screen.rows.begin() + first);
  screen.cursor_row -= first;
  return screen;
}

}  // namespace facet
