import assert from 'node:assert/strict';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import { questionQueries } from '../../training/mining/load-queries.ts';
import { mineNegatives } from '../../training/mining/mine-negatives.ts';
import { ROW_FORMAT_NAMES, type RowFormatName } from '../../training/mining/row-formats.ts';
import { fileFolder, runTrawl } from '../cli/run-trawl.ts';
import { FakeReranker } from '../helpers/fake-reranker.ts';
import { miniLmFolder, runTrainingPeer, withoutMiniLm, withoutTraining } from '../helpers/peers.ts';
import { buildSampleIndex } from '../helpers/sample-index.ts';
import { mineSample, type SampleMining } from '../training/mining/mine-sample.ts';
import { linesOf, QUESTIONS, questions, SUB_QUERIES } from '../training/mining/mining-corpus.ts';

const skip = withoutTraining();
const folder = await fileFolder();
let index: string;
before(async () => {
  index = await buildSampleIndex(folder);
});

interface Passage {
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

/** Arguments of `mine_hard_negatives`, and of `trawl mine` where they have other names. */
interface Run {
  readonly output_format: RowFormatName;
  readonly num_negatives: number;
  readonly range_max: number;
  readonly absolute_margin?: number;
  readonly relative_margin?: number;
  readonly max_score?: number;
  readonly min_score?: number;
  readonly output_scores?: boolean;
  readonly judge?: boolean;
}

const RUNS: readonly Run[] = [
  { output_format: 'triplet', num_negatives: 3, range_max: 50 },
  { output_format: 'triplet', num_negatives: 8, range_max: 50, relative_margin: 0.05, output_scores: true },
  { output_format: 'n-tuple', num_negatives: 5, range_max: 60, absolute_margin: 0.1 },
  { output_format: 'n-tuple', num_negatives: 4, range_max: 20, max_score: 0.55, min_score: 0.3, output_scores: true },
  { output_format: 'labeled-pair', num_negatives: 6, range_max: 40, relative_margin: 0.2 },
  { output_format: 'labeled-pair', num_negatives: 6, range_max: 40, min_score: 0.45, output_scores: true },
  { output_format: 'labeled-list', num_negatives: 7, range_max: 40, absolute_margin: 0.05, max_score: 0.6 },
  { output_format: 'labeled-list', num_negatives: 7, range_max: 30, relative_margin: 0.1, output_scores: true },
  { output_format: 'triplet', num_negatives: 5, range_max: 30, relative_margin: 0.3, output_scores: true, judge: true },
  { output_format: 'n-tuple', num_negatives: 3, range_max: 30, absolute_margin: 0.2, judge: true },
];

/** A judge's score of a pair, in both programs: any function will do. */
function judgeScore(query: string, passage: string): number {
  let hash = 7;
  for (const text of [query, passage]) {
    for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) >>> 0;
  }
  return (hash % 1009) / 1009;
}

test("sentence-transformers' mine_hard_negatives gives the same rows over the same vectors", { skip }, async (t) => {
  const passages = linesOf<Passage>(join(QUESTIONS, '..', 'passages.jsonl'));
  const corpus = passages.map(({ title, text }) => `"${title}"\n${text}`);
  const textOf = new Map(passages.map(({ id }, i) => [id, corpus[i]!]));
  const asked = questions();
  const pairs = asked.flatMap(({ question, gold_ids }) => gold_ids.map((id) => [question, textOf.get(id)!] as const));
  const encoder = await openEncoder('token-average-256', { workers: 1 });
  t.after(() => encoder.close());
  const vectorsOf = async (texts: readonly string[], inputType: 'query' | 'passage') => {
    const { vectors } = await encoder.encode(texts, { inputType });
    const { dimension } = encoder;
    return Object.fromEntries(
      texts.map((text, i) => [text, [...vectors.subarray(i * dimension, (i + 1) * dimension)]]),
    );
  };
  const anchors = asked.map(({ question }) => question);
  const theirs = (await runTrainingPeer('mining_rows.py', {
    anchors: pairs.map(([anchor]) => anchor),
    positives: pairs.map(([, positive]) => positive),
    corpus,
    queryVectors: await vectorsOf(anchors, 'query'),
    corpusVectors: await vectorsOf(corpus, 'passage'),
    pairScores: Object.fromEntries(
      anchors.map((anchor) => [anchor, Object.fromEntries(corpus.map((text) => [text, judgeScore(anchor, text)]))]),
    ),
    runs: RUNS,
  })) as unknown[][][];
  const mostPositives = Math.max(...asked.map(({ gold_ids }) => gold_ids.length));
  for (const [i, run] of RUNS.entries()) {
    const ours = await mineLikeSentenceTransformers(run, run.range_max + mostPositives, join(folder, `run-${i}.jsonl`));
    assert.ok(theirs[i]!.length > 20, `run ${i} has ${theirs[i]!.length} rows`);
    assertEqualRows(ours, theirs[i]!, `run ${i}`);
    t.diagnostic(`${JSON.stringify(run)}: ${ours.length} equal rows`);
  }
});

