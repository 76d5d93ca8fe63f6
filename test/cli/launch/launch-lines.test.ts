import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { before, test } from 'node:test';
import { findCorpus, findModel, findVectors } from '../../../cli/launch/launch-files.ts';
import { type DenseLine, isLaunchLine, translateLaunchLine } from '../../../cli/launch/launch-lines.ts';
import { planLaunchLine, shownCommand } from '../../../cli/launch/plan-launch.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import { loadKernel } from '../../../src/engine/native/kernel.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { fileFolder, postJson, runTrawl, SAMPLE_PASSAGES, sampleIndex, serveIndex } from '../run-trawl.ts';

/** The launch line in the scripts of Search-R1, verl and Agentic-R. */
const SEARCH_R1 =
  '--index_path /data/e5_Flat.index --corpus_path /data/wiki-18.jsonl --topk 3 --retriever_name e5 --retriever_model intfloat/e5-base-v2 --faiss_gpu'.split(
    ' ',
  );
const withOptions = (...options: string[]): string[] => ['--index_path', 'i', '--corpus_path', 'c', ...options];

/** A launch line of a dense retriever, translated. */
function translateDense(argv: readonly string[]): DenseLine {
  const line = translateLaunchLine(argv);
  assert.equal(line.mode, 'dense');
  return line as DenseLine;
}

test('Search-R1’s launch line is recognised by its flags', () => {
  assert.ok(isLaunchLine(SEARCH_R1));
  assert.ok(isLaunchLine(['--index_path=a']));
  assert.ok(isLaunchLine(['--retriever_model', 'a']));
  assert.ok(!isLaunchLine(['indexes/sample', '--topk', '3', '--model', 'e5']));
});

test('agent-lightning’s launch line, with hyphens, is Search-R1’s for its dialect', () => {
  const argv =
    '--index-path data/e5_Flat.index --corpus-path data/wiki-18.jsonl --topk 3 --retriever-name e5 --retriever-model intfloat/e5-base-v2 --device auto --faiss-gpu --query-max-length 128 --batch-size 512 --use-fp16 --host 0.0.0.0 --port 8000'.split(
      ' ',
    );
  assert.ok(isLaunchLine(argv));
  assert.ok(isLaunchLine(['--corpus-path=a']));
  const { remarks, serveOptions, maxQueryTokens, ...line } = translateDense(argv);
  const expected = translateDense([
    ...['--index_path', 'data/e5_Flat.index', '--corpus_path', 'data/wiki-18.jsonl', '--retriever_name', 'e5'],
    ...['--retriever_model', 'intfloat/e5-base-v2'],
  ]);
  assert.deepEqual({ ...expected, ...line }, expected);
  assert.equal(maxQueryTokens, 128);
  assert.deepEqual(serveOptions, [
    ...['--topk', '3', '--host', '0.0.0.0', '--port', '8000'],
    '--dialect=agent-lightning',
  ]);
  assert.match(remarks.join('\n'), /--faiss_gpu is ignored[\s\S]*--batch-size is ignored[\s\S]*--use-fp16 is ignored/);
  const gpu = translateLaunchLine([...argv, '--device', 'cuda', '--dialect', 'search-r1']);
  assert.deepEqual(gpu.serveOptions.slice(-4), ['--device', 'cuda', '--dialect', 'search-r1']);
  assert.throws(() => translateLaunchLine(['--index-path', 'i']), trawlError('USAGE', /--corpus-path is missing/));
  assert.throws(
    () => translateLaunchLine([...argv, '--query-max-length', '0']),
    trawlError('USAGE', /--query-max-length is 0; expected/),
  );
});

test('Search-R1’s launch line is translated into vectors, corpus, model and options', () => {
  const { remarks, ...line } = translateLaunchLine(SEARCH_R1);
  assert.deepEqual(line, {
    mode: 'dense',
    vectors: '/data/e5_Flat.index',
    corpus: '/data/wiki-18.jsonl',
    model: 'intfloat/e5-base-v2',
    out: undefined,
    maxQueryTokens: 256,
    importOptions: ['--query-prefix=query: ', '--passage-prefix=passage: ', '--pooling=mean', '--normalize=yes'],
    rerankModel: undefined,
    serveOptions: ['--topk', '3'],
  });
  assert.match(remarks.join('\n'), /--faiss_gpu is ignored/);
  assert.match(remarks.join('\n'), /--host 0\.0\.0\.0/);
});

