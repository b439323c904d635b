#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of the house that neither compiler nor formatter knows: who may include whom, how long things may be, what
is never called. Prints "file:line: rule: message" for each fault; the exit status is 1 if there is one.

Usage: tools/check_tree.py [ROOT]   (default: the tree this file is in)
"""
import os
import re
import subprocess
import sys

# --- the tables -----------------------------------------------------------------------------------------------------

# What a folder of src/ may include besides itself: folders, or single headers of a folder. The order is that of the
# layers. ARCHITECTURE.md explains it.
MAY_INCLUDE = {
    "base": [],
    "format": ["base"],
    "quant": ["base"],
    "jinja": ["base"],
    "kv": ["base"],
    "compute": ["base", "quant/codec.h"],
    "media": ["base"],
    "helper": ["base", "media/helper_protocol.h", "media/image.h", "media/video.h"],
    "text": ["base", "format"],
    "model": ["base", "format", "quant", "media", "kv", "compute"],
    "convert": ["base", "format", "quant", "text", "model/config.h", "model/checkpoint.h", "model/weights.h",
                "model/drafter_checkpoint.h", "model/drafter_names.h", "model/drafter_weights.h",
                "model/hf_directory.h", "compute/context.h", "compute/thread_pool.h"],
    "net": ["base"],
    "chat": ["base", "text", "jinja", "media"],
    "engine": ["base", "kv", "media/media_item.h", "model/batch.h", "model/runner.h"],
    "server": ["base", "text", "media", "chat", "engine"],
    "app": None,  # everything
}

# What the tests of a folder may include besides: readers of reference data, and the definition a kernel must equal.
TESTS_MAY_INCLUDE = {
    "quant": ["format"],
    "compute": ["quant"],
    "chat": ["format"],
    "media": ["format"],
    "helper": ["format", "media"],
    "server": ["format", "model/runner.h", "model/batch.h", "kv"],
}

# Third-party headers: where each may stand, and in how many files of one folder (None: any number).
THIRD_PARTY = [
    (r"nlohmann/", r"src/base/json\.cc", None, "src/base/json.cc"),
    (r"utf8proc\.h", r"src/(jinja|app)/\w+\.cc", 1, "one .cc of src/jinja and one of src/app"),
    (r"curl/", r"src/net/\w+\.cc", 1, "one .cc of src/net"),
    (r"openssl/", r"src/base/sha256\.cc", None, "src/base/sha256.cc"),
    (r"(jpeglib|jerror|png|gif_lib)\.h|webp/", r"src/media/image_\w+\.cc", None, "image_*.cc of src/media"),
    (r"(sndfile|soxr)\.h", r"src/media/audio\w*\.cc", None, "audio*.cc of src/media"),
    (r"libav\w+/|libsw\w+/|seccomp\.h", r"src/helper/\w+\.cc", None, "src/helper"),
    (r"boost/", r"src/server/http\w*\.cc", None, "http*.cc of src/server"),
    (r"CLI/", r"src/app/\w+\.cc", 1, "one .cc of src/app"),
    (r"fmt/", r"(src|tests|fuzz|bench)/.*\.cc", None, ".cc files"),
    (r"(gtest|gmock)/", r"src/.*_test\.cc|src/\w+/((test|fake)_\w+\.(h|cc)|\w+_testing\.h)|tests/.*", None, "tests"),
    (r"benchmark/", r"bench/.*", None, "bench/"),
]

# <ranges>, <format> and <expected> are missing on purpose: not every compiler that we support has them.
STANDARD_HEADERS = set("""
algorithm any array atomic barrier bit bitset cctype cerrno cfenv cfloat charconv chrono cinttypes climits clocale cmath
codecvt compare complex concepts condition_variable coroutine csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib
cstring ctime cwchar cwctype deque exception filesystem forward_list fstream functional future initializer_list iomanip
ios iosfwd iostream istream iterator latch limits list locale map memory memory_resource mutex new numbers numeric
optional ostream queue random ratio regex scoped_allocator semaphore set shared_mutex source_location span sstream stack
stdexcept stop_token streambuf string string_view system_error thread tuple type_traits typeindex typeinfo unordered_map
unordered_set utility valarray variant vector version
""".split())
SYSTEM_HEADERS = re.compile(r"(sys|linux|netinet|arpa)/\w+\.h|(unistd|fcntl|termios|poll|sched|signal|spawn|pthread|dirent"
                            r"|immintrin|cpuid|arm_neon|dlfcn|fenv|pwd)\.h")

MAX_FUNCTION_LINES = 100
MAX_FILE_LINES = 1000
# Tables made by a script, named by file: they may be as long as they are.
GENERATED = set()

# A x.cc without x_test.cc beside it, and where it is tested instead.
TESTED_ELSEWHERE = {
    "src/model/gguf_keys.cc": "src/model/config_gguf_test.cc",
    "src/model/json_members.cc": "src/model/config_hf_test.cc",
    "src/model/hf_directory.cc": "tests/tiny/variants_test.cc and src/model/media_checkpoint_test.cc open directories",
    "src/model/hf_media_names.cc": "src/model/media_checkpoint_test.cc compares with the converter's names",
    "src/model/media_config.cc": "src/model/media_checkpoint_test.cc",
    "src/model/drafter_config.cc": "src/model/drafter_checkpoint_test.cc reads every form and each refusal",
    "src/model/drafter_names.cc": "src/model/drafter_checkpoint_test.cc: the same tensors from every spelling",
    "src/model/media_layout.cc": "src/model/media_checkpoint_test.cc compares both forms",
    "src/model/picture_patches.cc": "src/model/vision_tower_test.cc and vision_embedder_test.cc",
    "src/model/audio_weights.cc": "src/model/audio_tower_test.cc: every stage, from a directory and from a file",
    "src/model/clipped_linear.cc": "src/model/vision_tower_test.cc: the small tower clips",
    "src/server/api_choice.cc": "src/server/api_reply_test.cc",
    "src/server/api_fields.cc": "src/server/api_request_test.cc reads every field",
    "src/server/api_values.cc": "src/server/api_request_test.cc",
    "src/chat/json_check.cc": "src/chat/messages_test.cc shows all that is found",
    "src/jinja/compare.cc": "src/jinja/arithmetic_test.cc and value_test.cc",
    "src/jinja/evaluate.cc": "src/jinja/interpreter_test.cc, and by all tests of the language",
    "src/jinja/filters_text.cc": "src/jinja/filters_test.cc",
    "src/jinja/globals.cc": "src/jinja/filters_test.cc",
    "src/jinja/methods_text.cc": "src/jinja/methods_test.cc",
    "src/jinja/parser_expressions.cc": "src/jinja/parser_test.cc",
    "src/jinja/printing.cc": "src/jinja/arithmetic_test.cc",
    "src/jinja/tests_builtin.cc": "src/jinja/filters_test.cc",
    "src/jinja/text_format.cc": "src/jinja/methods_test.cc",
    "src/jinja/text_ops.cc": "src/jinja/methods_test.cc, through the methods of str",
    "src/jinja/unicode.cc": "src/jinja/methods_test.cc, through the methods of str",
    "src/compute/attention_avx2.cc": "src/compute/matmul_test.cc, ops_test.cc and attention_test.cc run all variants",
    "src/compute/attention_avx512.cc": "src/compute/attention_test.cc runs all variants",
    "src/compute/attention_kv.cc": "src/compute/attention_test.cc stores and reads all types",
    "src/compute/attention_scalar.cc": "src/compute/matmul_test.cc, ops_test.cc and attention_test.cc run all variants",
    "src/compute/dispatch.cc": "src/compute/matmul_test.cc, ops_test.cc and attention_test.cc run all variants",
    "src/compute/matmul_avx2.cc": "src/compute/matmul_test.cc, ops_test.cc and attention_test.cc run all variants",
    "src/compute/matmul_float_avx2.cc": "src/compute/matmul_test.cc runs all variants",
    "src/compute/matmul_avx512.cc": "src/compute/matmul_test.cc runs all variants",
    "src/compute/matmul_float_avx512.cc": "src/compute/matmul_test.cc runs all variants",
    "src/compute/matmul_unpacked_avx512.cc": "src/compute/matmul_test.cc runs all variants",
    "src/compute/matmul_packed_avx2.cc": "src/compute/matmul_test.cc runs all variants",
    "src/compute/matmul_packed_avxvnni.cc": "src/compute/matmul_test.cc runs all variants",
    "src/compute/matmul_scalar.cc": "src/compute/matmul_test.cc, ops_test.cc and attention_test.cc run all variants",
    "src/compute/matmul_unpacked_avx2.cc": "src/compute/matmul_test.cc runs all variants",
    "src/compute/rows_avx2.cc": "src/compute/matmul_test.cc, ops_test.cc and attention_test.cc run all variants",
    "src/compute/rows_scalar.cc": "src/compute/matmul_test.cc, ops_test.cc and attention_test.cc run all variants",
    "src/compute/attention_neon.cc": "src/compute/attention_test.cc runs all variants, under the preset neon",
    "src/compute/matmul_float_neon.cc": "src/compute/matmul_test.cc runs all variants, under the preset neon",
    "src/compute/matmul_packed_neon.cc": "src/compute/matmul_test.cc runs all variants, under the preset neon",
    "src/compute/matmul_unpacked_neon.cc": "src/compute/matmul_test.cc runs all variants, under the preset neon",
    "src/compute/rows_neon.cc": "src/compute/ops_test.cc runs all variants, under the preset neon",
    "src/server/http_connection.cc": "src/server/http_test.cc and http_hostile_test.cc, over the wire",
    "src/quant/codec_block32.cc": "src/quant/codec_test.cc runs all types",
    "src/quant/codec_grid.cc": "src/quant/codec_test.cc runs all types",
    "src/quant/codec_k.cc": "src/quant/codec_test.cc runs all types",
    "src/quant/codec_levels.cc": "src/quant/codec_test.cc runs all types",
    "src/quant/codec_plain.cc": "src/quant/codec_test.cc runs all types",
    "src/quant/encode_block.cc": "src/quant/encode_test.cc runs all types",
    "src/quant/encode_block32.cc": "src/quant/encode_test.cc runs all types",
    "src/quant/encode_k.cc": "src/quant/encode_test.cc runs all types",
    "src/quant/encode_table.cc": "src/quant/encode_test.cc runs all types",
    "src/quant/fit_groups.cc": "src/quant/encode_test.cc, by the types of 256 values",
    "src/quant/grids.cc": "src/quant/codec_test.cc, by the types that use them",
    "src/helper/whole_file.cc": "src/helper/container_test.cc, through the program",
    "src/app/encoders.cc": "tests/cli/media_test.cc, the program itself",
    "src/app/media_input.cc": "tests/cli/media_test.cc, the program itself",
    "src/app/prompt_maker.cc": "tests/cli/media_test.cc, the program itself",
    "src/app/batch_run.cc": "tests/cli/batch_test.cc, the program itself",
    "src/app/chat.cc": "tests/cli/chat_test.cc, in a terminal",
    "src/app/cmd_bench.cc": "tests/cli/bench_test.cc, the program itself",
    "src/app/cmd_check.cc": "tests/cli/check_test.cc, the program itself",
    "src/app/cmd_convert.cc": "tests/cli/convert_test.cc, the program itself",
    "src/app/cmd_imatrix.cc": "tests/cli/quantize_test.cc, the program itself",
    "src/app/cmd_inspect.cc": "tests/cli/inspect_test.cc, the program itself",
    "src/app/cmd_quantize.cc": "tests/cli/quantize_test.cc, the program itself",
    "src/app/cmd_perplexity.cc": "tests/cli/perplexity_test.cc, the program itself",
    "src/app/cmd_pull.cc": "tests/cli/pull_test.cc, the program itself",
    "src/app/cmd_run.cc": "tests/cli/cli_test.cc, the program itself",
    "src/app/cmd_serve.cc": "tests/cli/serve_test.cc, the program itself",
    "src/app/cmd_synth.cc": "tests/cli/synth_test.cc, the program itself",
    "src/app/cmd_tokenize.cc": "tests/cli/cli_test.cc, the program itself",
    "src/app/command_table.cc": "src/app/option_table_test.cc",
    "src/app/option_table_batch.cc": "src/app/option_table_test.cc",
    "src/app/option_table_bench.cc": "src/app/option_table_test.cc",
    "src/app/option_table_draft.cc": "src/app/option_table_test.cc",
    "src/app/option_table_files.cc": "src/app/option_table_test.cc",
    "src/app/option_table_media.cc": "src/app/option_table_test.cc",
    "src/app/option_table_serve.cc": "src/app/option_table_test.cc",
    "src/app/commands.cc": "tests/cli/cli_test.cc, the program itself",
    "src/app/measured_text.cc": "tests/cli, through facet perplexity and facet imatrix",
    "src/app/inspection_check.cc": "tests/cli/inspect_test.cc, on damaged files",
    "src/app/inspection_diff.cc": "tests/cli/inspect_test.cc, on pairs of files",
    "src/app/inspection_source.cc": "tests/cli/inspect_test.cc, on files of every kind",
    "src/app/inspection_text.cc": "src/app/inspection_test.cc and tests/cli/inspect_test.cc",
    "src/app/main.cc": "tests/cli/cli_test.cc, the program itself",
    "src/app/terminal_input.cc": "tests/cli/chat_test.cc, in a terminal",
    "src/helper/answer.cc": "src/helper/video_task_test.cc, through the program itself",
    "src/helper/main.cc": "src/helper/video_task_test.cc, the program itself",
    "src/helper/media_file.cc": "src/helper/container_test.cc, on every kind of file",
    "src/helper/packet_index.cc": "src/helper/video_task_test.cc, on clips with key frames and reordered frames",
    "src/app/window_runner.cc": "tests/cli/perplexity_test.cc, through the program itself",
    "src/engine/request.cc": "src/engine/engine_core_test.cc sees every finish reason, tests/cli their names",
    "src/server/generation.cc": "src/server/routes_test.cc, with replies under way",
    "src/model/checkpoint.cc": "tests/tiny, on whole checkpoints",
    "src/model/model.cc": "tests/tiny, on whole checkpoints",
    "src/model/text_model.cc": "tests/tiny, on whole checkpoints",
    "src/model/decoder_layers.cc": "tests/tiny, on whole checkpoints, and src/model/drafter_test.cc",
    "src/model/weights.cc": "tests/tiny, on whole checkpoints",
}

WORDS = [
    (re.compile(r"/wor[k]/|/roo[t]/|/far[m]\b|/home/\w+/"), "a path of one machine"),
    (re.compile(r"(?<!user-)(?<!user_)\b(sub-?)?agents?\b", re.I), "talk about who wrote it"),
    (re.compile(r"\b(this|an?|earlier|previous|last|other|another|my|our|coding) (coding )?session\b", re.I),
     "talk about who wrote it"),
    (re.compile(r"\b(co-authored-by|generated with)\b", re.I), "talk about who wrote it"),
]
# They spell out the words that they refuse.
WORDS_NAMED_IN = {"tools/check_tree.py", "tools/check_tree_test.py"}

CODE = (".cc", ".h", ".inc", ".S")
SCRIPTS = (".py", ".sh")


# --- the tree -------------------------------------------------------------------------------------------------------

class Tree:
    """The files under version control (all files, where there is no git), and the faults found in them."""

    def __init__(self, root):
        self.root = root
        self.paths = sorted(p for p in self._tracked() if os.path.isfile(os.path.join(root, p)))
        self.faults = []
        self._texts = {}
        self._codes = {}

    def _tracked(self):
        if os.path.exists(os.path.join(self.root, ".git")):
            try:
                out = subprocess.run(["git", "-C", self.root, "ls-files", "-z"], capture_output=True, check=True).stdout
                return [p for p in out.decode().split("\0") if p]
            except (OSError, subprocess.CalledProcessError):
                pass
        found = []
        for folder, folders, files in os.walk(self.root):
            folders[:] = [f for f in folders if f not in (".git", "__pycache__") and not f.startswith("build")]
            found += [os.path.relpath(os.path.join(folder, f), self.root) for f in files]
        return found

    def text(self, path):
        """The file's text, or None for data that is not text."""
        if path not in self._texts:
            with open(os.path.join(self.root, path), "rb") as file:
                data = file.read()
            try:
                self._texts[path] = None if b"\0" in data else data.decode()
            except UnicodeDecodeError:
                self._texts[path] = None
        return self._texts[path]

    def lines(self, path):
        return (self.text(path) or "").split("\n")

    def code(self, path):
        """The text with comments and the contents of literals blanked out; lines stay where they are."""
        if path not in self._codes:
            self._codes[path] = blank_comments_and_literals(self.text(path) or "")
        return self._codes[path]

    def sources(self, *endings):
        top = ("src/", "tests/", "fuzz/", "bench/", "tools/")
        return [p for p in self.paths if p.startswith(top) and p.endswith(endings)]

    def fault(self, path, line, rule, message):
        self.faults.append((path, line, f"{path}:{line}: {rule}: {message}"))


