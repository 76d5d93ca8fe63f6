import { SectionMap } from '../kilt-markers.ts';
import { paragraphsOf } from '../paragraphs.ts';
import { joinWords, splitWords, type Words } from '../python-text.ts';
import type { SourceDocument } from '../source-document.ts';
import { type SplittingRule, titleAndText, windows } from './splitting-rule.ts';

export interface WindowOptions {
  /** Passage size in words, sentences or tokens, depending on the rule. */
  readonly size: number;
  /** Words, sentences or tokens that consecutive passages share; less than `size`. */
  readonly overlap: number;
}

/** Splits into passages of `size` words; the last may be shorter. */
export function wordsRule({ size, overlap }: WindowOptions): SplittingRule {
  return {
    ids: 'string',
    firstId: 0,
    tsv: 'dpr',
    columns: titleAndText,
    split(document) {
      const { words, sections } = wordsOf(document);
      const passages = windows(words.count, size, overlap).map(([from, to]) => ({
        title: document.title ?? '',
        text: joinWords(words, from, to),
        section: sections.at(words.starts[from]!),
      }));
      return { ok: true, passages };
    },
  };
}

/** The words of all paragraphs, and the sections by offset in their text. */
export function wordsOf(document: SourceDocument): { words: Words; sections: SectionMap } {
  const sections = new SectionMap();
  let text = '';
  for (const paragraph of paragraphsOf(document)) {
    sections.add(text.length, paragraph.section);
    text += `${paragraph.text}\n`;
  }
  return { words: splitWords(text), sections };
}
