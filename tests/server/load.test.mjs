// SPDX-License-Identifier: Apache-2.0
// 200 clients at once, a fifth of which leave midway: who stays gets what he would have got alone, byte for byte, and
// afterwards the server holds nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientOf, play, solo } from './support/crowd.mjs';
import { startFacet } from './support/facet.mjs';
import { randomOf } from './support/words.mjs';

const nClients = Number(process.env.FACET_LOAD_CLIENTS ?? 200);
const mib = 2 ** 20;

async function crowd(facet, firstSeed) {
  const players = Array.from({ length: nClients }, (_, i) => play(facet.url, clientOf(firstSeed + i)));
  const heard = (await Promise.all(players)).flat();
  await facet.idle();
  return heard;
}

/** Counts of answers that were the server's own fault. */
const faultsIn = (metrics) => Object.entries(metrics).filter(([name]) => /^facet_requests_total\{.*status="5/.test(name));

test(`${nClients} clients at once, replies as alone`, { timeout: 240_000 }, async (t) => {
  const facet = await startFacet();
  t.after(() => facet.stop('SIGKILL'));
  const first = await crowd(facet, 1000);
  const afterFirst = facet.residentBytes();
  const second = await crowd(facet, 5000);
  const growth = facet.residentBytes() - afterFirst;
  const heard = [...first, ...second];
  t.diagnostic(`${heard.length} replies heard to the end, of ${2 * nClients}; memory ${Math.round(afterFirst / mib)} MiB after the first half, ${Math.round(growth / mib)} MiB more after the second`);
  assert.ok(heard.length > 2 * nClients * 0.7 && heard.length < 2 * nClients * 0.95);
  const metrics = await facet.metrics();
  assert.deepEqual(faultsIn(metrics), []);
  assert.ok(metrics['facet_requests_total{route="/v1/chat/completions",status="499"}'] > 0, 'nobody left midway');
  assert.ok(growth < 64 * mib, `memory grew by ${growth / mib} MiB`);
  assert.deepEqual(await facet.stop(), { code: 0, signal: null }, facet.output);

  const alone = await startFacet(['--no-prefix-cache', '--parallel', '1']);
  t.after(() => alone.stop('SIGKILL'));
  for (const { request, reply } of heard) {
    assert.deepEqual(reply, await solo(alone.url, request), JSON.stringify(request));
  }
});

// Statement 64 of testdata/reports.md.
test('12 prompts from 3 to 1500 tokens, one client leaves', { timeout: 120_000 }, async (t) => {
  const facet = await startFacet();
  const alone = await startFacet(['--no-prefix-cache', '--parallel', '1']);
  t.after(() => Promise.all([facet.stop('SIGKILL'), alone.stop('SIGKILL')]));
  const random = randomOf(64);
  const acts = Array.from({ length: 12 }, (_, i) => ({
    thinkMs: 0,
    request: {
      messages: [{ role: 'user', content: 'a star '.repeat(1 + Math.floor((700 * i * i) / 121)) + Math.floor(random() * 100) }],
      temperature: 0,
      max_tokens: i % 3 === 0 ? 2 : 40,
    },
    leavesAfter: i === 7 ? 2 : Infinity,
  }));
  const heard = (await Promise.all(acts.map((act) => play(facet.url, [act])))).flat();
  assert.ok(heard.length >= 11);
  for (const { request, reply } of heard) {
    assert.deepEqual(reply, await solo(alone.url, request));
  }
  await facet.idle();
});

// Statement 69.
test('memory after 50 turns is that after 5', { timeout: 120_000 }, async (t) => {
  const facet = await startFacet();
  t.after(() => facet.stop('SIGKILL'));
  const messages = [];
  let afterFive;
  for (let turn = 1; turn <= 50; ++turn) {
    messages.push({ role: 'user', content: turn % 2 ? 'What does a dog say?' : 'Hello' });
    messages.push({ role: 'assistant', content: await facet.ask('', { messages, max_tokens: 20 }) });
    afterFive = turn === 5 ? facet.residentBytes() : afterFive;
  }
  const growth = facet.residentBytes() - afterFive;
  t.diagnostic(`${Math.round(growth / mib)} MiB more`);
  assert.ok(growth < 32 * mib, `memory grew by ${growth / mib} MiB`);
});
