import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { faultLibrary } from '../helpers/fault-library.ts';
import { runs } from '../helpers/runs.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { npyHeader } from '../indexer/vector-files/vector-files.ts';
import {
  endOf,
  fileFolder,
  jsonOf,
  postJson,
  runTrawl,
  SAMPLE_PASSAGES,
  sampleIndex,
  serveIndex,
  spawnTrawl,
} from './run-trawl.ts';

const folder = await fileFolder();
const built = await sampleIndex(folder);
const vectors = join(folder, 'sample.faiss');
copyFileSync(join(built, 'shard-00000', 'vectors.faiss'), vectors);
const MODEL = ['--model', 'token-average-256', '--corpus', SAMPLE_PASSAGES];

test('an index of adopted vectors in several files is searched, verified, inspected and served like a built one', async (t) => {
  const pieces = join(folder, 'pieces');
  mkdirSync(pieces);
  const bytes = readFileSync(vectors);
  writeFileSync(join(pieces, 'part_aa'), bytes.subarray(0, 100_003));
  writeFileSync(join(pieces, 'part_ab'), bytes.subarray(100_003));
  const out = join(folder, 'adopted');
  const ended = await runTrawl(['import', pieces, ...MODEL, '--out', out, '--shard-rows', '100', '--json']);
  const report = jsonOf<{ rows: number; shards: number; stageMs: Record<string, number> }>(ended);
  assert.deepEqual([report.rows, report.shards], [270, 3]);
  assert.ok(report.stageMs['vectors']! > 0);
  const query = ['designer of the Brooklyn Bridge', '--json', '--k', '7'];
  const [own, adopted] = [await runTrawl(['search', built, ...query]), await runTrawl(['search', out, ...query])];
  const hits = (text: string): unknown => (JSON.parse(text) as { hits: unknown }).hits;
  assert.ok(hits(own.stdout) !== undefined);
  assert.deepEqual(hits(adopted.stdout), hits(own.stdout));
  assert.equal((await runTrawl(['verify', out])).code, 0);
  assert.match((await runTrawl(['inspect', out])).stdout, /270 × 256/);
  const { url } = await serveIndex(t, out);
  const reply = await postJson<{ result: { title: string }[][] }>(url, {
    queries: ['designer of the Brooklyn Bridge'],
  });
  assert.equal(reply.body.result[0]![0]!.title, 'Brooklyn Bridge');
});

test('--check-model embeds passages again and refuses a model that did not make the vectors', async () => {
  const out = join(folder, 'checked');
  const ended = await runTrawl(['import', vectors, ...MODEL, '--out', out, '--check-model', '20']);
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(
    ended.stderr,
    /20 passages embedded again with token-average-256: the median similarity to their vectors is 1\.00000/,
  );
  const other = [
    'import',
    vectors,
    ...MODEL,
    '--out',
    join(folder, 'other'),
    '--passage-prefix',
    'rivers and bridges of Asia: ',
  ];
  const wrong = await runTrawl([...other, '--check-model', '20']);
  assert.equal(wrong.code, 1);
  assert.match(
    wrong.stderr,
    /made with no prefix \(similarity 1\.0000\)\. Add --passage-prefix ''\. \[VECTORS_OF_ANOTHER_MODEL\]/,
  );
  assert.equal((await runTrawl([...other, '--check-model', '0'])).code, 0);
});

test('files in the order of a shell, whose rows do not match, are named', async () => {
  const parts = join(folder, 'parts');
  mkdirSync(parts);
  const rows = readFileSync(vectors).subarray(45);
  const named = [0, 2, 10].map((number, i) => {
    const path = join(parts, `emb_${number}.memmap`);
    writeFileSync(path, rows.subarray(90 * 1024 * i, 90 * 1024 * (i + 1)));
    return path;
  });
  const out = join(folder, 'ordered');
  assert.equal((await runTrawl(['import', ...named, ...MODEL, '--out', out, '--check-model', '20'])).code, 0);
  const [zero, two, ten] = named;
  const again = ['--overwrite', '--check-model', '20'];
  const { code, stderr } = await runTrawl(['import', zero!, ten!, two!, ...MODEL, '--out', out, ...again]);
  assert.equal(code, 1);
  assert.match(
    stderr,
    /emb_10\.memmap comes before emb_2\.memmap\. If their rows are, name the folder, or put the pattern/,
  );
});

