// SPDX-License-Identifier: Apache-2.0
// Random requests that are the same for the same seed, and tools that the tiny model has learned to call.

/** Uniform in [0, 1): mulberry32, so that each client has a generator of its own. */
export function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const tool = (name, description, properties, required = Object.keys(properties)) => ({
  type: 'function',
  function: { name, description, parameters: { type: 'object', properties, required } },
});

export const weatherTool = tool(
  'get_weather',
  'Current weather of a city',
  {
    city: { type: 'string', description: 'City name' },
    unit: { type: 'string', enum: ['celsius', 'fahrenheit'] },
  },
  ['city'],
);
export const lampTool = tool('set_lamp', 'Switch a lamp', { room: { type: 'string' }, on: { type: 'boolean' } });
export const calculateTool = tool('calculate', 'Calculate an expression', { expression: { type: 'string' } });

const words = 'sun moon star river stone lamp key book fox bear owl wolf apple bread corn milk red green blue black'.split(' ');
const countries = 'France Japan Mexico Denmark Iran Finland Morocco Egypt Greece Latvia'.split(' ');
const cities = 'Rome Paris Moscow Ankara Dakar Lisbon Havana Copenhagen'.split(' ');
const systems = [
  'You are a helpful assistant.',
  'Answer in one short sentence. Be kind. Never speak of the weather unless a tool has told you about it.',
];

const pick = (random, list) => list[Math.floor(random() * list.length)];
const someWords = (random, n) => Array.from({ length: n }, () => pick(random, words)).join(random() < 0.5 ? ' ' : ', ');

function question(random) {
  const kinds = [
    () => `What is the capital of ${pick(random, countries)}?`,
    () => `Tell me a story about a ${pick(random, words)}.`,
    () => `Reverse this list: ${someWords(random, 2 + Math.floor(random() * 6))}`,
    () => `What is the weather in ${pick(random, cities)}?`,
    () => 'Write the alphabet.',
    () => someWords(random, 1 + Math.floor(random() * 40)),
    () => someWords(random, 100 + Math.floor(random() * 500)),
  ];
  // Long prompts are the rare ones, as they are with people.
  return kinds[Math.min(kinds.length - 1, Math.floor(random() ** 1.5 * kinds.length))]();
}

/** A chat of one to three turns with settings that a solo run can repeat: either greedy or with a seed. */
export function randomChat(random) {
  const messages = random() < 0.6 ? [{ role: 'system', content: pick(random, systems) }] : [];
  for (let n = Math.floor(random() * 3); n > 0; --n) {
    messages.push({ role: 'user', content: question(random) }, { role: 'assistant', content: someWords(random, 5) });
  }
  messages.push({ role: 'user', content: question(random) });
  const chat = { messages, max_tokens: 4 + Math.floor(random() * 44) };
  if (random() < 0.3) {
    chat.tools = random() < 0.5 ? [weatherTool] : [weatherTool, lampTool, calculateTool];
  }
  return random() < 0.5
    ? { ...chat, temperature: 0 }
    : { ...chat, temperature: 0.5 + random(), top_k: 40, seed: Math.floor(random() * 1e6) };
}
