// SPDX-License-Identifier: Apache-2.0
// What goes wrong around the server: ports, files, disks, kill -9. One line says what, and nothing is left half done.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, unlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { eventually, failedStart, root, startFacet, temporaryFolder } from './support/facet.mjs';

const capital = ['What is the capital of France?', 'The capital of France is Paris.'];
const tinyModel = join(root, 'models/tiny/facet-tiny.gguf');

/** `facet serve` refuses with exit code `code` (2: because of the model) and one line that matches. */
async function refuses(args, pattern, code) {
  const { code: got, signal, output } = await failedStart(args);
  assert.equal(signal, null, output);
  assert.equal(got, code, output);
  const lines = output.split('\n').filter((line) => line !== '' && !line.startsWith('no model given'));
  assert.equal(lines.length, 1, output);
  assert.match(lines[0], /^facet: /);
  assert.match(lines[0], pattern);
}

describe('a start that cannot be', () => {
  test('the port is in use', async (t) => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    t.after(() => other.close());
    const { port } = other.address();
    await refuses(['--port', String(port)], new RegExp(`127\\.0\\.0\\.1:${port}.*in use`, 'i'), 1);
  });

  test('an address of nobody', async () => {
    await refuses(['--port', '0', '--host', '192.0.2.1', '--insecure'], /192\.0\.2\.1/, 1);
  });

  test('every address without a key', async () => {
    await refuses(['--port', '0', '--host', '0.0.0.0'], /key|insecure/, 1);
  });

  test('no model, or one that cannot be read', async (t) => {
    const folder = await temporaryFolder(t);
    await refuses(['--port', '0', '-m', join(folder, 'none.gguf')], /none\.gguf/, 2);
    const cut = join(folder, 'cut.gguf');
    await writeFile(cut, (await readFile(tinyModel)).subarray(0, 100_000));
    await refuses(['--port', '0', '-m', cut], /cut\.gguf/, 2);
    const noise = join(folder, 'noise.gguf');
    await writeFile(noise, 'GGUF but not really '.repeat(50));
    await refuses(['--port', '0', '-m', noise], /noise\.gguf/, 2);
    if (process.getuid() !== 0) {
      const secret = join(folder, 'secret.gguf');
      await writeFile(secret, 'GGUF');
      await chmod(secret, 0);
      await refuses(['--port', '0', '-m', secret], /secret\.gguf/, 2);
    }
  });
});

