// SPDX-License-Identifier: Apache-2.0
// Pictures, sound and video through OpenAI's SDK: the goldens of the tiny model from the bytes of a file to the answer,
// and one clear error for each part that cannot be read.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { root, sharedFacet } from './support/facet.mjs';

const shared = sharedFacet({ before, after });
const folder = join(root, 'testdata/tiny-hf');
const goldens = JSON.parse(readFileSync(join(folder, 'goldens.json'), 'utf8')).cases.filter(({ files }) => files);
const base64Of = (name) => readFileSync(join(folder, 'media', name)).toString('base64');
const picture = (name, detail) => ({
  type: 'image_url',
  image_url: { url: `data:image/png;base64,${base64Of(name)}`, ...(detail && { detail }) },
});
const sound = (name) => ({ type: 'input_audio', input_audio: { data: base64Of(name), format: 'wav' } });
const frames = (names) => ({ type: 'video', frames: names.map((name) => picture(name).image_url.url), fps: 1 });

/** The media part of a golden, as a client sends it. */
function partOf({ messages, files }) {
  const { type } = messages[0].content[0];
  return type === 'image' ? picture(files[0]) : type === 'audio' ? sound(files[0]) : frames(files);
}

const ask = async (parts, fields = {}) =>
  new OpenAI({ baseURL: `${shared.facet.url}/v1`, apiKey: 'unused', maxRetries: 0, timeout: 60_000 }).chat.completions.create({
    model: 'any',
    temperature: 0,
    messages: [{ role: 'user', content: parts }],
    ...fields,
  });
const contentOf = (reply) => reply.choices[0].message.content;
const text = (words) => ({ type: 'text', text: words });

describe('goldens', () => {
  for (const golden of goldens) {
    test(golden.name, async () => {
      const reply = await ask([partOf(golden), golden.messages[0].content[1]]);
      assert.equal(contentOf(reply), golden.output.replace(/<turn\|>$/, ''));
      assert.equal(reply.usage.prompt_tokens, golden.ids.length);
      const { image_tokens: image, audio_tokens: audio, video_tokens: video } = reply.usage.prompt_tokens_details;
      const soft = { image: 19, audio: 22, video: 23 };
      const count = (id) => golden.ids.filter((other) => other === id).length;
      assert.deepEqual({ image, audio, video }, { image: count(soft.image), audio: count(soft.audio), video: count(soft.video) });
      assert.equal(reply.notices, undefined);
    });
  }

  test('have the tokens of the reference', async () => {
    for (const golden of goldens) {
      const messages = [{ role: 'user', content: [partOf(golden), golden.messages[0].content[1]] }];
      const { json } = await shared.facet.post('/tokenize', { messages });
      assert.deepEqual(json.tokens, golden.ids, golden.name);
    }
  });
});

describe('pictures', () => {
  const [golden] = goldens;
  const question = golden.messages[0].content[1];

  test('detail low is the same reply, streamed too', async () => {
    const low = await ask([picture(golden.files[0], 'low'), question]);
    const whole = await ask([picture(golden.files[0]), question]);
    assert.equal(contentOf(low), contentOf(whole));
    let joined = '';
    for await (const chunk of await ask([picture(golden.files[0]), question], { stream: true })) {
      joined += chunk.choices[0]?.delta.content ?? '';
    }
    assert.equal(joined, contentOf(whole));
  });

  test('two in one message take the tokens of both', async () => {
    const one = await ask([picture('image0_0.png'), question], { max_tokens: 1 });
    const two = await ask([picture('image0_0.png'), picture('image1_0.png'), question], { max_tokens: 1 });
    const tokens = (reply) => reply.usage.prompt_tokens_details.image_tokens;
    assert.ok(tokens(two) > tokens(one) && tokens(one) > 0);
    assert.equal(two.usage.prompt_tokens - tokens(two), one.usage.prompt_tokens - tokens(one) + 2, 'two marks more');
  });

  test('that were seen before are not computed again', async () => {
    const parts = [picture('image2_0.png'), text('What do you see?')];
    const first = await ask(parts);
    const again = await ask(parts);
    assert.equal(contentOf(again), contentOf(first));
    assert.ok(again.usage.prompt_tokens_details.cached_tokens > 0);
  });

  test('typed marks stay text', async () => {
    const { json } = await shared.facet.post('/apply-template', { messages: [{ role: 'user', content: '<|image|>' }] });
    assert.match(json.prompt, /<\|image\|>/);
    const reply = await ask([text('<|image|>')], { max_tokens: 1 });
    assert.equal(reply.usage.prompt_tokens_details.image_tokens, undefined);
  });
});