TOKEN = re.compile(r"""
    //[^\n]*                                                  # line comment
  | /\*.*?\*/                                                 # block comment
  | \b(?:u8|u|U|L)?R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)" # raw string
  | "(?:\\.|[^"\\\n])*"                                       # string
  | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'                       # character; not the separator in 1'000
""", re.S | re.X)


def blank_comments_and_literals(text):
    def blank(match):
        token = match.group(0)
        inside = re.sub(r"[^\n]", " ", token)
        if token.startswith(("//", "/*")) or len(token) < 2:
            return inside
        return token[0] + inside[1:-1] + token[-1] if token[-1] in "\"'" else inside
    return TOKEN.sub(blank, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def is_test(path):
    """Tests, and the fakes and readers that live beside them and are linked only into tests."""
    name = os.path.basename(path)
    return path.startswith("tests/") or bool(re.search(r"_test\.(cc|h)$", name)) or name.startswith(("test_", "fake_")) \
        or name.endswith("_testing.h")


# --- rules: includes ------------------------------------------------------------------------------------------------

def includes_of(tree, path):
    for number, line in enumerate(tree.lines(path), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match.group(1) == "<", match.group(2)


def allowed(target, row):
    return any(target == entry or target.startswith(entry + "/") for entry in row)


def check_includes(tree):
    """Own headers by the include table."""
    known = set(tree.paths)
    for path in tree.sources(".cc", ".h", ".inc"):
        for line, is_angle, target in includes_of(tree, path):
            if is_angle:
                continue
            if f"src/{target}" in known:
                check_layer(tree, path, line, target)
            elif f"tests/{target}" in known:
                if not is_test(path):
                    tree.fault(path, line, "include table", f"tests/{target} is for tests only")
            elif not (path.startswith(("fuzz/", "bench/")) and os.path.join(os.path.dirname(path), target) in known):
                tree.fault(path, line, "include table", f'"{target}" is no header of src/ or tests/; paths start there')


def check_layer(tree, path, line, target):
    if not path.startswith("src/"):
        return
    folder = path.split("/")[1]
    if folder not in MAY_INCLUDE:
        tree.fault(path, line, "include table", f"the folder {folder} has no row in the table")
        return
    row = MAY_INCLUDE[folder]
    if row is None:
        return
    if is_test(path):
        row = row + TESTS_MAY_INCLUDE.get(folder, [])
    if not allowed(target, row + [folder]):
        tree.fault(path, line, "include table", f"{folder} may include {' '.join(row) or 'nothing'}, not {target}")
    if is_test(target) and not is_test(path):
        tree.fault(path, line, "include table", f"{target} is for tests only")


def check_third_party(tree):
    users = {}
    for path in tree.sources(".cc", ".h", ".inc"):
        for line, is_angle, target in includes_of(tree, path):
            if not is_angle or target in STANDARD_HEADERS or SYSTEM_HEADERS.fullmatch(target):
                continue
            for pattern, places, limit, said in THIRD_PARTY:
                if re.match(pattern, target):
                    if not re.fullmatch(places, path):
                        tree.fault(path, line, "third party", f"<{target}> may be included in {said} only")
                    elif limit is not None:
                        users.setdefault((pattern, os.path.dirname(path), limit, said), {})[path] = (line, target)
                    break
            else:
                tree.fault(path, line, "third party", f"<{target}> is in no table of this check")
    for (_, _, limit, said), files in users.items():
        for path, (line, target) in sorted(files.items())[limit:]:
            first = sorted(files)[0]
            tree.fault(path, line, "third party", f"<{target}> may be included in {said} only, and {first} has it")


# --- rules: size ----------------------------------------------------------------------------------------------------

def check_file_length(tree):
    for path in tree.sources(*CODE, *SCRIPTS):
        n_lines = tree.text(path).count("\n") if tree.text(path) is not None else 0
        if n_lines > MAX_FILE_LINES and path not in GENERATED:
            tree.fault(path, 1, "file length", f"{n_lines} lines, at most {MAX_FILE_LINES}")


def functions_of(code):
    """(first line, last line) of each function body at namespace or class level."""
    code = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), code, flags=re.M)
    position = start = 0  # start: where the declaration that is being read begins
    while position < len(code):
        char = code[position]
        if char in ";}":
            start = position + 1
        elif char == "(":
            position = matching(code, position, "()")
        elif char == "{":
            head = code[start:position].strip()
            if is_scope(head):
                start = position + 1
            else:
                end = matching(code, position, "{}")
                if is_body(head):
                    label = re.match(r"\s*(?:(?:public|private|protected)\s*:\s*)*", code[start:position])
                    yield line_of(code, start + label.end()), line_of(code, end)
                    start = end + 1
                position = end
        position += 1


