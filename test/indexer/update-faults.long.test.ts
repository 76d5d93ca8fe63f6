import assert from 'node:assert/strict';
import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { endOf, spawnTrawl } from '../cli/run-trawl.ts';
import { faultLibrary } from '../helpers/fault-library.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { writeCorpus } from './build.ts';
import { EIO, ENOSPC, type FailingCall, failEachCall } from './failing-calls.ts';
import { indexProblems } from './index-problems.ts';
import { filesOf } from './update.ts';

const passage = (i: number): object => ({ id: `p${i}`, contents: `passage number ${i} of some words` });

/** In the order an update meets them. */
const FAULTS: readonly FailingCall[] = [
  ['build.json', 'sync', 1, EIO, 'OUTPUT_NOT_WRITABLE'],
  ['.bucket', 'write', 1, ENOSPC, 'DISK_FULL'],
  ['added.bin', 'write', 1, ENOSPC, 'DISK_FULL'],
  ['changes.json', 'rename', 1, EIO, 'OUTPUT_NOT_WRITABLE'],
  ['passages.sqlite', 'write', 3, ENOSPC, 'DISK_FULL'],
  ['vectors.faiss', 'sync', 1, EIO, 'OUTPUT_NOT_WRITABLE'],
  ['tombstones-', 'write', 1, ENOSPC, 'DISK_FULL'],
  // Moving the second of two shards into the index fails: the first is moved back.
  ['shard-00002', 'rename', 1, EIO, 'OUTPUT_NOT_WRITABLE'],
  ['ix/manifest.json', 'write', 1, ENOSPC, 'DISK_FULL'],
  ['ix/manifest.json', 'rename', 1, EIO, 'OUTPUT_NOT_WRITABLE'],
];

test('when a file operation of an update fails, the old index stays, and the same command resumes to the same index', async (t) => {
  const folder = await tempFolder(t);
  const library = faultLibrary(folder);
  if ('missing' in library) return t.skip(library.missing);
  writeCorpus(folder, {
    'old.jsonl': Array.from({ length: 300 }, (_, i) => passage(i)),
    'new.jsonl': Array.from({ length: 900 }, (_, i) => passage(i + 100)),
  });
  const run = (args: readonly string[], env: Record<string, string> = {}): ReturnType<typeof endOf> =>
    endOf(spawnTrawl(['index', ...args, '--quiet', '--workers', '1'], { cwd: folder, env }));
  const out = join(folder, 'ix');
  assert.equal((await run(['old.jsonl', '--out', 'ix'])).code, 0);
  cpSync(out, join(folder, 'undisturbed'), { recursive: true });
  const update = ['new.jsonl', '--update', '--shard-rows', '400', '--checkpoint-seconds', '0', '--out'];
  assert.equal((await run([...update, 'undisturbed'])).code, 0);
  const { generation } = openIndexDirectory(out).manifest;
  await failEachCall(FAULTS, {
    library,
    out,
    run: (environment) => run([...update, 'ix'], environment),
    check(what) {
      assert.equal(openIndexDirectory(out).manifest.generation, generation, what);
      assert.equal(existsSync(join(out, 'shard-00001')), false, `${what}: nothing of the update is in the index`);
    },
  });
  const { code, stderr } = await run([...update, 'ix']);
  assert.equal(code, 0, stderr);
  const [found, expected] = [filesOf(out), filesOf(join(folder, 'undisturbed'))];
  assert.deepEqual([...found.keys()].sort(), [...expected.keys()].sort());
  for (const [name, bytes] of expected) if (!name.endsWith('.sqlite')) assert.deepEqual(found.get(name), bytes, name);
  assert.deepEqual(await indexProblems(out), []);
  assert.equal(existsSync(`${out}.partial`), false);
});

test('a resumed update does not mistake shards that a compaction left for its own', async (t) => {
  const folder = await tempFolder(t);
  const library = faultLibrary(folder);
  if ('missing' in library) return t.skip(library.missing);
  writeCorpus(folder, {
    'old.jsonl': Array.from({ length: 4 }, (_, i) => passage(i)),
    'new.jsonl': [0, 1, 8, 9].map(passage),
  });
  const run = (args: readonly string[], env: Record<string, string> = {}): ReturnType<typeof endOf> =>
    endOf(spawnTrawl([...args, '--quiet'], { cwd: folder, env }));
  const out = join(folder, 'ix');
  for (const args of [
    ['index', 'old.jsonl', '--out', 'ix', '--shard-rows', '2'],
    ['remove', 'ix', 'p2', 'p3'],
    ['optimize', 'ix', '--compact'],
  ]) {
    const { code, stderr } = await run(args);
    assert.equal(code, 0, stderr);
  }
  assert.ok(existsSync(join(out, 'shard-00001')), 'left for servers that have it open');
  const update = ['index', 'new.jsonl', '--update', '--workers', '1', '--out', 'ix'];
  const killed = await run(
    update,
    library.environment({ under: join(out, 'shard-00001'), calls: 'unlink', at: 1, do: 'kill' }),
  );
  assert.equal(killed.signal, 'SIGKILL', killed.stderr);
  const ended = await run(update);
  assert.equal(ended.code, 0, ended.stderr);
  const documents = openIndexDirectory(out).passages.flatMap(({ path }) => [...new PassageFile(path).documents()]);
  assert.deepEqual(
    documents.map((document) => (JSON.parse(document) as { id: string }).id),
    ['p0', 'p1', 'p8', 'p9'],
  );
});
