import { existsSync, readFileSync } from 'node:fs';
import { TrawlError } from '../../src/errors.ts';
import { writeJsonDurably } from '../../src/system/durable-file.ts';
import type { CandidateCounts } from '../../trajectories/agentic-r/make-candidates.ts';

/** What a candidates file was made with, in `FILE.report.json` beside it: the file's own format has no place for it. */
export interface CandidatesReport {
  readonly settings: Readonly<Record<string, unknown>> & { readonly generation: string };
  readonly counts: CandidateCounts;
}

export function reportPath(candidates: string): string {
  return `${candidates}.report.json`;
}

export async function writeCandidatesReport(candidates: string, report: CandidatesReport): Promise<void> {
  await writeJsonDurably(reportPath(candidates), report);
}

/** @throws TrawlError INDEX_FILE_FOREIGN if the candidates were searched in another index, as far as their report says it. */
export function checkGeneration(candidates: string, index: string, generation: string): void {
  const path = reportPath(candidates);
  if (!existsSync(path)) return;
  let found: unknown;
  try {
    found = (JSON.parse(readFileSync(path, 'utf8')) as Partial<CandidatesReport>).settings?.generation;
  } catch (cause) {
    throw new TrawlError(
      'CONFIG_INVALID',
      `${path} is not valid JSON. Delete it if the candidates are of this index.`,
      { cause },
    );
  }
  if (found === undefined || found === generation) return;
  throw new TrawlError(
    'INDEX_FILE_FOREIGN',
    `${candidates} was made with the generation ${found} of its index; ${index} has the generation ${generation}, whose row numbers can be others. Use that index, or make the candidates again.`,
  );
}
