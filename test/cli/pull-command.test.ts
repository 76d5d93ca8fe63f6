import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { EXIT } from '../../cli/program/command.ts';
import { PUBLISHED } from '../../indexer/hub/published.ts';
import { parseRepositoryName } from '../../indexer/hub/repository.ts';
import { commitOf, type HubServer } from '../helpers/hub-server.ts';
import { seededBytes } from '../helpers/seeded-bytes.ts';
import { smallDisk } from '../helpers/small-disk.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { hubRuns } from './hub-runs.ts';
import { jsonOf, runTrawl } from './run-trawl.ts';

const PASSAGES = Array.from({ length: 20 }, (_, i) => `{"id":"${i}","contents":"\\"T${i}\\"\\npassage number ${i}"}\n`);
const PARTS = { part_aa: seededBytes(1, 2_500_000), part_ab: seededBytes(2, 700_000) };
const VECTORS = { type: 'dataset', name: 'PeterJinGo/wiki-18-e5-index', files: PARTS } as const;
const CORPUS = {
  type: 'dataset',
  name: 'PeterJinGo/wiki-18-corpus',
  files: { 'wiki-18.jsonl.gz': gzipSync(PASSAGES.join('')), 'README.md': Buffer.from('no corpus\n') },
} as const;
const OTHER = {
  type: 'dataset',
  name: 'org/other',
  refs: ['v1'],
  files: {
    'corpus.jsonl.gz': seededBytes(3, 5000),
    'data/a.parquet': seededBytes(4, 3000),
    'data/b.parquet': seededBytes(5, 3000),
    'README.md': Buffer.from('other\n'),
  },
} as const;

interface Pulled {
  readonly name: string;
  readonly repositories: readonly {
    readonly repository: string;
    readonly type: string;
    readonly commit: string;
    readonly folder: string;
    readonly files: readonly { readonly path: string; readonly bytes: number }[];
    readonly bytes: number;
    readonly transferredBytes?: number;
    readonly missingBytes?: number;
  }[];
  readonly next?: readonly string[];
  readonly remarks: readonly string[];
  readonly missingBytes?: number;
  readonly freeBytes?: number;
  readonly fits?: boolean;
}

async function start(t: TestContext, repositories: Parameters<typeof HubServer.start> = [VECTORS, CORPUS, OTHER]) {
  const runs = await hubRuns(t, ...repositories);
  return { ...runs, pull: (...args: string[]) => runs.run(['pull', ...args]) };
}

const at = (cwd: string, ...path: string[]): string => join(cwd, 'downloads', ...path);
const VECTOR_FOLDER = ['PeterJinGo', 'wiki-18-e5-index'];
const CORPUS_FOLDER = ['PeterJinGo', 'wiki-18-corpus'];

