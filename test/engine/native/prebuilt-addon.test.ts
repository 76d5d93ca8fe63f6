import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ADDON_PATH, loadAddon } from '../../../src/engine/native/load-addon.ts';
import { findPrebuilt, type Machine, targetOf, thisMachine } from '../../../src/engine/native/prebuilt-addon.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

const LINUX: Machine = { platform: 'linux', arch: 'x64', musl: false, nodeApi: 10 };

/** A folder of prebuilt binaries with these bytes, as scripts/prebuild.mjs makes it. */
async function prebuilds(t: TestContext, binaries: Readonly<Record<string, string>>, nodeApi = 8): Promise<string> {
  const folder = await tempFolder(t);
  const list: Record<string, object> = {};
  for (const [target, text] of Object.entries(binaries)) {
    mkdirSync(join(folder, target));
    writeFileSync(join(folder, target, 'trawl.node'), text);
    list[target] = { sha256: createHash('sha256').update(text).digest('hex'), bytes: text.length };
  }
  writeFileSync(join(folder, 'prebuilds.json'), JSON.stringify({ nodeApi, binaries: list }));
  return folder;
}

test('each system, processor and C library has its own binary', async (t) => {
  const machines: readonly (readonly [Partial<Machine>, string])[] = [
    [{}, 'linux-x64'],
    [{ arch: 'arm64' }, 'linux-arm64'],
    [{ musl: true }, 'linuxmusl-x64'],
    [{ musl: true, arch: 'arm64' }, 'linuxmusl-arm64'],
    [{ platform: 'darwin', arch: 'arm64' }, 'darwin-arm64'],
  ];
  const folder = await prebuilds(t, Object.fromEntries(machines.map(([, target]) => [target, `for ${target}`])));
  for (const [machine, target] of machines) {
    const found = findPrebuilt(folder, { ...LINUX, ...machine });
    assert.deepEqual(found, { ok: true, target, path: join(folder, target, 'trawl.node') });
  }
  const other = findPrebuilt(folder, { ...LINUX, arch: 'riscv64' });
  assert.ok(!other.ok);
  assert.match(other.reason, /no binary is prebuilt for linux-riscv64, only for linux-x64, linux-arm64/);
});

test('this process knows which C library it uses', () => {
  const { header } = process.report.getReport() as unknown as { header: { glibcVersionRuntime?: string } };
  const machine = thisMachine();
  assert.equal(machine.musl, process.platform === 'linux' && header.glibcVersionRuntime === undefined);
  assert.equal(machine.nodeApi, Number(process.versions.napi));
});

test('a damaged, missing or unlisted binary, and one for a newer Node-API, is refused with the reason', async (t) => {
  const folder = await prebuilds(t, { 'linux-x64': 'binary', 'linux-arm64': 'binary' });
  const reason = (from: string, machine: Partial<Machine> = {}): string => {
    const found = findPrebuilt(from, { ...LINUX, ...machine });
    assert.ok(!found.ok);
    return found.reason;
  };
  writeFileSync(join(folder, 'linux-x64', 'trawl.node'), 'binarz');
  assert.match(reason(folder), /linux-x64\/trawl\.node is damaged: its sha256 is [0-9a-f]{64}, expected [0-9a-f]{64}/);
  assert.match(reason(folder, { arch: 'arm64', nodeApi: 7 }), /need Node-API 8, and this Node\.js has 7/);
  assert.match(reason(folder, { musl: true }), /no binary is prebuilt for linuxmusl-x64/);
  assert.match(reason(join(folder, 'none')), /the package has no prebuilt binaries/);
  const unlisted = await prebuilds(t, { 'linux-x64': 'binary' });
  writeFileSync(join(unlisted, 'prebuilds.json'), '{"nodeApi": 8, "binaries": {"linux-x64": ');
  assert.match(reason(unlisted), /prebuilds\.json cannot be read: /);
  const empty = await prebuilds(t, {});
  writeFileSync(
    join(empty, 'prebuilds.json'),
    JSON.stringify({ nodeApi: 8, binaries: { 'linux-x64': { sha256: '0', bytes: 1 } } }),
  );
  assert.match(reason(empty), /linux-x64\/trawl\.node cannot be read: ENOENT/);
});

const compiled = existsSync(ADDON_PATH) ? false : 'the native engine is not compiled';

test('the binary that was compiled here is loaded, else the prebuilt one', { skip: compiled }, async (t) => {
  const loaded = loadAddon();
  assert.equal(loaded.ok && loaded.origin, 'compiled here');
  const machine = thisMachine();
  const target = targetOf(machine);
  const folder = await prebuilds(t, { [target]: '' });
  cpSync(ADDON_PATH, join(folder, target, 'trawl.node'));
  const compiledElsewhere = join(folder, 'elsewhere.node');
  assert.equal(loadAddon({ compiled: compiledElsewhere, prebuilds: folder }).ok, false, 'not with another checksum');
  const listed = await prebuilds(t, { [target]: '' });
  cpSync(ADDON_PATH, join(listed, target, 'trawl.node'));
  const sha256 = createHash('sha256');
  const { readFileSync } = await import('node:fs');
  sha256.update(readFileSync(ADDON_PATH));
  const list = { nodeApi: 8, binaries: { [target]: { sha256: sha256.digest('hex'), bytes: 1 } } };
  writeFileSync(join(listed, 'prebuilds.json'), JSON.stringify(list));
  for (const missing of [compiledElsewhere, join(folder, 'not-a-binary.node')]) {
    if (missing !== compiledElsewhere) writeFileSync(missing, 'not a binary');
    const prebuilt = loadAddon({ compiled: missing, prebuilds: listed });
    assert.ok(prebuilt.ok, missing);
    assert.equal(prebuilt.origin, `prebuilt for ${target}`);
    assert.equal(typeof prebuilt.addon.isas, 'function');
  }
});

test('if nothing can be loaded, the reason says what was tried', async (t) => {
  const folder = await tempFolder(t);
  const file = join(folder, 'trawl.node');
  const nothing = loadAddon({ compiled: file, prebuilds: folder, machine: LINUX });
  assert.deepEqual(nothing, {
    ok: false,
    reason: 'linux-x64: nothing was compiled here; the package has no prebuilt binaries',
  });
  writeFileSync(file, 'not a binary');
  const broken = loadAddon({ compiled: file, prebuilds: await prebuilds(t, { 'linux-x64': 'text' }), machine: LINUX });
  assert.ok(!broken.ok);
  assert.equal(broken.reason.split('trawl.node: ').length, 3, broken.reason);
});

test('a binary of another version, without a function that the program calls, is refused by name', async (t) => {
  const folder = await tempFolder(t);
  // Node.js loads a module in JavaScript through the same call.
  const file = join(folder, 'older.cjs');
  writeFileSync(file, 'module.exports = { isas() {}, selectIsa() {}, threads: 1 };');
  const older = loadAddon({ compiled: file, prebuilds: folder, machine: LINUX });
  assert.ok(!older.ok);
  assert.match(
    older.reason,
    /older\.cjs is of another version: it has no \w.*\bthreads, setThreads, .*run npm run build/,
  );
  assert.doesNotMatch(older.reason, /no .*\b(isas|selectIsa)\b/);
  assert.match(older.reason, /; the package has no prebuilt binaries$/, 'the next choice is tried');
});
