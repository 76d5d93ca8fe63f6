import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { before, test } from 'node:test';
import { findCorpus, findModel, findVectors, indexFolderOf, isImported } from '../../cli/launch-files.ts';
import { isLaunchLine, translateLaunchLine } from '../../cli/launch-lines.ts';
import { planLaunchLine, shownCommand } from '../../cli/serve-launch-line.ts';
import { packageRoot } from '../../src/package-root.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { fileFolder, postJson, runTrawl, SAMPLE_PASSAGES, sampleIndex, serveIndex } from './run-trawl.ts';

/** As the launch scripts of Search-R1, verl and Agentic-R have it. */
const SEARCH_R1 =
  '--index_path /data/e5_Flat.index --corpus_path /data/wiki-18.jsonl --topk 3 --retriever_name e5 --retriever_model intfloat/e5-base-v2 --faiss_gpu'.split(
    ' ',
  );
const withOptions = (...options: string[]): string[] => ['--index_path', 'i', '--corpus_path', 'c', ...options];

test('Search-R1’s launch line is told from one of ours', () => {
  assert.ok(isLaunchLine(SEARCH_R1));
  assert.ok(isLaunchLine(['--index_path=a']));
  assert.ok(isLaunchLine(['--retriever_model', 'a']));
  assert.ok(!isLaunchLine(['indexes/sample', '--topk', '3', '--model', 'e5']));
  assert.ok(!isLaunchLine(['--index-path', 'a']));
});

test('Search-R1’s launch line says vectors, corpus, model, and how its server embeds queries', () => {
  const { remarks, ...line } = translateLaunchLine(SEARCH_R1);
  assert.deepEqual(line, {
    vectors: '/data/e5_Flat.index',
    corpus: '/data/wiki-18.jsonl',
    model: 'intfloat/e5-base-v2',
    out: undefined,
    maxQueryTokens: 256,
    importOptions: ['--query-prefix=query: ', '--passage-prefix=passage: ', '--pooling=mean', '--normalize=yes'],
    serveOptions: ['--topk', '3'],
  });
  assert.match(remarks.join('\n'), /--faiss_gpu means nothing here/);
  assert.match(remarks.join('\n'), /--host 0\.0\.0\.0/);
});

test('prefixes follow the retriever’s name as the original reads it', () => {
  const options = (name: string): readonly string[] =>
    translateLaunchLine(withOptions('--retriever_name', name)).importOptions;
  const bge = 'Represent this sentence for searching relevant passages: ';
  assert.deepEqual(options('E5-base-v2'), options('e5'));
  assert.deepEqual(options('Agentic-R_e5'), options('e5'));
  assert.deepEqual(options('bge'), [`--query-prefix=${bge}`, '--passage-prefix=', '--pooling=cls', '--normalize=yes']);
  assert.deepEqual(options('bge-e5')[0], `--query-prefix=${bge}query: `);
  assert.deepEqual(options('contriever'), [
    '--query-prefix=',
    '--passage-prefix=',
    '--pooling=mean',
    '--normalize=yes',
  ]);
  assert.equal(options('dpr')[3], '--normalize=no');
});

test('defaults are those of the script', () => {
  const { model, importOptions } = translateLaunchLine(withOptions());
  assert.equal(model, 'intfloat/e5-base-v2');
  assert.equal(importOptions[0], '--query-prefix=query: ');
});

test('options of ours among the flags go to trawl serve in their order', () => {
  const argv = ['--host', '0.0.0.0', ...withOptions('--port=5005', '--topk', '5'), '--dialect', 'stepsearch', '--json'];
  const { serveOptions, remarks } = translateLaunchLine(argv);
  assert.deepEqual(serveOptions, [
    '--host',
    '0.0.0.0',
    '--port=5005',
    '--topk',
    '5',
    '--dialect',
    'stepsearch',
    '--json',
  ]);
  assert.deepEqual(remarks, []);
});

test('flags are written with a space or an equals sign, and the last one counts, as argparse has it', () => {
  const { vectors, corpus, out } = translateLaunchLine([
    '--index_path=a',
    '--corpus_path',
    'b=c',
    '--index_path',
    'd',
    '--out=e',
  ]);
  assert.deepEqual([vectors, corpus, out], ['d', 'b=c', 'e']);
});

test('ASearcher’s further flags are told as what they are here', () => {
  const argv = withOptions('--pages_path', 'p.jsonl', '--save-address-to', 'dir', '--port', '5005');
  const { remarks, serveOptions } = translateLaunchLine(argv);
  assert.match(remarks.join('\n'), /--pages_path is not read/);
  assert.deepEqual(serveOptions, ['--port', '5005', '--dialect=asearcher', '--address-dir=dir']);
  const named = translateLaunchLine(withOptions('--pages_path', 'p.jsonl', '--dialect', 'search-r1'));
  assert.deepEqual(named.serveOptions, ['--dialect', 'search-r1']);
});

