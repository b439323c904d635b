#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares src/jinja with Jinja2 on random small templates, and prints each that differs.

Needs the Python package jinja2 (3.1) and the program jinja_render, which is built with the tests. The environment is the
one that transformers makes for chat templates, as testdata/template/make_cases.py uses it. Both refusing counts as
equal; the words of errors are not compared. The exit status is 1 if anything differs. What is found becomes a unit test.

Usage: tools/jinja_diff.py build/dev/tests/jinja_render [--cases N] [--seed N]
"""
import argparse
import copy
import json
import random
import re
import subprocess
import sys
import warnings

import jinja2
import jinja2.ext
import jinja2.sandbox

CONTEXT = {
    "s": "Hello World", "t": "  a,b,,c \n", "u": "été ÉTÉ ßx", "e": "", "n": 7, "m": -3, "z": 0, "f": 2.5, "g": -0.125,
    "yes": True, "no": False, "nil": None, "l": [3, 1, 2], "w": ["b", "A", "c", "a"], "x": [1, "a", None, 2.0, True, [1]],
    "d": {"b": 2, "A": None, "c": 1.5}, "k": {"items": 1, "x": {"y": [1, {"z": "deep"}]}},
    "r": [{"name": "Bo", "age": 3, "tags": ["p", "q"]}, {"name": "al", "age": 1}, {"name": "Cy", "age": 2, "tags": []}],
}
STRINGS = ["'a'", "'b c'", "''", "','", "'l'", "'%s-%s'", "'{} {}'", "'A,b;C'", "'x\\ny'", "'<b>&\"\\''", "'12'", "'-3.5'",
           "'0x1f'", "'ǆ ſ'", "'{0[0]}'", "'%05.1f|%-4d|%+d'", "'{:>5}|{:<4}|{:^7}'"]
NUMBERS = ["0", "1", "2", "3", "-1", "7", "10", "2.5", "0.1", "-1.5", "1e3", "100000", "1_000", "1e16", "3.0"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable",
         "callable", "true", "false", "odd", "even", "upper", "lower", "eq({})", "ne({})", "gt({})", "le({})", "in({})",
         "divisibleby({})", "sameas({})", "filter", "test", "escaped"]
FILTERS = ["abs", "capitalize", "center({n})", "count", "default({e})", "default({e}, true)", "dictsort",
           "dictsort(by='value')", "dictsort(reverse=true)", "escape", "first", "float", "float({e})", "format({e}, {e})",
           "indent", "indent({n}, true)", "indent(2, blank=true)", "int", "int({e})", "join", "join({s})",
           "join(',', 'name')", "last", "length", "list", "lower", "max", "min", "map('upper') | list",
           "map(attribute='name') | list", "map(attribute='tags.0', default='-') | list", "reject('none') | list",
           "select | list", "select('number') | list", "selectattr('tags') | list | length",
           "selectattr('age', 'gt', 1) | map(attribute='name') | join", "rejectattr('name', 'eq', 'al') | list",
           "replace({s}, {s})", "replace({s}, {s}, {n})", "reverse | list", "reverse", "round", "round({n})",
           "round({n}, 'floor')", "round(1, 'ceil')", "safe", "slice({n}) | list", "batch({n}) | list",
           "batch({n}, 'x') | list", "sort", "sort(reverse=true)", "sort(attribute='age')", "sort(attribute='name,age')",
           "sort(case_sensitive=true)", "string", "striptags", "sum", "sum(attribute='age')", "title", "tojson",
           "tojson(indent=2)", "tojson(indent=0)", "trim", "trim({s})", "truncate({n})", "truncate(5, true, '')", "unique | list", "upper",
           "urlencode", "wordcount", "xmlattr", "items | list", "groupby('age') | list", "groupby('name') | map('first') | list",
           "filesizeformat", "attr('name')"]
METHODS = ["upper()", "lower()", "title()", "capitalize()", "swapcase()", "strip()", "strip({s})", "lstrip()", "rstrip({s})",
           "split()", "split({s})", "split({s}, {n})", "rsplit({s}, {n})", "rsplit(none, 1)", "splitlines()",
           "splitlines(true)", "partition({s})", "rpartition({s})", "replace({s}, {s})", "replace({s}, {s}, {n})",
           "startswith({s})", "endswith(({s}, {s}))", "find({s})", "rfind({s})", "index({s})", "count({s})",
           "find({s}, {n})", "count({s}, {n}, {n})", "join({e})", "zfill({n})", "center({n}, '*')", "ljust({n})",
           "rjust({n}, '-')", "removeprefix({s})", "removesuffix({s})", "expandtabs({n})", "isdigit()", "isalpha()",
           "isupper()", "islower()", "isspace()", "istitle()", "isalnum()", "isidentifier()", "format({e}, {e})",
           "items() | list", "keys() | list", "values() | list", "get({e})", "get({e}, {e})", "index({e})", "copy()",
           "append({e})", "is_integer()"]


class Generator:
    """Random expressions and templates: more often wrong than a person's, but mostly not nonsense."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, items):
        return self.random.choice(items)

    def fill(self, pattern, depth):
        return re.sub(r"\{([esn]?)\}", lambda m: {"s": lambda: self.pick(STRINGS), "n": lambda: self.pick(["0", "1", "2", "3", "5", "12", "-1"])}
                      .get(m.group(1), lambda: self.expression(depth - 1))(), pattern)

    def atom(self):
        return self.pick([self.pick(list(CONTEXT)), self.pick(list(CONTEXT)), self.pick(STRINGS), self.pick(NUMBERS),
                          self.pick(["true", "false", "none", "missing", "[]", "{}", "()", "[1, 'a', 2.5]", "(1,)", "{'a': 1, 2: [3]}",
                                     "range(4)", "range(5, 0, -2)", "k.x.y[1].z", "r[0].name", "k['items']", "d['b']", "l[-1]"])])

    def index(self):
        part = lambda: self.pick(["", "", "0", "1", "2", "-1", "-2", "5"])  # noqa: E731
        return self.pick([f"[{part()}:{part()}]", f"[{part()}:{part()}:{self.pick(['', '1', '2', '-1', '-2'])}]",
                          f"[{self.pick(['0', '-1', '9', 'n'])}]", "['a']", ".a", ".name", ".0"])

    def expression(self, depth):
        if depth <= 0:
            return self.atom()
        inner = self.expression(depth - 1)
        kind = self.random.randrange(12)
        if kind <= 2:
            return f"{self.operand(inner)} | {self.fill(self.pick(FILTERS), depth)}"
        if kind <= 4:
            return f"{self.operand(inner)}.{self.fill(self.pick(METHODS), depth)}"
        if kind == 5:
            return f"{self.operand(inner)}{self.index()}"
        if kind == 6:
            return f"{self.operand(inner)} is {self.pick(['', 'not '])}{self.fill(self.pick(TESTS), depth)}"
        if kind == 7:
            return f"({inner} if {self.expression(depth - 1)} else {self.expression(depth - 1)})"
        if kind == 8:
            return f"{self.pick(['not ', '-', '+'])}{self.operand(inner)}"
        if kind == 9:
            return self.pick(["[{}, {}]", "({}, {})", "{{'k': {}, 'j': {}}}"]).format(inner, self.expression(depth - 1))
        operator = self.pick(["+", "-", "*", "/", "//", "%", "**", "~", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in",
                              "and", "or"])
        return f"{self.operand(inner)} {operator} {self.operand(self.expression(depth - 1))}"

    def operand(self, text):
        return text if self.random.random() < 0.3 else f"({text})"

    def tag(self, text):
        return "{%" + self.pick(["", "", "", "-", "+"]) + f" {text} " + self.pick(["", "", "", "-"]) + "%}"

    def text(self):
        return self.pick(["a", " ", "\n", "  \n", "\n\n  ", " x ", "", "{# c #}", "{#- c -#}", "\t"])

    def body(self, depth):
        return "".join(self.text() + self.statement(depth) for _ in range(self.random.randrange(1, 4))) + self.text()

    def statement(self, depth):
        kind = self.random.randrange(9) if depth > 0 else 0
        expression = self.expression(self.random.randrange(3))
        body = self.body(depth - 1) if kind else ""
        if kind == 1:
            return self.tag(f"if {expression}") + body + self.tag("else") + self.text() + self.tag("endif")
        if kind in (2, 3):
            inside = self.pick(["{{ i }}", "{{ loop.index }}", "{{ loop.last }}", "{{ loop.previtem }}", "{{ loop.cycle('a', 'b') }}",
                                "{{ loop.revindex0 }}", "{% if loop.index == 2 %}{% break %}{% endif %}",
                                "{% if i %}{% continue %}{% endif %}", "{{ loop.changed(i) }}"])
            head = self.pick([f"for i in {expression}", f"for i in {expression} if i", f"for i, j in {expression}",
                              "for i in l", "for i in d | dictsort", "for i, j in d.items()"])
            return self.tag(head) + inside + body + self.tag("else") + "E" + self.tag("endfor")
        if kind == 4:
            return self.tag(f"set v = {expression}") + "{{ v }}" + body + "{{ v }}"
        if kind == 5:
            return self.tag("set v") + body + self.tag("endset") + "[{{ v }}]"
        if kind == 6:
            return self.tag("macro q(a, b=1)") + "{{ a }}{{ b }}" + body + self.tag("endmacro") + f"{{{{ q({expression}) }}}}"
        if kind == 7:
            return self.tag("filter upper") + body + self.tag("endfilter")
        if kind == 8:
            return self.tag(f"with v = {expression}") + "{{ v }}" + body + self.tag("endwith")
        return "{{" + self.pick([" ", " ", "- "]) + expression + self.pick([" ", " ", " -"]) + "}}"

    def template(self):
        if self.random.random() < 0.6:
            return "{{ " + self.expression(self.random.randrange(1, 4)) + " }}"
        return self.body(2)


