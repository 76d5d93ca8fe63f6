import { TrawlError } from '../../src/errors.ts';
import { readReport } from '../../src/system/output-report.ts';

/** @throws TrawlError INDEX_FILE_FOREIGN if the report of the candidates names another generation. Without a report nothing is checked. */
export function checkGeneration(candidates: string, index: string, generation: string): void {
  const found = readReport(candidates)?.settings?.['generation'];
  if (found === undefined || found === generation) return;
  throw new TrawlError(
    'INDEX_FILE_FOREIGN',
    `${candidates} was made with the generation ${String(found)} of its index; ${index} has the generation ${generation}, whose row numbers can be others. Use that index, or make the candidates again.`,
  );
}
