import assert from 'node:assert/strict';
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { EXIT } from '../../cli/program/command.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { type Ended, endOf, fileFolder, jsonOf, postJson, runTrawl, serveIndex, spawnTrawl } from './run-trawl.ts';

interface Row {
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

const WORDS = ['river', 'bridge', 'mountain', 'opera', 'engine', 'comet', 'harbour', 'violin', 'glacier', 'castle'];
const row = (i: number, text = `The ${WORDS[i % 10]} of the ${WORDS[(i * 3 + 1) % 10]} number ${i}.`): Row => ({
  id: `p${i}`,
  title: `Title ${i}`,
  text,
});
const OLD = Array.from({ length: 30 }, (_, i) => row(i));
/** Without rows 0 to 4, with another text in row 5, and with new rows 30 and 31. */
const NEW = [row(5, 'A lighthouse keeper counts the ships.'), ...OLD.slice(6), row(30), row(31)];

const loaded = loadKernel();
const noEngine = loaded.ok ? false : `the native engine is not available: ${loaded.reason}`;
const folder = await fileFolder();
before(async () => {
  write('old.jsonl', OLD);
  write('new.jsonl', NEW);
  const args = [
    'index',
    'old.jsonl',
    '--out',
    'old',
    '--passage-template',
    '{title}. {text}',
    '--max-passage-tokens',
    '40',
  ];
  assert.equal((await runTrawl([...args, '--quiet'], { cwd: folder })).code, 0);
});

function write(name: string, rows: readonly object[]): void {
  writeFileSync(join(folder, name), rows.map((one) => `${JSON.stringify(one)}\n`).join(''));
}

async function copyOfIndex(t: TestContext): Promise<string> {
  const copy = join(await tempFolder(t), 'ix');
  cpSync(join(folder, 'old'), copy, { recursive: true });
  return copy;
}

const update = (index: string, ...args: string[]): Promise<Ended> =>
  runTrawl(['index', 'new.jsonl', '--update', '--out', index, ...args], { cwd: folder });

async function get<T>(url: string): Promise<{ status: number; body: T }> {
  const response = await fetch(url);
  return { status: response.status, body: (await response.json()) as T };
}

test('a server keeps serving the generation that it opened; a server started after the update serves the new one', async (t) => {
  const index = await copyOfIndex(t);
  const request = {
    queries: [OLD[2]!.text, 'A lighthouse keeper counts the ships.'],
    topk: 1_000,
    return_scores: true,
  };
  type Reply = { result: { document: Row; score: number }[][] };
  const [oldServer] = await Promise.all([serveIndex(t, index)]);
  const before = (await postJson<Reply>(oldServer.url, request)).body;
  const { kept, added, removed, generation } = jsonOf<Record<string, unknown>>(await update(index, '--json'));
  assert.deepEqual([kept, added, removed], [24, 3, 6]);
  assert.deepEqual((await postJson<Reply>(oldServer.url, request)).body, before, 'the same answer, bit for bit');
  assert.equal((await get<{ document: Row }>(`${oldServer.url}/v1/passages/p5`)).body.document.text, OLD[5]!.text);
  oldServer.child.kill('SIGTERM');

  const { url } = await serveIndex(t, index);
  const { result } = (await postJson<Reply>(url, request)).body;
  const idsOf = (hits: Reply['result'][number]): string[] => hits.map(({ document }) => document.id).sort();
  for (const hits of result)
    assert.deepEqual(idsOf(hits), NEW.map(({ id }) => id).sort(), 'k is larger than the number of passages');
  assert.equal(result[1]![0]!.document.text, 'A lighthouse keeper counts the ships.');
  const scores = (hits: Reply['result'][number]): Map<string, number> =>
    new Map(hits.map(({ document, score }) => [JSON.stringify(document), score]));
  const oldScores = scores(before.result[0]!);
  for (const [document, score] of scores(result[0]!)) {
    const was = oldScores.get(document);
    if (was !== undefined) assert.equal(score, was);
  }
  // A changed passage is found by its id and title; a removed one is not.
  const changed = await get<{ row: number; document: Row; sameId?: number[] }>(`${url}/v1/passages/p5`);
  assert.deepEqual([changed.body.row, changed.body.document.text], [30, 'A lighthouse keeper counts the ships.']);
  assert.equal(changed.body.sameId, undefined);
  assert.equal((await get(`${url}/v1/passages/p2`)).status, 404);
  const access = await fetch(`${url}/access`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ urls: ['Title 2', 'Title 5', 'Title 31'] }),
  });
  const pages = JSON.stringify(await access.json());
  assert.deepEqual(
    [/number 2\./.test(pages), /lighthouse/.test(pages), /number 31\./.test(pages)],
    [false, true, true],
  );
  const { indexes } = (await get<{ indexes: Record<string, unknown>[] }>(`${url}/v1/indexes`)).body;
  assert.deepEqual([indexes[0]!['rows'], indexes[0]!['deletedRows'], indexes[0]!['generation']], [33, 6, generation]);
  const ready = (await get<Record<string, unknown>>(`${url}/readyz`)).body;
  assert.deepEqual([ready['rows'], ready['deleted_rows']], [33, 6]);
  assert.equal((await get<{ corpus_size: number }>(`${url}/health`)).body.corpus_size, 27);
});

