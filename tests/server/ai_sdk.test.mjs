// SPDX-License-Identifier: Apache-2.0
// The `ai` SDK through its provider for servers that speak OpenAI's API.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { sharedFacet } from './support/facet.mjs';

const shared = sharedFacet({ before, after });
const settings = () => ({
  model: createOpenAICompatible({ name: 'facet', baseURL: `${shared.facet.url}/v1` })('facet-tiny'),
  temperature: 0,
  maxRetries: 0,
});
const weather = (results) =>
  tool({
    description: 'Current weather of a city',
    inputSchema: z.object({ city: z.string().describe('City name') }),
    execute: async ({ city }) => results[city],
  });

test('generateText', async () => {
  const { text, finishReason, usage } = await generateText({ ...settings(), prompt: 'What is the capital of France?' });
  assert.equal(text, 'The capital of France is Paris.');
  assert.equal(finishReason, 'stop');
  assert.equal(usage.inputTokens, 16);
  assert.ok(usage.outputTokens > 0);
});

test('streamText', async () => {
  const asked = { ...settings(), system: 'Be kind.', prompt: 'Tell me a story about a fox.' };
  const streamed = streamText({ ...asked, onError: ({ error }) => assert.fail(`${error}`) });
  const parts = [];
  for await (const part of streamed.textStream) {
    parts.push(part);
  }
  assert.ok(parts.length > 10, `${parts.length} parts`);
  assert.equal(parts.join(''), (await generateText(asked)).text);
  assert.equal(await streamed.finishReason, 'stop');
});

test('a tool is called, and its result is used', async () => {
  const { text, steps } = await generateText({
    ...settings(),
    prompt: 'Weather in Dakar and in Copenhagen?',
    tools: { get_weather: weather({ Dakar: '14 degrees', Copenhagen: '-2 degrees' }) },
    stopWhen: stepCountIs(3),
  });
  assert.deepEqual(
    steps[0].toolCalls.map(({ toolName, input }) => [toolName, input]),
    [
      ['get_weather', { city: 'Dakar' }],
      ['get_weather', { city: 'Copenhagen' }],
    ],
  );
  assert.equal(text, 'The weather in Dakar is 14 degrees. The weather in Copenhagen is -2 degrees.');
  assert.equal(steps.length, 2);
});

test('a tool call in a stream', async () => {
  const streamed = streamText({
    ...settings(),
    prompt: 'What is the weather in Rome?',
    tools: { get_weather: weather({ Rome: '21 degrees' }) },
    stopWhen: stepCountIs(3),
    onError: ({ error }) => assert.fail(`${error}`),
  });
  await streamed.consumeStream();
  assert.match(await streamed.text, /The weather in Rome is 21 degrees\./);
});

test('a thought is reasoning', async () => {
  const { text, reasoningText } = await generateText({
    ...settings(),
    prompt: 'What is the capital of Egypt?',
    providerOptions: { facet: { reasoningEffort: 'medium' } },
  });
  assert.equal(reasoningText.trim(), 'The user asks for the capital of Egypt. I know it.');
  assert.equal(text, 'The capital of Egypt is Cairo.');
});

test('a refusal has the words of the server', async () => {
  await assert.rejects(generateText({ ...settings(), prompt: 'Hello', topP: 7 }), /top_p/);
});
