import { formatMs, machineLine, markdownTable } from '../report-format.ts';
import type { BenchBm25Result, Bm25IndexRecord, Bm25Record } from './bench-bm25.ts';
import type { LexicalRecord } from './lexical-case.ts';

/** The records as two Markdown tables: indexes and searches. */
export function bm25Report({ records, environment }: BenchBm25Result): string {
  const searches = records.filter((record): record is LexicalRecord => !isIndexRecord(record));
  return [
    `BM25, median of ${searches[0]?.runs ?? 0} rounds after a warm-up`,
    machineLine(environment, environment.isa),
    '',
    ...indexTable(records.filter(isIndexRecord)),
    '',
    ...searchTable(searches),
    '',
    'ms: one query at a time. Trawl analyses the query within that time (analysis ms), the others before. time / Trawl: of many queries at once.',
    'agrees: queries with the same rows and score bits as Trawl.',
  ].join('\n');
}

function isIndexRecord(record: Bm25Record): record is Bm25IndexRecord {
  return 'indexBytes' in record;
}

function indexTable(records: readonly Bm25IndexRecord[]): string[] {
  const header = [
    'index',
    'engine',
    'passages',
    'MB',
    'bits a posting',
    'build s',
    'build MB/s',
    'analysis MB/s',
    'open ms',
    'resident MB',
  ];
  return markdownTable(
    header,
    records.map((record) => [
      record.case,
      record.engine,
      String(record.rows),
      (record.indexBytes / 1e6).toFixed(1),
      record.bitsPerPosting.toFixed(1),
      record.buildSeconds?.toFixed(2) ?? '',
      record.buildMbPerS?.toFixed(1) ?? '',
      record.analysisMbPerS?.toFixed(1) ?? '',
      formatMs(record.openMs),
      record.residentBytes === null ? '' : (record.residentBytes / 1e6).toFixed(1),
    ]),
  );
}

function searchTable(records: readonly LexicalRecord[]): string[] {
  const header = [
    'searches',
    'engine',
    'mean ms',
    'p50 ms',
    'p99 ms',
    'queries/s',
    'time / Trawl',
    'analysis ms',
    'postings read',
    'agrees',
  ];
  const percent = (share: number | null): string => (share === null ? '' : `${(share * 100).toFixed(1)} %`);
  const ms = (value: number | null): string => (value === null ? '' : value.toFixed(3));
  return markdownTable(
    header,
    records.map((record) => [
      record.case,
      record.engine,
      ms(record.meanMs),
      ms(record.p50Ms),
      ms(record.p99Ms),
      record.queriesPerS.toFixed(0),
      record.engine === 'trawl' ? '1' : `${record.ratioToTrawl.toFixed(2)}×`,
      ms(record.analysisMs),
      percent(record.postingsReadShare),
      percent(record.agreement),
    ]),
  );
}