test('an update uses the options of the build, and refuses options that contradict them', async (t) => {
  const index = await copyOfIndex(t);
  const manifest = readFileSync(join(index, 'manifest.json'), 'utf8');
  for (const [args, code, message] of [
    [['--passage-template', '{text}'], EXIT.usage, /built with "\{title\}\. \{text\}".*\[USAGE\]/],
    [['--overwrite'], EXIT.usage, /--update changes an existing index and cannot be combined with --overwrite/],
    [['--if-changed'], EXIT.usage, /cannot be combined with --if-changed/],
    [['--append'], EXIT.usage, /cannot be combined with --append/],
    [['--shard', '0/2'], EXIT.usage, /cannot be combined with --shard/],
    [['--max-passage-tokens', '41'], EXIT.failed, /maxTokens: .*"passage":40.*"passage":41.*\[MODEL_MISMATCH\]/],
    [['--model', 'no-such-model'], EXIT.failed, /\[MODEL_NOT_FOUND\]/],
  ] as const) {
    const ended = await update(index, ...args);
    assert.deepEqual([ended.code, ended.stdout], [code, ''], ended.stderr);
    assert.match(ended.stderr, message);
  }
  assert.match((await update(`${index}-none`)).stderr, /no index found.*\[INDEX_NOT_FOUND\]/);
  assert.equal(readFileSync(join(index, 'manifest.json'), 'utf8'), manifest);
  const same = ['--passage-template', '{title}. {text}', '--max-passage-tokens', '40', '--model', 'token-average-256'];
  const { code, stderr } = await update(index, ...same);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /ix: 3 passages added, 6 deleted, 24 kept\n {2}27 passages in 2 shards, and 6 deleted rows/);
  assert.match((await update(index)).stderr, /already has these 27 passages; nothing to do\./);
  const { stdout } = await runTrawl(['inspect', index]);
  assert.match(stdout, /rows +33 × 256.*\n +deleted +6; 27 passages remain\n +changed +last by trawl index --update/);
  assert.equal((await runTrawl(['verify', index, '--quiet'])).code, 0);
});

