// SPDX-License-Identifier: Apache-2.0
// A client with nothing but fetch: the bytes of the event stream, usage, the prefix cache as a client sees it, thoughts.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sharedFacet } from './support/facet.mjs';
import { collect, stream } from './support/sse.mjs';
import { weatherTool } from './support/words.mjs';

const shared = sharedFacet({ before, after });
const user = (content) => ({ role: 'user', content });
const chat = (messages, fields = {}) =>
  stream(`${shared.facet.url}/v1/chat/completions`, { messages, temperature: 0, ...fields });
const reply = async (messages, fields = {}) =>
  collect((await chat(messages, { stream_options: { include_usage: true }, ...fields })).chunks);

/** A prompt of about 700 tokens that nobody else in this file uses. */
const longText = (name) => `${name}: ${'the sun, the moon and a star; '.repeat(70)}`;

describe('the stream', () => {
  test('has the headers of an event stream', async () => {
    const { response, chunks } = await chat([user('Hello')]);
    assert.match(response.headers.get('content-type'), /^text\/event-stream/);
    assert.match(response.headers.get('cache-control') ?? '', /no-cache|no-store/);
    await collect(chunks);
  });

  test('begins with the role, ends with the reason, then [DONE]', async () => {
    const { chunks } = await chat([user('What is the capital of France?')]);
    const all = [];
    for await (const chunk of chunks) {
      all.push(chunk);
    }
    assert.equal(all[0].choices[0].delta.role, 'assistant');
    assert.equal(all.at(-1).choices[0].finish_reason, 'stop');
    assert.ok(all.every((chunk) => chunk.usage === undefined), 'usage was not asked for');
    assert.equal(new Set(all.map(({ id, created, model }) => `${id} ${created} ${model}`)).size, 1);
    assert.equal(all.map(({ choices }) => choices[0].delta.content ?? '').join(''), 'The capital of France is Paris.');
  });

  test('include_usage adds a last chunk without choices, and null to the others', async () => {
    const { chunks } = await chat([user('Hello')], { stream_options: { include_usage: true } });
    const all = [];
    for await (const chunk of chunks) {
      all.push(chunk);
    }
    const last = all.pop();
    assert.deepEqual(last.choices, []);
    assert.equal(last.usage.total_tokens, last.usage.prompt_tokens + last.usage.completion_tokens);
    assert.ok(all.every((chunk) => chunk.usage === null));
  });

  test('an error before the stream is an answer with a status', async () => {
    await assert.rejects(chat([user('Hello')], { top_p: -1 }), (error) => error.status === 400 && /top_p/.test(error.message));
  });

  test('a lost client frees the server', async () => {
    const lost = new AbortController();
    const { chunks } = await stream(
      `${shared.facet.url}/v1/chat/completions`,
      { messages: [user(longText('lost'))], max_tokens: 3000, temperature: 1.5, top_k: 0 },
      { signal: lost.signal },
    );
    await chunks.next();
    lost.abort();
    await shared.facet.idle();
  });
});

describe('the prefix cache', () => {
  // Statement 60 of testdata/reports.md.
  test('a replaced answer costs no more than itself', async () => {
    const first = [user(longText('replaced')), { role: 'assistant', content: 'Yes, a star.' }, user('What does a dog say?')];
    const before = await reply(first, { max_tokens: 16 });
    const replaced = [first[0], { role: 'assistant', content: 'No, a stone.' }, first[2]];
    const again = await reply(replaced, { max_tokens: 16 });
    const rest = 40;  // the two short messages and their turns
    const cached = again.usage.prompt_tokens_details.cached_tokens;
    assert.ok(cached >= again.usage.prompt_tokens - rest, `${cached} of ${again.usage.prompt_tokens}`);
    assert.ok(cached < again.usage.prompt_tokens);
    assert.equal(before.usage.prompt_tokens_details.cached_tokens < 100, true);
  });

  // Statement 61.
  for (const [name, fields] of [
    ['plain', {}],
    ['with thinking', { chat_template_kwargs: { enable_thinking: true } }],
  ]) {
    test(`a conversation computes only what is new: ${name}`, async () => {
      const messages = [user('What is the capital of France?')];
      for (const next of ['What is the capital of Japan?', 'What is the capital of Egypt?', 'What does a dog say?']) {
        const turn = await reply(messages, fields);
        messages.push({ role: 'assistant', content: turn.content, reasoning_content: turn.reasoning }, user(next));
        const { usage } = await reply(messages, fields);
        // The reply is in memory but for its last token; what is new is the turn's end and the question.
        const fresh = usage.prompt_tokens - usage.prompt_tokens_details.cached_tokens;
        const wanted = 30 + (fields.chat_template_kwargs ? turn.usage.completion_tokens : 0);
        assert.ok(fresh <= wanted, `${fresh} of ${usage.prompt_tokens} tokens were computed, wanted at most ${wanted}`);
      }
    });
  }

  test('goes on after a tool call', async () => {
    const messages = [user('What is the weather in Rome?')];
    const call = await reply(messages, { tools: [weatherTool] });
    assert.equal(call.finishReason, 'tool_calls');
    const [{ id, name, arguments: given }] = call.toolCalls;
    messages.push(
      { role: 'assistant', content: null, tool_calls: [{ id, type: 'function', function: { name, arguments: given } }] },
      { role: 'tool', tool_call_id: id, content: '21 degrees' },
    );
    const answer = await reply(messages, { tools: [weatherTool] });
    assert.match(answer.content, /The weather in Rome is 21 degrees\./);
    const fresh = answer.usage.prompt_tokens - answer.usage.prompt_tokens_details.cached_tokens;
    assert.ok(fresh <= 20, `${fresh} of ${answer.usage.prompt_tokens} tokens were computed`);
  });

  test('another salt shares nothing', async () => {
    const asked = (salt) => reply([user(longText('salted'))], { max_tokens: 4, cache_salt: salt });
    await asked('one');
    assert.equal((await asked('two')).usage.prompt_tokens_details.cached_tokens, 0);
    assert.ok((await asked('one')).usage.prompt_tokens_details.cached_tokens > 0);
  });
});

describe('thoughts', () => {
  const question = [user('What is the capital of Egypt?')];
  const thought = 'The user asks for the capital of Egypt. I know it.';

  for (const [name, fields] of [
    ['chat_template_kwargs.enable_thinking', { chat_template_kwargs: { enable_thinking: true } }],
    ['reasoning_effort', { reasoning_effort: 'medium' }],
  ]) {
    test(`switched on by ${name}`, async () => {
      const streamed = await reply(question, fields);
      assert.equal(streamed.reasoning.trim(), thought);
      assert.equal(streamed.content, 'The capital of Egypt is Cairo.');
      const whole = await shared.facet.post('/v1/chat/completions', { messages: question, temperature: 0, ...fields });
      assert.equal(whole.json.choices[0].message.reasoning_content.trim(), thought);
      assert.equal(whole.json.choices[0].message.content, streamed.content);
      assert.ok(streamed.usage.completion_tokens_details.reasoning_tokens > 0);
    });
  }

  test('switched off', async () => {
    for (const fields of [{ reasoning_effort: 'none' }, { chat_template_kwargs: { enable_thinking: false } }]) {
      const { content, reasoning } = await reply(question, { ...fields, max_tokens: 32 });
      assert.equal(reasoning, '');
      assert.equal(content, 'The capital of Egypt is Cairo.');
    }
  });
});
