#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each rule of check_tree.py must fire on a small made-up tree that breaks it, and keep silent on one that does not."""
import contextlib
import io
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # a test leaves nothing in the source tree
import check_tree

LICENSE = "// SPDX-License-Identifier: Apache-2.0\n"


def library(folder):
    return {f"src/{folder}/CMakeLists.txt": f"facet_library({folder} DEPS facet_base)\n"}


def tree_with(files):
    """A tree without faults: base/a with its test, included by app/main; and `files` on top."""
    folders = ("base", "format", "jinja", "kv", "model", "engine", "app")
    tree = {"CMakeLists.txt": "".join(f"add_subdirectory(src/{f})\n" for f in folders)}
    for folder in folders:
        tree.update(library(folder))
    tree["src/base/a.h"] = LICENSE
    tree["src/base/a.cc"] = LICENSE + '#include "base/a.h"\n#include <vector>\n#include <fmt/format.h>\n'
    tree["src/base/a_test.cc"] = LICENSE + '#include "base/a.h"\n#include <gtest/gtest.h>\n'
    tree["src/app/a.cc"] = LICENSE + '#include "base/a.h"\nconst char* home = getenv("HOME");\n'
    tree["src/app/a_test.cc"] = LICENSE
    tree.update(files)
    return tree


class CheckTreeTest(unittest.TestCase):
    def run_check(self, files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in tree_with(files).items():
                if text is None:
                    continue
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            output = io.StringIO()
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
                status = check_tree.main([root])
        faults = output.getvalue().splitlines()
        self.assertEqual(status, 1 if faults else 0)
        return faults

    def assert_clean(self, files):
        self.assertEqual(self.run_check(files), [])

    def assert_faults(self, files, *wanted):
        self.assertEqual(self.run_check(files), list(wanted))

    def unit(self, path, body="", header=None):
        """A .cc with its test, and a header that it includes."""
        stem = path[:-len(".cc")]
        files = {path: LICENSE + body, f"{stem}_test.cc": LICENSE}
        if header is not None:
            name = stem[len("src/"):] + ".h"
            files[stem + ".h"] = LICENSE + header
            files[path] = LICENSE + f'#include "{name}"\n' + body
        return files

    def test_a_good_tree_has_no_faults(self):
        self.assert_clean({})

    def test_include_table(self):
        self.assert_faults(self.unit("src/base/b.cc", '#include "jinja/j.h"\n') | {"src/jinja/j.h": LICENSE},
                           "src/base/b.cc:2: include table: base may include nothing, not jinja/j.h")
        self.assert_faults(self.unit("src/engine/e.cc", '#include "model/batch.h"\n\n#include "model/weights.h"\n')
                           | {"src/model/batch.h": LICENSE, "src/model/weights.h": LICENSE},
                           "src/engine/e.cc:4: include table: engine may include base kv media/media_item.h model/batch.h "
                           "model/runner.h, not model/weights.h")
        self.assert_clean(self.unit("src/app/x.cc", '#include "model/weights.h"\n') | {"src/model/weights.h": LICENSE})

    def test_include_paths_start_at_src(self):
        self.assert_faults(self.unit("src/base/b.cc", '#include "../base/a.h"\n'),
                           'src/base/b.cc:2: include table: "../base/a.h" is no header of src/ or tests/; '
                           'paths start there')

    def test_a_new_folder_needs_a_row(self):
        files = self.unit("src/extra/e.cc", '#include "base/a.h"\n') | library("extra")
        files["CMakeLists.txt"] = tree_with({})["CMakeLists.txt"] + "add_subdirectory(src/extra)\n"
        self.assert_faults(files, "src/extra/e.cc:2: include table: the folder extra has no row in the table")

    def test_only_tests_include_test_support(self):
        support = {"tests/support/testing.h": LICENSE, "src/base/fake_a.h": LICENSE}
        use = '#include "support/testing.h"\n#include "base/fake_a.h"\n'
        self.assert_clean(support | {"src/base/a_test.cc": LICENSE + use})
        self.assert_faults(support | self.unit("src/base/b.cc", use),
                           "src/base/b.cc:2: include table: tests/support/testing.h is for tests only",
                           "src/base/b.cc:3: include table: base/fake_a.h is for tests only")

    def test_third_party_headers_have_their_place(self):
        self.assert_clean(self.unit("src/base/json.cc", "#include <nlohmann/json.hpp>\n"))
        self.assert_faults(self.unit("src/base/b.cc", "#include <nlohmann/json.hpp>\n"),
                           "src/base/b.cc:2: third party: <nlohmann/json.hpp> may be included in src/base/json.cc only")
        self.assert_faults(self.unit("src/base/b.cc", header="#include <fmt/format.h>\n"),
                           "src/base/b.h:2: third party: <fmt/format.h> may be included in .cc files only")
        self.assert_faults(self.unit("src/base/b.cc", "#include <gmock/gmock.h>\n"),
                           "src/base/b.cc:2: third party: <gmock/gmock.h> may be included in tests only")
        self.assert_faults(self.unit("src/base/b.cc", "#include <benchmark/benchmark.h>\n"),
                           "src/base/b.cc:2: third party: <benchmark/benchmark.h> may be included in bench/ only")
        self.assert_faults(self.unit("src/base/b.cc", "#include <zstd.h>\n"),
                           "src/base/b.cc:2: third party: <zstd.h> is in no table of this check")
        self.assert_faults(self.unit("src/base/b.cc", "#include <ranges>\n"),
                           "src/base/b.cc:2: third party: <ranges> is in no table of this check")

    def test_a_wrapped_library_has_one_user(self):
        one = self.unit("src/app/cli.cc", "#include <CLI/CLI.hpp>\n")
        self.assert_clean(one)
        self.assert_faults(one | self.unit("src/app/other.cc", "#include <CLI/CLI.hpp>\n"),
                           "src/app/other.cc:2: third party: <CLI/CLI.hpp> may be included in one .cc of src/app only, "
                           "and src/app/cli.cc has it")
        self.assert_faults(self.unit("src/kv/u.cc", "#include <utf8proc.h>\n"),
                           "src/kv/u.cc:2: third party: <utf8proc.h> may be included in one .cc of src/jinja and one of "
                           "src/app only")

    def test_file_length(self):
        self.assert_clean(self.unit("src/base/b.cc", "\n" * 999))
        self.assert_faults(self.unit("src/base/b.cc", "\n" * 1000),
                           "src/base/b.cc:1: file length: 1001 lines, at most 1000")

    def function(self, head, n_lines, tail="}\n"):
        return head + "\n" + "  Call(\"}\");  // }\n" * (n_lines - 2) + tail

    def test_function_length(self):
        for head in ("int F(int a) {", "Foo::Foo(int a) : a_(a), b_{a}, c_{} {", "auto F() -> std::vector<int> {",
                     "template <typename T>\nT F(T a) noexcept {", "bool operator==(const A& a, const A& b) {",
                     "const auto kF = [](int a) {", "struct A { int x() const { return 1; }\nint F() const override {",
                     "namespace a::b {\nenum class E { kA };\nclass A final : public B<C> {\npublic:\nvoid F() {"):
            above = head.count("\n")
            own = 1 + (1 if head.startswith("template") else 0)
            good = self.function(head, 100 - own + 1)
            self.assert_clean(self.unit("src/base/b.cc", good))
            line = 2 + (0 if head.startswith("template") else above)
            self.assert_faults(self.unit("src/base/b.cc", self.function(head, 101 - own + 1)),
                               f"src/base/b.cc:{line}: function length: 101 lines, at most 100")

    def test_long_tables_and_classes_are_no_functions(self):
        for head in ("constexpr int kTable[] = {", "enum class E : int {", "class A : public B {", "namespace a {",
                     "constexpr std::array<int, F(3)> kA = {"):
            self.assert_clean(self.unit("src/base/b.cc", head + "\n" * 200 + "};\n"))

    def test_one_definition(self):
        piece = "namespace facet {\nstruct Piece {\n  int a;\n};\n}  // namespace facet\n"
        own = "namespace facet {\nnamespace {\nstruct Piece {\n};\n}  // namespace\n}  // namespace facet\n"
        other = "namespace facet::testing {\nclass Piece final : public Part {\n};\n}  // namespace facet::testing\n"
        self.assert_clean({**self.unit("src/base/b.cc", piece), **self.unit("src/kv/c.cc", own)})
        self.assert_clean({**self.unit("src/base/b.cc", piece), **self.unit("src/kv/c.cc", other)})
        self.assert_faults({**self.unit("src/base/b.cc", piece), **self.unit("src/kv/c.cc", own + piece)},
                           "src/kv/c.cc:9: one definition: facet::Piece is defined in src/base/b.cc too")

    def test_getenv(self):
        self.assert_faults(self.unit("src/base/b.cc", 'int x;\nauto* home = std::getenv("HOME");\n'),
                           "src/base/b.cc:3: getenv: the environment is read in src/app and in tests only")
        self.assert_clean(self.unit("src/base/b.cc", '// no getenv here\nauto* s = "getenv";\n'))

    def test_throw(self):
        self.assert_faults(self.unit("src/app/b.cc", "void F() { throw 1; }\n"),
                           "src/app/b.cc:2: throw: failure is a Result or a Status")
        self.assert_clean(self.unit("src/app/b.cc", '/* they\n throw */\nauto s = R"(throw)";\n'))

    def test_todo_needs_a_number(self):
        todo = "TO" + "DO"
        self.assert_faults(self.unit("src/base/b.cc", f"int x;  // {todo}: later\n"),
                           "src/base/b.cc:2: todo: without the number of an issue: TODO #12")
        self.assert_faults({"tools/x.py": f"# SPDX-License-Identifier: Apache-2.0\n# {todo} later\n"},
                           "tools/x.py:2: todo: without the number of an issue: TODO #12")
        self.assert_clean(self.unit("src/base/b.cc", f"// {todo} #12: later\n// {todo}(#13): later\n"))

    def test_license_line(self):
        self.assert_faults({"src/base/a.h": "#pragma once\n"},
                           'src/base/a.h:1: license: the first line is "// SPDX-License-Identifier: Apache-2.0"')
        self.assert_faults({"tools/x.sh": "#!/bin/sh\necho\n"},
                           'tools/x.sh:1: license: the first line is "# SPDX-License-Identifier: Apache-2.0"')
        self.assert_clean({"tools/x.sh": "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"})

    def test_words(self):
        self.assert_faults({"README.md": "Text\nsee /wor" + "k/shared\n"},
                           'README.md:2: words: "/wor' + 'k/": a path of one machine')
        self.assert_faults({"README.md": "An earlier sess" + "ion wrote this.\n"},
                           'README.md:1: words: "earlier session": talk about who wrote it')
        self.assert_faults({"README.md": "The ag" + "ent\n"}, 'README.md:1: words: "agent": talk about who wrote it')
        self.assert_clean({"README.md": "User-Ag" + "ent: x\n", "testdata/chat.json": "the ag" + "ent\n"})

    def test_each_source_has_a_test(self):
        message = "no _test.cc beside it (TESTED_ELSEWHERE in tools/check_tree.py has exceptions)"
        self.assert_faults({"src/base/b.cc": LICENSE}, f"src/base/b.cc:1: test: {message}")
        self.assert_clean({"src/base/fake_b.cc": LICENSE})

    def test_dead_files(self):
        self.assert_faults({"src/base/b.h": LICENSE}, "src/base/b.h:1: dead file: included by no file")
        dead = "dead file: built by no CMakeLists.txt"
        self.assert_faults({"tests/x_test.cc": LICENSE}, f"tests/x_test.cc:1: {dead}")
        recipe = "facet_library(base EXCLUDE b.cc LABELS unit)\n"
        excluded = self.unit("src/base/b.cc") | {"src/base/CMakeLists.txt": recipe}
        self.assert_faults(excluded, f"src/base/b.cc:1: {dead}")
        self.assert_clean(excluded | {"src/base/CMakeLists.txt": recipe + "add_executable(x b.cc)\n"})
        fuzz = {"fuzz/CMakeLists.txt": "file(GLOB targets CONFIGURE_DEPENDS ${X}/fuzz_*.cc)\n",
                "CMakeLists.txt": tree_with({})["CMakeLists.txt"] + "add_subdirectory(fuzz)\n"}
        self.assert_clean(fuzz | {"fuzz/fuzz_a.cc": LICENSE})
        self.assert_faults(fuzz | {"fuzz/other.cc": LICENSE}, f"fuzz/other.cc:1: {dead}")
        unreached = self.unit("src/base/b.cc") | {"CMakeLists.txt": ""}
        self.assertIn(f"src/base/b.cc:1: {dead}", self.run_check(unreached))


if __name__ == "__main__":
    unittest.main()
