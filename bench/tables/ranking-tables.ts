import { type BenchFilterResult, isFilterRecord } from '../filter/bench-filter.ts';
import type { BenchBm25Result } from '../lexical/bench-bm25.ts';
import { isIndexRecord } from '../lexical/bm25-report.ts';
import type { LexicalRecord } from '../lexical/lexical-case.ts';
import type { BenchModesResult } from '../modes/bench-modes.ts';
import * as figure from '../report/figures.ts';
import type { Bm25SizeResult } from './bm25-size-result.ts';
import type { EvalResult } from './eval-result.ts';
import type { SystemsResult } from './systems-result.ts';
import { rule, type TableMaker } from './table-maker.ts';

/** recall@10: a line for each ranking, a column for each set and encoder. The best of a column is bold. */
export const fusion: TableMaker<SystemsResult> = ({ rows }) => {
  const sets = [...new Set(rows.map(({ set }) => set))];
  const rankings = [...new Set(rows.map(({ system }) => system))];
  const recall = (set: string, system: string): string =>
    figure.share(rows.find((row) => row.set === set && row.system === system)!.metrics['recall@10']!);
  const best = new Map(
    sets.map((set) => [
      set,
      rankings
        .map((system) => recall(set, system))
        .sort()
        .at(-1),
    ]),
  );
  return [
    ['ranking', ...sets],
    rule(sets.length + 1),
    ...rankings.map((system) => [
      system,
      ...sets.map((set) => {
        const value = recall(set, system);
        return value === best.get(set) ? `**${value}**` : value;
      }),
    ]),
  ];
};

export const modes: TableMaker<BenchModesResult> = ({ records }) => [
  ['ranking', 'passages', 'questions', 'recall@10', 'p50', 'p99'],
  rule(6),
  ...records.map((record) => [
    record.case,
    figure.count(record.passing),
    figure.count(record.judged),
    figure.share(record.recallAt10),
    figure.ms(record.p50Ms),
    figure.ms(record.p99Ms),
  ]),
];

export const filters: TableMaker<BenchFilterResult> = ({ records }) => [
  ['rows that pass', 'filter', 'evaluated', 'from the cache'],
  ['---:', '---', '---:', '---:'],
  ...records
    .filter(isFilterRecord)
    .map((record) => [
      `${Number(((100 * record.passing) / record.rows).toPrecision(2))} %`,
      `\`${record.case}\``,
      figure.ms(record.evaluateMs),
      figure.ms(record.cachedMs),
    ]),
];

/** BM25 searches of the first corpus: many queries at once, and one at a time. Empty where an engine was not measured. */
export const bm25: TableMaker<BenchBm25Result> = (result) => bm25Searches(result, 0);

/** The same of the second corpus, which is generated. */
export const bm25Generated: TableMaker<BenchBm25Result> = (result) => bm25Searches(result, 1);

function bm25Searches({ records }: BenchBm25Result, corpus: 0 | 1): string[][] {
  const all = records.filter((record): record is LexicalRecord => !isIndexRecord(record));
  const corpusOf = (record: LexicalRecord): string => record.case.split('/')[1]!;
  const chosen = [...new Set(all.map(corpusOf))][corpus];
  const searches = all.filter((record) => corpusOf(record) === chosen);
  const engines = [...new Set(searches.map(({ engine }) => engine))].filter((engine) => engine !== 'trawl');
  const own = searches.filter(({ engine }) => engine === 'trawl');
  return [
    [
      ...['queries', 'k', 'threads', 'Trawl, queries/s'],
      ...engines.flatMap((engine) => [nameOf(engine), `${nameOf(engine)} takes`]),
      `one query, p50: Trawl, ${engines.map(nameOf).join(', ')}`,
    ],
    rule(5 + 2 * engines.length),
    ...own.map((trawl) => {
      const others = engines.map((engine) =>
        searches.find((record) => record.engine === engine && record.case === trawl.case),
      );
      return [
        trawl.case.split('/')[2]!,
        figure.count(trawl.k),
        String(trawl.threads),
        figure.rate(trawl.queriesPerS),
        ...others.flatMap((other) =>
          other === undefined ? ['', ''] : [figure.rate(other.queriesPerS), figure.times(other.ratioToTrawl)],
        ),
        [trawl, ...others].map((one) => (one?.p50Ms == null ? '–' : figure.ms(one.p50Ms))).join(', '),
      ];
    }),
  ];
}

const NAMES: Readonly<Record<string, string>> = { lucene: 'Lucene', sqlite: 'SQLite' };
const nameOf = (engine: string): string => NAMES[engine] ?? engine;

export const bm25Size: TableMaker<Bm25SizeResult> = ({ rows, corpusBytes, build, records }) => {
  const { scan, read, words } = build.stageMs;
  const [index] = records.filter(isIndexRecord);
  const seconds = (ms: number | undefined): string => `${figure.count((ms ?? 0) / 1000)} s`;
  return [
    ['what', 'figure'],
    ['---', '---'],
    ['passages, JSON lines', `${figure.count(rows)}, ${figure.bytes(corpusBytes)}`],
    [
      'build: all; scan; reading and storing; inverted indexes',
      `${figure.count(build.seconds)} s; ${seconds(scan)}; ${seconds(read)}; ${seconds(words)}`,
    ],
    ['load average before and after the build', `${build.load.before.toFixed(1)}, ${build.load.after.toFixed(1)}`],
    ['most memory of the build', figure.bytes(build.peakBytes)],
    [
      'inverted indexes',
      `${figure.bytes(index!.indexBytes)} in ${build.shards} shards, ${index!.bitsPerPosting!.toFixed(1)} bits a posting`,
    ],
    ['passages in the index', figure.bytes(build.passageBytes)],
    ['opening the inverted indexes, in the page cache', figure.ms(index!.openMs!)],
    ['parts of their files in memory after the searches', figure.bytes(index!.residentBytes!)],
  ];
};

/** Searches of Trawl alone: one query at a time, and many at once. */
export const bm25SizeSearches: TableMaker<Bm25SizeResult> = ({ records }) => [
  ['queries', 'k', 'threads', 'p50', 'p99', 'queries/s', 'postings read'],
  rule(7),
  ...records
    .filter((record): record is LexicalRecord => !isIndexRecord(record))
    .map((record) => [
      record.case.split('/')[2]!,
      figure.count(record.k),
      String(record.threads),
      figure.ms(record.p50Ms!),
      figure.ms(record.p99Ms!),
      figure.rate(record.queriesPerS),
      record.postingsReadShare === null ? '' : `${(100 * record.postingsReadShare).toFixed(0)} %`,
    ]),
];

/** Recall of BM25 over title and text as two fields. */
export const fields: TableMaker<EvalResult> = ({ rows }) => [
  ['search', 'options', 'recall@1', 'recall@5', 'recall@10'],
  rule(5, 2),
  ...rows.map(({ name, arguments: options, metrics }) => [
    name,
    options === '' ? 'none' : `\`${options}\``,
    ...[1, 5, 10].map((k) => figure.share(metrics[`recall@${k}`]!)),
  ]),
];
