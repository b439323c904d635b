// SPDX-License-Identifier: Apache-2.0
// Starts `facet serve` on a free port of this machine, as a user would, and looks at it from outside: what it printed,
// its metrics, its memory. FACET_PROGRAM names the program; without it the builds of ./dev are tried.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = resolve(fileURLToPath(new URL('../../..', import.meta.url)));

export const program = (() => {
  if (process.env.FACET_PROGRAM) {
    return resolve(process.env.FACET_PROGRAM);
  }
  const built = ['build/dev/facet', 'build/release/facet'].map((path) => join(root, path));
  const found = built.find((path) => existsSync(path));
  if (!found) {
    throw new Error(`no program to test: build it (./dev build), or name it in FACET_PROGRAM; looked for ${built}`);
  }
  return found;
})();

/** Gauges of /metrics that are 0 on a server with nothing to do. */
const idleGauges = [
  'facet_sequences_running',
  'facet_sequences_waiting',
  'facet_kv_blocks{group="sliding",state="held"}',
  'facet_kv_blocks{group="full",state="held"}',
];

/** A program that runs beside the test. Its output is kept, and shown when something about it fails. */
export class Program {
  constructor(command, args, options = {}) {
    this.name = [command, ...args].join(' ');
    this.output = '';
    this.process = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
    this.waiting = new Set();
    const take = (bytes) => {
      this.output += bytes;
      this.waiting.forEach((look) => look());
    };
    this.process.stdout.on('data', take);
    this.process.stderr.on('data', take);
    /** Resolves to {code, signal} when the program has ended and all its output was read. */
    this.ended = new Promise((done) => {
      this.process.on('error', (error) => done({ code: null, signal: String(error) }));
      this.process.on('close', (code, signal) => done({ code, signal }));
    });
  }

  /** The first match of `pattern` in the output, as soon as it is there. */
  async print(pattern, seconds = 30) {
    let look;
    const seen = new Promise((done) => {
      look = () => {
        const match = this.output.match(pattern);
        if (match) {
          done(match);
        }
      };
      look();
    });
    this.waiting.add(look);
    const found = await Promise.race([seen, this.ended, after(seconds)]);
    this.waiting.delete(look);
    if (!Array.isArray(found)) {
      const why = found ? `ended with ${JSON.stringify(found)}` : `has not said so in ${seconds} s`;
      throw new Error(`${this.name}: ${why}; wanted ${pattern}. Its output:\n${this.output}`);
    }
    return found;
  }

  /** Sends the signal, and waits for the end: {code, signal}. Kills what does not end. */
  async stop(signal = 'SIGTERM', seconds = 20) {
    this.process.kill(signal);
    const end = await Promise.race([this.ended, after(seconds)]);
    if (!end) {
      this.process.kill('SIGKILL');
      throw new Error(`${this.name}: still runs ${seconds} s after ${signal}. Its output:\n${this.output}`);
    }
    return end;
  }
}

/** Resolves to nothing after so many seconds, without keeping the test alive. */
function after(seconds) {
  return new Promise((done) => setTimeout(done, seconds * 1000).unref());
}

export const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Waits until `holds()` is true; looks often. `what` tells the failure. */
export async function eventually(what, holds, seconds = 20) {
  const deadline = performance.now() + seconds * 1000;
  for (let last; ; ) {
    last = await holds();
    if (last === true) {
      return;
    }
    if (performance.now() > deadline) {
      throw new Error(`not in ${seconds} s: ${what}; last seen: ${JSON.stringify(last)}`);
    }
    await pause(20);
  }
}

/** One running server. */
class Facet extends Program {
  /** What `facet serve` says when it listens. */
  async ready() {
    const [, url] = await this.print(/(http:\/\/(?:127\.0\.0\.1|localhost|\[::1\]):[0-9]+)/);
    this.url = url;
    this.port = Number(new URL(url).port);
    return this;
  }

  /** The values of /metrics by name, labels included as they are written. */
  async metrics(headers = {}) {
    const answer = await fetch(`${this.url}/metrics`, { headers });
    const text = await answer.text();
    if (answer.status !== 200) {
      throw new Error(`/metrics: ${answer.status} ${text}`);
    }
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return Object.fromEntries(
      lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
    );
  }

  /** Waits until nothing runs, waits or holds memory. */
  async idle(seconds = 20, headers = {}) {
    await eventually(
      'an idle server',
      async () => {
        const metrics = await this.metrics(headers);
        const state = idleGauges.map((name) => [name, metrics[name]]);
        return state.every(([, value]) => value === 0) || state;
      },
      seconds,
    );
  }

  residentBytes() {
    const status = readFileSync(`/proc/${this.process.pid}/status`, 'utf8');
    return Number(status.match(/^VmRSS:\s*(\d+) kB$/m)[1]) * 1024;
  }

  /** Posts JSON (or `body` as it is, if it is text or bytes); the answer with its body as `text` and, if it is JSON, `json`. */
  async post(path, body, headers = {}) {
    const raw = typeof body === 'string' || body instanceof Uint8Array;
    return answerOf(
      await fetch(this.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: raw ? body : JSON.stringify(body),
      }),
    );
  }

  async get(path, headers = {}) {
    return answerOf(await fetch(this.url + path, { headers }));
  }

  /** A chat of one message at temperature 0: the text of the reply. */
  async ask(question, fields = {}) {
    const answer = await this.post('/v1/chat/completions', {
      messages: [{ role: 'user', content: question }],
      temperature: 0,
      ...fields,
    });
    if (answer.status !== 200) {
      throw new Error(`${answer.status} ${answer.text}`);
    }
    return answer.json.choices[0].message.content;
  }
}

async function answerOf(response) {
  const text = await response.text();
  let json;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  return { status: response.status, headers: response.headers, text, json };
}

/** Starts a server and waits until it listens. `args`: more arguments of `facet serve`. */
export async function startFacet(args = []) {
  return new Facet(program, ['serve', '--port', '0', ...args]).ready();
}

/** Runs `facet serve` when it is expected to end by itself: {code, signal, output}. */
export async function failedStart(args) {
  const facet = new Facet(program, ['serve', ...args]);
  const end = await Promise.race([facet.ended, after(30)]);
  if (!end) {
    facet.process.kill('SIGKILL');
    throw new Error(`facet serve ${args.join(' ')} was to refuse, and runs. Its output:\n${facet.output}`);
  }
  return { ...end, output: facet.output };
}

/** One server for all tests of a file: started before the first, stopped after the last; it must end cleanly. */
export function sharedFacet(hooks, args = []) {
  const shared = {};
  hooks.before(async () => {
    shared.facet = await startFacet(args);
  });
  hooks.after(async () => {
    const end = await shared.facet?.stop();
    if (end && end.code !== 0) {
      throw new Error(`the server ended with ${JSON.stringify(end)}. Its output:\n${shared.facet.output}`);
    }
  });
  return shared;
}

/** A folder that is removed after the test `t`. */
export async function temporaryFolder(t) {
  const folder = await mkdtemp(join(tmpdir(), 'facet-server-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
