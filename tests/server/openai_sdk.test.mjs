// SPDX-License-Identifier: Apache-2.0
// OpenAI's own SDK for Node, unchanged, against the tiny model.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { sharedFacet, startFacet } from './support/facet.mjs';
import { lampTool, weatherTool } from './support/words.mjs';

const shared = sharedFacet({ before, after });
const ask = (content) => [{ role: 'user', content }];
const capital = ask('What is the capital of France?');
const story = ask('Tell me a story about a fox.');

const clientOf = (facet, apiKey = 'unused') =>
  new OpenAI({ baseURL: `${facet.url}/v1`, apiKey, maxRetries: 0, timeout: 60_000 });

async function model() {
  const { data } = await clientOf(shared.facet).models.list();
  return data[0].id;
}

const chat = async (fields) =>
  clientOf(shared.facet).chat.completions.create({ model: await model(), temperature: 0, ...fields });

/** Joins the chunks of an SDK stream: contents by choice, and the last of the rest. */
async function join(stream) {
  const joined = { contents: [], finishReasons: [], usage: null, ids: new Set(), toolCalls: [], nChunks: 0 };
  for await (const chunk of stream) {
    joined.nChunks += 1;
    joined.ids.add(chunk.id);
    joined.usage = chunk.usage ?? joined.usage;
    assert.equal(chunk.object, 'chat.completion.chunk');
    for (const { index, delta, finish_reason: finishReason } of chunk.choices) {
      joined.contents[index] = (joined.contents[index] ?? '') + (delta.content ?? '');
      joined.finishReasons[index] = finishReason ?? joined.finishReasons[index];
      for (const call of delta.tool_calls ?? []) {
        joined.toolCalls[call.index] ??= { id: call.id, name: call.function.name, arguments: '' };
        joined.toolCalls[call.index].arguments += call.function.arguments ?? '';
      }
    }
  }
  return joined;
}