test('an update reads TSV with the options of the build, packed or not', async (t) => {
  const at = await tempFolder(t);
  const lines = Array.from({ length: 20 }, (_, i) => `${i}\tpassage ${i} of some words\n`);
  writeFileSync(join(at, 'a.tsv'), lines.join(''));
  writeFileSync(join(at, 'b.tsv.gz'), gzipSync([...lines.slice(3), '20\tone more\n'].join('')));
  const options = ['--tsv-layout', 'r1-searcher', '--tsv-id-type', 'string'];
  const built = await runTrawl(['index', 'a.tsv', '--out', 'ix', ...options, '--quiet'], { cwd: at });
  assert.equal(built.code, 0, built.stderr);
  const first = await runTrawl(['index', 'b.tsv.gz', '--out', 'ix', '--update', '--json'], { cwd: at });
  const { kept, added, removed } = jsonOf<Record<string, number>>(first);
  assert.deepEqual([kept, added, removed], [17, 1, 3]);
  const again = await runTrawl(['index', 'b.tsv.gz', '--out', 'ix', '--update', '--plan', '--json'], { cwd: at });
  const update = { kept: 18, restored: 0, added: 0, removed: 0, rowsAfter: 21 };
  assert.deepEqual(jsonOf<{ update: object }>(again).update, update);
});

for (const updated of [false, true]) {
  const name = `the options of ${updated ? 'an update' : 'the build'} also read the TSV of an update after rows were deleted and dropped`;
  test(name, { skip: noEngine }, async (t) => {
    const at = await tempFolder(t);
    const lines = Array.from({ length: 20 }, (_, i) => `${i}\tpassage ${i} of some words\n`);
    writeFileSync(join(at, 'a.tsv'), lines.join(''));
    writeFileSync(join(at, 'b.tsv'), lines.slice(1).join(''));
    const layout = ['--tsv-layout', 'r1-searcher'];
    for (const args of [
      ['index', 'a.tsv', '--out', 'ix', ...(updated ? [] : [...layout, '--tsv-id-type', 'string']), '--quiet'],
      ...(updated
        ? [['index', 'b.tsv', '--out', 'ix', '--update', ...layout, '--tsv-id-type', 'string', '--quiet']]
        : []),
      ['remove', 'ix', '19'],
      ['optimize', 'ix', '--compact'],
    ]) {
      const { code, stderr } = await runTrawl(args, { cwd: at });
      assert.equal(code, 0, stderr);
    }
    const plan = await runTrawl(['index', 'b.tsv', '--out', 'ix', '--update', '--plan', '--json'], { cwd: at });
    const { kept, added } = jsonOf<{ update: Record<string, number> }>(plan).update;
    assert.deepEqual([kept, added], [18, 1], plan.stderr);
  });
}

test('optimize --compact drops the deleted rows', { skip: noEngine }, async (t) => {
  const index = await copyOfIndex(t);
  assert.equal((await update(index, '--quiet')).code, 0);
  const { stdout, code, stderr } = await runTrawl(['optimize', index, '--compact']);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^6 deleted rows dropped, 1 shard rewritten; search codes made for 0 shards/);
  const { rows, tombstones } = jsonOf<Record<string, unknown>>(await runTrawl(['inspect', index, '--json']));
  assert.deepEqual([rows, tombstones], [27, null]);
});

test('--plan says what an update would do, and changes nothing', async (t) => {
  const index = await copyOfIndex(t);
  const manifest = readFileSync(join(index, 'manifest.json'), 'utf8');
  const { code, stdout } = await update(index, '--plan');
  assert.equal(code, 0);
  assert.match(stdout, /ix: 24 passages to keep, 3 to embed in 1 new shard, 6 to delete; 33 rows afterwards\n/);
  type Plan = { update: object; rows: number; bytes: { vectors: number } };
  const plan = jsonOf<Plan>(await update(index, '--plan', '--json'));
  assert.deepEqual(plan.update, { kept: 24, restored: 0, added: 3, removed: 6, rowsAfter: 33 });
  assert.deepEqual([plan.rows, plan.bytes.vectors], [3, 45 + 3 * 256 * 4]);
  assert.equal(readFileSync(join(index, 'manifest.json'), 'utf8'), manifest);
  assert.equal(existsSync(`${index}.partial`), false);
});

