// SPDX-License-Identifier: Apache-2.0
// Tokens that are guessed ahead: the same replies with every `spec`, and usage, metrics and properties that tell of the guesses.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sharedFacet } from './support/facet.mjs';
import { collect, stream } from './support/sse.mjs';

const shared = sharedFacet({ before, after });
const questions = ['Tell me a story about a fox.', 'Say "the sun and the moon" five times.', 'What is 3 + 9 + 20?'];

/** The reply as a stream. `cache_prompt`: what one reply leaves must not be what the next one is compared with. */
const reply = async (question, fields) => {
  const messages = [{ role: 'user', content: question }];
  const { chunks } = await stream(`${shared.facet.url}/v1/chat/completions`, {
    messages,
    max_tokens: 120,
    cache_prompt: false,
    stream_options: { include_usage: true },
    ...fields,
  });
  return collect(chunks);
};

const draftsOf = ({ usage }) => {
  const details = usage.completion_tokens_details;
  return [details.accepted_prediction_tokens, details.rejected_prediction_tokens];
};

describe('drafting', () => {
  for (const [name, drawing] of [
    ['the likeliest tokens', { temperature: 0 }],
    ['drawn tokens', { temperature: 0.8, seed: 11 }],
  ]) {
    test(`the stream of ${name} is the one without`, async () => {
      for (const question of questions) {
        const plain = await reply(question, { ...drawing, spec: 'off' });
        assert.deepEqual(draftsOf(plain), [0, 0]);
        for (const spec of ['auto', 'mtp', 'ngram', undefined]) {
          const drafted = await reply(question, { ...drawing, spec });
          assert.equal(drafted.content, plain.content, `${question} ${spec}`);
          assert.equal(drafted.finishReason, plain.finishReason);
          assert.equal(drafted.usage.completion_tokens, plain.usage.completion_tokens);
        }
      }
    });
  }

  test('usage and metrics count what was accepted', async () => {
    const former = await shared.facet.metrics();
    let accepted = 0;
    let rejected = 0;
    // What pays depends on the machine; it is tried now and then, and a model of this size is guessed well.
    for (let n = 0; n < 100 && accepted === 0; ++n) {
      const [right, wrong] = draftsOf(await reply(questions[0], { temperature: 0, spec: 'mtp' }));
      accepted += right;
      rejected += wrong;
    }
    assert.ok(accepted > 0, 'no draft was accepted');
    const metrics = await shared.facet.metrics();
    const grown = (name) => metrics[name] - former[name];
    assert.equal(grown('facet_draft_accepted_tokens_total'), accepted);
    assert.equal(grown('facet_draft_tokens_total'), accepted + rejected);
    assert.ok(grown('facet_draft_seconds_total') > 0);
  });

  test('another word is refused by name', async () => {
    const answer = await shared.facet.post('/v1/chat/completions', { messages: [{ role: 'user', content: 'Hi' }], spec: 'on' });
    assert.equal(answer.status, 400);
    assert.equal(answer.json.error.param, 'spec');
    assert.equal(answer.json.error.message, 'spec: "on", wanted auto, mtp, ngram or off');
  });

  test('the properties tell that a drafter is there', async () => {
    assert.deepEqual((await shared.facet.get('/props')).json.drafting, { spec: 'auto', drafter: true });
  });
});
