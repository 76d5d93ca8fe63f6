import { htmlPage, htmlTable } from '../../../evaluation/report/html-page.ts';
import { escapeHtml } from '../../../src/base/escape-html.ts';
import { formatCount, formatPart, formatPercent } from '../../../src/base/format.ts';
import type { GroupReport, TrajectoryReport } from './trajectory-report.ts';

/** The report as one page that loads nothing: its style is in it, and it needs no script. */
export function reportHtml({ all, types, unknownQuestions }: TrajectoryReport, title: string): string {
  const missing =
    unknownQuestions === null || unknownQuestions === 0
      ? ''
      : `<p class="note">${unknownQuestions} trajectories have a question that is not in the questions file.</p>`;
  const sections = [facts(all), missing, groupSections(all), types.length === 0 ? '' : typesSection(types)];
  return htmlPage(title, sections.join('\n'));
}

function facts(group: GroupReport): string {
  const shown = {
    trajectories: formatCount(group.trajectories),
    queries: formatCount(group.queries),
    'turns on average': group.meanTurns.toFixed(2),
    'without search': formatCount(group.withoutSearch),
    'correct answers': formatPercent(group.correct),
    'gold passages known': formatCount(group.judged),
    'answers known': formatCount(group.answerable),
  };
  const entries = Object.entries(shown).map(([name, value]) => `<div><dt>${name}</dt><dd>${value}</dd></div>`);
  return `<dl class="facts">${entries.join('')}</dl>`;
}

function groupSections({ turns }: GroupReport): string {
  if (turns.length === 0) return '<p class="note">No trajectory has a search.</p>';
  return `<section>
<h2>Gold reached by turn</h2>
<p>Of all trajectories with known gold passages or answers, the share that has reached them up to and with a turn.</p>
${htmlTable(
  ['turn', 'trajectories searching', 'any gold passage', 'all gold passages', 'gold recall', 'answer shown'],
  turns.map(({ turn, trajectories, goldAny, goldAll, goldRecall, answer }) => [
    String(turn),
    formatCount(trajectories),
    ...[goldAny, goldAll, goldRecall, answer].map(shareBar),
  ]),
)}
</section>
<section>
<h2>Searches that brought little</h2>
<p>Repeated: an earlier query of the trajectory was the same. Nothing new: every passage had been shown before.
Truncated: the token limit cut off a part of the text.</p>
${htmlTable(
  ['turn', 'queries', 'repeated', 'nothing new', 'passages shown again', 'truncated'],
  turns.map(({ turn, queries, repeated, unchanged, shown, shownBefore, truncated }) => [
    String(turn),
    formatCount(queries),
    wasteBar(repeated, queries),
    wasteBar(unchanged, queries),
    wasteBar(shownBefore, shown),
    wasteBar(truncated, queries),
  ]),
)}
</section>`;
}

function typesSection(types: readonly GroupReport[]): string {
  const head =
    'type, trajectories, turns, any gold, all gold, answer shown, correct, repeated, nothing new, shown again';
  const rows = types.map((group) => [
    escapeHtml(group.type ?? ''),
    formatCount(group.trajectories),
    group.meanTurns.toFixed(2),
    ...[group.goldAny, group.goldAll, group.answer, group.correct].map(shareBar),
    wasteBar(group.repeated, group.queries),
    wasteBar(group.unchanged, group.queries),
    wasteBar(group.shownBefore, group.shown),
  ]);
  return `<section>
<h2>By question type</h2>
${htmlTable(head.split(', '), rows)}
</section>`;
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
