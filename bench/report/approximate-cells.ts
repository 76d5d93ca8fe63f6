import type { StageResults } from '../all/all-result.ts';
import * as figure from './figures.ts';

/** The cells of one record in a table of recall by latency, from the engine's name to its memory. */
export function approximateCells(record: StageResults['approximate']['records'][number]): string[] {
  return [
    record.engine,
    record.effort === null ? 'exact' : String(record.effort),
    figure.share(record.recall),
    figure.ms(record.p50Ms),
    figure.ms(record.p99Ms),
    figure.rate(record.queriesPerS),
    record.buildSeconds === null ? '' : `${record.buildSeconds.toFixed(0)} s`,
    figure.bytes(record.residentBytes),
  ];
}
