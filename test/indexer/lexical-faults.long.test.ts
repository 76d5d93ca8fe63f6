import assert from 'node:assert/strict';
import { cpSync, existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { EXIT } from '../../cli/program/command.ts';
import { openLexicalIndex, openLexicalWriter } from '../../src/engine/lexical/open-lexical.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { type Ended, endOf, runTrawl, spawnTrawl } from '../cli/run-trawl.ts';
import { faultLibrary } from '../helpers/fault-library.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { writeCorpus } from './build.ts';
import { EIO, ENOSPC, EROFS } from './failing-calls.ts';
import { indexProblems } from './index-problems.ts';
import { filesOf } from './update.ts';
import { kernel, skip } from './updated-index.ts';

const passage = (i: number): object => ({ id: `p${i}`, contents: `passage number ${i} of some words` });
const passages = (first: number, count: number): object[] =>
  Array.from({ length: count }, (_, i) => passage(first + i));

/** A file operation of a command, what happens at it, and the code of the error: the exit code for a signal. */
type Fault = readonly [file: string, calls: string, at: number, what: number | 'kill' | 'term', code: string | number];

/** Runs a command line in a folder once for each fault, and then to its end. */
async function disturb(
  folder: string,
  args: readonly string[],
  faults: readonly Fault[],
  {
    library,
    check,
  }: { library: Exclude<ReturnType<typeof faultLibrary>, { missing: string }>; check: (what: string) => unknown },
): Promise<void> {
  const run = (env: Record<string, string> = {}): Promise<Ended> => endOf(spawnTrawl(args, { cwd: folder, env }));
  for (const [file, calls, at, what, code] of faults) {
    const title = `${args.join(' ')}: ${what} at ${calls} ${at} of ${file}`;
    const ended = await run(library.environment({ under: join(folder, 'ix'), file, calls, at, do: what }));
    if (what === 'kill') assert.equal(ended.signal, 'SIGKILL', `${title}: ${ended.stderr}`);
    else if (what === 'term') assert.equal(ended.code, code, `${title}: ${ended.stderr}`);
    else {
      assert.equal(ended.code, EXIT.failed, `${title}: ${ended.stderr}`);
      assert.match(ended.stderr, new RegExp(`^trawl: .*ix.* \\[${code}\\]\\n$`), title);
    }
    await check(title);
    // Only a killed process leaves temporary files, which the next run removes.
    if (what !== 'kill') assert.deepEqual(temporaryFiles(folder), [], title);
  }
  const { code, stderr } = await run();
  assert.equal(code, 0, stderr);
  assert.deepEqual(temporaryFiles(folder), []);
}

function temporaryFiles(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => /bm25\.tmp/.test(name));
}

async function faulty(t: TestContext) {
  const folder = await tempFolder(t);
  writeCorpus(folder, { 'old.jsonl': passages(0, 120), 'new.jsonl': passages(20, 160) });
  const library = faultLibrary(folder);
  const run = async (...args: string[]): Promise<void> => {
    const { code, stderr } = await runTrawl([...args, '--quiet'], { cwd: folder });
    assert.equal(code, 0, stderr);
  };
  return { folder, out: join(folder, 'ix'), library, run };
}

/** The scores of a query by rank. */
async function scores(out: string): Promise<number[]> {
  const index = await openLexicalIndex(openIndexDirectory(out).lexical.get('contents')!);
  try {
    const found = await index.search({ queries: ['some passage 77'], k: 50 });
    return [...found.scores.subarray(0, found.counts[0])];
  } finally {
    await index.close();
  }
}

function assertSameFiles(found: string, expected: string): void {
  const [a, b] = [filesOf(found), filesOf(expected)];
  assert.deepEqual([...a.keys()].sort(), [...b.keys()].sort());
  for (const [name, bytes] of b) if (!name.endsWith('.sqlite')) assert.deepEqual(a.get(name), bytes, name);
}

test('a build that fails, is stopped or killed while it makes inverted indexes resumes to the same index', {
  skip,
}, async (t) => {
  const { folder, out, library, run } = await faulty(t);
  if ('missing' in library) return t.skip(library.missing);
  const build = ['index', 'old.jsonl', '--bm25', '--shard-rows', '40', '--out'];
  await run(...build, 'undisturbed');
  await disturb(
    folder,
    [...build, 'ix', '--quiet'],
    [
      ['.run-0', 'write', 1, ENOSPC, 'DISK_FULL'],
      ['.run-0', 'write', 1, 'kill', ''],
      ['contents.bm25.tmp', 'rename', 1, EROFS, 'OUTPUT_NOT_WRITABLE'],
      ['contents.bm25.tmp', 'rename', 1, 'kill', ''],
      ['shard.json', 'rename', 1, 'kill', ''],
      ['shard-00001/contents.bm25.tmp.run-0', 'write', 1, 'term', EXIT.resumable],
      ['passages.sqlite', 'read', 4, EIO, 'INDEX_FILE_FOREIGN'],
    ],
    { library, check: (what) => assert.equal(existsSync(out), false, what) },
  );
  assertSameFiles(out, join(folder, 'undisturbed'));
});