test('what would change the answers and is not there is refused', () => {
  assert.throws(
    () => translateLaunchLine(withOptions('--retriever_name', 'bm25')),
    trawlError('NOT_SUPPORTED', /BM25/),
  );
  assert.throws(
    () => translateLaunchLine(withOptions('--reranker_model', 'm')),
    trawlError('NOT_SUPPORTED', /reranking/),
  );
  assert.throws(
    () => translateLaunchLine(withOptions('--qdrant_search_param', '{}')),
    trawlError('NOT_SUPPORTED', /Qdrant/),
  );
});

test('what is missing or unknown is a usage error that names it', () => {
  assert.throws(() => translateLaunchLine(['--index_path', 'i']), trawlError('USAGE', /--corpus_path is missing/));
  assert.throws(() => translateLaunchLine(['--corpus_path', 'c']), trawlError('USAGE', /--index_path is missing/));
  assert.throws(
    () => translateLaunchLine(['--index_path=', '--corpus_path', 'c']),
    trawlError('USAGE', /--index_path is missing/),
  );
  assert.throws(
    () => translateLaunchLine(['--index_path', '--corpus_path', 'c']),
    trawlError('USAGE', /--index_path needs a value/),
  );
  assert.throws(
    () => translateLaunchLine(['--corpus_path', 'c', '--index_path']),
    trawlError('USAGE', /needs a value/),
  );
  assert.throws(
    () => translateLaunchLine(withOptions('--faiss_gpu=1')),
    trawlError('USAGE', /--faiss_gpu takes no value/),
  );
  assert.throws(
    () => translateLaunchLine(withOptions('--top_k', '3')),
    trawlError('USAGE', /Unknown flag --top_k.*--index_path/),
  );
  assert.throws(() => translateLaunchLine(withOptions('--__proto__', '3')), trawlError('USAGE', /Unknown flag/));
});

test('vectors are found however their name is cased, or in the pieces they are published as', async (t) => {
  const folder = await tempFolder(t);
  const file = (name: string): string => join(folder, name);
  writeFileSync(file('agentic-r_e5_Flat.index'), '');
  assert.deepEqual(findVectors(file('agentic-r_e5_Flat.index')), {
    paths: [file('agentic-r_e5_Flat.index')],
    remark: undefined,
  });
  const cased = findVectors(file('Agentic-R_e5_Flat.index'));
  assert.deepEqual(cased.paths, [file('agentic-r_e5_Flat.index')]);
  assert.match(cased.remark!, /agentic-r_e5_Flat\.index is taken/);
  assert.deepEqual(findVectors(file('none.index')), { paths: [file('none.index')], remark: undefined });
  for (const name of ['part_ab', 'part_aa', 'part_ab.download']) writeFileSync(file(name), '');
  const parts = findVectors(file('none.index'));
  assert.deepEqual(parts.paths, [file('part_aa'), file('part_ab')]);
  assert.match(parts.remark!, /part_aa, part_ab/);
  assert.deepEqual(findVectors(join(folder, 'no', 'folder.index')).remark, undefined);
});

test('a corpus is found packed where it was not unpacked', async (t) => {
  const folder = await tempFolder(t);
  const corpus = join(folder, 'wiki-18.jsonl');
  assert.deepEqual(findCorpus(corpus), { paths: [corpus], remark: undefined });
  writeFileSync(`${corpus}.gz`, '');
  assert.deepEqual(findCorpus(corpus).paths, [`${corpus}.gz`]);
  writeFileSync(corpus, '');
  assert.deepEqual(findCorpus(corpus), { paths: [corpus], remark: undefined });
});

test('an index counts as imported while it is newer than what it was made from', async (t) => {
  const folder = await tempFolder(t);
  const source = join(folder, 'e5_Flat.index');
  const index = indexFolderOf(source);
  assert.equal(index, join(folder, 'e5_Flat.trawl'));
  assert.equal(isImported(index, [source]), false);
  mkdirSync(index);
  writeFileSync(source, '');
  writeFileSync(join(index, 'manifest.json'), '{}');
  utimesSync(source, 1_000, 1_000);
  assert.equal(isImported(index, [source]), true);
  const later = statSync(join(index, 'manifest.json')).mtimeMs / 1000 + 60;
  utimesSync(source, later, later);
  assert.equal(isImported(index, [source]), false);
});

