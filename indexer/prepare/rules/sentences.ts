import { paragraphsOf } from '../paragraphs.ts';
import { joinWords, splitWords } from '../python-text.ts';
import {
  overlaps,
  type RuleDefinition,
  type SplittingRule,
  TITLE_AND_TEXT,
  type WindowOptions,
  windows,
} from './splitting-rule.ts';

export const sentences = {
  names: ['sentences'],
  defaultSize: 6,
  overlaps: true,
  open: sentencesRule,
} satisfies RuleDefinition;

/**
 * Splits into passages of `size` sentences. Sentence boundaries come from Node's ICU library and may differ between Node
 * versions. A sentence ends with its paragraph at the latest.
 */
function sentencesRule({ size, overlap }: WindowOptions): SplittingRule {
  const segmenter = new Intl.Segmenter('en', { granularity: 'sentence' });
  return {
    ...TITLE_AND_TEXT,
    split(document) {
      const sentences = paragraphsOf(document).flatMap(({ text, section }) =>
        Array.from(segmenter.segment(text), ({ segment }) => ({ text: onOneLine(segment), section })),
      );
      const textOf = (from: number, to: number): string =>
        sentences
          .slice(from, to)
          .map(({ text }) => text)
          .join(' ');
      const found = windows(sentences.length, size, overlap);
      const shared = overlaps(found);
      const passages = found.map(([from, to], i) => ({
        title: document.title ?? '',
        text: textOf(from, to),
        section: sentences[from]!.section,
        overlap: shared[i] === 0 ? 0 : textOf(from, from + shared[i]!).split(' ').length,
      }));
      return { ok: true, passages };
    },
  };
}

function onOneLine(text: string): string {
  const words = splitWords(text);
  return joinWords(words, 0, words.count);
}
