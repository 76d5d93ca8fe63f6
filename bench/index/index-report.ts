import type { Environment } from '../environment.ts';
import type { IndexRecord } from './index-record.ts';

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
  const disk = record.diskSeconds === null ? '' : `; writing as many bytes takes ${record.diskSeconds.toFixed(2)} s`;
  const baseline =
    record.ratioToBaseline === null ? [] : [`${record.ratioToBaseline.toFixed(2)}× the speed of the baseline`];
  return [
    `${record.engine}: ${record.rows} passages × ${record.dimension}, encoder ${record.encoder}${record.codes ? '' : ', without codes'}`,
    `${Math.round(record.passagesPerS)} passages/s: ${record.seconds.toFixed(2)} s${stages}`,
    `${(record.indexBytes / 1e9).toFixed(3)} GB of index${disk}`,
    record.encodeSeconds === null
      ? 'No encoder.'
      : `${record.ratioToEncoding!.toFixed(3)}× the time of the encoder alone (${record.encodeSeconds.toFixed(2)} s)`,
    `peak memory ${(record.peakMemoryBytes / 1e9).toFixed(2)} GB`,
    ...baseline,
  ].join('\n');
}