test('trawl remove takes ids from the command line or a file, and reports ids without a passage', async (t) => {
  const index = await copyOfIndex(t);
  const some = await runTrawl(['remove', index, 'p3', 'p99']);
  assert.equal(some.code, 0);
  assert.match(some.stderr, /ix: 1 passage deleted\n {2}29 passages .*\n {2}1 id without a passage: "p99"\n/);
  writeFileSync(join(folder, 'ids.txt'), '\uFEFFp4\r\np3\n\np5');
  const { removed, unknownIds, rows, deletedRows } = jsonOf<Record<string, unknown>>(
    await runTrawl(['remove', index, '--ids', 'ids.txt', '--json'], { cwd: folder }),
  );
  assert.deepEqual([removed, unknownIds, rows, deletedRows], [2, 1, 30, 3]);
  const hits = jsonOf<{ hits: { document: Row }[] }>(
    await runTrawl(['search', index, OLD[4]!.text, '--k', '100', '--json']),
  );
  assert.equal(hits.hits.length, 27);
  assert.ok(hits.hits.every(({ document }) => !['p3', 'p4', 'p5'].includes(document.id)));
  for (const args of [[], ['p1', '--ids', 'ids.txt']]) {
    const ended = await runTrawl(['remove', index, ...args], { cwd: folder });
    assert.deepEqual([ended.code, /\[USAGE\]/.test(ended.stderr)], [EXIT.usage, true], ended.stderr);
  }
  writeFileSync(join(folder, 'utf16.txt'), Buffer.from('\uFEFFp6\n', 'utf16le'));
  for (const [file, message] of [
    ['none.txt', /Cannot read none\.txt: ENOENT.*\[CORPUS_NOT_FOUND\]/],
    ['.', /Cannot read \.: EISDIR.*\[CORPUS_NOT_FOUND\]/],
    ['utf16.txt', /utf16\.txt:1: the file is UTF-16, expected UTF-8.*\[CORPUS_BAD_LINE\]/],
  ] as const) {
    assert.match((await runTrawl(['remove', index, '--ids', file], { cwd: folder })).stderr, message);
  }
  assert.match((await runTrawl(['remove', `${index}-none`, 'a'])).stderr, /\[INDEX_NOT_FOUND\]/);
});

test('a running update locks out others; stopped by SIGTERM it ends with 75, and the same command resumes it', async (t) => {
  const index = await copyOfIndex(t);
  const many = Array.from({ length: 25_000 }, (_, i) => row(i));
  write('many.jsonl', many);
  const args = ['index', 'many.jsonl', '--update', '--out', index, '--workers', '1', '--checkpoint-seconds', '0'];
  const child = spawnTrawl([...args, '--json'], { cwd: folder });
  const ended = endOf(child);
  await new Promise<void>((resolve) => {
    let seen = '';
    child.stderr!.on('data', (text: string) => {
      seen += text;
      if (seen.includes('"encode"')) resolve();
    });
  });
  assert.match((await update(index)).stderr, /is building .*ix\.partial.*\[BUILD_LOCKED\]/);
  assert.match((await runTrawl(['remove', index, 'p1'])).stderr, /\[BUILD_LOCKED\]/);
  child.kill('SIGTERM');
  const stopped = await ended;
  assert.equal(stopped.code, EXIT.resumable, stopped.stderr);
  assert.match(stopped.stderr, /ix\.partial keeps the finished part: run the same command again/);
  assert.match((await update(index)).stderr, /corpus file 1: many\.jsonl, now new\.jsonl.*\[BUILD_DIFFERS\]/);
  const { resumedRows, added } = jsonOf<Record<string, number>>(await runTrawl([...args, '--json'], { cwd: folder }));
  assert.ok(resumedRows! > 0, 'the second run resumed');
  assert.equal(added, 24_970);
});
