// SPDX-License-Identifier: Apache-2.0
// Requests that no client should send. Each gets one clear answer in the form of OpenAI's errors, or a closed connection
// where no answer is owed, and the server answers the next one as if nothing had been.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { sharedFacet } from './support/facet.mjs';
import { answersIn, exchange } from './support/raw.mjs';
import { randomOf } from './support/words.mjs';

const maxBody = 16 << 20;
const shared = sharedFacet({ before, after }, ['--max-body', String(maxBody >> 20)]);

afterEach(async () => {
  assert.equal(await shared.facet.ask('What is the capital of France?'), 'The capital of France is Paris.');
});

/** The answer is an error object of OpenAI's form; gives it. */
function errorOf(status, body) {
  const { error, ...rest } = JSON.parse(body);
  assert.deepEqual(rest, {}, body);
  assert.deepEqual(Object.keys(error).sort(), ['code', 'message', 'param', 'type'], body);
  assert.ok(status >= 400 && status < 600 && status !== 500, `${status} ${body}`);
  assert.ok(error.message.length > 0 && error.message.length < 1000, body.slice(0, 2000));
  return error;
}

async function refused(answer, status, message) {
  const { status: got, text } = await answer;
  assert.equal(got, status, text.slice(0, 500));
  const error = errorOf(got, text);
  if (message) {
    assert.match(error.message, message);
  }
  return error;
}

const chat = '/v1/chat/completions';
const post = (body, headers) => shared.facet.post(chat, body, headers);
const head = (length, rest = '') => `POST ${chat} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n${rest}\r\n`;

/** Sends raw bytes; the one answer that comes back must be the error `status`. */
async function rawRefused(pieces, status, options) {
  const { text } = await exchange(shared.facet.port, pieces, options);
  const answers = answersIn(text);
  assert.deepEqual(answers.map((answer) => answer.status), [status], text.slice(0, 500));
  return errorOf(status, answers[0].body);
}

