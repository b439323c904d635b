#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_peer.py with programs that only pretend: what it asks them for, and what it makes of their answers."""
import contextlib
import io
import json
import os
import stat
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # a test leaves nothing in the source tree
import bench_peer

# Each program logs its arguments; every rate of the peer is 10, of facet 10 times the number of its run.
FACET = """#!/usr/bin/env python3
import json, os, sys
log = os.path.join(os.path.dirname(sys.argv[0]), "log")
with open(log, "a") as file:
    file.write("facet " + " ".join(sys.argv[1:]) + "\\n")
n = sum(line.startswith("facet bench") for line in open(log))
if sys.argv[1] == "synth":
    open(sys.argv[-1], "w").close()
elif sys.argv[1] == "inspect":
    print(json.dumps({"compute": {"threads": 3}}))
else:
    cases = [("prefill", 512, 1), ("prefill", 2048, 1), ("decode", 0, 1), ("decode", 0, 8)]
    print(json.dumps({"machine": {"cpu": "Test", "cores": 2, "memory_bytes": 8e9, "read_bytes_per_second": 20e9,
                                  "operations_per_second": 500e9},
                      "isa": "scalar", "threads": 3, "packed": True, "load_seconds": 1,
                      "results": [{"kind": kind, "n_prompt": prompt, "parallel": parallel, "limit": "memory",
                                   "share_of_limit": 0.5, "tokens_per_second": {"median": 10.0 * n}}
                                  for kind, prompt, parallel in cases]}))
"""
LLAMA_BENCH = """#!/usr/bin/env python3
import json, os, sys
with open(os.path.join(os.path.dirname(sys.argv[0]), "log"), "a") as file:
    file.write("llama-bench " + " ".join(sys.argv[1:]) + "\\n")
prompts = [int(n) for n in sys.argv[sys.argv.index("-p") + 1].split(",")]
print(json.dumps([{"n_prompt": n, "avg_ts": 10.0, "build_commit": "abc", "n_threads": 3} for n in prompts]))
"""
LLAMA_BATCHED = """#!/usr/bin/env python3
import os, sys
with open(os.path.join(os.path.dirname(sys.argv[0]), "log"), "a") as file:
    file.write("llama-batched-bench " + " ".join(sys.argv[1:]) + "\\n")
print("a line for people")
print('{"pl": 8, "speed_tg": 10.0}')
"""


class BenchPeer(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for name, text in (("facet", FACET), ("llama-bench", LLAMA_BENCH), ("llama-batched-bench", LLAMA_BATCHED)):
            self.write(name, text)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), os.stat(self.path(name)).st_mode | stat.S_IXUSR)

    def run_it(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = bench_peer.main(["--peer", self.folder.name, "--facet", self.path("facet"), "--out", self.path("out"),
                                    *arguments])
        return code, out.getvalue(), err.getvalue()

    def test_runs_both_in_turn_and_compares(self):
        code, out, _ = self.run_it("--runs", "3", "--shapes", "e2b:6/q4_0", "--settings", "matched")
        self.assertEqual(code, 0)
        self.assertIn("| e2b:6 q4_0 | decode, 8 together | 20.0 (10.0 to 30.0) | 10.0 (10.0 to 10.0) | 2.00 (1.00 to 3.00) "
                      "| 50 % memory |", out)
        self.assertIn("Runs of each: 3.", out)
        with open(self.path("log"), encoding="utf-8") as file:
            log = [line.split()[:2] for line in file]
        peer = ["llama-bench", "llama-bench", "llama-batched-bench"]
        self.assertEqual([words[0] for words in log], ["facet", "facet", "facet"] + peer + peer + ["facet", "facet"] + peer)
        self.assertEqual([words[1] for words in log[:3]], ["inspect", "synth", "bench"])

    def test_removes_what_it_made_and_keeps_what_was_there(self):
        self.run_it("--runs", "1", "--shapes", "e2b:6/q4_0,e4b/q8_0", "--settings", "default")
        self.assertEqual(os.listdir(self.path("out")), ["results.json"])
        with open(self.path("out/results.json"), encoding="utf-8") as file:
            results = json.load(file)
        self.assertEqual([c["shape"] for c in results["checkpoints"]], ["e2b:6", "e4b"])
        self.assertEqual(results["checkpoints"][0]["settings"]["default"]["works"]["decode"]["runs"]["peer"], [10.0])
        with open(self.path("out/e4b-q8_0.gguf"), "w", encoding="utf-8"):
            pass
        self.run_it("--runs", "1", "--shapes", "e4b/q8_0", "--settings", "default")
        self.assertIn("e4b-q8_0.gguf", os.listdir(self.path("out")))

    def test_gives_threads_only_in_the_matched_setting(self):
        self.run_it("--runs", "1", "--shapes", "e2b/q4_0")
        with open(self.path("log"), encoding="utf-8") as file:
            runs = [line for line in file if not line.startswith(("facet inspect", "facet synth"))]
        self.assertEqual([" -t 3 " in line for line in runs], [True] * 4 + [False] * 4)

    def test_tells_who_failed(self):
        self.write("llama-bench", "#!/bin/sh\necho no such type >&2\nexit 3\n")
        code, out, err = self.run_it("--runs", "1", "--shapes", "e2b/q4_0")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("llama-bench", err)
        self.assertTrue(err.endswith("exit code 3\nno such type\n\n"), err)
        self.assertEqual(os.listdir(self.path("out")), [])

    def test_writes_between_the_markers_only(self):
        document = "before\n<!-- bench_peer: begin -->\nold\n<!-- bench_peer: end -->\nafter\n"
        self.assertEqual(bench_peer.replace_between_markers(document, "new\n"),
                         "before\n<!-- bench_peer: begin -->\n\nnew\n\n<!-- bench_peer: end -->\nafter\n")
        with self.assertRaises(bench_peer.Failure):
            bench_peer.replace_between_markers("no markers", "new\n")


if __name__ == "__main__":
    unittest.main()