test('whatever stops a change of an index, BM25 ranks by the old or the new words, and the same command resumes', {
  skip,
}, async (t) => {
  const { folder, out, library, run } = await faulty(t);
  if ('missing' in library) return t.skip(library.missing);
  await run('index', 'old.jsonl', '--bm25', '--shard-rows', '40', '--out', 'ix');
  await run('remove', 'ix', 'p3', 'p90');
  const undisturbed = join(folder, 'undisturbed');
  const changes: readonly (readonly [args: readonly string[], faults: readonly Fault[]])[] = [
    [
      ['optimize', 'ix', '--bm25', '--analyser', 'whitespace'],
      [
        ['contents.2.bm25.tmp.run-0', 'write', 1, ENOSPC, 'DISK_FULL'],
        ['shard-00001/contents.2.bm25.tmp', 'rename', 1, 'kill', ''],
        ['shard-00002/contents.2.bm25.tmp', 'write', 1, 'term', EXIT.resumable],
        ['ix/deleted-', 'write', 1, ENOSPC, 'DISK_FULL'],
        ['ix/manifest.json', 'rename', 1, 'kill', ''],
        ['shard-00001/shard.json', 'rename', 1, 'kill', ''],
      ],
    ],
    [
      ['index', 'new.jsonl', '--update', '--out', 'ix'],
      [
        ['shard-00003/contents.bm25.tmp', 'write', 1, ENOSPC, 'DISK_FULL'],
        ['shard-00003/contents.bm25.tmp', 'sync', 1, 'term', EXIT.resumable],
        ['ix/deleted-', 'rename', 1, EIO, 'OUTPUT_NOT_WRITABLE'],
      ],
    ],
    [
      ['optimize', 'ix', '--compact'],
      [
        ['contents.bm25.tmp', 'write', 2, ENOSPC, 'DISK_FULL'],
        ['contents.bm25.tmp', 'write', 2, 'term', EXIT.interrupted],
        ['contents.bm25.tmp', 'rename', 1, 'kill', ''],
      ],
    ],
  ];
  for (const [args, faults] of changes) {
    const before = await scores(out);
    cpSync(out, undisturbed, { recursive: true });
    await run(...args.map((word) => (word === 'ix' ? 'undisturbed' : word)));
    const after = await scores(undisturbed);
    await disturb(folder, [...args, '--quiet'], faults, {
      library,
      async check(what) {
        const found = await scores(out);
        const isNew = openIndexDirectory(out).manifest.bm25!.made.analyser === 'whitespace';
        assert.deepEqual(found, args.includes('--bm25') && isNew ? after : before, what);
      },
    });
    assert.deepEqual(await scores(out), after);
    assert.deepEqual(await indexProblems(out), []);
  }
});

test('a damaged temporary file of sorted terms is named, and no inverted index is written', { skip }, async (t) => {
  const folder = await tempFolder(t);
  // One thread writes a sorted file for each 16 MiB of text.
  const threads = kernel!.threads();
  kernel!.setThreads(1);
  t.after(() => kernel!.setThreads(threads));
  const text = Array.from({ length: 120_000 }, (_, i) => `w${i % 997}`).join(' ');
  const texts = Array.from({ length: Math.ceil((17 << 20) / text.length) }, () => text);
  const damages: Record<string, (run: string) => void> = {
    'a changed byte': (run) => {
      const bytes = readFileSync(run);
      bytes[bytes.length >> 1]! ^= 1;
      writeFileSync(run, bytes);
    },
    'a row that does not exist': (run) => writeFileSync(run, Buffer.from([1, 0x61, 1, 0xff, 0xff, 0xff, 0x7f, 0])),
    truncation: (run) => truncateSync(run, 5),
    'no terms': (run) => truncateSync(run, 0),
  };
  for (const [damage, apply] of Object.entries(damages)) {
    const path = join(folder, 'contents.bm25');
    const writer = openLexicalWriter(path, 'whitespace', kernel!);
    await writer.append(texts);
    apply(`${path}.run-0`);
    await assert.rejects(
      writer.finish(),
      trawlError(
        'INDEX_FILE_FOREIGN',
        /contents\.bm25\.run-0: this temporary file differs.*run the same command again\.$/,
      ),
      damage,
    );
    writer.abandon();
    assert.ok(
      !existsSync(path) ||
        readFileSync(path)
          .subarray(0, 8)
          .every((byte) => byte === 0),
      damage,
    );
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.includes('.run-')),
      [],
      damage,
    );
  }
});
