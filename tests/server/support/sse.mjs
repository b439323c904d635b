// SPDX-License-Identifier: Apache-2.0
// Event streams, read by hand: what the specification of server-sent events asks for, and no more.

/** The events' data of a byte stream, one by one, as text. Throws if the stream ends inside an event. */
export async function* eventsOf(chunks) {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  for await (const chunk of chunks) {
    rest += decoder.decode(chunk, { stream: true });
    for (let end; (end = rest.indexOf('\n\n')) >= 0; ) {
      const lines = rest.slice(0, end).split('\n');
      rest = rest.slice(end + 2);
      const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.slice(5).replace(/^ /, ''));
      if (data.length > 0) {
        yield data.join('\n');
      }
      const other = lines.filter((line) => !line.startsWith('data:') && !line.startsWith(':') && line !== '');
      if (other.length > 0) {
        throw new Error(`a line of a stream that is neither data nor a comment: ${JSON.stringify(other)}`);
      }
    }
  }
  rest += decoder.decode();
  if (rest !== '') {
    throw new Error(`the stream ends inside an event: ${JSON.stringify(rest)}`);
  }
}

/** Posts a streamed request. Gives {response, chunks}: the parsed chunks as they come, up to [DONE], which must be last. */
export async function stream(url, body, { signal, headers = {} } = {}) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ ...body, stream: true }),
    signal,
  });
  if (response.status !== 200) {
    throw Object.assign(new Error(`${response.status} ${await response.text()}`), { status: response.status });
  }
  return { response, chunks: chunksOf(response) };
}

async function* chunksOf(response) {
  let isDone = false;
  for await (const data of eventsOf(response.body)) {
    if (isDone) {
      throw new Error(`data after [DONE]: ${data}`);
    }
    if (data === '[DONE]') {
      isDone = true;
    } else {
      yield JSON.parse(data);
    }
  }
  if (!isDone) {
    throw new Error('the stream ended without [DONE]');
  }
}

/** The whole message of choice 0 out of its chunks: {content, reasoning, toolCalls, finishReason, usage, nChunks}. */
export async function collect(chunks, onChunk = () => {}) {
  const whole = { content: '', reasoning: '', toolCalls: [], finishReason: null, usage: null, nChunks: 0 };
  for await (const chunk of chunks) {
    whole.nChunks += 1;
    if (chunk.error) {
      throw new Error(`an error in the stream: ${JSON.stringify(chunk.error)}`);
    }
    if (chunk.usage) {
      whole.usage = chunk.usage;
    }
    for (const choice of chunk.choices.filter(({ index }) => index === 0)) {
      add(whole, choice);
    }
    onChunk(chunk, whole);
  }
  return whole;
}

function add(whole, { delta, finish_reason: finishReason }) {
  whole.content += delta.content ?? '';
  whole.reasoning += delta.reasoning_content ?? '';
  for (const { index, id, function: called } of delta.tool_calls ?? []) {
    whole.toolCalls[index] ??= { id, name: called.name, arguments: '' };
    whole.toolCalls[index].arguments += called.arguments ?? '';
  }
  whole.finishReason = finishReason ?? whole.finishReason;
}
