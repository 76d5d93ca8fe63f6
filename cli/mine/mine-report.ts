import { formatCount, formatNumberOf, formatTable } from '../../src/base/format.ts';
import type { Bin } from '../../training/mining/histogram.ts';
import type { MiningSummary } from '../../training/mining/mine-negatives.ts';

const BAR_WIDTH = 30;

/** The report of a run as a table for the terminal. */
export function reportText(summary: MiningSummary): string {
  const { out, read, queries, mined, rows, short, negatives, positives, candidates, unmined, dropped } = summary;
  return [
    `${out}: ${formatNumberOf(rows, 'row')} for ${formatCount(mined)} of ${formatCount(queries)} queries, ${formatCount(negatives.found)} of ${formatCount(negatives.wanted)} negatives`,
    ...section('Input', [
      ['queries read', read.read],
      ['left out: excluded questions', read.excluded],
      ['left out: without judgements', read.unjudged],
      ['left out: failed', read.failed],
      ['left out: of another split', read.other_split],
      ['added to an equal query', read.merged],
    ]),
    ...section('Queries without a row', Object.entries(unmined)),
    ...section('Candidates', [
      ['in the range of ranks', candidates.in_window],
      ...Object.entries(dropped).map(([reason, count]) => [`dropped: ${reason}`, count] as const),
      ['left', candidates.left],
    ]),
    ...section('To look at', [
      ['queries with fewer negatives than wanted', short],
      ['queries cut at the token limit', summary.cut_queries],
      ['positives that the index does not have', positives.not_found],
      ['positives without a golden answer', positives.without_answer],
      ['answers that a match cannot decide', summary.undecidable_answers],
    ]),
    ...histogram('Ranks of the negatives', summary.ranks, ({ from, to }) =>
      from === to ? `${from}` : `${from}–${to}`,
    ),
    ...histogram('Scores of the negatives', summary.negative_scores, scoreLabel),
    ...histogram('Scores of the positives', summary.positive_scores, scoreLabel),
    `Examples: ${out}.report.json`,
  ].join('\n');
}

/** Lines with a count that is not 0, under a heading; nothing if all are 0. */
function section(heading: string, lines: readonly (readonly [string, number])[]): string[] {
  const shown = lines.filter(([, count]) => count > 0);
  if (shown.length === 0) return [];
  return [heading, ...formatTable(shown.map(([name, count]) => [`  ${name}`, formatCount(count)]))];
}

function histogram(heading: string, bins: readonly Bin[], label: (bin: Bin) => string): string[] {
  if (bins.length === 0) return [];
  const most = Math.max(...bins.map(({ count }) => count));
  const width = Math.max(...bins.map((bin) => label(bin).length));
  const digits = formatCount(most).length;
  return [
    heading,
    ...bins.map((bin) => {
      const bar = '█'.repeat(Math.round((BAR_WIDTH * bin.count) / most));
      return `  ${label(bin).padStart(width)}  ${formatCount(bin.count).padStart(digits)}  ${bar}`.trimEnd();
    }),
  ];
}

function scoreLabel({ from, to }: Bin): string {
  return from === to ? from.toPrecision(4) : `${from.toPrecision(4)} to ${to.toPrecision(4)}`;
}
