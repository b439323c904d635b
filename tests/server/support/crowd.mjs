// SPDX-License-Identifier: Apache-2.0
// Many streaming clients at once, each with requests of its own, some of which leave midway: what load.test.mjs checks
// in seconds and soak.mjs for as long as one likes.
import { pause } from './facet.mjs';
import { collect, stream } from './sse.mjs';
import { randomChat, randomOf } from './words.mjs';

/** What one client does, out of its seed alone: think times, a request, and whether it leaves after some chunks. */
export function clientOf(seed, { nRequests = 1, leaving = 0.2, thinkMs = 300 } = {}) {
  const random = randomOf(seed);
  return Array.from({ length: nRequests }, () => ({
    thinkMs: random() * thinkMs,
    request: randomChat(random),
    leavesAfter: random() < leaving ? 1 + Math.floor(random() * 12) : Infinity,
  }));
}

/** What of a reply must be the same whoever else is served: everything but ids and times. */
const essence = ({ content, reasoning, toolCalls, finishReason, usage }) => ({
  content,
  reasoning,
  toolCalls: toolCalls.map(({ name, arguments: given }) => ({ name, arguments: given })),
  finishReason,
  nPrompt: usage.prompt_tokens,
  nGenerated: usage.completion_tokens,
});

const bodyOf = (request) => ({ ...request, stream_options: { include_usage: true } });

class Left extends Error {}

/** Plays one client against the server. Gives [{request, reply}] of the replies that it heard to the end. */
export async function play(url, acts) {
  const heard = [];
  for (const { thinkMs, request, leavesAfter } of acts) {
    await pause(thinkMs);
    const { chunks } = await stream(`${url}/v1/chat/completions`, bodyOf(request));
    try {
      const reply = await collect(chunks, (_, { nChunks }) => {
        if (nChunks >= leavesAfter) {
          throw new Left();
        }
      });
      heard.push({ request, reply: essence(reply) });
    } catch (error) {
      // Only one that leaves may be left without an end. Giving up the body closes the connection.
      if (!(error instanceof Left)) {
        throw new Error(`${JSON.stringify(request).slice(0, 500)}: ${error.message}`, { cause: error });
      }
    }
  }
  return heard;
}

/** The reply to a request on a server that has nothing else to do. */
export async function solo(url, request) {
  const { chunks } = await stream(`${url}/v1/chat/completions`, bodyOf(request));
  return essence(await collect(chunks));
}
