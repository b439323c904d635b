#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`facet serve` beside llama.cpp's llama-server on the same GGUF file: streaming clients that share a long system prompt
and ask different questions. Prints medians, spread and ratios as a table for docs/performance.md.

Each server is started fresh, in turn, for each number of clients and each run. The clients begin at the same time, twice:
  fresh   nobody has sent the system prompt before
  warm    the same system prompt, other questions
Told of both are the time to the first token (median of the clients) and the tokens per second of all clients together,
from the start of the first to the end of the last.

Both servers get the same threads, room for keys and values (f16) and number of replies at a time, and draw with the same
settings. All replies have the same length: llama-server is told to ignore the tokens that end a reply, Facet never to
draw them (a logit bias; it has no such switch). Temperature 1 keeps random weights from repeating themselves."""
import argparse
import concurrent.futures
import http.client
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from bench_peer import Failure, say, shown, spread

START_SECONDS = 600
WORDS = ("time year people way day man thing woman life child world school state family student group country problem hand part "
         "place case week company system program question work government number night point home water room mother area money "
         "story fact month lot right study book eye job word business issue side kind head house service friend father power").split()
ENDS = ["<eos>", "<turn|>", "<|tool_response>"]
DRAW = {"temperature": 1.0, "top_k": 40, "top_p": 0.95, "min_p": 0.0}
MEASURES = [("fresh", "first_token_s", "time to first token, fresh prompt, s"),
            ("warm", "first_token_s", "time to first token, warm system prompt, s"),
            ("fresh", "tokens_per_second", "tokens/s, fresh prompt"),
            ("warm", "tokens_per_second", "tokens/s, warm system prompt")]


# --- servers --------------------------------------------------------------------------------------------------------

class Server:
    """One running server; a context, so that it ends with what it was started for."""

    def __init__(self, name, command, port):
        self.name, self.port = name, port
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)

    def __enter__(self):
        deadline = time.monotonic() + START_SECONDS
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise self.failure("does not answer /health")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def is_ready(self):
        try:
            return self.ask("GET", "/health").status == 200
        except OSError:
            return False

    def failure(self, what):
        self.log.seek(0)
        return Failure(f"{self.name}: {what}\n{self.log.read()[-2000:]}")

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=3600)
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
        return connection.getresponse()

    def ask_json(self, path, body):
        response = self.ask("POST", path, body)
        text = response.read()
        if response.status != 200:
            raise self.failure(f"{path}: {response.status} {text[:500]}")
        return json.loads(text)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start_facet(options):
    port = free_port()
    # Facet's memory is that of four whole contexts, which all replies share.
    return Server("facet", [options.facet, "serve", "-m", options.model, "--port", str(port), "-t", str(options.threads),
                            "--ctx-size", str(options.context // 4), "--parallel", str(options.parallel), "--kv-type", "f16"], port)


def start_peer(options):
    port = free_port()
    return Server("llama-server", [options.peer, "-m", options.model, "--port", str(port), "-t", str(options.threads), "-tb",
                                   str(options.threads), "-c", str(options.context), "-np", str(options.parallel), "-ctk", "f16",
                                   "-ctv", "f16", "--no-ui"], port)


# --- clients --------------------------------------------------------------------------------------------------------

def some_words(seed, n):
    generator = random.Random(seed)
    return " ".join(generator.choice(WORDS) for _ in range(n))


def system_prompt(server, n_tokens, seed):
    """Words that are `n_tokens` tokens to the server's tokenizer."""
    text = some_words(seed, n_tokens)
    n = len(server.ask_json("/tokenize", {"content": text})["tokens"])
    words = text.split(" ")
    return " ".join(words[:max(1, len(words) * n_tokens // n)])


def never_ending(server):
    """The fields that keep a reply from ending before its limit."""
    if server.name != "facet":
        return {"ignore_eos": True}
    tokens = server.ask_json("/tokenize", {"content": "".join(ENDS), "parse_special": True})["tokens"]
    if len(tokens) != len(ENDS):
        raise server.failure(f"{ENDS} are {tokens}, wanted a token each")
    return {"logit_bias": {str(token): -100 for token in tokens}}


def stream(server, body):
    """One streamed reply: seconds to its first text, its length in tokens, and those of its prompt."""
    began = time.monotonic()
    response = server.ask("POST", "/v1/chat/completions", body)
    if response.status != 200:
        raise server.failure(f"{response.status} {response.read()[:500]}")
    first, usage = None, None
    while line := response.readline():
        if not line.startswith(b"data: {"):
            continue
        chunk = json.loads(line[6:])
        delta = chunk["choices"][0]["delta"] if chunk.get("choices") else {}
        if first is None and (delta.get("content") or delta.get("reasoning_content")):
            first = time.monotonic() - began
        usage = chunk.get("usage") or usage
    if first is None or not usage:
        raise server.failure(f"a stream without text or usage (after {time.monotonic() - began:.1f} s)")
    return {"first_token_s": first, "n_tokens": usage["completion_tokens"], "n_prompt": usage["prompt_tokens"],
            "n_cached": (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)}


def crowd(server, options, fields, system, seed, n_clients):
    """All clients at once: what the phase is measured by."""
    def one(number):
        messages = [{"role": "system", "content": system}, {"role": "user", "content": some_words(seed * 1000 + number, 24)}]
        return stream(server, {"messages": messages, "max_tokens": options.tokens, "seed": number, "stream": True,
                               "stream_options": {"include_usage": True},
                               "chat_template_kwargs": {"enable_thinking": False}, **DRAW, **fields})

    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(n_clients) as pool:
        replies = list(pool.map(one, range(n_clients)))
    seconds = time.monotonic() - began
    lengths = sorted({reply["n_tokens"] for reply in replies})
    if lengths != [options.tokens]:
        raise server.failure(f"replies of {lengths} tokens, wanted {options.tokens} each")
    return {"first_token_s": statistics.median(reply["first_token_s"] for reply in replies),
            "last_first_token_s": max(reply["first_token_s"] for reply in replies),
            "tokens_per_second": options.tokens * n_clients / seconds,
            "n_prompt": statistics.median(reply["n_prompt"] for reply in replies),
            "n_cached": statistics.median(reply["n_cached"] for reply in replies)}


def measure_server(start, options, run, n_clients):
    with start(options) as server:
        fields = never_ending(server)
        # Weights are read into memory, and threads started, before the clock runs.
        server.ask_json("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4})
        system = system_prompt(server, options.prompt_tokens, run)
        return {"fresh": crowd(server, options, fields, system, 2 * run, n_clients),
                "warm": crowd(server, options, fields, system, 2 * run + 1, n_clients)}


# --- figures --------------------------------------------------------------------------------------------------------

def compare(runs, phase, measure):
    """Facet's and the peer's figures, and how many times better Facet's are, run by run."""
    facet = [run["facet"][phase][measure] for run in runs]
    peer = [run["llama-server"][phase][measure] for run in runs]
    is_time = measure.endswith("_s")
    ratios = [b / a if is_time else a / b for a, b in zip(facet, peer)]
    return {"facet": spread(facet), "peer": spread(peer), "ratio": spread(ratios)}


def table(cases):
    lines = ["| clients | measure | facet | llama-server | ratio |", "|---|---|---|---|---|"]
    for case in cases:
        for phase, measure, title in MEASURES:
            figures = compare(case["runs"], phase, measure)
            lines.append(f"| {case['clients']} | {title} | {shown(figures['facet'])} | {shown(figures['peer'])} "
                         f"| {shown(figures['ratio'])} |")
    return "\n".join(lines)


def report(results):
    example = results["cases"][-1]["runs"][-1]
    lengths = ", ".join(f"{name} {phases['fresh']['n_prompt']:.0f}" for name, phases in example.items())
    cached = ", ".join(f"{name} {phases['warm']['n_cached']:.0f}" for name, phases in example.items())
    return (f"{os.path.basename(results['model'])}, {results['threads']} threads, replies of {results['tokens']} tokens; tokens of a "
            f"prompt: {lengths}; of these cached when warm: {cached}. {results['peer']}. Runs of each: {results['n_runs']}; median "
            f"(least to most); a ratio above 1 is in favour of facet.\n\n{table(results['cases'])}\n")


# --- the command ----------------------------------------------------------------------------------------------------

def version_of(peer):
    text = subprocess.run([peer, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout
    commit = re.search(r"version: .*\(.*?([0-9a-f]{7,})\)", text)
    return f"llama.cpp: commit {commit[1]}" if commit else "llama.cpp"


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facet", required=True, help="the program of a release build")
    parser.add_argument("--peer", required=True, help="llama-server of a release build")
    parser.add_argument("--model", required=True, help="GGUF file with a chat template")
    parser.add_argument("--clients", type=lambda text: [int(n) for n in text.split(",")], default=[1, 4, 16])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=64, help="length of each reply")
    parser.add_argument("--prompt-tokens", type=int, default=1000, help="length of the system prompt")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--parallel", type=int, default=16, help="replies at a time that the servers are set to")
    parser.add_argument("--context", type=int, default=32768, help="tokens that the servers have memory for")
    parser.add_argument("--json", metavar="FILE", help="all figures of all runs, written after each case")
    options = parser.parse_args(arguments)
    needed = options.parallel * (options.prompt_tokens + options.tokens + 128)
    if min(options.clients) < 1 or max(options.clients) > options.parallel or options.runs < 1:
        parser.error("--clients: from 1 to what --parallel says; --runs: at least 1")
    if options.context < needed:
        parser.error(f"--context: {options.context}, wanted at least {needed} for {options.parallel} such requests")
    return options


def measure(options):
    results = {"model": options.model, "threads": options.threads, "tokens": options.tokens, "n_runs": options.runs,
               "peer": version_of(options.peer), "cases": []}
    starts = {"facet": start_facet, "llama-server": start_peer}
    for n_clients in options.clients:
        runs = []
        for run in range(options.runs):
            order = list(starts) if run % 2 == 0 else list(reversed(starts))
            figures = {}
            for name in order:
                say(f"{n_clients} clients, run {run + 1} of {options.runs}: {name}")
                figures[name] = measure_server(starts[name], options, run, n_clients)
            runs.append({name: figures[name] for name in starts})
        results["cases"].append({"clients": n_clients, "runs": runs})
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(results, file, indent=1)
    return results


def main(arguments):
    try:
        print(report(measure(parse(arguments))), end="")
    except Failure as failure:
        say(f"bench_server: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
