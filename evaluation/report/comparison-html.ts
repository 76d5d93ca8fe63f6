import { escapeHtml } from '../../src/base/escape-html.ts';
import { formatChange, formatCount, formatDuration, formatNumberOf } from '../../src/base/format.ts';
import type { ServerReport } from '../systems/ask-server.ts';
import type { ChangedQuestion, Comparison, ComparisonReport, ShownPassage } from '../systems/comparison.ts';
import { htmlPage, htmlTable } from './html-page.ts';

const STYLE = `
.systems td { text-align: left; white-space: normal; }
.systems th { text-align: left; }
section > h2:not(:first-child) { margin-top: 1.5rem; }
.notes { margin: 1rem 0 0; padding-left: 1.2rem; color: var(--muted); }
.better { color: var(--reached); }
.worse { color: var(--waste); }
.question { margin-top: 1.25rem; padding: 1rem; background: var(--surface); border: 1px solid var(--line); border-radius: 8px; }
.question h3 { margin: 0 0 0.25rem; font-size: 1rem; overflow-wrap: anywhere; }
.question p { overflow-wrap: anywhere; margin-bottom: 0.25rem; }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; margin-top: 0.75rem; }
.sides h4 { margin: 0 0 0.4rem; font-size: 0.9rem; overflow-wrap: anywhere; }
.sides ol { margin: 0; padding-left: 1.6rem; }
.sides li { margin-bottom: 0.5rem; overflow-wrap: anywhere; font-size: 0.9rem; }
.sides li span { color: var(--muted); }
.relevant { border-left: 3px solid var(--reached); padding-left: 0.5rem; }
@media (max-width: 44rem) { .sides { grid-template-columns: 1fr; } }
@media print { .question { border: none; border-top: 1px solid var(--line); border-radius: 0; padding: 0.75rem 0 0; } .question p, .sides h4 { break-after: avoid; } }
`;

/** The report of `trawl eval --compare` as one page that loads nothing. `counts`: how many questions there are, for people. */
export function comparisonHtml(report: ComparisonReport, counts: string): string {
  const { systems, comparisons } = report;
  const names = systems.map(({ name }) => escapeHtml(name));
  const partial = answeredLine(report);
  const body = `<p>${escapeHtml(counts)}${partial === undefined ? '' : `. ${escapeHtml(partial)}`}</p>
<section class="systems">
<h2>Systems</h2>
${htmlTable(
  ['', 'what it is', 'questions whose search failed', 'latency and throughput'],
  systems.map(({ name, what, failed, server }) => [
    escapeHtml(name),
    escapeHtml(what),
    formatCount(failed),
    server === undefined ? '–' : escapeHtml(latencyLine(server)),
  ]),
)}
${notes(systems.flatMap((system) => system.notes))}
</section>
<section>
<h2>Metrics</h2>
<p>Means over the questions that have what a metric needs. Larger is better.</p>
${htmlTable(
  ['', ...names],
  meanRows(report).map((cells) => cells.map(escapeHtml)),
)}
</section>
${comparisons.map(section).join('\n')}`;
  return htmlPage(`Evaluation: ${systems.map(({ name }) => name).join(', ')}`, body, STYLE);
}

function notes(all: readonly string[]): string {
  return all.length === 0 ? '' : `<ul class="notes">${all.map((note) => `<li>${escapeHtml(note)}</li>`).join('')}</ul>`;
}

function section({ first, second, metrics, changed }: Comparison): string {
  const { head, rows } = differenceRows({ metrics });
  const lines = rows.map(({ metric, cells: [name, difference, ...others] }) => [
    escapeHtml(name),
    `<span class="${tone(metric.difference, metric.p)}">${difference}</span>`,
    ...others.map(escapeHtml),
  ]);
  return `<section>
<h2>${escapeHtml(second)} against ${escapeHtml(first)}</h2>
<p>Difference of the means with its 95 % interval (paired bootstrap), and p, the probability of a difference at least as large
if the results of each question had been given to the two systems by chance (paired randomisation test). p is not corrected for the number
of metrics.</p>
${htmlTable(head, lines)}
${changed === null ? '' : changes(first, second, changed)}
</section>`;
}

function tone(difference: number, p: number): string {
  if (p >= 0.05) return '';
  return difference > 0 ? 'better' : 'worse';
}

