import * as figure from '../report/figures.ts';
import type { TriageErrorsResult } from '../reproduce/triage-errors.ts';
import type { TriageRecord } from '../triage/bench-triage.ts';

/**
 * The error of the estimate by set, depth and sample: its mean over the samples, as an absolute value, averaged over all models and k. The
 * last column has the least and the largest of the bound's.
 */
export const triageErrors: (result: TriageErrorsResult) => string[][] = ({ sets }) => {
  const shares = sorted(sets.flatMap(({ records }) => records.map(({ sampleShare }) => sampleShare)));
  return [
    ['set', 'depth', ...shares.map(percent), '`bound`'],
    ...sets.flatMap(({ name, records }) =>
      sorted(records.map(({ depth }) => depth)).map((depth) => {
        const of = records.filter((record) => record.depth === depth);
        const errorAt = (share: number, estimator: 'tail' | 'bound'): number | undefined =>
          meanError(
            of.filter(({ sampleShare }) => sampleShare === share),
            estimator,
          );
        const bounds = shares.flatMap((share) => errorAt(share, 'bound') ?? []);
        const range = [Math.min(...bounds), Math.max(...bounds)].map(figure.share);
        return [
          name,
          String(depth),
          ...shares.map((share) => {
            const error = errorAt(share, 'tail');
            return error === undefined ? '' : figure.share(error);
          }),
          range[0] === range[1] ? range[0]! : range.join(' to '),
        ];
      }),
    ),
  ];
};

/** By model: the errors of each estimate at 10, mean and worst, with the largest sample but one. */
export const triageModels: (result: TriageErrorsResult) => string[][] = ({ sets }) => [
  ['set', 'tried', 'depth', 'chosen', 'sample', 'recall@10', 'bound', 'counts', 'tail (worst)'],
  ...sets.flatMap(({ name, records }) => {
    const shares = sorted(records.map(({ sampleShare }) => sampleShare));
    const share = shares.at(-2)!;
    return records
      .filter(({ k, sampleShare }) => k === 10 && sampleShare === share)
      .map(({ tried, depth, chosenShare, whole, errors }) => [
        name,
        tried,
        String(depth),
        percent(Number(chosenShare.toPrecision(2))),
        percent(share),
        figure.share(whole),
        signed(errors.bound.mean),
        signed(errors.counts.mean),
        `${signed(errors.tail.mean)} (${signed(errors.tail.worst)})`,
      ]);
  }),
];

function meanError(records: readonly TriageRecord[], estimator: 'tail' | 'bound'): number | undefined {
  if (records.length === 0) return undefined;
  return records.reduce((sum, { errors }) => sum + Math.abs(errors[estimator].mean), 0) / records.length;
}

const sorted = (values: readonly number[]): number[] => [...new Set(values)].sort((a, b) => a - b);
const percent = (share: number): string => `${Number((100 * share).toPrecision(2))} %`;
const signed = (value: number): string => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)}`;