def environment():
    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                        extensions=[jinja2.ext.loopcontrols])
    made.filters["tojson"] = tojson
    return made


# What Facet leaves out or prints in other words on purpose (docs/jinja.md), and numbers beyond 64 bits.
SKIPPED_OUTPUT = re.compile(r"0x[0-9a-f]{6}|Markup\(|<(generator|function|built-in|bound|method|Macro|Loop|dict_|Cycler|Joiner|jinja2)")
SKIPPED_ERROR = re.compile(r"beyond 64 bits|that Facet does not have|longer than a line|range of \d+ numbers|too many values|"
                           r"beyond the range|precision of|cannot be sliced")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("renderer")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    generator = Generator(options.seed)
    templates = [generator.template() for _ in range(options.cases)]
    lines = "".join(json.dumps({"template": t, "context": CONTEXT}) + "\n" for t in templates)
    done = subprocess.run([options.renderer], input=lines, capture_output=True, text=True, check=True)
    env = environment()
    warnings.simplefilter("ignore")  # Python finds the templates odd, rightly
    n_differences = n_skipped = n_errors = 0
    for template, line in zip(templates, done.stdout.splitlines()):
        ours = json.loads(line)
        try:
            theirs = {"output": env.from_string(template).render(**copy.deepcopy(CONTEXT))}
        except Exception as error:  # whatever Python raises is a refusal
            theirs = {"error": f"{type(error).__name__}: {error}"}
        if SKIPPED_OUTPUT.search(theirs.get("output", "")) or SKIPPED_ERROR.search(ours.get("error", "")):
            n_skipped += 1
        elif "error" in ours and "error" in theirs:
            n_errors += 1
        elif ours != theirs:
            n_differences += 1
            print(f"template: {template!r}\n  jinja2: {theirs}\n  facet:  {ours}")
    print(f"{len(templates)} templates, {n_errors} refused by both, {n_skipped} not comparable, {n_differences} differences")
    return 1 if n_differences else 0


if __name__ == "__main__":
    sys.exit(main())
