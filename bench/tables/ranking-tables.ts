import { type BenchFilterResult, isFilterRecord } from '../filter/bench-filter.ts';
import type { BenchBm25Result } from '../lexical/bench-bm25.ts';
import { isIndexRecord } from '../lexical/bm25-report.ts';
import type { LexicalRecord } from '../lexical/lexical-case.ts';
import type { BenchModesResult } from '../modes/bench-modes.ts';
import * as figure from '../report/figures.ts';
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
export const bm25: TableMaker<BenchBm25Result> = ({ records }) => {
  const all = records.filter((record): record is LexicalRecord => !isIndexRecord(record));
  const corpusOf = (record: LexicalRecord | undefined): string | undefined => record?.case.split('/')[1];
  const searches = all.filter((record) => corpusOf(record) === corpusOf(all[0]));
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
};

const NAMES: Readonly<Record<string, string>> = { lucene: 'Lucene', sqlite: 'SQLite' };
const nameOf = (engine: string): string => NAMES[engine] ?? engine;
