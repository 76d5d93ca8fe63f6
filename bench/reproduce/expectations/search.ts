import type { BenchBulkResult } from '../../bulk/bench-bulk.ts';
import { type BenchFilterResult, isFilterRecord } from '../../filter/bench-filter.ts';
import type { BenchFlatResult } from '../../flat/bench-flat.ts';
import type { BenchBm25Result } from '../../lexical/bench-bm25.ts';
import { isIndexRecord } from '../../lexical/bm25-report.ts';
import type { Bm25SizeResult } from '../../tables/bm25-size-result.ts';
import type { GpuSearchResult } from '../../tables/gpu-search-result.ts';
import type { RealVectorsResult } from '../../tables/real-vectors-result.ts';
import type { SizeResult } from '../../tables/size-figures.ts';
import { type Expectation, MEMORY, RATIO } from '../expectation.ts';

export function flatExpectations({ records }: Pick<BenchFlatResult, 'records'>): Expectation[] {
  return records.flatMap((record): Expectation[] => {
    const name = `exact search, ${record.engine}, ${record.queries} queries`;
    return record.engine === 'trawl'
      ? [{ name: `${name}: bytes`, value: record.residentBytes, tolerance: MEMORY }]
      : [
          { name: `${name}: time / Trawl`, value: record.ratioToTrawl, tolerance: RATIO },
          { name: `${name}: same lists`, value: record.agreement ?? 0, tolerance: { difference: 0.01 } },
        ];
  });
}

/** Queries with Lucene's rows and score bits, and the time of many queries divided by Trawl's. */
export function bm25Expectations({ records }: BenchBm25Result): Expectation[] {
  return records.flatMap((record): Expectation[] => {
    if (isIndexRecord(record) || record.engine === 'trawl') return [];
    const name = `${record.case}, ${record.engine}`;
    return [
      ...(record.engine === 'lucene' && record.agreement !== null
        ? [{ name: `${name}: same rows and score bits`, value: record.agreement, tolerance: { difference: 0 } }]
        : []),
      { name: `${name}: time / Trawl`, value: record.ratioToTrawl, tolerance: RATIO },
    ];
  });
}

/** The rows that pass. Times are left out. */
export function filterExpectations({ records }: BenchFilterResult): Expectation[] {
  return records.map((record) => ({
    name: `${record.case}: rows that pass`,
    value: record.passing,
    tolerance: { difference: 0 },
  }));
}

/** The time of a search without a filter divided by that with it. */
export function filteredExpectations({ records }: BenchFilterResult): Expectation[] {
  return records.flatMap((record) =>
    isFilterRecord(record) || record.passing === record.rows
      ? []
      : [{ name: `${record.case}: × without a filter`, value: 1 / record.shareOfUnfiltered, tolerance: RATIO }],
  );
}

/** Rows that are scored exactly. */
export function rescoredExpectations({ rows }: RealVectorsResult): Expectation[] {
  return rows.flatMap(({ name, record }) =>
    Object.entries({ median: record.candidatesMedian, most: record.candidatesMax }).map(([what, value]) => ({
      name: `${name}: rows scored exactly, ${what}`,
      value: value!,
      tolerance: RATIO,
    })),
  );
}

export function bulkExpectations({ records }: BenchBulkResult): Expectation[] {
  return records.map(({ case: name, ratioToEngine }) => ({
    name: `bulk search, ${name}: time / engine`,
    value: ratioToEngine,
    tolerance: { factor: 1.3 },
  }));
}

/** Bytes on disk, and the number of queries that equalled a scan. Times are left out. */
export function sizeExpectations({ bytes, steps: { memory, prefilter } }: SizeResult): Expectation[] {
  const checked = Object.entries({ memory, prefilter }).map(([step, { checkedQueries }]) => ({
    name: `size, ${step}: queries that equal a scan`,
    value: checkedQueries,
    tolerance: { difference: 0 },
  }));
  const sizes = Object.entries(bytes).map(([what, value]) => ({
    name: `size: bytes of ${what}`,
    value,
    tolerance: MEMORY,
  }));
  return [...checked, ...sizes];
}

/** The time of torch and of the CPU divided by that of the GPU. */
export function gpuSearchExpectations({ searches, baselines, checked }: GpuSearchResult): Expectation[] {
  return [
    { name: 'small indexes with other answers', value: checked.different, tolerance: { difference: 0 } },
    ...searches.flatMap(({ queries, ms, cpuMs, sameBits }) => [
      { name: `${queries} queries: same bits as the CPU`, value: Number(sameBits), tolerance: { difference: 0 } },
      { name: `${queries} queries: CPU / GPU`, value: cpuMs / ms, tolerance: RATIO },
      ...baselines
        .filter((line) => line.queries === queries)
        .map((line) => ({
          name: `${queries} queries: torch, ${line.type} / Trawl`,
          value: line.ms / ms,
          tolerance: RATIO,
        })),
    ]),
  ];
}

/** Sizes. Times are left out. */
export function bm25SizeExpectations({ corpusBytes, build, records }: Bm25SizeResult): Expectation[] {
  const inverted = records.find(isIndexRecord)!.indexBytes;
  const { peakBytes, passageBytes } = build;
  return Object.entries({ corpusBytes, peakBytes, passageBytes, inverted }).map(([name, value]) => ({
    name: `words at the size of wiki-18: ${name}`,
    value,
    tolerance: MEMORY,
  }));
}
