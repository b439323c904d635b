#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_server.py with servers that only pretend: what it asks them for, and what it makes of their answers."""
import contextlib
import io
import json
import os
import stat
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # a test leaves nothing in the source tree
import bench_server

# Streams max_tokens words at once, or one less if the model's name says so; a token is a word or a control token.
SERVER = """#!/usr/bin/env python3
import http.server, json, os, re, sys
if "--version" in sys.argv:
    print("version: 0 (build 1, commit abcdef0)")
    sys.exit()
log = open(os.path.join(os.path.dirname(sys.argv[0]), "log"), "a")
print(os.path.basename(sys.argv[0]), *sys.argv[1:], file=log, flush=True)
short = "short" in sys.argv[sys.argv.index("-m") + 1]

class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, text):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        self.answer("{}")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        print(self.path, json.dumps(body), file=log, flush=True)
        if self.path == "/tokenize":
            tokens = re.findall("<[^>]*>|[^ <]+", body["content"])
            return self.answer(json.dumps({"tokens": list(range(len(tokens)))}))
        if not body.get("stream"):
            return self.answer("{}")
        n = body["max_tokens"] - short
        chunks = [{"choices": [{"delta": {"role": "assistant"}}]}] + [{"choices": [{"delta": {"content": "word "}}]}] * n
        chunks.append({"choices": [], "usage": {"completion_tokens": n, "prompt_tokens": 9}})
        self.answer("".join(f"data: {json.dumps(chunk)}\\n\\n" for chunk in chunks) + "data: [DONE]\\n\\n")

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler).serve_forever()
"""


class BenchServer(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in ("facet", "llama-server"):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(SERVER)
            os.chmod(self.path(name), stat.S_IRWXU)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_tool(self, *arguments, model="model.gguf"):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = bench_server.main(["--facet", self.path("facet"), "--peer", self.path("llama-server"), "--model", model,
                                      "--prompt-tokens", "10", "--tokens", "3", *arguments])
        return code, out.getvalue(), err.getvalue()

    def logged(self):
        with open(self.path("log"), encoding="utf-8") as file:
            return file.read().splitlines()

    def test_servers_start_fresh_and_in_turn(self):
        code, out, err = self.run_tool("--clients", "1,2", "--runs", "2", "--json", self.path("results"))
        self.assertEqual((code, err.count("facet\n")), (0, 4), err)
        starts = [line.split()[0] for line in self.logged() if line.startswith(("facet", "llama"))]
        self.assertEqual(starts, ["facet", "llama-server", "llama-server", "facet"] * 2)
        self.assertIn("model.gguf, 2 threads, replies of 3 tokens", out)
        self.assertIn("commit abcdef0", out)
        self.assertEqual(out.count("| 1 | "), 4)
        self.assertEqual(out.count("| 2 | "), 4)
        with open(self.path("results"), encoding="utf-8") as file:
            self.assertEqual([case["clients"] for case in json.load(file)["cases"]], [1, 2])

    def test_questions_differ_and_the_system_prompt_does_not(self):
        self.run_tool("--clients", "2", "--runs", "1")
        bodies = [json.loads(line.split(" ", 1)[1]) for line in self.logged() if line.startswith("/v1") and '"stream": true' in line]
        self.assertEqual(len(bodies), 8)  # two servers, two phases, two clients
        self.assertEqual(len({body["messages"][0]["content"] for body in bodies}), 1)
        self.assertEqual(len({body["messages"][1]["content"] for body in bodies}), 4)
        self.assertEqual(len(bodies[0]["messages"][0]["content"].split()), 10)
        self.assertEqual([("logit_bias" in body, "ignore_eos" in body) for body in bodies], [(True, False)] * 4 + [(False, True)] * 4)

    def test_a_short_reply_is_an_error(self):
        code, _, err = self.run_tool("--clients", "1", "--runs", "1", model="short")
        self.assertEqual(code, 1)
        self.assertIn("facet: replies of [2] tokens, wanted 3 each", err)

    def test_ratios_are_in_favour_of_facet(self):
        runs = [{name: {"fresh": {"first_token_s": seconds, "tokens_per_second": rate}}
                 for name, seconds, rate in (("facet", 1, 30), ("llama-server", 5, 10))}]
        self.assertEqual(bench_server.compare(runs, "fresh", "first_token_s")["ratio"]["median"], 5)
        self.assertEqual(bench_server.compare(runs, "fresh", "tokens_per_second")["ratio"]["median"], 3)


if __name__ == "__main__":
    unittest.main()
