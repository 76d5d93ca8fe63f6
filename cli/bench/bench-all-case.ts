import { basename } from 'node:path';
import { readAllResult } from '../../bench/all/all-file.ts';
import { ALL_STAGES, type AllResult } from '../../bench/all/all-result.ts';
import { benchAll } from '../../bench/all/bench-all.ts';
import { reportPage } from '../../bench/report/report-page.ts';
import { usageError } from '../../src/base/errors.ts';
import type { OptionValues } from '../../src/base/options/option-spec.ts';
import { requireWritable, writeOutputFile } from '../output/output-file.ts';
import type { BENCH_OPTIONS } from './bench-options.ts';
import type { BenchCommon, BenchOutcome } from './bench-outcome.ts';
import { parseNames } from './bench-values.ts';

/** `trawl bench all`: measures or reads the figures, and draws the page. */
export async function benchAllCase(
  options: OptionValues<typeof BENCH_OPTIONS>,
  common: BenchCommon,
): Promise<BenchOutcome> {
  const { from, report, corpus } = options;
  const queryTexts = options['query-texts'];
  if (corpus.length > 0 !== (queryTexts !== undefined) || corpus.length > 1) {
    throw usageError(
      'trawl bench all needs --corpus, one file of JSON lines, and --query-texts, questions with gold_ids of its passages, together. Give both or neither.',
    );
  }
  const file = from ?? options.out ?? jsonBeside(report);
  await requireWritable(report);
  if (from === undefined) await requireWritable(file);
  const result =
    from === undefined
      ? await benchAll({
          ...common,
          size: options.size,
          stages: parseNames('--stages', options.stages, ALL_STAGES),
          restart: options.restart,
          file,
          model: options.model,
          baselineModel: options['baseline-model'],
          corpus: corpus[0],
          queryTexts,
          calls: options.calls,
        })
      : await readAllResult(from);
  await writeOutputFile(report, [reportPage(result, basename(file))]);
  const problems = Object.entries(result.stages).flatMap(([stage, outcome]) =>
    'failed' in outcome ? [`${stage} failed: ${outcome.failed}`] : [],
  );
  return { result, records: recordsOf(result), text: () => `${report} and ${file}`, writes: true, problems };
}

function jsonBeside(report: string): string {
  return `${report.replace(/\.html?$/i, '')}.json`;
}

function recordsOf({ stages }: AllResult): object[] {
  return Object.values(stages).flatMap((outcome) =>
    'result' in outcome && 'records' in outcome.result ? [...outcome.result.records] : [],
  );
}