test('trawl pull without a name lists the known data with sizes and files, as text and as JSON', async (t) => {
  const { hub, pull } = await start(t);
  const { code, stdout } = await pull();
  assert.equal(code, EXIT.ok);
  assert.match(stdout, /^wiki18 +5\.12 GB +Search-R1's corpus/);
  assert.match(stdout, /\nwiki18-e5 +69\.7 GB .*\n +PeterJinGo\/wiki-18-e5-index: part_aa, part_ab\n/);
  assert.equal((await pull('--list')).stdout, stdout);
  assert.deepEqual(jsonOf<unknown>(await pull('--json')), JSON.parse(JSON.stringify(PUBLISHED)));
  assert.equal(hub.requests.length, 0);
});

test('the table of known data has valid names and repositories, and sizes that fit its rows and dimensions', () => {
  assert.equal(new Set(PUBLISHED.map(({ name }) => name)).size, PUBLISHED.length);
  for (const { name, parts, index } of PUBLISHED) {
    assert.match(name, /^[a-z0-9-]+$/);
    for (const { repository } of parts) assert.equal(parseRepositoryName(repository), repository);
    const vectors = parts.filter(({ holds }) => holds === 'vectors').flatMap(({ files }) => files);
    assert.equal(index === undefined, vectors.length === 0, name);
    if (index === undefined) continue;
    const bytes = vectors.reduce((sum, file) => sum + file.bytes!, 0);
    assert.equal(bytes, 45 + 4 * index.rows * index.dimension, name);
    assert.equal(parts.filter(({ holds }) => holds === 'corpus').length, 1);
  }
});

test('an index and its corpus are downloaded unchanged, the next commands are printed, and a second run downloads nothing', async (t) => {
  const { hub, cwd, pull } = await start(t);
  const { code, stdout, stderr } = await pull('wiki18-e5');
  assert.equal(code, EXIT.ok, stderr);
  const files = [
    [at(cwd, ...VECTOR_FOLDER, 'part_aa'), PARTS.part_aa],
    [at(cwd, ...VECTOR_FOLDER, 'part_ab'), PARTS.part_ab],
    [at(cwd, ...CORPUS_FOLDER, 'wiki-18.jsonl.gz'), CORPUS.files['wiki-18.jsonl.gz']],
  ] as const;
  assert.equal(stdout, files.map(([path]) => `${path}\n`).join(''));
  for (const [path, content] of files) assert.ok(readFileSync(path).equals(content), path);
  assert.equal(existsSync(at(cwd, ...CORPUS_FOLDER, 'README.md')), false, 'only the corpus is downloaded');
  const vectors = ['part_aa', 'part_ab'].map((part) => join('downloads', ...VECTOR_FOLDER, part)).join(' ');
  const corpus = join('downloads', ...CORPUS_FOLDER, 'wiki-18.jsonl.gz');
  assert.ok(
    stderr.endsWith(
      `Next:\n  trawl model add intfloat/e5-base-v2\n  trawl import ${vectors} --corpus ${corpus} --model e5-base-v2 --out indexes/wiki18-e5\n`,
    ),
    stderr,
  );
  assert.match(stderr, /part_aa has 2,500,000 bytes on the hub, but had 42,949,672,960 .*replaced/);

  hub.sentBytes = 0;
  const again = jsonOf<Pulled>(await pull('wiki18-e5', '--json'));
  assert.deepEqual(
    again.repositories.map(({ repository, commit, transferredBytes }) => [repository, commit, transferredBytes]),
    [
      [VECTORS.name, commitOf(VECTORS), 0],
      [CORPUS.name, commitOf(CORPUS), 0],
    ],
  );
  assert.deepEqual([again.next?.length, again.remarks.length, hub.sentBytes], [2, 3, 0]);
  assert.deepEqual(
    jsonOf<Pulled>(await pull('wiki18', '--json')).repositories[0]?.transferredBytes,
    0,
    'both names share the corpus',
  );
});

test('a downloaded corpus is indexed in place, without unpacking it', async (t) => {
  const { cwd, env, pull } = await start(t);
  const { next } = jsonOf<Pulled>(await pull('wiki18', '--json', '--out', 'my data'));
  const [, command] = next!;
  assert.match(command!, /^trawl index 'my data\/PeterJinGo.*\.gz' --model e5-base-v2 --out indexes\/wiki18$/);
  const corpus = /'(.*)'/.exec(command!)![1]!;
  const before = statSync(join(cwd, corpus));
  const built = jsonOf<{ rows: number }>(await runTrawl(['index', corpus, '--out', 'i', '--json'], { cwd, env }));
  assert.equal(built.rows, PASSAGES.length);
  assert.deepEqual(readdirSync(join(cwd, 'my data', ...CORPUS_FOLDER)).sort(), [
    '.trawl-download.json',
    '.trawl-download.lock',
    'wiki-18.jsonl.gz',
  ]);
  assert.equal(statSync(join(cwd, corpus)).mtimeMs, before.mtimeMs);
});

for (const [signal, exit] of [
  ['SIGINT', EXIT.interrupted],
  ['SIGTERM', EXIT.resumable],
  ['SIGKILL', null],
] as const) {
  test(`after ${signal} the same command downloads only the rest`, async (t) => {
    const { cwd, pull, halfWay } = await start(t);
    const partial = at(cwd, ...VECTOR_FOLDER, 'part_aa.partial');
    const halted = await halfWay(['pull', 'wiki18-e5'], 'part_aa', partial);
    const { code, stdout, stderr } = await halted.end(signal);
    assert.deepEqual([code, stdout], [exit, '']);
    if (exit !== null) {
      assert.match(
        stderr,
        /trawl: Stopped\. The downloaded parts are kept; the same command resumes\. \[CANCELLED\]\n$/,
      );
    }
    assert.equal(existsSync(at(cwd, ...VECTOR_FOLDER, 'part_aa')), false);
    const kept = statSync(partial).size;
    assert.ok(kept > 0 && kept < PARTS.part_aa.length);
    // The second part may be complete or partial.
    const second = ['part_ab', 'part_ab.partial'].map((name) => at(cwd, ...VECTOR_FOLDER, name)).find(existsSync);
    const keptOfSecond = second === undefined ? 0 : statSync(second).size;
    const planned = jsonOf<Pulled>(await pull('wiki18-e5', '--dry-run', '--json'));
    const rest = PARTS.part_aa.length + PARTS.part_ab.length - kept - keptOfSecond;
    assert.equal(planned.repositories[0]!.missingBytes, rest);
    const { repositories } = jsonOf<Pulled>(await pull('wiki18-e5', '--json'));
    assert.equal(repositories[0]!.transferredBytes, rest);
    for (const [name, content] of Object.entries(PARTS)) {
      assert.ok(readFileSync(at(cwd, ...VECTOR_FOLDER, name)).equals(content), name);
    }
  });
}

test('a download continues after a broken connection', async (t) => {
  const { hub, cwd, pull } = await start(t);
  hub.behaviour['part_aa'] = { breakAfter: 1_500_000, breaks: 1 };
  const { code, stderr } = await pull('wiki18-e5');
  assert.equal(code, EXIT.ok, stderr);
  assert.match(stderr, /part_aa: .*retrying in/);
  assert.ok(hub.requests.some(({ cdn, range }) => cdn && /^bytes=[1-9]/.test(range ?? '')));
  assert.ok(readFileSync(at(cwd, ...VECTOR_FOLDER, 'part_aa')).equals(PARTS.part_aa));
});

for (const [what, content] of [
  ['another checksum', seededBytes(9, PARTS.part_ab.length)],
  ['another length', PARTS.part_ab.subarray(0, 600_000)],
] as const) {
  test(`a file with ${what} than in the hub's list is refused and not kept`, async (t) => {
    const { hub, cwd, pull } = await start(t);
    hub.behaviour['part_ab'] = { content };
    const { code, stdout, stderr } = await pull('wiki18-e5');
    assert.deepEqual([code, stdout], [EXIT.failed, '']);
    assert.match(stderr, /part_ab.*\[DOWNLOAD_CORRUPT\]\n$/);
    assert.equal(existsSync(at(cwd, ...VECTOR_FOLDER, 'part_ab')), false);
    hub.behaviour['part_ab'] = {};
    assert.equal((await pull('wiki18-e5')).code, EXIT.ok);
  });
}

test('a download that does not fit on the disk is not started', async (t) => {
  const { hub, cwd, pull } = await start(t, [{ ...OTHER, files: { 'README.md': Buffer.from('x') } }]);
  const oid = 'a'.repeat(64);
  hub.extraEntries.push({
    type: 'file',
    path: 'huge.bin',
    size: 9e15,
    oid,
    lfs: { oid, size: 9e15, pointerSize: 134 },
  });
  const { code, stdout, stderr } = await pull('org/other');
  assert.deepEqual([code, stdout], [EXIT.failed, '']);
  assert.match(
    stderr,
    /org\/other needs 9000\.0 TB more in .*downloads, but only .* are free.*--out\. \[DISK_FULL\]\n$/,
  );
  assert.equal(existsSync(join(cwd, 'downloads')), false);
  const dry = await pull('org/other', '--dry-run');
  assert.equal(dry.code, EXIT.problems);
  assert.match(dry.stdout, /9000\.0 TB {2}huge\.bin\n9000\.0 TB to download, .* free: it does not fit\n$/);
  const planned = await pull('org/other', '--dry-run', '--json');
  assert.equal(planned.code, EXIT.problems);
  assert.equal((JSON.parse(planned.stdout) as Pulled).fits, false);
});

test('two repositories that do not fit on the disk together are not started', async (t) => {
  const disk = join(await tempFolder(t), 'disk');
  mkdirSync(disk);
  const mounted = smallDisk(disk, 3300);
  if ('missing' in mounted) return t.skip(mounted.missing);
  try {
    const big = { ...CORPUS, files: { 'wiki-18.jsonl.gz': seededBytes(7, 900_000) } };
    const { hub, pull } = await start(t, [VECTORS, big, OTHER]);
    const { code, stderr } = await pull('wiki18-e5', '--out', disk);
    assert.equal(code, EXIT.failed);
    assert.match(stderr, /wiki18-e5 needs 4\.10 MB more in .*disk, but only 3\.3\d MB are free.*\[DISK_FULL\]\n$/);
    assert.deepEqual([hub.sentBytes, readdirSync(disk)], [0, []]);
    assert.equal((await pull('wiki18', '--out', disk, '--quiet')).code, EXIT.ok);
  } finally {
    mounted.unmount();
  }
});

test('--dry-run prints the files, the commit and whether they fit, and writes nothing', async (t) => {
  const { hub, cwd, pull } = await start(t);
  const { code, stdout } = await pull('wiki18-e5', '--dry-run');
  assert.equal(code, EXIT.ok);
  assert.match(
    stdout,
    new RegExp(`^PeterJinGo/wiki-18-e5-index@${commitOf(VECTORS).slice(0, 12)} → ${cwd}/downloads/`),
  );
  assert.match(stdout, /\n +2\.50 MB {2}part_aa\n +700\.0 KB {2}part_ab\n/);
  assert.match(stdout, /3\.20 MB to download, [\d.]+ [KMGT]B free: it fits\n$/);
  const { fits, missingBytes, freeBytes, repositories } = jsonOf<Pulled>(
    await pull('wiki18-e5', '--dry-run', '--json'),
  );
  assert.equal(fits, true);
  assert.equal(
    missingBytes,
    repositories.reduce((sum, { bytes }) => sum + bytes, 0),
  );
  assert.ok(freeBytes! > missingBytes!);
  assert.deepEqual([hub.sentBytes, existsSync(join(cwd, 'downloads'))], [0, false]);
});

test('gated and private repositories are refused with what to do, and downloaded with a token', async (t) => {
  const { cwd, env, pull } = await start(t, [{ ...VECTORS, gated: true }, CORPUS, { ...OTHER, private: true }]);
  const gated = await pull('wiki18-e5');
  assert.equal(gated.code, EXIT.failed);
  assert.match(gated.stderr, /datasets\/PeterJinGo\/wiki-18-e5-index is gated.*HF_TOKEN.*\[HUB_ACCESS_DENIED\]\n$/);
  assert.match(
    (await pull('org/other')).stderr,
    /repository .*datasets\/org\/other does not exist.*private.*\[HUB_NOT_FOUND\]\n$/,
  );
  assert.equal(existsSync(join(cwd, 'downloads')), false);
  const withToken = { ...env, HF_TOKEN: 'private-hub-token' };
  for (const name of ['wiki18-e5', 'org/other']) {
    const opened = await runTrawl(['pull', name, '--quiet'], { cwd, env: withToken });
    assert.equal(opened.code, EXIT.ok, opened.stderr);
  }
});

test('patterns and a revision select files of any data set', async (t) => {
  const { cwd, pull } = await start(t);
  const chosen = async (...args: string[]) =>
    jsonOf<Pulled>(await pull(...args, '--json')).repositories[0]!.files.map(({ path }) => path);
  assert.deepEqual(await chosen('org/other@v1', '--include', '*.parquet', '--exclude', '*b.parquet'), [
    'data/a.parquet',
  ]);
  assert.deepEqual(readdirSync(at(cwd, 'org', 'other', 'data')), ['a.parquet']);
  assert.deepEqual(await chosen('org/other', '--include', 'corpus*', '--include', 'data/'), [
    'corpus.jsonl.gz',
    'data/a.parquet',
    'data/b.parquet',
  ]);
  assert.deepEqual(await chosen('org/other'), Object.keys(OTHER.files));
  const none = await pull('org/other', '--include', '*.tsv');
  assert.equal(none.code, EXIT.failed);
  assert.match(
    none.stderr,
    /org\/other has no file that matches \*\.tsv\. It has corpus\.jsonl\.gz, data.*\[HUB_NOT_FOUND\]/,
  );
  assert.match((await pull('org/other@v2')).stderr, /no revision "v2".*\[HUB_NOT_FOUND\]/);
  assert.match((await pull('org/other', '--type', 'model')).stderr, /repository .* does not exist.*\[HUB_NOT_FOUND\]/);
});

test('a known file that the hub no longer has is named, with the files it has', async (t) => {
  const { cwd, pull } = await start(t, [{ ...VECTORS, files: { part_aa: PARTS.part_aa } }, CORPUS]);
  const { code, stderr } = await pull('wiki18-e5');
  assert.equal(code, EXIT.failed);
  assert.match(stderr, /wiki-18-e5-index has no file part_ab\. It has part_aa\. \[HUB_NOT_FOUND\]\n$/);
  assert.equal(existsSync(join(cwd, 'downloads')), false);
});

test('an existing file is kept without a download if it equals the one on the hub, and never overwritten otherwise', async (t) => {
  const { hub, cwd, pull } = await start(t);
  const folder = at(cwd, ...VECTOR_FOLDER);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'part_aa'), PARTS.part_aa);
  writeFileSync(join(folder, 'part_ab'), 'mine');
  const refused = await pull('wiki18-e5');
  assert.equal(refused.code, EXIT.failed);
  assert.match(refused.stderr, /part_ab already exists and is not the file on the hub.*\[OUTPUT_NOT_WRITABLE\]\n$/);
  assert.equal(readFileSync(join(folder, 'part_ab'), 'utf8'), 'mine');
  writeFileSync(join(folder, 'part_ab'), PARTS.part_ab);
  hub.sentBytes = 0;
  const { repositories } = jsonOf<Pulled>(await pull('wiki18-e5', '--json'));
  assert.equal(repositories[0]!.transferredBytes, 0);
  assert.equal(hub.sentBytes, CORPUS.files['wiki-18.jsonl.gz'].length);
});

