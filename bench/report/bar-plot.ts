import { scaleLinear } from 'd3-scale';
import { element, joined, type Markup, textElement } from './markup.ts';
import { responsivePlot } from './plot-frame.ts';

interface Bar {
  readonly label: string;
  /** Written at the end of the bar. */
  readonly value: string;
  /** Lengths of the parts, from left to right. */
  readonly parts: readonly number[];
}

export interface BarGroup {
  /** Empty: without a heading. */
  readonly heading: string;
  readonly bars: readonly Bar[];
}

const ROW = 26;
const BAR = 17;
const HEADING = 30;
const HEADING_LINE = 20;
const CHARACTER_WIDTH = 7.2;
/** Headings are bold. */
const HEADING_CHARACTER_WIDTH = 8;

/** Horizontal bars, each of one or several parts. */
export function barPlot(
  title: string,
  groups: readonly BarGroup[],
  { format, partNames = [] }: { format(value: number): string; partNames?: readonly string[] },
): Markup {
  const bars = groups.flatMap((group) => group.bars);
  if (bars.length === 0) return '' as Markup;
  const total = (bar: Bar): number => bar.parts.reduce((sum, part) => sum + part, 0);
  const largest = Math.max(...bars.map(total));
  const longest = (texts: readonly string[]): number => Math.max(...texts.map((text) => text.length)) * CHARACTER_WIDTH;
  const plot = responsivePlot(title, (width) => {
    const narrow = width < 500;
    // On a phone the label stands above its bar.
    const row = narrow ? ROW + 16 : ROW;
    const left = narrow ? 2 : Math.min(260, longest(bars.map(({ label }) => label)) + 16);
    const scale = scaleLinear([0, largest], [left, width - longest(bars.map(({ value }) => value)) - 14]);
    const drawn: Markup[] = [];
    let y = 4;
    for (const { heading, bars: own } of groups) {
      if (heading !== '') {
        for (const line of linesOf(heading, width)) {
          drawn.push(textElement('text', line, { class: 'heading', x: 2, y: y + 18 }));
          y += HEADING_LINE;
        }
        y += HEADING - HEADING_LINE;
      }
      for (const bar of own) {
        const top = narrow ? y + 16 : y;
        drawn.push(
          narrow
            ? textElement('text', bar.label, { class: 'tick', x: left, y: y + 11 })
            : textElement('text', bar.label, { class: 'tick', x: left - 8, y: y + 13, 'text-anchor': 'end' }),
        );
        let from = 0;
        bar.parts.forEach((part, i) => {
          if (part > 0) {
            const hint = partNames[i] === undefined ? bar.value : `${partNames[i]}: ${format(part)}`;
            const box = { x: scale(from), y: top, width: Math.max(0.5, scale(from + part) - scale(from)), height: BAR };
            drawn.push(element('g', { class: `part${i}` }, element('rect', box), textElement('title', hint)));
          }
          from += part;
        });
        drawn.push(textElement('text', bar.value, { class: 'value', x: scale(from) + 6, y: top + 13 }));
        y += row;
      }
    }
    return { content: joined(drawn), height: y + 6 };
  });
  return joined([plot, partLegend(partNames)]);
}

/** A text in lines that fit into a width; a longer word has a line of its own. */
function linesOf(text: string, width: number): string[] {
  const most = Math.floor(width / HEADING_CHARACTER_WIDTH);
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= most) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

function partLegend(names: readonly string[]): Markup {
  if (names.length === 0) return '' as Markup;
  const items = names.map((name, i) =>
    element(
      'li',
      {},
      element(
        'svg',
        { viewBox: '0 0 16 16', class: `part${i}`, 'aria-hidden': 'true' },
        element('rect', { x: 2, y: 2, width: 12, height: 12 }),
      ),
      { text: name },
    ),
  );
  return element('ul', { class: 'legend' }, ...items);
}
