import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { endOf, spawnTrawl } from '../cli/run-trawl.ts';
import { faultLibrary } from '../helpers/fault-library.ts';
import { smallDisk } from '../helpers/small-disk.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, readIndex, writeCorpus } from './build.ts';
import { EIO, ENOSPC, EROFS, type FailingCall, failEachCall } from './failing-calls.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';
import { indexProblems } from './index-problems.ts';

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

test('when a file operation fails, the error is clear and the same command resumes to the same index', async (t) => {
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
  assert.deepEqual(await indexProblems(out), []);
});

/** Mounts a file system of a few megabytes until the test ends, or returns why that is impossible. */
async function mountedDisk(t: TestContext, megabytes: number): Promise<{ path: string } | { missing: string }> {
  const path = await mkdtemp(join(tmpdir(), 'trawl-test-'));
  const mounted = smallDisk(path, 1024 * megabytes);
  t.after(() => {
    if ('unmount' in mounted) mounted.unmount();
    rmSync(path, { recursive: true, force: true });
  });
  return 'missing' in mounted ? mounted : { path };
}

test('a build that does not fit on the disk fails before it writes', async (t) => {
  const disk = await mountedDisk(t, 1);
  if ('missing' in disk) return t.skip(disk.missing);
  const folder = await tempFolder(t);
  const corpus = writeCorpus(folder, {
    'c.jsonl': Array.from({ length: 20_000 }, (_, i) => ({ contents: `number ${i}` })),
  });
  const encoder = new FakeTextEncoder();
  await assert.rejects(
    build({ corpus, out: join(disk.path, 'ix'), encoder }),
    trawlError('DISK_FULL', /ix: about 20000 passages need \d.* MB of disk space, but only 1\.\d+ MB are free.*--plan/),
  );
  assert.equal(encoder.batches.length, 0);
  assert.deepEqual(readdirSync(disk.path), []);
});

test('a build fails if the disk fills up while passages are read or embedded, and resumes when there is space', async (t) => {
  const disk = await mountedDisk(t, 3);
  if ('missing' in disk) return t.skip(disk.missing);
  const folder = await tempFolder(t);
  const corpus = writeCorpus(folder, { 'c.jsonl': ROWS.map((row) => ({ ...row, more: 'x'.repeat(600) })) });
  const out = join(disk.path, 'ix');
  const filler = join(disk.path, 'filler');
  const fill = (bytes: number): void => {
    try {
      for (let i = 0; i < bytes; i += 65_536) writeFileSync(filler, Buffer.alloc(65_536), { flag: 'a' });
    } catch {
      // The disk is full, as intended.
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
      // The first batch has been written by then.
      if (wide.batches.length === 6) fill(3e6);
    },
  });
  const options = { corpus, out, kernel, checkpointMs: 0 };
  await assert.rejects(
    build({ ...options, encoder: wide }),
    trawlError('DISK_FULL', /The finished part is kept: run the same command again to resume\.$/),
  );
  rmSync(filler);
  const { resumedRows, manifest } = await build({ ...options, encoder: new FakeTextEncoder({ model }) });
  assert.ok(resumedRows > 0 && resumedRows < 1_500, `${resumedRows}`);
  assert.equal(manifest.rows, 1_500);
  assert.equal(readIndex(out).documents.length, 1_500);
});
