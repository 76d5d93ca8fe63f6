import { type AllResult, resultOf } from '../all/all-result.ts';
import { approximateCells } from '../report/approximate-cells.ts';
import * as figure from '../report/figures.ts';
import type { EvalResult } from './eval-result.ts';
import type { FamiliesResult } from './families-result.ts';
import type { PrecisionResult } from './precision-result.ts';
import type { ReplicasFigures } from './replicas-figures.ts';
import { sizeFigures, sizeRequests } from './size-tables.ts';
import type { SystemsResult } from './systems-result.ts';

/** Makes the lines of a table from the JSON file that its marker names. */
type TableMaker<Result> = (result: Result) => readonly (readonly string[])[];

const rule = (columns: number, texts = 1): string[] =>
  Array.from({ length: columns }, (_, i) => (i < texts ? '---' : '---:'));

const exactSearch: TableMaker<AllResult> = (all) => {
  const records = resultOf(all, 'flat')?.records ?? [];
  const others = [...new Set(records.map(({ engine }) => engine))].filter((engine) => engine !== 'trawl');
  const counts = [...new Set(records.map(({ queries }) => queries))];
  const header = ['queries at once', 'Trawl', ...others.map((engine) => `${engine} takes`)];
  return [
    header,
    rule(header.length, 0),
    ...counts.map((queries) => {
      const of = (engine: string) => records.find((record) => record.engine === engine && record.queries === queries);
      return [
        String(queries),
        figure.ms(of('trawl')!.medianMs),
        ...others.map((engine) => {
          const record = of(engine);
          return record === undefined ? '' : figure.times(record.ratioToTrawl);
        }),
      ];
    }),
  ];
};

const recallByLatency: TableMaker<AllResult> = (all) => [
  ['engine', 'efSearch', 'recall', 'p50', 'p99', 'queries/s, all at once', 'made in', 'memory'],
  rule(8),
  ...(resultOf(all, 'approximate')?.records ?? []).map(approximateCells),
];

const endToEnd: TableMaker<AllResult> = (all) => [
  ['engine', 'mode', 'measured', 'recall@10', 'p50', 'p99', 'memory'],
  rule(7, 3),
  ...(resultOf(all, 'questions')?.records ?? []).map((record) => [
    record.engine,
    record.mode,
    record.over === 'http' ? 'over HTTP' : 'library alone',
    figure.share(record.recallAt10),
    figure.ms(record.p50Ms),
    figure.ms(record.p99Ms),
    record.residentBytes === null ? '' : figure.bytes(record.residentBytes),
  ]),
];

const quality: TableMaker<EvalResult> = ({ rows }) => {
  const metrics = ['recall@5', 'recall@10', 'mrr@10'];
  return [
    ['what is embedded', 'queries', 'recall@5', 'recall@10', 'MRR@10'],
    rule(5, 2),
    ...rows.map((row) => [
      row.name,
      String(row.queries),
      ...metrics.map((metric) => figure.share(row.metrics[metric]!)),
    ]),
  ];
};

const systems: TableMaker<SystemsResult> = ({ rows }) => [
  ['set', 'system', 'questions', 'recall@10', 'all_gold@10', 'ndcg@10', 'mrr@10', 'p'],
  Array<string>(8).fill('---'),
  ...rows.map(({ set, system, questions, metrics, recallInterval: { low, high }, p }) => [
    set,
    system,
    String(questions),
    `${figure.share(metrics['recall@10']!)} (${figure.share(low)} to ${figure.share(high)})`,
    ...['all_gold@10', 'ndcg@10', 'mrr@10'].map((metric) => figure.share(metrics[metric]!)),
    p === null ? '' : p < 0.001 ? '< 0.001' : figure.share(p),
  ]),
];

/** Times are those of sentence-transformers; Trawl's follow from its ratios. */
const families: TableMaker<FamiliesResult> = ({ passages, rows }) => {
  const engines = ['float32', 'int8'] as const;
  return [
    ['shape', 'tokens', 'passage', ...engines, 'query, p50', ...engines],
    rule(8),
    ...rows
      .filter(({ ratioToBaseline }) => ratioToBaseline === null)
      .map((baseline) => {
        const own = engines.map(
          (precision) =>
            rows.find(
              (row) => row.family === baseline.family && row.ratioToBaseline !== null && row.precision === precision,
            )!,
        );
        return [
          baseline.shape,
          figure.count(Math.round(baseline.tokensPerPassage)),
          figure.ms(baseline.medianMs / passages),
          ...own.map(({ ratioToBaseline }) => figure.times(ratioToBaseline!)),
          figure.ms(baseline.queryP50Ms),
          ...own.map(({ queryRatioToBaseline }) => figure.times(queryRatioToBaseline!)),
        ];
      }),
  ];
};

const precision: TableMaker<PrecisionResult> = ({ rows }) => {
  const points = (value: number): string => `${value < 0 ? '−' : '+'}${Math.abs(100 * value).toFixed(2)}`;
  return [
    ['set', 'precision', 'questions', 'recall@10', 'points to float32 (95 %)', 'better, worse', 'nDCG@10', 'MRR@10'],
    rule(8, 2),
    ...rows.map(({ set, precision, questions, metrics, difference }) => [
      set,
      precision,
      figure.count(questions),
      metrics['recall@10']!.toFixed(4),
      difference === null ? '' : `${points(difference.mean)} (${points(difference.low)} to ${points(difference.high)})`,
      difference === null ? '' : `${difference.better}, ${difference.worse}`,
      metrics['ndcg@10']!.toFixed(4),
      metrics['mrr@10']!.toFixed(4),
    ]),
  ];
};

const replicas: TableMaker<ReplicasFigures> = (result) => [
  ['What', 'Figure'],
  ['---', '---'],
  ['answers, to requests', `${figure.count(result.answers)} to ${figure.count(result.requests)}`],
  ['failed requests; replies that mixed two indexes', `${result.failed}; ${result.mixed}`],
  ['answers of the old index, of the new one', `${figure.count(result.ofOld)}, ${figure.count(result.ofNew)}`],
  ['queries with another answer in the new index', `${result.changedQueries} of ${result.queries}`],
  [
    'answers of the old index to requests sent after the swap',
    `${result.oldAfterSwap} of ${figure.count(result.afterSwap)}`,
  ],
  ['tries that the client repeated at another server', figure.count(result.repeatedTries)],
  [
    'time of the swap of three servers, with its questions before and after',
    `${(result.rolloutMs / 1000).toFixed(1)} s`,
  ],
];

const TABLES: Readonly<Record<string, TableMaker<never>>> = {
  'exact-search': exactSearch,
  'recall-by-latency': recallByLatency,
  'end-to-end': endToEnd,
  quality,
  evaluation: systems,
  families,
  precision,
  replicas,
  'size-requests': sizeRequests,
  'size-figures': sizeFigures,
};

export const TABLE_NAMES = Object.keys(TABLES);

/**
 * The Markdown of a marked table.
 *
 * @param result the parsed JSON of the file that its marker names.
 * @throws RangeError if there is no table of that name.
 */
export function figureTable(name: string, result: unknown): string {
  const make = TABLES[name];
  if (make === undefined) throw new RangeError(`There is no table ${name}; expected one of ${TABLE_NAMES.join(', ')}.`);
  return make(result as never)
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}