def matching(code, position, pair):
    depth = 0
    for at in range(position, len(code)):
        if code[at] == pair[0]:
            depth += 1
        elif code[at] == pair[1]:
            depth -= 1
            if depth == 0:
                return at
    return len(code) - 1


def is_scope(head):
    """Whether a brace after this text opens a namespace or a class, in which functions are looked for."""
    head = re.sub(r"\b(public|private|protected)\s*:(?!:)", " ", head)
    head = re.sub(r"template\s*<[^{};]*?>\s*(?=(class|struct|union)\b)", "", head)
    if re.search(r"\bnamespace\b", head) or re.search(r'\bextern\s*"[^"]*"$', head):
        return True
    return bool(re.search(r"\b(class|struct|union)\b", head)) and ")" not in head and "=" not in head


def is_body(head):
    """Whether a brace after this text opens the body of a function, not an initialiser or an enum."""
    if ")" not in head or re.search(r"=\s*$|=\s*[\w:<>, ]+$", head) or re.match(r"\s*enum\b", head):
        return False
    member_initialisers = re.search(r"\)\s*(noexcept\s*)?:(?!:)", head)
    return not (member_initialisers and re.search(r"\w\s*$", head))


def check_function_length(tree):
    for path in tree.sources(".cc", ".h"):
        if path in GENERATED:
            continue
        for first, last in functions_of(tree.code(path)):
            n_lines = last - first + 1
            if n_lines > MAX_FUNCTION_LINES:
                tree.fault(path, first, "function length", f"{n_lines} lines, at most {MAX_FUNCTION_LINES}")


