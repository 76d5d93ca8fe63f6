import { paragraphsOf, SectionMap } from '../paragraphs.ts';
import { joinWords, splitWords, type Words } from '../python-text.ts';
import type { SourceDocument } from '../source-document.ts';
import {
  overlaps,
  type RuleDefinition,
  type SplitPassage,
  type SplittingRule,
  TITLE_AND_TEXT,
  type Window,
  type WindowOptions,
  windows,
} from './splitting-rule.ts';

export const words = { names: ['words'], defaultSize: 100, overlaps: true, open: wordsRule } satisfies RuleDefinition;

/** Splits into passages of `size` words; the last may be shorter. */
function wordsRule({ size, overlap }: WindowOptions): SplittingRule {
  return {
    ...TITLE_AND_TEXT,
    split(document) {
      const { words, sections } = paragraphWords(document);
      return { ok: true, passages: wordPassages(document, words, sections, windows(words.count, size, overlap)) };
    },
  };
}

export function wordPassages(
  { title }: SourceDocument,
  words: Words,
  sections: SectionMap,
  found: readonly Window[],
): SplitPassage[] {
  const shared = overlaps(found);
  return found.map(([from, to], i) => ({
    title: title ?? '',
    text: joinWords(words, from, to),
    section: sections.at(words.starts[from]!),
    overlap: shared[i]!,
  }));
}

/** The words of all paragraphs, and the sections by offset in their text. */
export function paragraphWords(document: SourceDocument): { words: Words; sections: SectionMap } {
  const sections = new SectionMap();
  let text = '';
  for (const paragraph of paragraphsOf(document)) {
    sections.add(text.length, paragraph.section);
    text += `${paragraph.text}\n`;
  }
  return { words: splitWords(text), sections };
}