test('a retriever’s model is one of ours, one of the hub’s, or a checkpoint named by what it holds', async (t) => {
  const folder = await tempFolder(t);
  assert.deepEqual(await findModel('token-average-256'), { model: 'token-average-256', add: undefined });
  const own = join(packageRoot, 'models', 'token-average-256');
  assert.deepEqual(await findModel(own), { model: own, add: undefined });
  assert.deepEqual(await findModel('intfloat/e5-base-v2'), {
    model: 'e5-base-v2',
    add: { source: 'intfloat/e5-base-v2', name: 'e5-base-v2' },
  });
  const checkpoint = join(folder, 'step 100');
  mkdirSync(checkpoint);
  await assert.rejects(findModel(checkpoint), trawlError('MODEL_INVALID', /no weights/));
  writeFileSync(join(checkpoint, 'model.safetensors'), 'first');
  const first = await findModel(checkpoint);
  assert.match(first.model, /^step-100-[0-9a-f]{12}$/);
  assert.deepEqual(first.add, { source: checkpoint, name: first.model });
  writeFileSync(join(checkpoint, 'model.safetensors'), 'second');
  assert.notEqual((await findModel(checkpoint)).model, first.model);
});

test('commands are shown as a person would type them', () => {
  assert.equal(
    shownCommand(['import', '--query-prefix=query: ', "--x=it's", '--', '/a/b.index']),
    "trawl import '--query-prefix=query: ' '--x=it'\\''s' -- /a/b.index",
  );
});

const folder = await fileFolder();
let sample = '';

before(async () => {
  sample = await sampleIndex(folder);
});

/** The sample index's vectors and corpus as another builder would leave them, and the line that serves them. */
function published(name: string): { launch: string[]; place: string } {
  const place = join(folder, name);
  mkdirSync(place);
  copyFileSync(join(sample, 'shard-00000', 'vectors.faiss'), join(place, 'tiny_Flat.index'));
  symlinkSync(SAMPLE_PASSAGES, join(place, 'wiki.jsonl'));
  const files = [`--index_path=${join(place, 'Tiny_Flat.index')}`, '--corpus_path', join(place, 'wiki.jsonl')];
  const model = ['--retriever_name', 'tiny', '--retriever_model', 'token-average-256'];
  return { place, launch: [...files, ...model, '--topk', '2', '--faiss_gpu'] };
}

test('a launch line imports what is not there yet and serves it, and the next time only serves', async (t) => {
  const { place, launch } = published('served');
  const [first, ...rest] = launch;
  for (const round of [1, 2]) {
    const { url, child, ended } = await serveIndex(t, first!, rest);
    const { body } = await postJson<{ result: { document: { title: string } }[][] }>(url, {
      queries: ['who designed the Brooklyn Bridge'],
      return_scores: true,
    });
    assert.deepEqual([body.result[0]!.length, body.result[0]![0]!.document.title], [2, 'Brooklyn Bridge']);
    child.kill('SIGTERM');
    const { code, stderr } = await ended;
    assert.equal(code, 0);
    assert.match(stderr, /--faiss_gpu means nothing here/);
    assert.match(stderr, /tiny_Flat\.index is taken/);
    assert.equal(/^trawl import /m.test(stderr), round === 1, stderr);
  }
  // Adopted where they lie: the index has no vectors of its own.
  const manifest = readFileSync(join(place, 'Tiny_Flat.trawl', 'shard-00000', 'shard.json'), 'utf8');
  assert.match(manifest, /tiny_Flat\.index/);
  assert.ok(!existsSync(join(place, 'Tiny_Flat.trawl', 'shard-00000', 'vectors.faiss')));
});

test('a launch line whose files are not there ends with the reason', async () => {
  const { launch, place } = published('broken');
  const missing = launch.map((text) => (basename(text) === 'wiki.jsonl' ? join(place, 'none.jsonl') : text));
  const { code, stderr } = await runTrawl(['serve', ...missing]);
  assert.equal(code, 1);
  assert.match(stderr, /none\.jsonl.*\[CORPUS_NOT_FOUND\]/);
  const json = await runTrawl(['serve', ...missing, '--json', '--quiet']);
  assert.equal((JSON.parse(json.stderr) as { error: { code: string } }).error.code, 'CORPUS_NOT_FOUND');
});

test('the plan of a launch line is commands of ours', async () => {
  const { launch, place } = published('planned');
  const { steps } = await planLaunchLine(launch);
  assert.deepEqual(
    steps.map(([command]) => command),
    ['import', 'serve'],
  );
  assert.deepEqual(steps[1], [
    'serve',
    '--model',
    'token-average-256',
    '--topk',
    '2',
    '--',
    join(place, 'Tiny_Flat.trawl'),
  ]);
});

test('a mistake in a launch line is a usage error', async () => {
  const { code, stderr } = await runTrawl(['serve', '--index_path', 'a.index', '--top_k', '3']);
  assert.equal(code, 2);
  assert.match(stderr, /Unknown flag --top_k/);
  const { launch, place } = published('mistaken');
  for (const wrong of [
    ['--foo', '1'],
    ['--topk', 'many'],
  ]) {
    const late = await runTrawl(['serve', ...launch, ...wrong]);
    assert.equal(late.code, 2, late.stderr);
    assert.doesNotMatch(late.stderr, /^trawl import /m);
  }
  assert.ok(!existsSync(join(place, 'Tiny_Flat.trawl')), 'nothing is imported for a line that cannot be served');
});