describe('chat', () => {
  test('a reply and its usage', async () => {
    const reply = await chat({ messages: capital });
    assert.equal(reply.object, 'chat.completion');
    assert.match(reply.id, /^chatcmpl-/);
    assert.ok(Math.abs(reply.created - Date.now() / 1000) < 60);
    assert.equal(reply.choices.length, 1);
    assert.equal(reply.choices[0].message.role, 'assistant');
    assert.equal(reply.choices[0].message.content, 'The capital of France is Paris.');
    assert.equal(reply.choices[0].finish_reason, 'stop');
    assert.equal(reply.usage.prompt_tokens, 16);
    assert.ok(reply.usage.completion_tokens >= 7 && reply.usage.completion_tokens <= 8);
    assert.equal(reply.usage.total_tokens, reply.usage.prompt_tokens + reply.usage.completion_tokens);
  });

  test('a stream equals the whole reply', async () => {
    const whole = await chat({ messages: story });
    const joined = await join(await chat({ messages: story, stream: true, stream_options: { include_usage: true } }));
    assert.equal(joined.contents[0], whole.choices[0].message.content);
    assert.equal(joined.finishReasons[0], whole.choices[0].finish_reason);
    assert.equal(joined.usage.completion_tokens, whole.usage.completion_tokens);
    assert.equal(joined.usage.prompt_tokens, whole.usage.prompt_tokens);
    assert.equal(joined.ids.size, 1);
    assert.ok(joined.nChunks > 10, `${joined.nChunks} chunks`);
  });

  test('the SDK puts a stream together itself', async () => {
    const stream = clientOf(shared.facet).chat.completions.stream({
      model: await model(),
      temperature: 0,
      messages: capital,
    });
    assert.equal(await stream.finalContent(), 'The capital of France is Paris.');
  });

  test('max_tokens and max_completion_tokens end with length', async () => {
    for (const limit of [{ max_tokens: 5 }, { max_completion_tokens: 5 }]) {
      const reply = await chat({ messages: story, ...limit });
      assert.equal(reply.choices[0].finish_reason, 'length');
      assert.equal(reply.usage.completion_tokens, 5);
    }
  });

  test('stop texts end the reply and are not part of it', async () => {
    const whole = (await chat({ messages: story })).choices[0].message.content;
    const stop = 'lived at';
    const reply = await chat({ messages: story, stop: ['no such text', stop] });
    assert.equal(reply.choices[0].finish_reason, 'stop');
    assert.equal(reply.choices[0].message.content, whole.slice(0, whole.indexOf(stop)));
    const joined = await join(await chat({ messages: story, stop, stream: true }));
    assert.equal(joined.contents[0], reply.choices[0].message.content);
  });

  test('n choices, whole and streamed', async () => {
    const settings = { messages: story, n: 3, temperature: 1, seed: 7, max_tokens: 24 };
    const reply = await chat(settings);
    assert.deepEqual(reply.choices.map(({ index }) => index), [0, 1, 2]);
    const contents = reply.choices.map(({ message }) => message.content);
    assert.deepEqual((await join(await chat({ ...settings, stream: true }))).contents, contents);
    // Choice i is drawn with seed + i.
    const second = await chat({ ...settings, n: 1, seed: 8 });
    assert.equal(second.choices[0].message.content, contents[1]);
  });

  test('the same seed gives the same reply, another seed another', async () => {
    const draw = async (seed) =>
      (await chat({ messages: story, temperature: 2, top_k: 0, top_p: 1, seed, max_tokens: 32 })).choices[0].message.content;
    assert.equal(await draw(11), await draw(11));
    assert.notEqual(await draw(11), await draw(12));
  });

  test('logprobs', async () => {
    const reply = await chat({ messages: capital, logprobs: true, top_logprobs: 3 });
    const tokens = reply.choices[0].logprobs.content;
    const bytes = Buffer.from(tokens.flatMap((token) => token.bytes));
    assert.equal(bytes.toString(), reply.choices[0].message.content);
    for (const { token, logprob, top_logprobs: top } of tokens) {
      assert.equal(top.length, 3);
      assert.deepEqual([token, logprob], [top[0].token, top[0].logprob], 'greedy draws the likeliest');
      assert.ok(top[0].logprob >= top[1].logprob && top[1].logprob >= top[2].logprob && top[0].logprob <= 0);
    }
  });

  test('logit_bias forbids a token', async () => {
    const { json } = await shared.facet.post('/tokenize', { content: ' Paris' });
    const reply = await chat({
      messages: capital,
      logit_bias: Object.fromEntries(json.tokens.map((id) => [id, -100])),
    });
    assert.doesNotMatch(reply.choices[0].message.content, /Paris/);
  });

  test('a reply that is JSON', async () => {
    const reply = await chat({
      messages: ask('Give me JSON with name Mia and age 31.'),
      response_format: { type: 'text' },
    });
    assert.deepEqual(JSON.parse(reply.choices[0].message.content), { name: 'Mia', age: 31 });
  });

  test('content in parts, and every role', async () => {
    const inParts = [{ type: 'text', text: capital[0].content }];
    const replies = [];
    for (const [role, content] of [['system', capital[0].content], ['developer', inParts]]) {
      const reply = await chat({
        messages: [{ role, content: 'Be kind.' }, { role: 'user', content }],
      });
      replies.push([reply.choices[0].message.content, reply.usage.prompt_tokens]);
    }
    assert.deepEqual(replies[1], replies[0]);
  });

  test('an aborted stream frees the server', async () => {
    const stream = await chat({ messages: story, temperature: 1.5, top_k: 0, max_tokens: 3000, logit_bias: await noEnd(), stream: true });
    let nChunks = 0;
    for await (const chunk of stream) {
      nChunks += chunk.choices.length;
      if (nChunks === 3) {
        stream.controller.abort();
        break;
      }
    }
    assert.equal(nChunks, 3);
    await shared.facet.idle();
  });
});