# --- rules: names ---------------------------------------------------------------------------------------------------

NAMESPACE = re.compile(r"namespace(?: ([\w:]+))? \{$")
TYPE = re.compile(r"(?:struct|class|union|enum|enum class) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: : .*)? ?\{")


def types_of(lines):
    """(line, qualified name) of each type at namespace level; those of a nameless namespace are a file's own."""
    namespaces = []
    for number, line in enumerate(lines, 1):
        opened = NAMESPACE.match(line)
        named = TYPE.match(line)
        if opened:
            namespaces.append(opened.group(1))
        elif line.startswith("}  // namespace") and namespaces:
            namespaces.pop()
        elif named and None not in namespaces:
            yield number, "::".join([*namespaces, named.group(1)])


def check_one_definition(tree):
    """Two types of one name in one program are undefined behaviour that no linker tells."""
    first = {}
    for path in tree.sources(".h", ".cc"):
        if not path.startswith("src/"):
            continue
        for number, name in types_of(tree.lines(path)):
            if name in first:
                tree.fault(path, number, "one definition", f"{name} is defined in {first[name]} too")
            first.setdefault(name, path)


# --- rules: what is never written -----------------------------------------------------------------------------------

def check_calls(tree):
    for path in tree.sources(".cc", ".h", ".inc"):
        code = tree.code(path)
        if not path.startswith(("src/app/", "tests/")):
            for match in re.finditer(r"\b(secure_)?getenv\b|\benviron\b", code):
                tree.fault(path, line_of(code, match.start()), "getenv",
                           "the environment is read in src/app and in tests only")
        if path.startswith("src/"):
            for match in re.finditer(r"\bthrow\b", code):
                tree.fault(path, line_of(code, match.start()), "throw", "failure is a Result or a Status")


