// SPDX-License-Identifier: Apache-2.0
// The examples of deploy/ that need no service manager and no container: the unit is valid and as closed as
// docs/deployment.md says, the configuration is taken, the image installs what a build needs. proxies.test.mjs has the
// proxies.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { program, root, temporaryFolder } from './support/facet.mjs';

const read = (path) => readFile(join(root, path), 'utf8');

test('the unit of systemd', async (t) => {
  const { status, stdout } = spawnSync('systemd-analyze', ['--version'], { encoding: 'utf8' });
  if (status !== 0 || Number(stdout.match(/systemd (\d+)/)?.[1]) < 250) {
    t.skip('no systemd-analyze of systemd 250 or newer here');
    return;
  }
  const unit = join(await temporaryFolder(t), 'facet.service');
  await writeFile(unit, (await read('deploy/facet.service')).replaceAll('/usr/local/bin/facet', program));
  const verified = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' });
  assert.deepEqual([verified.status, verified.stderr], [0, '']);
  const security = execFileSync('systemd-analyze', ['security', '--offline=true', unit], { encoding: 'utf8' });
  const exposure = Number(security.match(/exposure level for facet\.service: ([0-9.]+)/)[1]);
  assert.ok(exposure < 1.5, security);
});

test('the configuration', async (t) => {
  const folder = await temporaryFolder(t);
  const config = join(folder, 'facet.toml');
  const text = await read('deploy/facet.toml');
  assert.ok(text.includes('/var/cache/facet/') && text.includes('port = 8080'));
  await writeFile(config, text.replace('/var/cache/facet/', `${folder}/`).replace('port = 8080', 'port = 0'));
  const { status, stderr } = spawnSync(program, ['serve', '--check', '--config', config], { encoding: 'utf8', timeout: 60_000 });
  assert.equal(status, 0, stderr);
});

test('the image installs what ./dev wants', async () => {
  const wanted = (await read('dev')).match(/^build_packages=\(([^)]*)\)/m)[1].trim().split(/\s+/);
  const build = (await read('deploy/Dockerfile')).split(/^FROM /m)[1];
  assert.deepEqual(wanted.filter((name) => !build.includes(` ${name}`)), []);
});
