import * as figure from '../report/figures.ts';
import type { TableMaker } from './table-maker.ts';
import type { SoakFigures, TrialsResult } from './trials-result.ts';

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
