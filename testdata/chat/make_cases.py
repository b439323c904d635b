"""normalised_cases.jsonl: what a template writes after the messages were brought into the form that it knows.

python make_cases.py GGUF_TEMPLATE TINY_TEMPLATE     needs: jinja2 3.1.6

The first file is the template out of shared/data/gemma4-vocab.gguf, the second models/tiny/chat_template.jinja. Before anything is
written, every row of ../template/template_cases*.jsonl must come out as it stands there, so the set-up is that of those files.
"""
import json, os, sys
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = os.path.dirname(os.path.abspath(__file__))
MEDIA = {"image": "image", "image_url": "image", "input_audio": "audio", "audio": "audio", "video": "video", "video_url": "video"}
ROLES = {"system", "developer", "user", "assistant", "tool"}


def rows(name):
    with open(os.path.join(HERE, "..", name), encoding="utf-8") as f:
        return json.load(f) if name.endswith(".json") else [json.loads(line) for line in f]


def compiled(path):
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    return env.from_string(open(path, encoding="utf-8", newline="").read())


def render(template, case, messages, tools):
    return template.render(messages=messages, **({} if tools is None else {"tools": tools}), **case["vars"])


def why_refused(messages):
    if not messages:
        return "no message"
    if any(m["role"] not in ROLES for m in messages):
        return "role"
    for m in messages:
        for p in m["content"] if isinstance(m.get("content"), list) else []:
            if p.get("type") == "text" and not isinstance(p.get("text"), str):
                return "part without text"
            if p.get("type") != "text" and (p.get("type") not in MEDIA or m["role"] not in ("user", "tool")):
                return "part"
    return None


def joined(content):
    return "".join(p.get("text", "") for p in content) if isinstance(content, list) else content


def parsed(arguments):
    if isinstance(arguments, str):
        try:
            value = json.loads(arguments) if arguments.strip() else {}
        except ValueError:
            return arguments
        return value if isinstance(value, dict) else arguments
    return {} if arguments is None else arguments


def normalised(messages, old):
    """`old`: the template knows neither tool messages nor system parts."""
    out = []
    for m in messages:
        m = {k: v for k, v in m.items() if v is not None or (m["role"] == "tool" and k == "content")}
        if "tool_calls" in m:
            m["tool_calls"] = [{**c, "function": {**c["function"], "arguments": parsed(c["function"].get("arguments"))}} for c in m["tool_calls"]]
        if old and m["role"] in ("system", "developer"):
            m["content"] = joined(m["content"])
        if isinstance(m.get("content"), list):
            m["content"] = [{"type": MEDIA[p["type"]]} if p["type"] in MEDIA else p for p in m["content"]]
        before = out[-1] if out else {}
        if old and m["role"] == "tool":
            names = [c["function"]["name"] for c in before["tool_calls"] if "tool_call_id" in m and c.get("id") == m["tool_call_id"]]
            before.setdefault("tool_responses", []).append({"name": (names + [m.get("name", "unknown")])[0], "response": joined(m["content"])})
            before["folded"] = True
        elif old and m["role"] == "assistant" and before.pop("folded", False) and not before.get("content") and not m.get("tool_calls"):
            before["content"] = m.get("content", "")
        else:
            before.pop("folded", None)
            out.append(m)
    return [{k: v for k, v in m.items() if k != "folded"} for m in out]


def wrapped(tools):
    return None if tools is None else [t if "function" in t else {"type": "function", "function": t} for t in tools]


def main():
    out = []
    for name, path, old, files in (("gguf", sys.argv[1], True, ["template/template_cases.jsonl"]),
                                   ("built-in", sys.argv[2], False, ["template/template_cases_tiny.jsonl", "tiny-hf/template_cases.json"])):
        template = compiled(path)
        for case in [c for f in files for c in rows(f)]:
            if "expected" in case:
                assert render(template, case, case["messages"], case.get("tools")) == case["expected"], case["id"]
            row = {"id": case["id"], "template": name, "name": case["name"]}
            refused = why_refused(case["messages"])
            if refused:
                out.append({**row, "refused": refused})
                continue
            text = render(template, case, normalised(case["messages"], old), wrapped(case.get("tools")))
            if text != case.get("expected"):
                out.append({**row, "expected": text})
    with open(os.path.join(HERE, "normalised_cases.jsonl"), "w", encoding="utf-8") as f:
        for row in out:
            f.write(json.dumps(row, ensure_ascii=True) + "\n")
    print(len(out), "rows,", sum("refused" in r for r in out), "refused")


if __name__ == "__main__":
    main()
