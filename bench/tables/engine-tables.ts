import type { BenchBulkResult } from '../bulk/bench-bulk.ts';
import { type BenchFilterResult, isFilterRecord } from '../filter/bench-filter.ts';
import type { FilteredSearchRecord } from '../filter/filtered-searches.ts';
import type { BenchFlatResult } from '../flat/bench-flat.ts';
import type { BenchProductsResult } from '../products/bench-products.ts';
import * as figure from '../report/figures.ts';
import { loadName } from '../report/load-names.ts';
import type { BenchServeResult } from '../serve/bench-serve.ts';
import type { RealVectorsResult } from './real-vectors-result.ts';
import { rule, type TableMaker } from './table-maker.ts';

/** Exact search of Trawl alone. */
export const searchAlone: TableMaker<Pick<BenchFlatResult, 'records'>> = ({ records }) => [
  ['queries at once', 'time', 'M dot products/s'],
  rule(3, 0),
  ...records.map(({ queries, medianMs, dotsPerS }) => [
    String(queries),
    figure.ms(medianMs),
    figure.rate(dotsPerS / 1e6),
  ]),
];

export const rescored: TableMaker<RealVectorsResult> = ({ rows }) => [
  ['vectors and queries', 'rows × dimension', 'median', '95th percentile', 'most'],
  rule(5),
  ...rows.map(({ name, record }) => [
    name,
    `${figure.count(record.rows)} × ${record.dimension}`,
    ...[record.candidatesMedian, record.candidatesP95, record.candidatesMax].map((count) => figure.count(count!)),
  ]),
];

export const bulk: TableMaker<BenchBulkResult> = ({ records }) => [
  ['way', 'seconds', 'queries/s', 'time / engine', 'of a piece'],
  rule(5),
  ...records.map((record) => [
    record.case,
    record.seconds.toFixed(1),
    figure.count(record.queriesPerS),
    `${record.ratioToEngine.toFixed(2)} ×`,
    record.ratios.map((ratio) => ratio.toFixed(2)).join(' to '),
  ]),
];

/** Time of a call by the share of the rows that pass, and how many times as long one without a filter takes. */
export const filteredSearches: TableMaker<BenchFilterResult> = ({ records }) => {
  const searches = records.filter((record): record is FilteredSearchRecord => !isFilterRecord(record));
  const kinds = [...new Set(searches.map(({ mode, queries }) => `${mode}, ${queries}`))].map((key) => {
    const [mode, queries] = key.split(', ') as [string, string];
    const of = searches.filter((record) => record.mode === mode && record.queries === Number(queries));
    return { name: `${mode}, ${queries} ${queries === '1' ? 'query' : 'queries'}`, of };
  });
  return [
    ['rows that pass', ...kinds.flatMap(({ name }) => [name, 'gain'])],
    rule(1 + 2 * kinds.length, 0),
    ...kinds[0]!.of.map(({ passing, rows }, i) => [
      passing === rows ? 'no filter' : `${Number(((100 * passing) / rows).toPrecision(2))} %`,
      ...kinds.flatMap(({ of }) => {
        const { medianMs, shareOfUnfiltered } = of[i]!;
        return [figure.ms(medianMs), figure.times(1 / shareOfUnfiltered)];
      }),
    ]),
  ];
};

/** The speed of one thread of several that work apart, and how many times that of float32 it is. */
export const products: TableMaker<BenchProductsResult> = ({ records }) => {
  const apart = records.filter(({ use }) => use === 'apart');
  const columns = [...new Set(apart.map(({ hidden, tokens }) => `${hidden}, ${tokens} tokens`))];
  const kinds = [...new Set(apart.map(({ kind }) => kind))];
  return [
    ['product', ...columns],
    rule(columns.length + 1),
    ...kinds.map((kind) => [
      kind,
      ...columns.map((column) => {
        const record = apart.find((one) => one.kind === kind && `${one.hidden}, ${one.tokens} tokens` === column);
        if (record?.gflopPerS == null) return '';
        const gain =
          record.ratioToFloat32 === null || kind === 'float32' ? '' : ` (${record.ratioToFloat32.toFixed(2)})`;
        return `${figure.count(record.gflopPerS)}${gain}`;
      }),
    ]),
  ];
};

/** Loads of a server alone. The load generator's limit counts requests. */
export const serverAlone: TableMaker<Pick<BenchServeResult, 'records'>> = ({ records }) => [
  ['load', 'rate', 'p50', 'p99', 'p50 without queue, encoder and search', 'failed, wrong'],
  rule(6),
  ...records.map((record) => [
    `\`${record.load}\`: ${loadName(record.load)}`,
    `${figure.rate(record.queriesPerS)} ${record.load === 'generator' ? 'requests' : 'queries'}/s`,
    figure.ms(record.p50Ms),
    figure.ms(record.p99Ms),
    record.overheadP50Ms === null ? '' : figure.ms(record.overheadP50Ms),
    `${record.errors}, ${record.wrong}`,
  ]),
];
