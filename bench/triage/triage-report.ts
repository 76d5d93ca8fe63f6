import { ESTIMATORS } from '../../training/triage/estimate-recall.ts';
import { markdownTable } from '../report-format.ts';
import { type BenchTriageResult, TRIAGE_CUTOFFS, type TriageRecord } from './bench-triage.ts';

/** The records as a Markdown table: a line for each trial, with its errors at each k, mean and worst. */
export function triageErrorReport({ rows, questions, present, records }: BenchTriageResult): string {
  const trials = new Map<string, TriageRecord[]>();
  for (const record of records) {
    const key = JSON.stringify([record.tried, record.depth, record.sampleShare]);
    trials.set(key, [...(trials.get(key) ?? []), record]);
  }
  const header = [
    'tried',
    'depth',
    'chosen',
    'sample',
    ...TRIAGE_CUTOFFS.flatMap((k) => [`recall@${k}`, ...ESTIMATORS.map((estimator) => `${estimator} @${k}`)]),
  ];
  const lines = [...trials.values()].map((trial) => {
    const { tried, depth, chosenShare, sampleShare } = trial[0]!;
    return [
      tried,
      String(depth),
      percent(chosenShare),
      percent(sampleShare),
      ...trial.flatMap(({ whole, errors }) => [
        whole.toFixed(3),
        ...ESTIMATORS.map((estimator) => `${signed(errors[estimator].mean)} (${signed(errors[estimator].worst)})`),
      ]),
    ];
  });
  return [
    `${rows} passages, ${questions} questions, present encoder: ${present}. Estimate minus recall in the whole index: mean (worst)`,
    '',
    ...markdownTable(header, lines),
  ].join('\n');
}

function percent(share: number): string {
  return `${Number((100 * share).toPrecision(2))} %`;
}

function signed(value: number): string {
  return `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)}`;
}