def check_todo(tree):
    for path in tree.sources(*CODE, *SCRIPTS):
        for number, line in enumerate(tree.lines(path), 1):
            if re.search(r"(//|#)\s*(TODO|FIXME|XXX)\b(?!\S*\s*\(?#\d)", line):
                tree.fault(path, number, "todo", "without the number of an issue: TODO #12")


def check_license_line(tree):
    for path in tree.sources(*CODE, *SCRIPTS) + [p for p in (".ci/run", "dev") if p in tree.paths]:
        lines = tree.lines(path)
        if lines[0].startswith("#!"):
            lines = lines[1:]
        mark = "//" if path.endswith(CODE) else "#"
        if not lines or lines[0] != f"{mark} SPDX-License-Identifier: Apache-2.0":
            tree.fault(path, 1, "license", f'the first line is "{mark} SPDX-License-Identifier: Apache-2.0"')


def check_words(tree):
    for path in tree.paths:
        if path.startswith(("testdata/", "fuzz/corpus/")) or path in WORDS_NAMED_IN or tree.text(path) is None:
            continue
        for number, line in enumerate(tree.lines(path), 1):
            for pattern, message in WORDS:
                match = pattern.search(line)
                if match:
                    tree.fault(path, number, "words", f'"{match.group(0)}": {message}')


