import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { installOnce, isInstalled } from '../../bench/install-once.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const MODULE = new URL('../../bench/install-once.js', import.meta.url).href;

/**
 * A process that installs a file `program` into the folder, after a line on stdin. It prints `installing` when it begins, and
 * `ready` when it has the installation.
 */
function installer(t: TestContext, folder: string): { child: ChildProcess; printed: (line: string) => Promise<void> } {
  const code = `
import { writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { installOnce } from ${JSON.stringify(MODULE)};
await installOnce(process.argv[1], { note: () => console.log('waiting') }, async () => {
  writeFileSync(process.argv[1] + '/half', '');
  console.log('installing');
  await once(process.stdin, 'data');
  writeFileSync(process.argv[1] + '/program', String(process.pid));
});
console.log('ready');
process.stdin.destroy();
`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code, folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  let text = '';
  child.stdout!.setEncoding('utf8').on('data', (part: string) => (text += part));
  const ended = once(child, 'close');
  const printed = async (line: string): Promise<void> => {
    while (!text.split('\n').includes(line)) {
      const event = await Promise.race([once(child.stdout!, 'data'), ended.then(() => 'ended')]);
      if (event === 'ended' && !text.split('\n').includes(line)) assert.fail(`it ended without ${line}: ${text}`);
    }
  };
  return { child, printed };
}

test('of two processes that install into one folder, one installs, and the other waits and uses it', async (t) => {
  const folder = join(await tempFolder(t), 'cache', 'program-1');
  const first = installer(t, folder);
  await first.printed('installing');
  const second = installer(t, folder);
  await second.printed('waiting');
  assert.ok(!isInstalled(folder));
  first.child.stdin!.write('\n');
  await Promise.all([first.printed('ready'), second.printed('ready')]);
  assert.equal(readFileSync(join(folder, 'program'), 'utf8'), String(first.child.pid));
});

test('after a killed installation, the process that waited removes what was left and installs', async (t) => {
  const folder = join(await tempFolder(t), 'program-1');
  const first = installer(t, folder);
  await first.printed('installing');
  writeFileSync(join(folder, 'of-the-first'), '');
  const second = installer(t, folder);
  await second.printed('waiting');
  first.child.kill('SIGKILL');
  await second.printed('installing');
  assert.deepEqual(readdirSync(folder), ['half']);
  second.child.stdin!.write('\n');
  await second.printed('ready');
  assert.equal(readFileSync(join(folder, 'program'), 'utf8'), String(second.child.pid));
});

test('calls of one process also take turns, and only the first installs', async (t) => {
  const folder = join(await tempFolder(t), 'program-1');
  let installs = 0;
  const install = async (): Promise<void> => {
    installs++;
    await new Promise(setImmediate);
  };
  await Promise.all([1, 2, 3].map(() => installOnce(folder, { note: () => {} }, install)));
  assert.deepEqual([installs, isInstalled(folder)], [1, true]);
});

test('a failed installation throws its error, and the next call installs again into an empty folder', async (t) => {
  const folder = join(await tempFolder(t), 'program-1');
  const fails = installOnce(folder, { note: () => {} }, async () => {
    mkdirSync(join(folder, 'half'));
    throw new Error('no network');
  });
  await assert.rejects(fails, /no network/);
  assert.ok(!isInstalled(folder));
  await installOnce(folder, { note: () => {} }, async () => {
    assert.ok(!existsSync(join(folder, 'half')));
  });
  assert.ok(isInstalled(folder));
});

test('installations with the same lock file never run at the same time', async (t) => {
  const cache = await tempFolder(t);
  let running = 0;
  const install = async (): Promise<void> => {
    assert.equal(++running, 1);
    await new Promise((resolve) => setTimeout(resolve, 20));
    running--;
  };
  const lock = join(cache, 'maven.lock');
  await Promise.all(
    ['lucene', 'opensearch'].map((name) => installOnce(join(cache, name), { note: () => {}, lock }, install)),
  );
  assert.ok(isInstalled(join(cache, 'lucene')) && isInstalled(join(cache, 'opensearch')));
});

test('a process that waits can be interrupted', async (t) => {
  const folder = join(await tempFolder(t), 'program-1');
  const first = installer(t, folder);
  await first.printed('installing');
  const controller = new AbortController();
  const note = (): void => {
    setImmediate(() => controller.abort());
  };
  const waits = installOnce(folder, { note, signal: controller.signal }, async () => assert.fail('it has to wait'));
  await assert.rejects(waits, { name: 'AbortError' });
  assert.ok(!isInstalled(folder));
});