test('a raw memmap and a .npy file are adopted; index --from-embeddings and --copy copy the vectors', async () => {
  const rows = readFileSync(vectors).subarray(45);
  const memmap = join(folder, 'emb_e5.memmap');
  writeFileSync(memmap, rows);
  const npy = join(folder, 'emb.npy');
  writeFileSync(npy, Buffer.concat([npyHeader({ shape: '270, 256' }), rows]));
  for (const file of [memmap, npy]) {
    const out = `${file}-index`;
    assert.equal((await runTrawl(['import', file, ...MODEL, '--out', out, '--quiet'])).code, 0);
    assert.equal((await runTrawl(['verify', out, '--quiet'])).code, 0);
    assert.ok(!existsSync(join(out, 'shard-00000', 'vectors.faiss')));
  }
  for (const command of [
    ['index', SAMPLE_PASSAGES, '--from-embeddings', npy],
    ['import', npy, ...MODEL, '--copy'],
  ]) {
    const out = join(folder, `${command[0]}-copied`);
    assert.equal((await runTrawl([...command, '--out', out, '--quiet'])).code, 0);
    assert.deepEqual(readFileSync(join(out, 'shard-00000', 'vectors.faiss')), readFileSync(vectors));
  }
});

test('--plan says which vectors stay in their files and what would be written', async () => {
  const { code, stdout } = await runTrawl([
    'import',
    vectors,
    ...MODEL,
    '--out',
    join(folder, 'planned'),
    '--plan',
    '--quiet',
  ]);
  assert.equal(code, 0);
  assert.match(stdout, /vectors +none: 270 rows, 276\.5 KB, stay in their files/);
  assert.match(stdout, /codes\.i8 +\d/);
});

test('missing options and options that exclude each other are usage errors', async () => {
  for (const [args, message] of [
    [[vectors, '--out', 'x', '--corpus', SAMPLE_PASSAGES], /--model NAME\|DIR\|URL is missing/],
    [[vectors, '--out', 'x', '--model', 'token-average-256'], /--corpus FILE is missing/],
    [[vectors, ...MODEL], /--out DIR is missing/],
    [[vectors, ...MODEL, '--out', 'x', '--copy', '--relative-paths'], /--relative-paths has no effect with --copy/],
    [[vectors, ...MODEL, '--out', 'x', '--shard', '0/2', '--shard-rows', '5'], /Omit --shard-rows/],
  ] as const) {
    const { code, stderr } = await runTrawl(['import', ...args]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, message);
  }
  for (const option of ['--append', '--update']) {
    const changed = await runTrawl(['import', vectors, ...MODEL, '--out', 'x', '--overwrite', option]);
    assert.match(changed.stderr, new RegExp(`Unknown option ${option}`));
  }
  for (const [option, value] of [
    ['--metric', 'l2'],
    ['--check-model', '0'],
  ] as const) {
    const { code, stderr } = await runTrawl(['index', SAMPLE_PASSAGES, '--out', 'x', option, value]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, new RegExp(`${option} is only for vectors from files \\(--from-embeddings\\)`));
  }
  const both = ['index', SAMPLE_PASSAGES, '--out', 'x', '--from-embeddings', vectors, '--if-changed'];
  assert.match((await runTrawl(both)).stderr, /Use --overwrite with --from-embeddings/);
});

/** The content of every file of an index by its path: bytes in hexadecimal, or the documents of a passage file. */
function contentOf(index: string): Map<string, string> {
  const content = new Map<string, string>();
  for (const name of readdirSync(index, { recursive: true, encoding: 'utf8' }).sort()) {
    const path = join(index, name);
    if (statSync(path).isDirectory()) continue;
    if (!name.endsWith('.sqlite')) content.set(relative(index, path), readFileSync(path, 'hex'));
    else {
      const file = new PassageFile(path);
      content.set(relative(index, path), [...file.documents(), file.sha256].join('\n'));
      file.close();
    }
  }
  return content;
}

test('an import that is killed at a random system call and run again makes the same index', async (t) => {
  const scratch = await tempFolder(t);
  const library = faultLibrary(scratch);
  if ('missing' in library) {
    t.skip(library.missing);
    return;
  }
  const command = (out: string): string[] => [
    'import',
    vectors,
    ...MODEL,
    '--out',
    out,
    '--shard-rows',
    '100',
    '--check-model',
    '0',
    '--quiet',
  ];
  const reference = join(scratch, 'reference');
  const count = join(scratch, 'count');
  const run = (out: string, env: Record<string, string>) => endOf(spawnTrawl(command(out), { env }));
  assert.equal((await run(reference, library.environment({ under: reference, count }))).code, 0);
  const calls = library.count(count);
  const random = seededRandom(11);
  const imports = runs(3, 12);
  let kills = 0;
  for (let i = 0; i < imports; i++) {
    const out = join(scratch, `killed-${i}`);
    const at = 1 + Math.floor(random() * calls);
    const { signal } = await run(out, library.environment({ under: out, at, do: 'kill' }));
    if (signal === 'SIGKILL') kills++;
    const again = await runTrawl(command(out));
    assert.ok(again.code === 0 || /INDEX_EXISTS/.test(again.stderr), again.stderr);
    assert.equal(readIndexManifest(out).rows, 270);
    assert.deepEqual(contentOf(out), contentOf(reference), `killed at call ${at} of ${calls}`);
    assert.ok(!existsSync(`${out}.partial`));
  }
  assert.ok(kills >= (2 / 3) * imports, `${kills} of ${imports} imports were killed`);
});