async function mineLikeSentenceTransformers(run: Run, depth: number, out: string): Promise<unknown[][]> {
  const reranker = new FakeReranker({ score: judgeScore });
  const retriever = await openRetriever(index, { ...(run.judge === true ? { reranker } : {}) });
  try {
    await mineNegatives({
      retriever,
      source: { queries: withoutAnswers(), excluded: [] },
      inputs: [QUESTIONS],
      out,
      restart: false,
      format: run.output_format,
      outputScores: run.output_scores ?? false,
      batch: {
        search: { ranking: {}, depth, alsoBm25: false },
        rangeMin: 1,
        limits: {
          maxScore: run.max_score ?? null,
          minScore: run.min_score ?? null,
          absoluteMargin: run.absolute_margin ?? null,
          relativeMargin: run.relative_margin ?? null,
        },
        sampling: { strategy: 'top', seed: 0, count: run.num_negatives },
        minNegatives:
          run.output_format === 'n-tuple' ? run.num_negatives : run.output_format === 'labeled-pair' ? 0 : 1,
        nearDuplicate: null,
        rerank: run.judge ?? false,
        needScores: run.output_scores ?? false,
        inputOf: ({ question }) => question,
      },
      settings: {},
    });
  } finally {
    await retriever.close();
  }
  return linesOf<Record<string, unknown>>(out).map((row) => Object.values(row));
}

/** sentence-transformers does not look for answers. */
async function* withoutAnswers(): ReturnType<typeof questionQueries> {
  for await (const query of questionQueries([QUESTIONS])) yield { ...query, answers: [] };
}

/** Asserts that both have the same rows, in any order, with numbers that differ by less than 1e-5: their sums are in float32. */
function assertEqualRows(ours: readonly unknown[], theirs: readonly unknown[], what: string): void {
  const [a, b] = [ours, theirs].map((rows) => rows.map(partsOf).sort((x, y) => (x.texts < y.texts ? -1 : 1))) as [
    Parts[],
    Parts[],
  ];
  assert.deepEqual(
    a.map(({ texts }) => texts),
    b.map(({ texts }) => texts),
    what,
  );
  for (const [i, { texts, numbers }] of a.entries()) {
    const others = b[i]!.numbers;
    assert.equal(numbers.length, others.length, what);
    for (const [at, number] of numbers.entries()) {
      assert.ok(Math.abs(number - others[at]!) < 1e-5, `${what}: ${number} and ${others[at]} of ${texts}`);
    }
  }
}

interface Parts {
  /** The row as JSON, with 0 in place of each number. */
  readonly texts: string;
  readonly numbers: readonly number[];
}

function partsOf(row: unknown): Parts {
  const numbers: number[] = [];
  const texts = JSON.stringify(row, (_, value: unknown) => {
    if (typeof value !== 'number') return value;
    numbers.push(value);
    return 0;
  });
  return { texts, numbers };
}

