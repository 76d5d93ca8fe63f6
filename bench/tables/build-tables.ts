import type { IndexRecord } from '../index/index-record.ts';
import * as figure from '../report/figures.ts';
import type { PrepareResult } from './prepare-result.ts';
import { rule, type TableMaker } from './table-maker.ts';

/** A build beside one as FlashRAG does it. */
export const builds: TableMaker<{ readonly records: readonly IndexRecord[] }> = ({ records }) => [
  ['build', 'time', 'the encoder alone takes', 'most memory', 'written'],
  rule(5),
  ...records.map((record) => [
    record.engine,
    `${record.seconds.toFixed(1)} s`,
    record.encodeSeconds === null ? '' : `${record.encodeSeconds.toFixed(1)} s`,
    figure.bytes(record.peakMemoryBytes),
    figure.bytes(record.indexBytes),
  ]),
];

/** `trawl prepare` beside a Python program. */
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
