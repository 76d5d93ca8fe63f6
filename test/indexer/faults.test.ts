import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { verifyIndex } from '../../indexer/verify/verify-index.ts';
import { loadKernel } from '../../src/vector-index/kernel.ts';
import { endOf, spawnTrawl } from '../cli/run-trawl.ts';
import { faultLibrary } from '../helpers/fault-library.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, readIndex, writeCorpus } from './build.ts';
import { EIO, ENOSPC, EROFS, type FailingCall, failEachCall } from './failing-calls.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';

const ROWS = Array.from({ length: 1_500 }, (_, i) => ({ id: `p${i}`, contents: `passage number ${i} of some words` }));
const kernel = ((loaded) => (loaded.ok ? loaded.kernel : undefined))(loadKernel());

/** In the order a build meets them. */
const FAULTS: readonly FailingCall[] = [
  ['build.json', 'sync', 1, EIO, 'OUTPUT_NOT_WRITABLE'],
  ['passages.sqlite', 'write', 3, EIO, 'OUTPUT_NOT_WRITABLE'],
  ['passages.sqlite', 'write', 5, ENOSPC, 'DISK_FULL'],
  ['passages.sqlite', 'sync', 1, EIO, 'OUTPUT_NOT_WRITABLE'],
  ['passages.json', 'rename', 2, EIO, 'OUTPUT_NOT_WRITABLE'],
  ['vectors.faiss', 'write', 3, ENOSPC, 'DISK_FULL'],
  ['vectors.faiss', 'sync', 2, EIO, 'OUTPUT_NOT_WRITABLE'],
  ['vectors.faiss', 'truncate', 1, EIO, 'OUTPUT_NOT_WRITABLE'],
  ...(kernel === undefined
    ? []
    : ([
        ['codes.i8', 'write', 1, ENOSPC, 'DISK_FULL'],
        ['codes.i8', 'write', 1, EIO, 'OUTPUT_NOT_WRITABLE'],
      ] as const)),
  ['checkpoint.json', 'rename', 2, EROFS, 'OUTPUT_NOT_WRITABLE'],
  ['shard.json', 'sync', 1, EIO, 'OUTPUT_NOT_WRITABLE'],
  ['shard-00001', 'write', 4, ENOSPC, 'DISK_FULL'],
  ['manifest.json', 'write', 1, ENOSPC, 'DISK_FULL'],
  ['.partial', 'rename', 1, EIO, 'OUTPUT_NOT_WRITABLE'],
];

test('a call that fails is a clear error, and the same command goes on from there to the same index', async (t) => {
  const folder = await tempFolder(t);
  const library = faultLibrary(folder);
  if ('missing' in library) return t.skip(library.missing);
  writeCorpus(folder, { 'c.jsonl': ROWS });
  const command = ['index', 'c.jsonl', '--shard-rows', '800', '--checkpoint-seconds', '0', '--quiet', '--workers', '1'];
  const run = (out: string, env: Record<string, string> = {}): ReturnType<typeof endOf> =>
    endOf(spawnTrawl([...command, '--out', out], { cwd: folder, env }));
  assert.equal((await run('undisturbed')).code, 0);
  const out = join(folder, 'out');
  await failEachCall(FAULTS, {
    library,
    out,
    run: (environment) => run('out', environment),
    check: (what) => assert.equal(existsSync(out), false, what),
  });
  const { code, stderr } = await run('out');
  assert.equal(code, 0, stderr);
  for (const name of readdirSync(join(folder, 'undisturbed'), { recursive: true }) as string[]) {
    if (!/\.(json|faiss|i8)$/.test(name)) continue;
    assert.deepEqual(readFileSync(join(out, name)), readFileSync(join(folder, 'undisturbed', name)), name);
  }
  assert.deepEqual(await verifyIndex(out, { onStep: () => undefined }), []);
});

/** A file system of a few megabytes; the reason where none can be mounted. */
async function smallDisk(t: TestContext, megabytes: number): Promise<{ path: string } | { missing: string }> {
  const path = await mkdtemp(join(tmpdir(), 'trawl-test-'));
  const options = ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path];
  const mounted = spawnSync('mount', options, { encoding: 'utf8' });
  if (mounted.status !== 0)
    return { missing: `no tmpfs can be mounted here (${mounted.error?.message ?? mounted.stderr})` };
  t.after(() => {
    spawnSync('umount', ['-l', path]);
    rmSync(path, { recursive: true, force: true });
  });
  return { path };
}

test('a build that cannot fit stops before it writes anything', async (t) => {
  const disk = await smallDisk(t, 1);
  if ('missing' in disk) return t.skip(disk.missing);
  const folder = await tempFolder(t);
  const corpus = writeCorpus(folder, {
    'c.jsonl': Array.from({ length: 20_000 }, (_, i) => ({ contents: `number ${i}` })),
  });
  const encoder = new FakeTextEncoder();
  await assert.rejects(
    build({ corpus, out: join(disk.path, 'ix'), encoder }),
    trawlError(
      'DISK_FULL',
      /ix: about 20000 passages need 0\.00\d+ GB more on the disk, and 0\.00\d+ GB are free.*--plan/,
    ),
  );
  assert.equal(encoder.batches.length, 0);
  assert.deepEqual(readdirSync(disk.path), []);
});

test('a disk that fills up while passages are read, or embedded, is an error, and the build goes on when there is room', async (t) => {
  const disk = await smallDisk(t, 3);
  if ('missing' in disk) return t.skip(disk.missing);
  const folder = await tempFolder(t);
  const corpus = writeCorpus(folder, { 'c.jsonl': ROWS.map((row) => ({ ...row, more: 'x'.repeat(600) })) });
  const out = join(disk.path, 'ix');
  const filler = join(disk.path, 'filler');
  const fill = (bytes: number): void => {
    try {
      for (let i = 0; i < bytes; i += 65_536) writeFileSync(filler, Buffer.alloc(65_536), { flag: 'a' });
    } catch {
      // Full, as it should be.
    }
  };
  const onProgress = ({ stage }: { stage: string }): void => {
    if (stage === 'read' && !existsSync(filler)) fill(3e6);
  };
  await assert.rejects(build({ corpus, out, onProgress }), trawlError('DISK_FULL'));
  rmSync(filler);
  const model = { dimension: 32 };
  const wide = new FakeTextEncoder({
    model,
    before: () => {
      if (wide.batches.length === 5) fill(3e6);
    },
  });
  const options = { corpus, out, kernel, checkpointMs: 0 };
  await assert.rejects(
    build({ ...options, encoder: wide }),
    trawlError('DISK_FULL', /What is done is kept: the same command goes on there\.$/),
  );
  rmSync(filler);
  const { resumedRows, manifest } = await build({ ...options, encoder: new FakeTextEncoder({ model }) });
  assert.ok(resumedRows > 0 && resumedRows < 1_500, `${resumedRows}`);
  assert.equal(manifest.rows, 1_500);
  assert.equal(readIndex(out).documents.length, 1_500);
});