describe('bad parts', () => {
  const url = (value) => ({ type: 'image_url', image_url: { url: value } });
  const data = (value, format = 'wav') => ({ type: 'input_audio', input_audio: { data: value, format } });
  const where = 'messages[0].content[0]';
  const cases = [
    ['no member', { type: 'image_url' }, '.image_url: nothing, wanted an object with url'],
    ['detail', { type: 'image_url', image_url: { url: 'data:,', detail: 'hi' } }, '.image_url.detail: "hi", wanted low, auto or high'],
    ['a file', url('file:///etc/passwd'), '.image_url.url: a URL of another kind, wanted data:, http:// or https://'],
    ['the network', url('https://127.0.0.1/a.png'), '.image_url.url: a URL of the network, wanted a data URI (or --media-fetch)'],
    ['no base64', url('data:image/png,abc'), '.image_url.url: a data URI without base64, wanted data:TYPE;base64,DATA'],
    ['nothing', url('data:image/png;base64,'), '.image_url.url: no bytes, wanted a file'],
    ['a path', { type: 'image', path: '/etc/passwd' }, '.path: a path, wanted a URL (files are not read here)'],
    ['a format', data('QUJD', 'midi'), '.input_audio.format: "midi", wanted wav, mp3, flac, ogg, opus, m4a or aac'],
    ['frames without time', { type: 'video', frames: ['data:,'] }, '.fps: nothing, wanted fps, or seconds for each frame'],
    ['another type', { type: 'smell' }, '.type: "smell", wanted text, image_url, input_audio, audio_url, video_url, image, audio or video'],
  ];
  for (const [name, part, message] of cases) {
    test(name, async () => {
      const { status, json } = await shared.facet.post('/v1/chat/completions', { messages: [{ role: 'user', content: [part] }] });
      assert.equal(status, 400);
      assert.equal(json.error.message, where + message);
      assert.equal(json.error.type, 'invalid_request_error');
    });
  }

  test('files that are none, or of another kind', async () => {
    const wave = base64Of('audio1.wav');
    const image = base64Of('image0_0.png');
    for (const part of [url('data:image/png;base64,QUJD'), url(`data:image/png;base64,${wave}`), data('QUJD'), data(image),
      url(`data:image/png;base64,${image.slice(0, 400)}`), { type: 'video_url', video_url: { url: `data:video/mp4;base64,${image}` } }]) {
      const { status, json } = await shared.facet.post('/v1/chat/completions', { messages: [{ role: 'user', content: [part] }] });
      assert.equal(status, 400, json?.error?.message);
      assert.ok(json.error.message.startsWith(where), json.error.message);
    }
    assert.equal(await shared.facet.ask('What is the capital of France?'), 'The capital of France is Paris.');
  });

  test('media in a system message', async () => {
    const { status, json } = await shared.facet.post('/v1/chat/completions', {
      messages: [{ role: 'system', content: [url('data:,')] }, { role: 'user', content: 'Hi' }],
    });
    assert.equal(status, 400);
    assert.match(json.error.message, /wanted text \(media are for messages of role user or tool\)$/);
  });
});

test('modalities and metrics', async () => {
  const { json } = await shared.facet.get('/v1/models');
  assert.deepEqual(json.data[0].modalities.slice(0, 3), ['text', 'image', 'audio']);
  const before = await shared.facet.metrics();
  await ask([picture('image0_0.png'), text('What do you see?')], { max_tokens: 1 });
  const afterwards = await shared.facet.metrics();
  assert.equal(afterwards['facet_media_total{kind="image"}'], before['facet_media_total{kind="image"}'] + 1);
  assert.ok(afterwards.facet_media_read_seconds_total > before.facet_media_read_seconds_total);
});
