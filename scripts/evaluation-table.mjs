// `sh scripts/run scripts/evaluation-table.mjs --data DIR`: measures the rows of the table in docs/evaluation.md with `trawl eval`, and writes
// them to bench/results/evaluation.json. Compile first: npm run setup.
//
//   --data DIR    folder with hotpot_val500_pooled, squad_v11_dev (corpus.jsonl, queries.jsonl) and scifact_tevatron_emb
//   --model DIR   checkpoint of an encoder, imported in float32 and int8. Default: the bundled token-average-256
//   --python FILE a Python with faiss-cpu and numpy: SciFact's rows by HNSW and by a flat index
//   --out FILE    the JSON file to write. Default: bench/results/evaluation.json
//   --work DIR    where models and indexes are kept between runs. Default: a new temporary folder
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './setup.mjs';

const { values } = parseArgs({
  options: {
    data: { type: 'string' },
    model: { type: 'string' },
    out: { type: 'string' },
    python: { type: 'string' },
    work: { type: 'string' },
  },
});
if (values.data === undefined) {
  process.stderr.write('Expected --data DIR; see the head of scripts/evaluation-table.mjs.\n');
  process.exit(2);
}
const work = resolve(values.work ?? mkdtempSync(join(tmpdir(), 'trawl-evaluation-')));
const METRICS = ['recall@10', 'all_gold@10', 'ndcg@10', 'mrr@10'];

function trawl(...args) {
  process.stderr.write(`trawl ${args.join(' ')}\n`);
  return execFileSync(process.execPath, [join(root, 'dist', 'cli', 'trawl.js'), ...args], {
    cwd: work,
    encoding: 'utf8',
    maxBuffer: 1 << 30,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/** The rows of a set: the first system, and each other one with its difference to it. */
function measure(set, args) {
  const report = JSON.parse(trawl('eval', ...args, '--cutoffs', '10', '--examples', '0', '--json', '--quiet'));
  return report.systems.map(({ name, judged, metrics, intervals }, i) => ({
    set,
    system: name,
    questions: judged,
    metrics: Object.fromEntries(METRICS.map((metric) => [metric, metrics[metric]])),
    recallInterval: intervals['recall@10'],
    difference: i === 0 ? null : report.comparisons[i - 1].metrics['recall@10'].difference,
    p: i === 0 ? null : report.comparisons[i - 1].metrics['recall@10'].p,
  }));
}

const imported = values.model !== undefined;
const model = imported ? join(work, basename(values.model)) : 'token-average-256';
if (imported && !existsSync(model))
  trawl('model', 'add', resolve(values.model), '--out', model, '--precision', 'float32,int8');
const FLOAT32 = imported ? ['--precision', 'float32'] : [];

function indexed(name) {
  const index = join(work, name);
  if (!existsSync(join(index, 'manifest.json'))) {
    const corpus = join(resolve(values.data), name, 'corpus.jsonl');
    trawl('index', corpus, '--out', index, '--model', model, ...FLOAT32, '--bm25', '--quiet');
  }
  return index;
}

const MODES = [
  ...(imported ? ['--compare', 'dense, queries in int8=?precision=int8'] : []),
  ...['--compare', 'BM25=?mode=bm25', '--compare', 'hybrid=?mode=hybrid'],
];
const rows = [];
for (const name of ['hotpot_val500_pooled', 'squad_v11_dev']) {
  const queries = join(resolve(values.data), name, 'queries.jsonl');
  rows.push(...measure(name, [`dense=${indexed(name)}`, '--queries', queries, ...FLOAT32, ...MODES]));
}

// The sample corpus: an agent's sub-query alone, with the question, and the question alone.
const sample = join(work, 'sample');
const samplePassages = join(root, 'corpus', 'sample', 'passages.jsonl');
if (!existsSync(join(sample, 'manifest.json')))
  trawl('index', samplePassages, '--out', sample, '--model', model, ...FLOAT32, '--bm25', '--quiet');
const subQueries = join(root, 'corpus', 'sample', 'sub-queries.jsonl');
rows.push(
  ...measure('sample, sub-queries', [
    ...[`question=${sample}`, '--queries', subQueries, '--query-form', 'question'],
    ...['--compare', 'sub-query=?query-form=query'],
    ...['--compare', 'question [SEP] sub-query=?query-form=question-and-query'],
  ]),
);

// The two-hop questions with all of their sub-queries, whose lists are fused.
const questions = new Map();
for (const line of readFileSync(subQueries, 'utf8').trimEnd().split('\n')) {
  const { id, question, query, gold_ids: gold } = JSON.parse(line);
  const key = id.replace(/\.\d+$/, '');
  const known = questions.get(key) ?? { id: key, question, queries: [], gold_ids: [] };
  questions.set(key, {
    ...known,
    queries: [...known.queries, query],
    gold_ids: [...new Set([...known.gold_ids, ...gold])],
  });
}
const fused = join(work, 'sample-queries.jsonl');
writeFileSync(fused, [...questions.values()].map((question) => `${JSON.stringify(question)}\n`).join(''));
rows.push(
  ...measure('sample, two-hop questions', [
    ...[`question=${sample}`, '--queries', fused, '--query-form', 'question'],
    ...['--compare', 'its sub-queries fused=?query-form=queries'],
    ...['--compare', 'each question [SEP] sub-query fused=?query-form=question-and-queries'],
  ]),
);

if (values.python !== undefined) {
  const folder = join(resolve(values.data), 'scifact_tevatron_emb');
  const runs = [join(work, 'flat.txt'), join(work, 'hnsw.txt')];
  execFileSync(values.python, [join(root, 'scripts', 'evaluation-runs.py'), folder, ...runs], { stdio: 'inherit' });
  const topics = join(work, 'scifact.tsv');
  writeFileSync(topics, readFileSync(join(folder, 'topics.scifact.test.tsv')));
  rows.push(
    ...measure('SciFact, published vectors', [
      ...[`FAISS Flat=${runs[0]}`, '--queries', topics, '--qrels', join(folder, 'qrels.scifact.test.txt')],
      ...['--compare', `FAISS HNSW (M 32, efSearch 64)=${runs[1]}`],
    ]),
  );
}

const figures = { model: imported ? basename(values.model) : model, seed: 1, rows };
const out = resolve(values.out ?? join(root, 'bench', 'results', 'evaluation.json'));
writeFileSync(out, `${JSON.stringify(figures, null, 1)}\n`);
process.stdout.write(`${out} is written. \`npm run tables\` writes the table of docs/evaluation.md.\n`);
