import type { StageTimes } from '../indexer/stage-clock.ts';
import type { Environment } from './environment.ts';

/** A build measured. */
export interface IndexRecord {
  readonly case: 'index';
  /** `trawl`, or the baseline's name and version. */
  readonly engine: string;
  /** `none`: vectors cost nothing. */
  readonly encoder: string;
  readonly rows: number;
  readonly dimension: number;
  /** Of the corpus. */
  readonly corpusBytes: number;
  /** Of the finished index. */
  readonly indexBytes: number;
  readonly codes: boolean;
  /** From the corpus to the finished index, durable on the disk; the model is loaded before. */
  readonly seconds: number;
  readonly passagesPerS: number;
  /** Null of a baseline, as is what follows of the disk. */
  readonly stageMs: StageTimes | null;
  /** Writing as many bytes into one file, with an fsync, on the same disk. */
  readonly diskSeconds: number | null;
  /** The same texts through the encoder alone: just before, or within the baseline's build; null without an encoder. */
  readonly encodeSeconds: number | null;
  readonly ratioToEncoding: number | null;
  /** Most resident memory of the process up to then. */
  readonly peakMemoryBytes: number;
  /** Passages per second, of the baseline's; null without one. */
  readonly ratioToBaseline: number | null;
}

export function indexReport(
  records: readonly IndexRecord[],
  { processor, cores, isa, loadBefore, date }: Environment,
): string {
  const head = `${date.slice(0, 10)}, ${processor}, ${cores} cores, ${isa}, load before ${loadBefore.toFixed(1)}`;
  return [head, ...records.map(recordLines)].join('\n\n');
}

function recordLines(record: IndexRecord): string {
  const { stageMs: ms } = record;
  const seconds = (value: number): string => `${(value / 1000).toFixed(2)} s`;
  const stages =
    ms === null
      ? ''
      : ` (scan ${seconds(ms.scan)}, read ${seconds(ms.read)}, encode and write ${seconds(ms.encode)}, finish ${seconds(ms.finish)})`;
  const disk =
    record.diskSeconds === null ? '' : `; the disk alone takes ${record.diskSeconds.toFixed(2)} s for as many`;
  const baseline =
    record.ratioToBaseline === null ? [] : [`${record.ratioToBaseline.toFixed(2)}× the speed of the baseline`];
  return [
    `${record.engine}: ${record.rows} passages × ${record.dimension} into a finished index, encoder ${record.encoder}${record.codes ? '' : ', without codes'}`,
    `${Math.round(record.passagesPerS)} passages/s: ${record.seconds.toFixed(2)} s${stages}`,
    `${(record.indexBytes / 1e9).toFixed(3)} GB of index${disk}`,
    record.encodeSeconds === null
      ? 'The encoder cost nothing.'
      : `${record.ratioToEncoding!.toFixed(3)}× the time of the encoder alone (${record.encodeSeconds.toFixed(2)} s)`,
    `peak memory ${(record.peakMemoryBytes / 1e9).toFixed(2)} GB`,
    ...baseline,
  ].join('\n');
}
