// SPDX-License-Identifier: Apache-2.0
// Streams through nginx and HAProxy as deploy/ configures them, over TLS. That they pass each event on at once is shown
// without clocks: a server in this file sends an event only when the client has the one before.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { request } from 'node:https';
import { createServer as createListener } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Program, eventually, root, startFacet, temporaryFolder } from './support/facet.mjs';
import { eventsOf } from './support/sse.mjs';

const key = 'a-key-for-the-proxy-tests';

async function freePort() {
  const listener = createListener().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address();
  listener.close();
  await once(listener, 'close');
  return port;
}

const isInstalled = (name) => {
  try {
    execFileSync('sh', ['-c', `PATH=$PATH:/usr/sbin command -v ${name}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

/** The text with each of `replacements` made; every one must be there to be made. */
function replaced(text, replacements) {
  for (const [from, to] of replacements) {
    assert.ok(text.includes(from), `the example no longer says "${from}"`);
    text = text.replaceAll(from, to);
  }
  return text;
}

async function makeCertificate(folder) {
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=localhost', '-keyout', join(folder, 'key.pem'), '-out', join(folder, 'cert.pem')],
    { stdio: 'pipe' },
  );
  const both = `${await readFile(join(folder, 'cert.pem'))}${await readFile(join(folder, 'key.pem'))}`;
  await writeFile(join(folder, 'both.pem'), both);
}

/** Each starts its proxy from the example in deploy/ with the ports and folders of this test. */
const proxies = {
  async nginx(folder, port, upstream) {
    const site = replaced(await readFile(join(root, 'deploy/nginx.conf'), 'utf8'), [
      ['listen 443 ssl http2;', `listen 127.0.0.1:${port} ssl http2;`],
      ['listen [::]:443 ssl http2;', ''],
      ['127.0.0.1:8080', `127.0.0.1:${upstream}`],
      ['/etc/ssl/certs/facet.pem', join(folder, 'cert.pem')],
      ['/etc/ssl/private/facet.key', join(folder, 'key.pem')],
    ]);
    await writeFile(join(folder, 'site.conf'), site);
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`);
    const main = [
      // As root its workers would become a user who cannot enter the folder.
      ...(process.getuid() === 0 ? ['user root;'] : []),
      'daemon off; worker_processes 1; error_log stderr;',
      `pid ${folder}/pid;`,
      `events {} http { access_log off; ${temporary.join(' ')} include ${folder}/site.conf; }`,
    ];
    await writeFile(join(folder, 'nginx.conf'), main.join('\n'));
    return new Program('nginx', ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')], withSbin);
  },

  async haproxy(folder, port, upstream) {
    const config = replaced(await readFile(join(root, 'deploy/haproxy.cfg'), 'utf8'), [
      ['bind :443', `bind 127.0.0.1:${port}`],
      ['/etc/haproxy/facet.pem', join(folder, 'both.pem')],
      ['127.0.0.1:8080', `127.0.0.1:${upstream}`],
    ]);
    await writeFile(join(folder, 'haproxy.cfg'), config);
    return new Program('haproxy', ['-db', '-f', join(folder, 'haproxy.cfg')], withSbin);
  },
};
const withSbin = { env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` } };

/** A response over TLS from 127.0.0.1:port. */
function fetchTls(port, path, { body, headers = {}, method = body ? 'POST' : 'GET' } = {}) {
  return new Promise((done, fail) => {
    const asked = request({ host: '127.0.0.1', port, path, method, headers: { connection: 'close', ...headers }, rejectUnauthorized: false });
    asked.on('response', done).on('error', fail);
    asked.end(body);
  });
}

async function textOf(response) {
  const parts = [];
  for await (const part of response) {
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

/** Starts the proxy in front of port `upstream`, and waits until it accepts. */
async function startProxy(name, t, upstream) {
  const folder = await temporaryFolder(t);
  await mkdir(folder, { recursive: true });
  await makeCertificate(folder);
  const port = await freePort();
  const proxy = await proxies[name](folder, port, upstream);
  t.after(() => proxy.stop('SIGTERM'));
  await eventually(`${name} accepts`, async () => {
    const end = await Promise.race([proxy.ended, new Promise((done) => setTimeout(done, 1))]);
    assert.equal(end, undefined, `${name} ended. Its output:\n${proxy.output}`);
    return fetchTls(port, '/').then((response) => textOf(response).then(() => true), String);
  });
  return port;
}

/** A server that streams `n` events, each only after `next()` of the one before was called. */
async function lockstepServer(t, n) {
  let next;
  const server = createServer(async (asked, answer) => {
    if (asked.url !== '/v1/chat/completions') {
      answer.end();
      return;
    }
    asked.resume();
    answer.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    for (let i = 0; i < n; ++i) {
      const taken = new Promise((done) => {
        next = done;
      });
      answer.write(`data: ${i}\n\n`);
      await taken;
    }
    answer.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: server.address().port, next: () => next() };
}

for (const name of Object.keys(proxies)) {
  describe(name, { skip: isInstalled(name) ? false : `${name} is not installed` }, () => {
    let facet;
    before(async () => {
      facet = await startFacet(['--api-key', key]);
    });
    after(() => facet.stop('SIGKILL'));
    const authorization = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const chat = (fields) =>
      JSON.stringify({ messages: [{ role: 'user', content: 'Tell me a story about a fox.' }], temperature: 0, ...fields });

    test('passes each event on at once', { timeout: 30_000 }, async (t) => {
      const n = 20;
      const server = await lockstepServer(t, n);
      const port = await startProxy(name, t, server.port);
      const response = await fetchTls(port, '/v1/chat/completions', { body: '{}' });
      let got = 0;
      for await (const data of eventsOf(response)) {
        assert.equal(data, String(got));
        got += 1;
        server.next();
      }
      assert.equal(got, n);
    });

    test('streams what the server streams, and hands the key on', { timeout: 30_000 }, async (t) => {
      const port = await startProxy(name, t, facet.port);
      const whole = await fetchTls(port, '/v1/chat/completions', { body: chat({}), headers: authorization });
      const { content } = JSON.parse(await textOf(whole)).choices[0].message;
      const streamed = await fetchTls(port, '/v1/chat/completions', { body: chat({ stream: true }), headers: authorization });
      assert.match(streamed.headers['content-type'], /^text\/event-stream/);
      let joined = '';
      for await (const data of eventsOf(streamed)) {
        joined += data === '[DONE]' ? '' : (JSON.parse(data).choices[0].delta.content ?? '');
      }
      assert.equal(joined, content);

      const refused = await fetchTls(port, '/v1/models');
      assert.equal(refused.statusCode, 401);
      assert.ok(JSON.parse(await textOf(refused)).error.message);
    });

    test('keeps the metrics, however their path is written', { timeout: 30_000 }, async (t) => {
      const port = await startProxy(name, t, facet.port);
      for (const path of ['/metrics', '/metrics?a=b', '/%6detrics', '/metrics/', '/%6Detrics/']) {
        const response = await fetchTls(port, path, { headers: authorization });
        assert.equal(response.statusCode, 404, path);
        await textOf(response);
      }
    });

    test('a body of 20 MiB reaches the server', { timeout: 30_000 }, async (t) => {
      const port = await startProxy(name, t, facet.port);
      const body = chat({ max_tokens: 1, user: 'x'.repeat(20 << 20) });
      const response = await fetchTls(port, '/v1/chat/completions', { body, headers: authorization });
      assert.equal(response.statusCode, 200, await textOf(response));
    });

    test('a client that leaves frees the server behind', { timeout: 60_000 }, async (t) => {
      const port = await startProxy(name, t, facet.port);
      const { json } = await facet.post('/tokenize', { content: '<eos><turn|><|tool_response>', parse_special: true }, authorization);
      const endless = { stream: true, temperature: 1.5, top_k: 0, max_tokens: 3900, logit_bias: Object.fromEntries(json.tokens.map((id) => [id, -100])) };
      const response = await fetchTls(port, '/v1/chat/completions', { body: chat(endless), headers: authorization });
      await once(response, 'data');
      response.destroy();
      await facet.idle(20, authorization);
      const metrics = await facet.metrics(authorization);
      assert.ok(metrics.facet_generated_tokens_total < 3500, 'the reply went on to its end without its client');
    });
  });
}