/** Bias against the tokens that end a reply, so that it goes on up to its limit. */
async function noEnd() {
  const { json } = await shared.facet.post('/tokenize', { content: '<eos><turn|><|tool_response>', parse_special: true });
  return Object.fromEntries(json.tokens.map((id) => [id, -100]));
}

describe('tools', () => {
  test('a call, its result, the answer', async () => {
    const tools = [weatherTool, lampTool];
    const messages = ask('What is the weather in Rome and Paris?');
    const reply = await chat({ messages, tools });
    const { message, finish_reason: finishReason } = reply.choices[0];
    assert.equal(finishReason, 'tool_calls');
    assert.deepEqual(
      message.tool_calls.map((call) => [call.type, call.function.name, JSON.parse(call.function.arguments)]),
      ['Rome', 'Paris'].map((city) => ['function', 'get_weather', { city }]),
    );
    assert.equal(new Set(message.tool_calls.map(({ id }) => id)).size, 2);

    const results = message.tool_calls.map((call, i) => ({
      role: 'tool',
      tool_call_id: call.id,
      content: `${[14, -2][i]} degrees`,
    }));
    const answer = await chat({ messages: [...messages, message, ...results], tools });
    assert.equal(answer.choices[0].finish_reason, 'stop');
    assert.equal(
      answer.choices[0].message.content,
      'The weather in Rome is 14 degrees. The weather in Paris is -2 degrees.',
    );
  });

  test('streamed calls have an index, an id and a name each, and whole arguments', async () => {
    const request = { messages: ask('What is the weather in Rome and Paris?'), tools: [weatherTool] };
    const joined = await join(await chat({ ...request, stream: true }));
    assert.equal(joined.finishReasons[0], 'tool_calls');
    assert.equal(joined.contents[0], '');
    assert.deepEqual(
      joined.toolCalls.map((call) => [call.name, JSON.parse(call.arguments)]),
      ['Rome', 'Paris'].map((city) => ['get_weather', { city }]),
    );
    assert.ok(joined.toolCalls.every(({ id }) => id));
  });

  test('values have the types of the schema', async () => {
    const reply = await chat({ messages: ask('Turn off the lamp in the cellar, please.'), tools: [lampTool] });
    assert.deepEqual(JSON.parse(reply.choices[0].message.tool_calls[0].function.arguments), { room: 'cellar', on: false });
  });

  test('parallel_tool_calls: false ends after the first', async () => {
    const messages = ask('What is the weather in Rome and Paris?');
    const reply = await chat({ messages, tools: [weatherTool], parallel_tool_calls: false });
    assert.equal(reply.choices[0].message.tool_calls.length, 1);
    assert.equal(reply.choices[0].finish_reason, 'tool_calls');
  });

  test('tool_choice: none gives no calls', async () => {
    const messages = ask('What is the weather in Rome?');
    const reply = await chat({ messages, tools: [weatherTool], tool_choice: 'none', max_tokens: 32 });
    assert.equal(reply.choices[0].message.tool_calls, undefined);
    assert.notEqual(reply.choices[0].finish_reason, 'tool_calls');
  });

  test('runTools of the SDK goes round by itself', async () => {
    const asked = [];
    const runner = clientOf(shared.facet).chat.completions.runTools({
      model: await model(),
      temperature: 0,
      messages: ask('What is the weather in Dakar?'),
      tools: [
        {
          type: 'function',
          function: {
            ...weatherTool.function,
            parse: JSON.parse,
            function: ({ city }) => {
              asked.push(city);
              return '14 degrees';
            },
          },
        },
      ],
    });
    assert.match(await runner.finalContent(), /The weather in Dakar is 14 degrees\./);
    assert.deepEqual(asked, ['Dakar']);
  });
});

