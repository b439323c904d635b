// SPDX-License-Identifier: Apache-2.0
// A TCP client that says anything, HTTP or not.
import { once } from 'node:events';
import { connect } from 'node:net';

/**
 * Sends the pieces one after the other and reads until the server closes, or is silent for `quietSeconds` after the last
 * piece. Gives {text, closed}. A connection that the server resets counts as closed.
 */
export async function exchange(port, pieces, { quietSeconds = 1, halfClose = true } = {}) {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const received = [];
  let closed = false;
  socket.on('data', (bytes) => received.push(bytes));
  socket.on('error', () => {});
  const end = new Promise((done) => {
    socket.on('end', done);
    socket.on('close', done);
  }).then(() => {
    closed = true;
  });
  await Promise.race([once(socket, 'connect'), end]).catch(() => {});
  for (const piece of [pieces].flat()) {
    if (!socket.writable) {
      break;
    }
    await new Promise((done) => socket.write(piece, done));
  }
  if (halfClose && socket.writable) {
    socket.end();
  }
  await Promise.race([end, quiet(received, quietSeconds)]);
  socket.destroy();
  return { text: Buffer.concat(received).toString('latin1'), closed };
}

/** Resolves when nothing was added to `list` for so long. */
async function quiet(list, seconds) {
  for (let length = -1; length !== list.length; ) {
    length = list.length;
    await new Promise((done) => setTimeout(done, seconds * 1000));
  }
}

/** The answers in what a connection received: [{status, body}], bodies by their content-length. */
export function answersIn(text) {
  const answers = [];
  while (text !== '') {
    const [head, status] = text.match(/^HTTP\/1\.1 (\d{3})[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n/) ?? [];
    if (!head) {
      throw new Error(`not an HTTP answer: ${JSON.stringify(text.slice(0, 200))}`);
    }
    const length = Number(head.match(/^content-length: *(\d+)/im)?.[1] ?? 0);
    answers.push({ status: Number(status), body: text.slice(head.length, head.length + length) });
    text = text.slice(head.length + length);
  }
  return answers;
}