describe('the cache file', () => {
  const longQuestion = `${'the sun, the moon and a star; '.repeat(60)} ${capital[0]}`;

  async function cachedTokens(facet) {
    const { json, text } = await facet.post('/v1/chat/completions', {
      messages: [{ role: 'user', content: longQuestion }],
      temperature: 0,
      max_tokens: 4,
    });
    assert.ok(json?.usage, text);
    return json.usage.prompt_tokens_details.cached_tokens;
  }

  /** Stops a server that has read the long question, so that `file` is written. */
  async function saved(file) {
    const facet = await startFacet(['--cache-file', file]);
    await cachedTokens(facet);
    assert.deepEqual(await facet.stop(), { code: 0, signal: null }, facet.output);
    return facet;
  }

  test('is found again', async (t) => {
    const file = join(await temporaryFolder(t), 'cache');
    await saved(file);
    const facet = await startFacet(['--cache-file', file]);
    assert.ok((await cachedTokens(facet)) > 300);
    assert.equal((await facet.stop()).code, 0);
  });

  test('cut or changed, it is not used, and the server starts', async (t) => {
    const file = join(await temporaryFolder(t), 'cache');
    await saved(file);
    const good = await readFile(file);
    const flipped = Buffer.from(good);
    flipped[good.length >> 1] ^= 1;
    for (const bytes of [good.subarray(0, good.length >> 1), good.subarray(0, 7), Buffer.alloc(0), flipped, Buffer.from('noise')]) {
      await writeFile(file, bytes);
      const facet = await startFacet(['--cache-file', file]);
      assert.equal(await facet.ask(capital[0]), capital[1]);
      assert.ok((await cachedTokens(facet)) < 20, facet.output);
      assert.match(facet.output, /cache/);
      await facet.stop('SIGKILL');
    }
  });

  test('kill -9 while it is written', async (t) => {
    const folder = await temporaryFolder(t);
    const file = join(folder, 'cache');
    await saved(file);
    // From the moment the server is told to end, kill it a little later each time: before, during and after the save.
    for (const milliseconds of [0, 1, 2, 4, 6, 8, 12, 16, 24, 40]) {
      const facet = await startFacet(['--cache-file', file]);
      await cachedTokens(facet);
      facet.process.kill('SIGTERM');
      await new Promise((done) => setTimeout(done, milliseconds));
      await facet.stop('SIGKILL');

      const next = await startFacet(['--cache-file', file]);
      // What was saved before, or the new one: never half of one.
      assert.ok((await cachedTokens(next)) > 300, `killed after ${milliseconds} ms. Its output:\n${next.output}`);
      await next.stop('SIGKILL');
    }
    await saved(file);
    assert.deepEqual(await readdir(folder), ['cache'], 'no leftovers');
  });

  test('a full disk', async (t) => {
    const folder = await temporaryFolder(t);
    const disk = join(folder, 'disk');
    await mkdir(disk);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'facet-test', disk], { stdio: 'pipe' });
    } catch (error) {
      t.skip(`no small file system can be mounted here: ${String(error.stderr).trim()}`);
      return;
    }
    try {
      const file = join(disk, 'cache');
      const facet = await startFacet(['--cache-file', file]);
      await cachedTokens(facet);
      const end = await facet.stop();
      assert.equal(end.signal, null, facet.output);
      assert.match(facet.output, /cache.*(space|full)/i);
      assert.equal(existsSync(file), false, 'no half of a file under the final name');
      assert.deepEqual(await readdir(disk), [], 'the disk is as full as before');
    } finally {
      execFileSync('umount', [disk]);
    }
  });
});

describe('the end', () => {
  test('SIGTERM lets a running reply end', async () => {
    const facet = await startFacet();
    const reply = facet.ask('Tell me a story about a fox.');
    await eventually('a running request', async () => {
      const metrics = await facet.metrics();
      return metrics.facet_sequences_running === 1 || metrics.facet_generated_tokens_total > 0 || metrics;
    });
    assert.equal((await facet.stop()).code, 0);
    assert.match(await reply, /^Once a small red fox lived/);
  });

  test('SIGINT twice ends at once', async () => {
    const facet = await startFacet();
    const { json } = await facet.post('/tokenize', { content: '<eos><turn|><|tool_response>', parse_special: true });
    const endless = facet
      .ask('Tell me a story.', { temperature: 1.5, top_k: 0, max_tokens: 3900, logit_bias: Object.fromEntries(json.tokens.map((id) => [id, -100])) })
      .catch(() => 'cut');
    await eventually('a running request', async () => (await facet.metrics()).facet_sequences_running === 1);
    facet.process.kill('SIGINT');
    await facet.print(/stopping: /); // two signals at the same moment would be one
    const { signal } = await facet.stop('SIGINT', 5);
    assert.equal(signal, null, facet.output);
    await endless;
  });
});

describe('the model file', () => {
  test('taken away under a running server', async (t) => {
    const folder = await temporaryFolder(t);
    const file = join(folder, 'model.gguf');
    await writeFile(file, await readFile(tinyModel));
    const facet = await startFacet(['-m', file]);
    // Renamed or removed, not cut: the pages of a mapped file stay.
    await unlink(file);
    assert.equal(await facet.ask(capital[0]), capital[1]);
    assert.equal((await facet.stop()).code, 0);
  });
});