test("each format is read by its trainer's own reader, with the texts that were mined", { skip }, async () => {
  const args = ['--num-negatives', '3', '--range-max', '60', '--output-scores'];
  const mined = new Map<RowFormatName, SampleMining>();
  for (const format of ROW_FORMAT_NAMES) {
    const out = join(folder, `rows-${format}.${format === 'dpr' ? 'json' : 'jsonl'}`);
    mined.set(format, await mineSample(index, out, format, SUB_QUERIES, args));
  }
  const files = Object.fromEntries(Array.from(mined, ([format, { out }]) => [format, out]));
  const read = (await runTrainingPeer('mining_load.py', { files, cache: join(folder, 'cache') })) as Record<
    RowFormatName,
    never
  >;
  const columns = (rows: readonly (readonly unknown[])[]): unknown[][] =>
    rows[0]!.map((_, column) => rows.map((row) => row[column]));
  for (const format of ['triplet', 'n-tuple', 'labeled-pair', 'labeled-list'] as const) {
    const expected = columns(mined.get(format)!.rows.map((row) => Object.values(row)));
    const { inputs, label } = read[format] as { inputs: unknown[][]; label: unknown };
    assert.deepEqual(inputs, expected.slice(0, -1), format);
    assert.deepEqual(rounded(label), rounded(expected.at(-1)), format);
  }
  const groups = mined.get('flagembedding')!.rows as {
    query: string;
    pos: string[];
    neg: string[];
    pos_scores: number[];
    neg_scores: number[];
  }[];
  for (const [i, [query, passages, scores]] of (read.flagembedding as [string, string[], number[]][]).entries()) {
    const row = groups[i]!;
    assert.equal(query, row.query);
    assert.ok(row.pos.includes(passages[0]!));
    const known = new Map(
      [...row.pos, ...row.neg].map((text, at) => [text, [...row.pos_scores, ...row.neg_scores][at]]),
    );
    assert.deepEqual(
      scores,
      passages.map((text) => known.get(text)),
    );
  }
  const lists = mined.get('tevatron')!.rows as {
    query: string;
    positive_passages: { title: string; text: string }[];
    negative_passages: { title: string; text: string }[];
  }[];
  assert.deepEqual(
    read.tevatron,
    lists.map(({ query, positive_passages, negative_passages }) => [
      query.split(' '),
      [positive_passages[0]!, ...negative_passages].map(({ title, text }) => `${title} ${text}`.split(' ')),
    ]),
  );
  const contexts = mined.get('dpr')!.rows as {
    question: string;
    positive_ctxs: Passage[];
    hard_negative_ctxs: Passage[];
  }[];
  assert.deepEqual(
    read.dpr,
    contexts.map(({ question, positive_ctxs, hard_negative_ctxs }) => [
      question,
      [positive_ctxs[0]!.title, positive_ctxs[0]!.text],
      hard_negative_ctxs.map(({ title, text }) => [title, text]),
    ]),
  );
  assert.deepEqual(
    (read['tevatron-ids'] as [string, string[]][]).map(([query]) => query),
    lists.map(({ query }) => query),
  );
  const texts = new Set(lists.map(({ query }) => query));
  const agentic = read['agentic-r'] as [string, string[]][];
  assert.ok(agentic.length > 20);
  for (const [text, ids] of agentic) {
    assert.ok(texts.has(text), text);
    assert.equal(ids.length, 4);
  }
});

test('two steps are trained with the rows of each format', { skip: skip || withoutMiniLm() }, async () => {
  const rows = async (name: string, args: readonly string[]): Promise<Record<string, string>> => {
    const files: Record<string, string> = {};
    for (const format of ROW_FORMAT_NAMES) {
      const out = join(folder, `${name}-${format}.${format === 'dpr' ? 'json' : 'jsonl'}`);
      const all = ['--num-negatives', '3', '--range-max', '60', ...args];
      files[format] = (await mineSample(index, out, format, SUB_QUERIES, all)).out;
    }
    return files;
  };
  const losses = (await runTrainingPeer('mining_train.py', {
    model: miniLmFolder(),
    corpus: join(QUESTIONS, '..', 'passages.jsonl'),
    files: await rows('train', []),
    scored: await rows('scored', ['--output-scores']),
    cache: join(folder, 'trained'),
  })) as Record<string, readonly number[]>;
  assert.equal(Object.keys(losses).length, 14);
  for (const [run, steps] of Object.entries(losses)) {
    assert.equal(steps.length, 2, run);
    assert.ok(
      steps.every((loss) => Number.isFinite(loss) && loss > 0),
      `${run}: ${steps.join(', ')}`,
    );
  }
});

