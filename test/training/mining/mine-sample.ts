import { readFileSync } from 'node:fs';
import type { MiningSummary } from '../../../training/mining/mine-negatives.ts';
import type { RowFormatName } from '../../../training/mining/row-formats.ts';
import { jsonOf, runTrawl } from '../../cli/run-trawl.ts';
import { linesOf } from './mining-corpus.ts';

export interface SampleMining {
  readonly out: string;
  readonly rows: readonly Record<string, unknown>[];
  readonly report: MiningSummary;
}

/** Runs `trawl mine` and reads what it wrote. */
export async function mineSample(
  index: string,
  out: string,
  format: RowFormatName,
  queries: string,
  args: readonly string[] = [],
): Promise<SampleMining> {
  const run = ['mine', index, '--queries', queries, '--out', out, '--format', format, ...args, '--json', '--quiet'];
  const report = jsonOf<MiningSummary>(await runTrawl(run));
  const rows = (format === 'dpr' ? JSON.parse(readFileSync(out, 'utf8')) : linesOf(out)) as SampleMining['rows'];
  return { out, rows, report };
}