# --- rules: nothing forgotten ---------------------------------------------------------------------------------------

def check_tests(tree):
    known = set(tree.paths)
    for path in tree.sources(".cc"):
        if not path.startswith("src/") or is_test(path):
            continue
        has_test = path[:-len(".cc")] + "_test.cc" in known
        if not has_test and path not in TESTED_ELSEWHERE:
            tree.fault(path, 1, "test", "no _test.cc beside it (TESTED_ELSEWHERE in tools/check_tree.py has exceptions)")
        if has_test and path in TESTED_ELSEWHERE:
            tree.fault(path, 1, "test", "has a _test.cc now: take it out of TESTED_ELSEWHERE")
    for path in TESTED_ELSEWHERE:
        if path not in known and tree.root == own_root():
            tree.fault("tools/check_tree.py", 1, "test", f"TESTED_ELSEWHERE names {path}, which is not there")


def check_built(tree):
    """A source must be named by a CMakeLists.txt at or above it, or be globbed in its folder; a header be included."""
    known = set(tree.paths)
    for path in tree.sources(".cc", ".S"):
        if not is_built(tree, known, path):
            tree.fault(path, 1, "dead file", "built by no CMakeLists.txt")
    included = {target for path in tree.sources(".cc", ".h", ".inc") for _, _, target in includes_of(tree, path)}
    for path in tree.sources(".h", ".inc"):
        names = {path.split("/", 1)[1], os.path.basename(path)}
        if not names & included:
            tree.fault(path, 1, "dead file", "included by no file")