function changes(first: string, second: string, changed: NonNullable<Comparison['changed']>): string {
  const { metric, queries, better, worse, most } = changed;
  return `<h2>Questions that changed</h2>
<p>By ${escapeHtml(metric)}: ${formatCount(better)} better, ${formatCount(worse)} worse, ${formatCount(queries - better - worse)} unchanged.${
    most.length < better + worse ? ` The ${formatCount(most.length)} that changed most follow.` : ''
  } Relevant passages are marked.</p>
${most.map((question) => article(question, first, second, metric)).join('\n')}`;
}

function article(question: ChangedQuestion, first: string, second: string, metric: string): string {
  const { goldIds, goldTitles, goldenAnswers } = question;
  const gold = goldTitles.length > 0 ? goldTitles : goldIds;
  return `<article class="question">
<h3>${escapeHtml(question.question)}</h3>
<p>${escapeHtml(question.id)}${question.query === null ? '' : ` · query: ${escapeHtml(question.query)}`}${
    gold.length === 0 ? '' : ` · relevant: ${escapeHtml(gold.join(', '))}`
  }${goldenAnswers.length === 0 ? '' : ` · answers: ${escapeHtml(goldenAnswers.join(', '))}`}</p>
<div class="sides">
${side(first, metric, question.first)}
${side(second, metric, question.second)}
</div>
</article>`;
}

function side(name: string, metric: string, { value, passages }: ChangedQuestion['first']): string {
  return `<div><h4>${escapeHtml(name)} · ${escapeHtml(metric)} ${value.toFixed(4)}</h4>${passages.length === 0 ? '<p>No passages.</p>' : `<ol>${passages.map(item).join('')}</ol>`}</div>`;
}

function item({ id, title, relevant, text }: ShownPassage): string {
  const mark = relevant ? ' class="relevant"' : '';
  const name = title === null ? escapeHtml(id) : `${escapeHtml(title)} <span>${escapeHtml(id)}</span>`;
  return `<li${mark}><strong>${name}</strong>${relevant ? ' <span>(relevant)</span>' : ''}${text ? `<br>${escapeHtml(text)}` : ''}</li>`;
}

/** Says which questions the metrics cover, if a system failed to answer some; undefined if none failed. */
export function answeredLine({ asked, answered }: ComparisonReport): string | undefined {
  if (answered === asked) return undefined;
  return `All metrics are of the ${formatCount(answered)} of ${formatNumberOf(asked, 'question')} that every system answered.`;
}

export function latencyLine({ latencyMs, questionsPerSecond }: ServerReport): string {
  if (latencyMs === null) return 'no request was answered';
  const { p50, p95, p99 } = latencyMs;
  return `latency p50 ${formatDuration(p50)}, p95 ${formatDuration(p95)}, p99 ${formatDuration(p99)}; ${questionsPerSecond.toFixed(1)} questions/s`;
}

/** The metrics of all systems: for each metric a row with its name and the means, in the order of the first system that has it. */
export function meanRows({ systems }: ComparisonReport): string[][] {
  const names = [...new Set(systems.flatMap(({ metrics }) => Object.keys(metrics)))];
  return names.map((name) => [name, ...systems.map(({ metrics }) => metrics[name]?.toFixed(4) ?? '–')]);
}

/** The differences of two systems: one row per metric. The first cell of the head is empty, of a row the metric's name. */
export function differenceRows({ metrics }: Pick<Comparison, 'metrics'>) {
  const hasTrajectories = Object.values(metrics).some(({ questions }) => questions !== undefined);
  const rows = Object.entries(metrics).map(([name, metric]) => {
    const { difference, interval, p, better, worse, queries, questions = queries } = metric;
    const cells: readonly [name: string, difference: string, ...others: string[]] = [
      name,
      formatChange(difference),
      interval === null ? '–' : `${formatChange(interval.low)} … ${formatChange(interval.high)}`,
      p < 0.001 ? '< 0.001' : p.toFixed(3),
      ...[better, worse, ...(hasTrajectories ? [queries, questions] : [queries])].map(formatCount),
    ];
    return { metric, cells };
  });
  const counted = hasTrajectories ? ['trajectories', 'questions'] : ['questions'];
  return { head: ['', 'difference', '95 % interval', 'p', 'better', 'worse', ...counted], rows };
}