test('datasets reads rows of which only those after the first 10 MB come from queries with a history', {
  skip,
}, async () => {
  const queries = join(folder, 'late-history.jsonl');
  const early = linesOf<object>(QUESTIONS);
  const late = linesOf<object>(SUB_QUERIES).map((line) => ({
    ...line,
    history_queries: ['an earlier query'],
    round_index: 2,
    dataset: 'sample',
  }));
  writeFileSync(queries, [...early, ...late].map((line) => `${JSON.stringify(line)}\n`).join(''));
  const files: Record<string, string> = {};
  const rows: Record<string, number> = {};
  for (const format of ['flagembedding', 'tevatron'] as const) {
    const args = ['--num-negatives', '250', '--range-max', '270'];
    const mined = await mineSample(index, join(folder, `late-${format}.jsonl`), format, queries, args);
    assert.ok(statSync(mined.out).size > 15e6);
    [files[format], rows[format]] = [mined.out, mined.rows.length];
  }
  const read = (await runTrainingPeer('mining_load.py', { files, cache: join(folder, 'late') })) as Record<
    string,
    readonly unknown[]
  >;
  for (const [format, expected] of Object.entries(rows)) assert.equal(read[format]!.length, expected, format);
});

interface Table {
  readonly types: Readonly<Record<string, string>>;
  readonly datasets: readonly Record<string, unknown>[];
  readonly pyarrow: readonly Record<string, unknown>[];
  readonly pandas: readonly Record<string, unknown>[];
}

test("datasets, pandas and pyarrow read Parquet rows as those of the JSON lines, and so do the trainer's collators", {
  skip,
}, async () => {
  const formats = ['triplet', 'n-tuple', 'labeled-pair', 'labeled-list'] as const;
  const mined: { readonly format: RowFormatName; readonly lines: SampleMining; readonly parquet: string }[] = [];
  for (const format of formats) {
    for (const scores of [[], ['--output-scores']]) {
      const args = ['--num-negatives', '3', '--range-max', '60', ...scores];
      const name = join(folder, `table-${format}${scores.length}`);
      const lines = await mineSample(index, `${name}.jsonl`, format, SUB_QUERIES, args);
      const parquet = `${name}.parquet`;
      const run = ['mine', index, '--queries', SUB_QUERIES, '--out', parquet, '--format', format, ...args, '--quiet'];
      const { code, stderr } = await runTrawl(run);
      assert.equal(code, 0, stderr);
      mined.push({ format, lines, parquet });
    }
  }
  const plain = mined.filter((_, i) => i % 2 === 0);
  const files = Object.fromEntries(plain.map(({ format, parquet }) => [format, parquet]));
  const tables = mined.map(({ parquet }) => parquet);
  const read = (await runTrainingPeer('mining_load.py', { files, tables, cache: join(folder, 'tables') })) as Record<
    RowFormatName,
    { readonly inputs: unknown[][]; readonly label: number[] | number[][] | null }
  > & { readonly tables: readonly Table[] };
  for (const [i, { parquet, lines }] of mined.entries()) {
    const table = read.tables[i]!;
    assert.ok(lines.rows.length > 20);
    // With the order of the columns, which is that of the inputs.
    const expected = lines.rows.map((row) => JSON.stringify(row));
    for (const reader of ['datasets', 'pyarrow'] as const) {
      assert.deepEqual(
        table[reader].map((row) => JSON.stringify(row)),
        expected,
        `${reader} ${parquet}`,
      );
    }
    assert.equal(rounded(table.pandas), rounded(lines.rows), parquet);
  }
  const typesOf = (format: RowFormatName): object[] =>
    mined.flatMap((each, i) => (each.format === format ? [read.tables[i]!.types] : []));
  const texts = { anchor: 'string', text: 'string' };
  assert.deepEqual(typesOf('labeled-pair'), [
    { ...texts, label: 'int64' },
    { ...texts, score: 'double' },
  ]);
  const lists = typesOf('labeled-list').map((types) => JSON.stringify(types));
  assert.match(lists[0]!, /"texts":"list<element: string[^"]*","labels":"list<element: int64/);
  assert.match(lists[1]!, /"scores":"list<element: double/);
  for (const { format, lines } of plain) {
    const { inputs, label } = read[format];
    const labels = lines.rows.map((row) => row.label ?? row.labels ?? null);
    const columns = Object.keys(lines.rows[0]!).filter((name) => !name.startsWith('label'));
    assert.deepEqual(
      inputs,
      columns.map((name) => lines.rows.map((row) => row[name])),
      format,
    );
    assert.deepEqual(label, labels.includes(null) ? null : labels, format);
  }
});

function rounded(value: unknown): string {
  return JSON.stringify(value, (_, number: unknown) => (typeof number === 'number' ? number.toFixed(5) : number));
}