def is_built(tree, known, path):
    folder, name = os.path.split(path)
    recipe = f"{folder}/CMakeLists.txt"
    if recipe not in known:
        return False
    parent = os.path.dirname(folder)
    while parent and f"{parent}/CMakeLists.txt" not in known:
        parent = os.path.dirname(parent)
    above = tree.text(os.path.join(parent, "CMakeLists.txt") if parent else "CMakeLists.txt") or ""
    if not re.search(rf"add_subdirectory\({re.escape(os.path.relpath(folder, parent or '.'))}\)", above):
        return False
    text = re.sub(r"#[^\n]*", "", tree.text(recipe))
    if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", re.sub(r"EXCLUDE[^)]*", "", text)):
        return True
    for pattern in re.findall(r"GLOB[^)]*?/([\w*.]+)\)", text):
        if re.fullmatch(pattern.replace(".", r"\.").replace("*", ".*"), name):
            return True
    excluded = " ".join(re.findall(r"EXCLUDE([^)]*?)(?:DEPS|LABELS|\))", text))
    return "facet_library(" in text and name not in excluded.split()


RULES = [check_includes, check_third_party, check_file_length, check_function_length, check_one_definition, check_calls,
         check_todo, check_license_line, check_words, check_tests, check_built]


def own_root():
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main(arguments):
    tree = Tree(os.path.abspath(arguments[0]) if arguments else own_root())
    for rule in RULES:
        rule(tree)
    for _, _, message in sorted(tree.faults):
        print(message)
    print(f"{len(tree.paths)} files, {len(tree.faults)} faults", file=sys.stderr)
    return 1 if tree.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
