// SPDX-License-Identifier: Apache-2.0
// Every curl example of docs/http_api.md is run, and what comes back is what stands there. The head of that file tells
// how examples and answers are written.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { root, sharedFacet } from './support/facet.mjs';

const any = '...';

/** Throws unless `actual` is as `wanted` says; `isExact`: in its numbers too. */
function compare(actual, wanted, isExact, where = 'body') {
  if (wanted === any) {
    return;
  }
  if (Array.isArray(wanted)) {
    assert.ok(Array.isArray(actual), `${where} is ${JSON.stringify(actual)}, wanted an array`);
    const isOpen = wanted.at(-1) === any && wanted.length > 1;
    const items = isOpen ? wanted.slice(0, -1) : wanted;
    assert.ok(isOpen ? actual.length >= items.length : actual.length === items.length, `${where} has ${actual.length} items`);
    items.forEach((item, i) => compare(actual[i], item, isExact, `${where}[${i}]`));
  } else if (wanted !== null && typeof wanted === 'object') {
    assert.ok(actual !== null && typeof actual === 'object', `${where} is ${JSON.stringify(actual)}, wanted an object`);
    assert.deepEqual(Object.keys(actual).sort(), Object.keys(wanted).sort(), `members of ${where}`);
    Object.keys(wanted).forEach((name) => compare(actual[name], wanted[name], isExact, `${where}.${name}`));
  } else if (typeof wanted === 'number' && !isExact) {
    assert.equal(typeof actual, 'number', where);
  } else {
    assert.deepEqual(actual, wanted, where);
  }
}

const linePattern = (line) => new RegExp(`^${line.split(any).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('.*')}$`);

/** Whether one line of an answer is as the line `wanted`. */
function fits(actual, wanted) {
  if (!wanted.startsWith('data: {')) {
    return linePattern(wanted).test(actual);
  }
  if (!actual.startsWith('data: {')) {
    return false;
  }
  try {
    compare(JSON.parse(actual.slice(6)), JSON.parse(wanted.slice(6)), false);
    return true;
  } catch {
    return false;
  }
}

/** Lines in order; a line of "..." stands for any number of them. */
function compareLines(actual, wanted) {
  let at = 0;
  let mayLeap = false;
  for (const line of wanted) {
    if (line === any) {
      mayLeap = true;
      continue;
    }
    const from = at;
    while (mayLeap && at < actual.length && !fits(actual[at], line)) {
      at += 1;
    }
    assert.ok(at < actual.length && fits(actual[at], line), `wanted the line ${line} at or after these:\n${actual.slice(from).join('\n')}`);
    at += 1;
    mayLeap = false;
  }
  assert.ok(mayLeap || at === actual.length, `more lines than told:\n${actual.slice(at).join('\n')}`);
}

/** [{title, command, kind, answer}] of a document. */
function examplesIn(document) {
  const blocks = [...document.matchAll(/^```(\S+)(?: (\S+))?\n([^]*?)^```$/gm)].map(([, language, more, text]) => ({ language, more, text }));
  const examples = [];
  blocks.forEach(({ language, text }, i) => {
    if (language === 'sh' && text.startsWith('curl')) {
      const next = blocks[i + 1];
      assert.ok(['json', 'text'].includes(next?.language), `an example without an answer: ${text}`);
      examples.push({ title: text.split('\n')[0].slice(0, 90), command: text, ...next, answer: next.text });
    }
  });
  return examples;
}

const document = readFileSync(join(root, 'docs/http_api.md'), 'utf8');
const shared = sharedFacet({ before, after });

describe('docs/http_api.md', () => {
  const examples = examplesIn(document);
  test('has examples', () => assert.ok(examples.length >= 15, `${examples.length} examples`));

  for (const { title, command, language, more, answer } of examples) {
    test(title, { timeout: 30_000 }, async () => {
      const { stdout } = await promisify(execFile)('sh', ['-euc', command], { env: { ...process.env, FACET_URL: shared.facet.url } });
      if (language === 'json') {
        compare(JSON.parse(stdout), JSON.parse(answer), more === 'exact');
      } else {
        compareLines(stdout.trimEnd().split('\n'), answer.trimEnd().split('\n'));
      }
    });
  }

  test('names only routes that there are', async () => {
    const routes = [...document.matchAll(/`(GET|POST) (\/[^ `,]*)/g)].map(([, , path]) => path);
    for (const path of new Set(routes.filter((route) => !route.includes('NAME')))) {
      const { status } = await shared.facet.get(path);
      assert.notEqual(status, 404, path);
    }
  });
});
