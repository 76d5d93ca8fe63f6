import * as figure from '../report/figures.ts';
import type { ClusterFigures } from './cluster-figures.ts';
import type { MilvusSizeResult, MilvusTimes } from './milvus-size-result.ts';
import { rule } from './table-maker.ts';

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

export function clusterRates({ rates }: ClusterFigures): string[][] {
  return [
    ['clients and requests', 'queries/s', 'median', 'p99', 'slowest', 'load average'],
    rule(6),
    ...rates.map(({ name, queriesPerS, medianMs, p99Ms, slowestMs, load }) => [
      name,
      figure.rate(queriesPerS),
      figure.ms(medianMs),
      figure.ms(p99Ms),
      figure.ms(slowestMs),
      load.toFixed(1),
    ]),
  ];
}

export function clusterEvents({ events }: ClusterFigures): string[][] {
  return [
    [
      'fault',
      'right answers',
      'of them during the fault',
      'wrong',
      '503',
      'last 503 after',
      'longest without an answer',
      'of all dialects: right, 503, wrong',
      'load average',
    ],
    rule(9),
    ...events.map((event) => [
      event.name,
      figure.count(event.answers),
      figure.count(event.answersMeanwhile),
      String(event.wrong),
      figure.count(event.refused),
      event.refusedUntilMs === null ? '' : seconds(event.refusedUntilMs),
      seconds(event.longestSilenceMs),
      event.dialects === null
        ? ''
        : [event.dialects.answers, event.dialects.refused, event.dialects.wrong].map(figure.count).join(', '),
      event.load.toFixed(1),
    ]),
  ];
}

export function clusterMemory({ memory }: ClusterFigures): string[][] {
  const processes = Object.keys(memory[0]!.bytes);
  return [
    ['loaded', ...processes],
    rule(processes.length + 1),
    ...memory.map(({ name, bytes }) => [name, ...processes.map((process) => figure.bytes(bytes[process]!))]),
  ];
}

/** What a standalone Milvus needs by the number of rows. */
export function milvusSize({ sizes }: MilvusSizeResult): string[][] {
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
}