describe('completions', () => {
  const complete = async (fields) =>
    clientOf(shared.facet).completions.create({ model: await model(), temperature: 0, max_tokens: 8, ...fields });
  const prompt = '<bos><|turn>user\nWhat is the capital of France?<turn|>\n<|turn>model\n';

  test('plain text is continued', async () => {
    const reply = await complete({ prompt });
    assert.equal(reply.object, 'text_completion');
    assert.match(reply.id, /^cmpl-/);
    assert.equal(typeof reply.choices[0].text, 'string');
    assert.ok(reply.usage.completion_tokens <= 8);
  });

  test('several prompts, n of each, in order', async () => {
    const reply = await complete({ prompt: ['one two', 'red green'], n: 2 });
    assert.deepEqual(reply.choices.map(({ index }) => index), [0, 1, 2, 3]);
    assert.equal(reply.choices[0].text, reply.choices[1].text);
    const alone = await complete({ prompt: 'red green' });
    assert.equal(reply.choices[2].text, alone.choices[0].text);
  });

  test('echo', async () => {
    const reply = await complete({ prompt: 'red green', echo: true });
    const alone = await complete({ prompt: 'red green' });
    assert.equal(reply.choices[0].text, `red green${alone.choices[0].text}`);
  });

  test('a stream equals the whole', async () => {
    const whole = await complete({ prompt });
    let text = '';
    for await (const chunk of await complete({ prompt, stream: true })) {
      text += chunk.choices[0]?.text ?? '';
    }
    assert.equal(text, whole.choices[0].text);
  });

  test('suffix is refused', async () => {
    await assert.rejects(complete({ prompt: 'a', suffix: 'b' }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError, `${error}`);
      assert.equal(error.param, 'suffix');
      return true;
    });
  });
});

describe('models', () => {
  test('the list has the one that is served', async () => {
    const { data } = await clientOf(shared.facet).models.list();
    assert.equal(data.length, 1);
    assert.equal(data[0].object, 'model');
    assert.deepEqual(await clientOf(shared.facet).models.retrieve(data[0].id), data[0]);
  });
});

describe('errors', () => {
  const refused = (promise, kind, fields) =>
    assert.rejects(promise, (error) => {
      assert.ok(error instanceof kind, `${error.constructor.name}: ${error}`);
      for (const [name, value] of Object.entries(fields)) {
        assert.equal(error[name], value, `${name} of ${error}`);
      }
      return true;
    });

  test('a bad parameter is named', async () => {
    const { BadRequestError } = OpenAI;
    await refused(chat({ messages: capital, temperature: -1 }), BadRequestError, { param: 'temperature', status: 400 });
    await refused(chat({ messages: capital, top_p: 2 }), BadRequestError, { param: 'top_p' });
    await refused(chat({ messages: capital, n: 0 }), BadRequestError, { param: 'n' });
    await refused(chat({ messages: capital, max_tokens: 'many' }), BadRequestError, { param: 'max_tokens' });
    await refused(chat({ messages: [] }), BadRequestError, { param: 'messages' });
    await refused(chat({ messages: [{ role: 'king', content: '' }] }), BadRequestError, { param: 'messages[0].role' });
  });

  test('a prompt that is too long says so, with both numbers', async () => {
    const long = 'sun moon '.repeat(5000);
    await assert.rejects(chat({ messages: ask(long) }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError, `${error}`);
      assert.equal(error.code, 'context_length_exceeded');
      assert.match(error.message, /4096/);
      assert.match(error.message, /\b1\d{4}\b/);
      return true;
    });
  });

  test('embeddings are not to be had', async () => {
    const embed = clientOf(shared.facet).embeddings.create({ model: await model(), input: 'text', encoding_format: 'float' });
    await assert.rejects(embed, (error) => error instanceof OpenAI.InternalServerError && error.status === 501);
  });

  test('a wrong key', async () => {
    const facet = await startFacet(['--api-key', 'right']);
    try {
      await refused(clientOf(facet, 'wrong').models.list(), OpenAI.AuthenticationError, { status: 401 });
      const question = { model: 'any', messages: capital };
      await refused(clientOf(facet, 'wrong').chat.completions.create(question), OpenAI.AuthenticationError, {});
      assert.equal((await clientOf(facet, 'right').models.list()).data.length, 1);
    } finally {
      await facet.stop();
    }
  });
});