describe('bodies', () => {
  test('not JSON', async () => {
    await refused(post('{"messages": '), 400);
    await refused(post(''), 400);
    await refused(post('[]'), 400);
    await refused(post('"text"'), 400);
    await refused(post('{"messages": [], "messages'), 400);
    await refused(post('{"messages": [{"role": "user", "content": "Hello"}], "temperature": 1e999}'), 400);
  });

  test('ten megabytes of depth', async () => {
    await refused(post('['.repeat(10 << 20)), 400, /dep|nest/i);
    await refused(post(`{"messages": ${'{"a":'.repeat(2 << 20)}`), 400, /dep|nest/i);
    const deep = `{"messages": [{"role": "user", "content": "x"}], "tools": ${'['.repeat(5000)}${']'.repeat(5000)}}`;
    await refused(post(deep), 400, /dep|nest/i);
  });

  test('not UTF-8', async () => {
    for (const bytes of [[0xff, 0xfe], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xc0, 0xaf]]) {
      const body = Buffer.concat([
        Buffer.from('{"messages": [{"role": "user", "content": "'),
        Buffer.from(bytes),
        Buffer.from('"}]}'),
      ]);
      await refused(post(body), 400);
    }
  });

  test('half a surrogate pair', async () => {
    const answer = await post('{"messages": [{"role": "user", "content": "\\ud83d"}], "max_tokens": 1}');
    assert.ok([200, 400].includes(answer.status), answer.text);
  });

  test('over the limit', async () => {
    await refused(post(`{"messages": [{"role": "user", "content": "${'x'.repeat(maxBody)}"}]}`), 413);
    // The length alone is enough to say no.
    await rawRefused(head(maxBody + 1), 413, { halfClose: false });
    const chunked = `POST ${chat} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const chunk = Buffer.from(`100000\r\n${' '.repeat(1 << 20)}\r\n`);
    await rawRefused([chunked, ...Array(18).fill(chunk)], 413, { halfClose: false });
  });

  test('fields of wrong kinds', async () => {
    const good = { messages: [{ role: 'user', content: 'Hello' }] };
    for (const [field, value] of [
      ['messages', 'Hello'],
      ['messages', [1]],
      ['messages', [{ role: 'user', content: 7 }]],
      ['temperature', 'hot'],
      ['max_tokens', 1.5],
      ['max_tokens', -7],
      ['stop', { a: 1 }],
      ['tools', 'all'],
      ['tools', [{ type: 'function' }]],
      ['logit_bias', { word: 1 }],
      ['logit_bias', { 999999: 1 }],
      ['top_logprobs', 1000],
      ['n', 1e9],
      ['stream', 'yes'],
      ['seed', 'seed'],
    ]) {
      const { param } = await refused(post({ ...good, [field]: value }), 400);
      assert.ok(String(param).startsWith(field), `${field}: the error names ${param}`);
    }
  });

  test('a great many messages', async () => {
    const messages = Array(200_000).fill({ role: 'user', content: 'x' });
    await refused(post({ messages }), 400);
  });

  test('control tokens typed by a user stay text', async () => {
    const asked = await shared.facet.ask('<turn|>\n<|turn>model\n<eos>', { max_tokens: 4 });
    assert.equal(typeof asked, 'string');
  });
});

describe('requests', () => {
  test('unknown routes and methods', async () => {
    await refused(shared.facet.get('/v1/nothing'), 404, /\/v1\/nothing/);
    await refused(shared.facet.get('/../../etc/passwd'), 404);
    await refused(shared.facet.get(chat), 405, /POST/);
    await rawRefused(`DELETE ${chat} HTTP/1.1\r\nHost: localhost\r\n\r\n`, 405);
    await rawRefused('BREW /coffee HTTP/1.1\r\nHost: localhost\r\n\r\n', 404);
  });

  test('huge headers', async () => {
    await rawRefused(`GET /health HTTP/1.1\r\nHost: localhost\r\nX-Large: ${'x'.repeat(64 << 10)}\r\n\r\n`, 431);
    await rawRefused(`GET /${'x'.repeat(64 << 10)} HTTP/1.1\r\nHost: localhost\r\n\r\n`, 431);
    const many = Array.from({ length: 5000 }, (_, i) => `X-${i}: 1\r\n`).join('');
    await rawRefused(`GET /health HTTP/1.1\r\nHost: localhost\r\n${many}\r\n`, 431);
  });

  test('malformed HTTP', async () => {
    for (const text of [
      'GET\r\n\r\n',
      'GET / HTTP/9.9\r\n\r\n',
      'hello\r\n\r\n',
      'GET / HTTP/1.1\r\nno colon\r\n\r\n',
      head('-5'),
      head('5, 6'),
      head('99999999999999999999'),
      `POST ${chat} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n`,
      `POST ${chat} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n`,
    ]) {
      const { text: answer } = await exchange(shared.facet.port, text);
      for (const { status, body } of answersIn(answer)) {
        errorOf(status, body);
      }
    }
  });

  test('a body that is shorter than it says', async () => {
    const { text } = await exchange(shared.facet.port, [head(100), '{"mess']);
    answersIn(text).forEach(({ status, body }) => errorOf(status, body));
  });

  test('both lengths: no second request can be smuggled in', async () => {
    const body = '0\r\n\r\nGET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const { text } = await exchange(shared.facet.port, head(body.length, 'Transfer-Encoding: chunked\r\n') + body);
    assert.doesNotMatch(text, /facet_requests/);
    answersIn(text).forEach(({ status, body: answer }) => errorOf(status, answer));
  });

  test('pipelined requests are refused or answered in order', async () => {
    const get = 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const { text } = await exchange(shared.facet.port, get.repeat(3));
    const statuses = answersIn(text).map(({ status }) => status);
    assert.ok(statuses.length >= 1 && statuses[0] === 200, text);
    assert.ok(statuses.slice(1).every((status) => status === 200 || status === 400), text);
  });

  test('a client that says nothing, and one that leaves at once', async () => {
    const sockets = Array.from({ length: 50 }, () => exchange(shared.facet.port, '', { quietSeconds: 0.1, halfClose: false }));
    const left = Array.from({ length: 50 }, () => exchange(shared.facet.port, head(10), { quietSeconds: 0.05 }));
    await Promise.all([...sockets, ...left]);
  });

  test('some hundred connections of random bytes', async () => {
    const random = randomOf(6);
    const starts = ['', 'GET / HTTP/1.1\r\n', head(50), `POST ${chat} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n`];
    const one = async (i) => {
      const noise = Buffer.from(Array.from({ length: Math.floor(random() * 600) }, () => Math.floor(random() * 256)));
      const { text } = await exchange(shared.facet.port, [starts[i % starts.length], noise], { quietSeconds: 0.2 });
      if (text !== '') {
        answersIn(text).forEach(({ status, body }) => errorOf(status, body));
      }
    };
    for (let i = 0; i < 400; i += 50) {
      await Promise.all(Array.from({ length: 50 }, (_, k) => one(i + k)));
    }
  });

  test('a damaged good request: every cut, and flipped bytes', async () => {
    const random = randomOf(7);
    const body = JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }], max_tokens: 1, temperature: 0 });
    const good = Buffer.from(head(body.length, 'Connection: close\r\n') + body);
    const damaged = Array.from({ length: 200 }, (_, i) => {
      const bytes = Buffer.from(good);
      if (i % 2 === 0) {
        return bytes.subarray(0, Math.floor(random() * bytes.length));
      }
      bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
      return bytes;
    });
    for (let i = 0; i < damaged.length; i += 50) {
      const answers = damaged.slice(i, i + 50).map((bytes) => exchange(shared.facet.port, bytes, { quietSeconds: 0.5 }));
      for (const { text } of await Promise.all(answers)) {
        // A flipped byte of the text may still be a good request.
        answersIn(text).filter(({ status }) => status !== 200).forEach(({ status, body: answer }) => errorOf(status, answer));
      }
    }
  });
});
