import { htmlPage, htmlTable } from '../../../evaluation/report/html-page.ts';
import { escapeHtml } from '../../../src/base/escape-html.ts';
import { formatCount, formatPart, formatPercent } from '../../../src/base/format.ts';
import type { TrajectoryReport } from './trajectory-report.ts';
import type { GroupReport, TurnReport } from './trajectory-tally.ts';

/** The report as one page that loads nothing: its style is in it, and it needs no script. */
export function reportHtml(report: TrajectoryReport, title: string): string {
  const { all, types, unknownQuestions } = report;
  const missing =
    unknownQuestions === null || unknownQuestions === 0
      ? ''
      : `<p class="note">${unknownQuestions} trajectories have a question that is not in the questions file.</p>`;
  return htmlPage(
    title,
    `${facts(all)}
${missing}
${groupSections(all)}
${types.length === 0 ? '' : typesSection(types)}`,
  );
}

function facts(group: GroupReport): string {
  const shown: readonly (readonly [string, string])[] = [
    ['trajectories', formatCount(group.trajectories)],
    ['queries', formatCount(group.queries)],
    ['turns on average', group.meanTurns.toFixed(2)],
    ['without search', formatCount(group.withoutSearch)],
    ['correct answers', formatPercent(group.correct)],
    ['gold passages known', formatCount(group.judged)],
    ['answers known', formatCount(group.answerable)],
  ];
  return `<dl class="facts">${shown.map(([name, value]) => `<div><dt>${name}</dt><dd>${value}</dd></div>`).join('')}</dl>`;
}

function groupSections({ turns }: GroupReport): string {
  if (turns.length === 0) return '<p class="note">No trajectory has a search.</p>';
  return `<section>
<h2>Gold reached by turn</h2>
<p>Of all trajectories with known gold passages or answers, the share that has reached them up to and with a turn.</p>
${htmlTable(
  ['turn', 'trajectories searching', 'any gold passage', 'all gold passages', 'gold recall', 'answer shown'],
  turns.map((turn) => [
    String(turn.turn),
    formatCount(turn.trajectories),
    ...[turn.goldAny, turn.goldAll, turn.goldRecall, turn.answer].map(shareBar),
  ]),
)}
</section>
<section>
<h2>Searches that brought little</h2>
<p>Repeated: an earlier query of the trajectory was the same. Nothing new: every passage had been shown before.
Truncated: the token limit cut off a part of the text.</p>
${htmlTable(
  ['turn', 'queries', 'repeated', 'nothing new', 'passages shown again', 'truncated'],
  turns.map((turn) => [String(turn.turn), formatCount(turn.queries), ...wasteBars(turn)]),
)}
</section>`;
}

function typesSection(types: readonly GroupReport[]): string {
  return `<section>
<h2>By question type</h2>
${htmlTable(
  [
    'type',
    'trajectories',
    'turns',
    'any gold',
    'all gold',
    'answer shown',
    'correct',
    'repeated',
    'nothing new',
    'shown again',
  ],
  types.map((group) => [
    escapeHtml(group.type ?? ''),
    formatCount(group.trajectories),
    group.meanTurns.toFixed(2),
    ...[group.goldAny, group.goldAll, group.answer, group.correct].map(shareBar),
    wasteBar(group.repeated, group.queries),
    wasteBar(group.unchanged, group.queries),
    wasteBar(group.shownBefore, group.shown),
  ]),
)}
</section>`;
}

function wasteBars({ queries, repeated, unchanged, shown, shownBefore, truncated }: TurnReport): string[] {
  return [
    wasteBar(repeated, queries),
    wasteBar(unchanged, queries),
    wasteBar(shownBefore, shown),
    wasteBar(truncated, queries),
  ];
}

function shareBar(share: number | null): string {
  return bar(formatPercent(share), share, 'reached');
}

function wasteBar(part: number | null, whole: number): string {
  return bar(formatPart(part, whole), part === null || whole === 0 ? null : part / whole, 'waste');
}

function bar(text: string, share: number | null, name: string): string {
  if (share === null) return text;
  return `<span class="value">${text}</span><span class="bar ${name}"><i style="width:${(100 * share).toFixed(1)}%"></i></span>`;
}
