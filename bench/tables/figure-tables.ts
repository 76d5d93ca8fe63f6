import * as figure from '../report/figures.ts';
import * as all from './all-tables.ts';
import { builds, prepare } from './build-tables.ts';
import { clusterSizing } from './cluster-sizing.ts';
import { clusterEvents, clusterMemory, clusterRates, milvusSize } from './cluster-tables.ts';
import { encoderCosines, encoderPass, loneQuery } from './encoder-pass-tables.ts';
import * as engine from './engine-tables.ts';
import type { EvalResult } from './eval-result.ts';
import type { FamiliesResult } from './families-result.ts';
import { gpuSearch, gpuThroughput } from './gpu-tables.ts';
import { once } from './once-table.ts';
import type { PrecisionResult } from './precision-result.ts';
import { bm25, bm25Generated, bm25Size, bm25SizeSearches, fields, filters, fusion, modes } from './ranking-tables.ts';
import type { ReplicasFigures } from './replicas-figures.ts';
import { sizeComputed } from './size-computed.ts';
import { sizeFigures, sizeRequests } from './size-tables.ts';
import type { SystemsResult } from './systems-result.ts';
import { rule, type TableMaker } from './table-maker.ts';
import { triageErrors, triageModels } from './triage-tables.ts';
import { soak, trials } from './trials-tables.ts';

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
  ...rows.map(({ set, system, questions, metrics, recallInterval, p }) => [
    set,
    system,
    String(questions),
    figure.share(metrics['recall@10']!) +
      (recallInterval === null ? '' : ` (${figure.share(recallInterval.low)} to ${figure.share(recallInterval.high)})`),
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
  const withInterval = ({ mean, low, high }: NonNullable<PrecisionResult['rows'][number]['difference']>): string =>
    points(mean) + (low === null || high === null ? '' : ` (${points(low)} to ${points(high)})`);
  return [
    [
      'set',
      'passages',
      'queries',
      'questions',
      'overlap@10',
      'recall@10',
      'points (95 %)',
      'better, worse',
      'nDCG@10',
      'MRR@10',
    ],
    rule(10, 3),
    ...rows.map(({ set, passages, queries, questions, overlap10, metrics, difference }) => [
      set,
      passages,
      queries,
      figure.count(questions),
      overlap10 === null ? '' : overlap10.toFixed(4),
      metrics['recall@10']!.toFixed(4),
      difference === null ? '' : withInterval(difference),
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
  machine: all.machine,
  'exact-search': all.exactSearch,
  'exact-search-memory': all.exactSearchMemory,
  encoder: all.encoder,
  encoders: all.encoders,
  'index-building': all.indexBuilding,
  servers: all.servers,
  'search-lead': all.searchLead,
  'search-leads': all.searchLeads,
  'server-lead': all.serverLead,
  'server-loads': all.serverLoads,
  'recall-by-latency': all.recallByLatency,
  'end-to-end': all.endToEnd,
  quality,
  evaluation: systems,
  bm25,
  families,
  filters,
  fusion,
  'gpu-search': gpuSearch,
  'gpu-throughput': gpuThroughput,
  modes,
  precision,
  replicas,
  'size-requests': sizeRequests,
  'size-figures': sizeFigures,
  'size-computed': sizeComputed,
  'cluster-rates': clusterRates,
  'cluster-events': clusterEvents,
  'cluster-memory': clusterMemory,
  'cluster-sizing': clusterSizing,
  'search-alone': engine.searchAlone,
  rescored: engine.rescored,
  bulk: engine.bulk,
  'filtered-searches': engine.filteredSearches,
  products: engine.products,
  'server-alone': engine.serverAlone,
  builds,
  'encoder-pass': encoderPass,
  'encoder-cosines': encoderCosines,
  'lone-query': loneQuery,
  'bm25-generated': bm25Generated,
  'bm25-size': bm25Size,
  'bm25-size-searches': bm25SizeSearches,
  fields,
  prepare,
  'milvus-size': milvusSize,
  trials,
  soak,
  'triage-errors': triageErrors,
  'triage-models': triageModels,
  once,
};

/** @internal Exported for tests. */
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
