import { planServing, type ServePlan } from '../../evaluation/speed/serve-plan.ts';
import { usageError } from '../../src/base/errors.ts';
import { formatBytes, formatCount, formatNumberOf } from '../../src/base/format.ts';
import { isPublishedAddress } from '../../src/stores/published/published-address.ts';
import { retrieverOptions } from '../options/retriever-options.ts';
import { forecastLines } from '../output/forecast-lines.ts';
import { type CommandContext, EXIT } from '../program/command.ts';
import type { SERVE_OPTIONS } from './serve-options.ts';
import type { ServeSettings } from './serve-settings.ts';

/** Prints what serving the indexes takes and how fast searches should be. Opens no port. Resolves to the exit code. */
export async function printServePlan(
  { indexes, options }: ServeSettings,
  { out, note, signal }: CommandContext<typeof SERVE_OPTIONS>,
): Promise<number> {
  if (options.replay !== undefined || indexes.length === 0) {
    throw usageError('--plan needs an index. Omit --plan, or name an index directory without --replay.');
  }
  if (indexes.some(({ folder }) => isPublishedAddress(folder))) {
    throw usageError(
      '--plan measures this machine, which does not search an index in Milvus or OpenSearch (docs/cluster.md has sizes).',
    );
  }
  const plan = await planServing(indexes, {
    wordsOnly: options.mode === 'bm25',
    opening: { ...retrieverOptions(options), onWarning: note },
    signal,
  });
  out(options.json ? JSON.stringify(plan) : planLines(plan).join('\n'));
  return plan.problems.length === 0 ? EXIT.ok : EXIT.problems;
}

function planLines({ indexes, residentBytes, memoryLimitBytes, problems }: ServePlan): string[] {
  const lines = indexes.flatMap(({ index, rows, dimension, residentBytes: own, search }) => [
    `${index}: ${formatNumberOf(rows, 'passage')}${dimension === 0 ? ', without vectors' : ` × ${formatCount(dimension)}; searches read ${formatBytes(own)}`}`,
    ...(search === null ? [] : forecastLines(search)),
  ]);
  lines.push(`memory for searching: ${formatBytes(residentBytes)} of ${formatBytes(memoryLimitBytes)}`);
  if (problems.length > 0) lines.push('does not fit', ...problems.map((problem) => `  ${problem}`));
  return lines;
}
