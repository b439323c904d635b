// SPDX-License-Identifier: Apache-2.0
// The long form of load.test.mjs, by hand: `node soak.mjs --minutes 30 [--clients 200] [-- ARGUMENTS OF facet serve]`.
// New clients all the time, other ones each round; a sample of the replies is asked for again on a server that has
// nothing else to do. Prints a line each 15 seconds and fails if a reply differs, a request fails, or memory still grows
// in the second half.
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { clientOf, play, solo } from './support/crowd.mjs';
import { startFacet } from './support/facet.mjs';

const { values, positionals } = parseArgs({
  options: { minutes: { type: 'string', default: '30' }, clients: { type: 'string', default: '200' } },
  allowPositionals: true,
});
const minutes = Number(values.minutes);
const nClients = Number(values.clients);
const allowedGrowth = 0.05;
const checkedShare = 0.02;
const began = performance.now();
const elapsed = () => (performance.now() - began) / 60_000;

const facet = await startFacet(positionals);
const alone = await startFacet([...positionals, '--no-prefix-cache', '--parallel', '1']);
const samples = []; // {minutes, bytes}
const count = { heard: 0, checked: 0 };

/** One of the crowd: comes as somebody else each time, until the time is up. */
async function visitor(number) {
  for (let round = 0; elapsed() < minutes; ++round) {
    const heard = await play(facet.url, clientOf(number + round * nClients, { thinkMs: 2000 }));
    count.heard += heard.length;
    for (const { request, reply } of heard.filter(() => Math.random() < checkedShare)) {
      assert.deepEqual(reply, await solo(alone.url, request), JSON.stringify(request));
      count.checked += 1;
    }
  }
}

function sample() {
  samples.push({ minutes: elapsed(), bytes: facet.residentBytes() });
  const { minutes: at, bytes } = samples.at(-1);
  console.log(`${at.toFixed(2)} min  RSS ${(bytes / 2 ** 20).toFixed(1)} MiB  ${count.heard} replies, ${count.checked} compared`);
}

const clock = setInterval(sample, 15_000);
try {
  await Promise.all(Array.from({ length: nClients }, (_, i) => visitor(i)));
  await facet.idle();
  sample();
} finally {
  clearInterval(clock);
  await Promise.allSettled([facet.stop('SIGTERM'), alone.stop('SIGTERM')]);
}

const peak = (from, to) =>
  Math.max(...samples.filter((one) => one.minutes >= from && one.minutes <= to).map(({ bytes }) => bytes));
const growth = peak((3 * minutes) / 4, Infinity) / peak(minutes / 4, minutes / 2) - 1;
console.log(`peak memory of the last quarter over that of the second: ${(100 * growth).toFixed(1)} %`);
assert.ok(!(growth > allowedGrowth), 'memory grows');
