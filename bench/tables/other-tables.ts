import * as figure from '../report/figures.ts';
import type { EvalResult } from './eval-result.ts';
import type { MilvusSizeResult, MilvusTimes } from './milvus-size-result.ts';
import type { PrepareResult } from './prepare-result.ts';
import { rule, type TableMaker } from './table-maker.ts';
import type { SoakFigures, TrialsResult } from './trials-result.ts';

export const fields: TableMaker<EvalResult> = ({ rows }) => [
  ['search', 'options', 'recall@1', 'recall@5', 'recall@10'],
  rule(5, 2),
  ...rows.map(({ name, arguments: options, metrics }) => [
    name,
    options === '' ? 'none' : `\`${options}\``,
    ...[1, 5, 10].map((k) => figure.share(metrics[`recall@${k}`]!)),
  ]),
];

export const prepare: TableMaker<PrepareResult> = ({ rows }) => [
  ['program', 'rule', 'output', 'threads', 'passages', 'seconds', 'passages/s'],
  rule(7, 3),
  ...rows.map(({ program, rule: name, output, threads, passages, seconds }) => [
    program === 'trawl' ? '`trawl prepare`' : 'a Python program',
    `\`${name}\``,
    `\`${output}\``,
    String(threads),
    figure.count(passages),
    seconds.toFixed(1),
    figure.count(passages / seconds),
  ]),
];

export const milvusSize: TableMaker<MilvusSizeResult> = ({ sizes }) => {
  const times = ({ medianMs, p95Ms }: MilvusTimes): string => `${figure.ms(medianMs)} (${figure.ms(p95Ms)})`;
  return [
    [
      ...['rows', 'stored in', 'memory before loading', 'after the searches'],
      ...['42 candidates, median (p95)', 'ten hits proved, median (p95)', 'load average'],
    ],
    rule(7, 0),
    ...sizes.map((row) => [
      figure.count(row.rows),
      `${row.storedS.toFixed(0)} s`,
      figure.bytes(row.beforeLoadingBytes),
      figure.bytes(row.afterSearchesBytes),
      times(row.candidates),
      times(row.proved),
      row.load.toFixed(1),
    ]),
  ];
};

/** Trials of a server: how many answers were compared, and what else was counted. */
export const trials: TableMaker<TrialsResult> = ({ results }) => [
  ['trial', 'outcome', 'counted'],
  ['---', '---', '---'],
  ...results.map(({ name, outcome, reason, counts, faults }) => [
    name,
    outcome,
    [...(reason === undefined ? [] : [reason.split('\n', 1)[0]!]), ...listed(faults), ...listed(counts)].join(', '),
  ]),
];

function listed(counts: Readonly<Record<string, number | string>>): string[] {
  const text = (count: number): string => (Number.isInteger(count) ? figure.count(count) : count.toFixed(1));
  return Object.entries(counts).map(([what, count]) => `${what} ${typeof count === 'number' ? text(count) : count}`);
}

/** A server under full load. */
export const soak: TableMaker<SoakFigures> = ({ rows }) => [
  ['what', 'outcome', 'figures'],
  ['---', '---', '---'],
  ...rows,
];