test('prefixes, pooling and normalisation follow from the retriever’s name as in the original', () => {
  const options = (name: string): readonly string[] =>
    translateDense(withOptions('--retriever_name', name)).importOptions;
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

test('missing flags have the defaults of the original', () => {
  const { model, importOptions } = translateDense(withOptions());
  assert.equal(model, 'intfloat/e5-base-v2');
  assert.equal(importOptions[0], '--query-prefix=query: ');
});

test('options of trawl serve among the flags are passed on in their order', () => {
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

test('a flag’s value follows a space or an equals sign, and the last one counts, as with argparse', () => {
  const { vectors, corpus, out } = translateDense([
    '--index_path=a',
    '--corpus_path',
    'b=c',
    '--index_path',
    'd',
    '--out=e',
  ]);
  assert.deepEqual([vectors, corpus, out], ['d', 'b=c', 'e']);
});

test('ASearcher’s flags are translated or reported as ignored', () => {
  const argv = withOptions('--pages_path', 'p.jsonl', '--save-address-to', 'dir', '--port', '5005');
  const { remarks, serveOptions } = translateLaunchLine(argv);
  assert.match(remarks.join('\n'), /--pages_path is ignored/);
  assert.deepEqual(serveOptions, ['--port', '5005', '--dialect=asearcher', '--address-dir=dir']);
  const named = translateLaunchLine(withOptions('--pages_path', 'p.jsonl', '--dialect', 'search-r1'));
  assert.deepEqual(named.serveOptions, ['--dialect', 'search-r1']);
});

test('a flag that would change the answers and is not supported is refused', () => {
  assert.throws(
    () => translateLaunchLine(withOptions('--qdrant_url', 'http://localhost:6333')),
    trawlError('NOT_SUPPORTED', /Qdrant/),
  );
  assert.throws(
    () => translateLaunchLine(withOptions('--qdrant_search_param', '{}')),
    trawlError('NOT_SUPPORTED', /Qdrant/),
  );
});

test('a missing value and a missing or unknown flag are usage errors that name it', () => {
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

test('vectors are found if the name differs in case, or as the published parts', async (t) => {
  const folder = await tempFolder(t);
  const file = (name: string): string => join(folder, name);
  writeFileSync(file('agentic-r_e5_Flat.index'), '');
  assert.deepEqual(findVectors(file('agentic-r_e5_Flat.index')), {
    paths: [file('agentic-r_e5_Flat.index')],
    remark: undefined,
  });
  const cased = findVectors(file('Agentic-R_e5_Flat.index'));
  assert.deepEqual(cased.paths, [file('agentic-r_e5_Flat.index')]);
  assert.match(cased.remark!, /using agentic-r_e5_Flat\.index/);
  assert.deepEqual(findVectors(file('none.index')), { paths: [file('none.index')], remark: undefined });
  for (const name of ['part_ab', 'part_aa', 'part_ab.download']) writeFileSync(file(name), '');
  const parts = findVectors(file('none.index'));
  assert.deepEqual(parts.paths, [file('part_aa'), file('part_ab')]);
  assert.match(parts.remark!, /part_aa, part_ab/);
  assert.deepEqual(findVectors(join(folder, 'no', 'folder.index')).remark, undefined);
});

test('a corpus is found as .gz if the unpacked file does not exist', async (t) => {
  const folder = await tempFolder(t);
  const corpus = join(folder, 'wiki-18.jsonl');
  assert.deepEqual(findCorpus(corpus), { paths: [corpus], remark: undefined });
  writeFileSync(`${corpus}.gz`, '');
  assert.deepEqual(findCorpus(corpus).paths, [`${corpus}.gz`]);
  writeFileSync(corpus, '');
  assert.deepEqual(findCorpus(corpus), { paths: [corpus], remark: undefined });
});

test('a retriever’s model is an existing model, one of the hub, or a checkpoint, named after its content', async (t) => {
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
  const second = await findModel(checkpoint);
  assert.notEqual(second.model, first.model);
  mkdirSync(join(checkpoint, '1_Pooling'));
  writeFileSync(join(checkpoint, '1_Pooling', 'config.json'), '{"pooling_mode_cls_token":true}');
  assert.notEqual((await findModel(checkpoint)).model, second.model);
});

test('a launch line of BM25 indexes the words of the corpus beside it, once, and serves them', async (t) => {
  const folder = await tempFolder(t);
  const corpus = join(folder, 'wiki-18.jsonl');
  const argv = ['--index_path', '/data/bm25', '--corpus_path', corpus, '--topk', '3', '--retriever_name', 'bm25'];
  const { remarks } = translateLaunchLine(argv);
  assert.match(remarks.join('\n'), /--index_path \/data\/bm25 is not read/);
  writeFileSync(`${corpus}.gz`, '');
  const out = join(folder, 'wiki-18.bm25.trawl');
  const serve = ['serve', '--topk', '3', '--bm25-order', 'pyserini', '--', out];
  const { steps } = await planLaunchLine(argv);
  assert.deepEqual(steps, [['index', '--bm25', '--out', out, '--overwrite', '--', `${corpus}.gz`], serve]);
  const elsewhere = await planLaunchLine(['--corpus_path', corpus, '--retriever_name', 'BM25', '--out', 'x']);
  assert.equal(elsewhere.steps.at(-1)!.at(-1), 'x');
  const byRow = await planLaunchLine([...argv, '--bm25-order', 'row']);
  assert.deepEqual(byRow.steps.at(-1), ['serve', '--topk', '3', '--bm25-order', 'row', '--', out]);
});

test('the flags of Search-R1’s server that reranks add its cross-encoder, and set depth and number of passages', async () => {
  const line = translateDense(
    withOptions('--retrieval_topk', '20', '--reranker_model', 'some/reranker', '--reranker_batch_size', '32'),
  );
  assert.equal(line.rerankModel, 'some/reranker');
  assert.deepEqual(line.serveOptions, ['--rerank-depth=20', '--topk=3']);
  assert.match(line.remarks.join('\n'), /--reranker_batch_size is ignored/);
  const usual = translateDense(withOptions('--reranking_topk=5', '--topk', '7'));
  assert.equal(usual.rerankModel, 'cross-encoder/ms-marco-MiniLM-L12-v2');
  assert.deepEqual(usual.serveOptions, ['--topk', '7', '--rerank-depth=10']);
  const argv = withOptions('--retriever_model', 'token-average-256', '--reranker_model', 'some/reranker');
  const { steps } = await planLaunchLine(argv);
  assert.deepEqual(steps[0], ['model', 'add', 'some/reranker', '--name', 'reranker']);
  assert.deepEqual(steps.at(-1)!.slice(0, 2), ['serve', '--rerank=reranker']);
  assert.deepEqual(
    steps.map(([command]) => command),
    ['model', 'import', 'serve'],
  );
});

test('the launch line of Search-R1’s rerank server serves an index with its cross-encoder on its port', async () => {
  const argv =
    'indexes/any --max_length 512 --rerank_topk 4 --rerank_model_name_or_path token-average-256 --batch_size 32 --reranker_type sentence_transformer'.split(
      ' ',
    );
  assert.ok(isLaunchLine(argv));
  assert.ok(isLaunchLine(['--rerank_topk=3']));
  const { steps, remarks } = await planLaunchLine(argv);
  assert.deepEqual(steps, [['serve', '--rerank=token-average-256', 'indexes/any', '--port', '6980', '--topk=4']]);
  for (const flag of ['--batch-size', '--max_length'])
    assert.match(remarks.join('\n'), new RegExp(`${flag} is ignored`));
  const named = await planLaunchLine([
    '--rerank_topk',
    '3',
    '--port=1',
    '--rerank_model_name_or_path',
    'token-average-256',
  ]);
  assert.deepEqual(named.steps, [['serve', '--rerank=token-average-256', '--port=1', '--topk=3']]);
  assert.throws(
    () => translateLaunchLine(['--reranker_type', 'flag']),
    trawlError('NOT_SUPPORTED', /--reranker_type is flag, .*expected sentence_transformer/),
  );
  const { code, stderr } = await runTrawl(['serve', '--rerank_model_name_or_path', 'token-average-256']);
  assert.equal(code, 2);
  assert.match(stderr, /<index> is missing: Trawl reranks beside an index/);
});

test('commands are shown as they can be typed in a shell', () => {
  assert.equal(
    shownCommand(['import', '--query-prefix=query: ', "--x=it's", '--', '/a/b.index']),
    "trawl import '--query-prefix=query: ' '--x=it'\\''s' -- /a/b.index",
  );
});

const loaded = loadKernel();
const withoutEngine = loaded.ok ? false : `the native engine is not built: ${loaded.reason}`;
const folder = await fileFolder();
let sample = '';

before(async () => {
  sample = await sampleIndex(folder);
});

/** Writes the sample's vectors and corpus to a new folder, as a project publishes them; returns it with a launch line. */
function published(name: string): { launch: string[]; directory: string } {
  const directory = join(folder, name);
  mkdirSync(directory);
  copyFileSync(join(sample, 'shard-00000', 'vectors.faiss'), join(directory, 'tiny_Flat.index'));
  symlinkSync(SAMPLE_PASSAGES, join(directory, 'wiki.jsonl'));
  const files = [`--index_path=${join(directory, 'Tiny_Flat.index')}`, '--corpus_path', join(directory, 'wiki.jsonl')];
  const model = ['--retriever_name', 'tiny', '--retriever_model', 'token-average-256'];
  return { directory, launch: [...files, ...model, '--topk', '2', '--faiss_gpu'] };
}

test('a launch line imports the vectors the first time and serves them; the next time it only serves', async (t) => {
  const { directory, launch } = published('served');
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
    assert.match(stderr, /--faiss_gpu is ignored/);
    assert.match(stderr, /using tiny_Flat\.index/);
    assert.equal(/^trawl import /m.test(stderr), round === 1, stderr);
  }
  // The vectors were adopted: the index has no copy.
  const manifest = readFileSync(join(directory, 'Tiny_Flat.trawl', 'shard-00000', 'shard.json'), 'utf8');
  assert.match(manifest, /tiny_Flat\.index/);
  assert.ok(!existsSync(join(directory, 'Tiny_Flat.trawl', 'shard-00000', 'vectors.faiss')));
});

test('Search-R1’s launch line of BM25 is served from the corpus alone', { skip: withoutEngine }, async (t) => {
  const { directory } = published('words');
  const line = ['--corpus_path', join(directory, 'wiki.jsonl'), '--topk', '2', '--retriever_name', 'bm25'];
  const { url, child, ended } = await serveIndex(t, `--index_path=${join(directory, 'bm25')}`, line);
  const { body } = await postJson<{ result: { document: { title: string }; score: number }[][] }>(url, {
    queries: ['who designed the Brooklyn Bridge'],
    return_scores: true,
  });
  assert.equal(body.result[0]![0]!.document.title, 'Brooklyn Bridge');
  assert.ok(body.result[0]![0]!.score > 1, 'a score of BM25, not an inner product of unit vectors');
  child.kill('SIGTERM');
  const { code, stderr } = await ended;
  assert.equal(code, 0);
  assert.match(stderr, /^trawl index --bm25 /m);
});

test('a launch line makes the index again after its sources got another content, whatever their times are', {
  skip: withoutEngine,
}, async () => {
  const { launch, directory } = published('stale');
  const corpus = join(directory, 'wiki.jsonl');
  const vectors = join(directory, 'tiny_Flat.index');
  const original = readFileSync(SAMPLE_PASSAGES);
  rmSync(corpus);
  writeFileSync(corpus, original);
  const names = async (argv: readonly string[]): Promise<unknown> =>
    (await planLaunchLine(argv)).steps.map(([command]) => command);
  const old = new Date('2020-01-01');
  /** As rsync and tar do it: a new file with the time of its origin, or with `inPlace` the same file. */
  const replace = (path: string, content: Buffer, inPlace = false): void => {
    if (!inPlace) rmSync(path);
    writeFileSync(path, content);
    utimesSync(path, old, old);
  };
  const words = ['--corpus_path', corpus, '--retriever_name', 'bm25'];
  for (const argv of [launch, words]) {
    const { steps } = await planLaunchLine(argv);
    assert.equal(steps.length, 2);
    const { code, stderr } = await runTrawl(steps[0]!);
    assert.equal(code, 0, stderr);
    assert.deepEqual(await names(argv), ['serve']);
    replace(corpus, original);
    assert.deepEqual(await names(argv), ['serve'], 'the same content');
    const changed = Buffer.from(original.toString().replaceAll('Eiffel Tower', 'EIFFEL TOWER'));
    replace(corpus, changed);
    assert.deepEqual(await names(argv), [steps[0]![0], 'serve'], 'other content of the same size');
    replace(corpus, original);
    assert.deepEqual(await names(argv), ['serve']);
    replace(corpus, changed, true);
    assert.deepEqual(await names(argv), [steps[0]![0], 'serve'], 'changed in place');
    replace(corpus, original);
  }
  const codes = readFileSync(vectors);
  codes[codes.length - 1]! ^= 1;
  replace(vectors, codes, true);
  assert.deepEqual(await names(launch), ['import', 'serve']);
  // What was indexed is served, although its corpus is gone.
  rmSync(corpus);
  assert.deepEqual(await names(words), ['serve']);
});

test('a launch line notices a change of a file in a folder', { skip: withoutEngine }, async () => {
  const { directory } = published('folder');
  const corpus = join(directory, 'parts');
  mkdirSync(corpus);
  const argv = ['--corpus_path', corpus, '--retriever_name', 'bm25'];
  writeFileSync(join(corpus, 'a.jsonl'), '{"id":1,"text":"old"}\n');
  const plan = await planLaunchLine(argv);
  const { code, stderr } = await runTrawl(plan.steps[0]!);
  assert.equal(code, 0, stderr);
  plan.onMade?.();
  const names = async (): Promise<unknown> => (await planLaunchLine(argv)).steps.map(([command]) => command);
  assert.deepEqual(await names(), ['serve']);
  writeFileSync(join(corpus, 'a.jsonl'), '{"id":1,"text":"new"}\n');
  assert.deepEqual(await names(), ['index', 'serve']);
  writeFileSync(join(corpus, 'a.jsonl'), '{"id":1,"text":"old"}\n');
  assert.deepEqual(await names(), ['serve']);
  writeFileSync(join(corpus, 'b.jsonl'), '{"id":2,"text":"more"}\n');
  assert.deepEqual(await names(), ['index', 'serve']);
});

test('a launch line with a missing file fails and names the file', async () => {
  const { launch, directory } = published('broken');
  const missing = launch.map((text) => (basename(text) === 'wiki.jsonl' ? join(directory, 'none.jsonl') : text));
  const { code, stderr } = await runTrawl(['serve', ...missing]);
  assert.equal(code, 1);
  assert.match(stderr, /none\.jsonl.*\[CORPUS_NOT_FOUND\]/);
  const json = await runTrawl(['serve', ...missing, '--json', '--quiet']);
  assert.equal((JSON.parse(json.stderr) as { error: { code: string } }).error.code, 'CORPUS_NOT_FOUND');
});

test('a launch line is planned as trawl commands', async () => {
  const { launch, directory } = published('planned');
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
    join(directory, 'Tiny_Flat.trawl'),
  ]);
});

test('a mistake in a launch line is a usage error', async () => {
  const { code, stderr } = await runTrawl(['serve', '--index_path', 'a.index', '--top_k', '3']);
  assert.equal(code, 2);
  assert.match(stderr, /Unknown flag --top_k/);
  const { launch, directory } = published('mistaken');
  for (const wrong of [
    ['--foo', '1'],
    ['--topk', 'many'],
  ]) {
    const late = await runTrawl(['serve', ...launch, ...wrong]);
    assert.equal(late.code, 2, late.stderr);
    assert.doesNotMatch(late.stderr, /^trawl import /m);
  }
  assert.ok(!existsSync(join(directory, 'Tiny_Flat.trawl')), 'nothing is imported if the line cannot be served');
});