test('with HF_HUB_OFFLINE trawl pull sends no request', async (t) => {
  const { hub, cwd, env } = await start(t);
  const { code, stderr } = await runTrawl(['pull', 'wiki18'], { cwd, env: { ...env, HF_HUB_OFFLINE: '1' } });
  assert.equal(code, EXIT.failed);
  assert.match(stderr, /HF_HUB_OFFLINE.*\[HUB_OFFLINE\]\n$/);
  assert.equal(hub.requests.length, 0);
});

for (const [args, message] of [
  [['wiki-18'], /"wiki-18" is not in the table of `trawl pull`; did you mean wiki18\?/],
  [['something-else'], /expected one of wiki18, wiki18-e5/],
  [['wiki18', '--include', '*'], /--include, --exclude and --type need owner\/name/],
  [['wiki18@main'], /a revision, --include/],
  [['org/other@'], /after the @/],
  [['a/b/c'], /not a repository name/],
  [['../x'], /not a repository name/],
  [['wiki18', '--list'], /--list takes no name/],
  [['wiki18', 'wiki18-e5'], /Too many arguments/],
  [['org/other', '--type', 'space'], /--type/],
  [['org/other', '--concurrency', '0'], /concurrency/],
] as const) {
  test(`trawl pull ${args.join(' ')} is a usage error`, async (t) => {
    const cwd = await tempFolder(t);
    const { code, stderr } = await runTrawl(['pull', ...args], { cwd });
    assert.equal(code, EXIT.usage);
    assert.match(stderr, message);
    assert.match(stderr, /\[USAGE\]/);
  });
}
