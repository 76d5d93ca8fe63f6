import { decodeHTML } from 'entities';
import { BULLET_MARKER, SECTION_MARKER, SectionMap, sectionOf } from '../kilt-markers.ts';
import { isPythonSpace, joinWords, pythonStrip, splitWords } from '../python-text.ts';
import type { SourceDocument } from '../source-document.ts';
import { type RuleDefinition, type SplitPassage, type SplittingRule, titleAndText } from './splitting-rule.ts';

const WORDS = 100;

export const dpr = { names: ['dpr'], open: () => dprRule } satisfies RuleDefinition;

/**
 * Splits as DPR's `psgs_w100.tsv` does, reconstructed from its authors' description and its rows: every 100 words of title
 * and text are a passage, and words from the beginning fill up the last one. Omits articles of fewer than 100 words and the
 * titles that DrQA omits (disambiguation pages, lists, indexes, outlines). Decodes HTML entities. Omits KILT's headings and
 * list items, which WikiExtractor does not write either. Ids count from 1.
 */
export const dprRule: SplittingRule = {
  ids: 'string',
  firstId: 1,
  tsv: 'dpr',
  columns: titleAndText,
  split(document) {
    if (document.title === null)
      return { ok: false, reason: 'the document has no title, which this rule puts before the text' };
    const title = decodeHTML(document.title).replace(/[\t\r\n]+/g, ' ');
    if (isOmitted(title)) return { ok: true, passages: [] };
    const { text, sections } = articleText(document, title);
    const words = splitWords(text);
    if (words.count < WORDS) return { ok: true, passages: [] };
    const passages: SplitPassage[] = [];
    for (let from = 0; from < words.count; from += WORDS) {
      const to = Math.min(from + WORDS, words.count);
      const missing = WORDS - (to - from);
      const tail = joinWords(words, from, to);
      passages.push({
        title,
        text: missing === 0 ? tail : `${tail} ${joinWords(words, 0, missing)}`,
        section: sections.at(words.starts[from]!),
        ...(missing === 0 ? {} : { filled: missing }),
      });
    }
    return { ok: true, passages };
  },
};

function isOmitted(title: string): boolean {
  const lowerCase = title.toLowerCase();
  return (
    lowerCase.includes('(disambiguation)') ||
    lowerCase.includes('(disambiguation page)') ||
    /^(?:List|Index|Outline) of ./.test(title)
  );
}

/** Title and text. Texts of WikiExtractor 2 and KILT already begin with the title, those of WikiExtractor 3 do not. */
function articleText(document: SourceDocument, title: string): { text: string; sections: SectionMap } {
  const headings: { at: number; name: string }[] = [];
  let body = '';
  for (const piece of document.pieces) {
    if (document.isKilt && piece.startsWith(SECTION_MARKER)) headings.push({ at: body.length, name: sectionOf(piece) });
    else if (!document.isKilt || !piece.startsWith(BULLET_MARKER)) body += decodeHTML(piece);
  }
  const before = beginsWithTitle(body, title) ? '' : `${title}\n`;
  const sections = new SectionMap();
  for (const { at, name } of headings) sections.add(before.length + at, name);
  return { text: before + body, sections };
}

function beginsWithTitle(text: string, title: string): boolean {
  let start = 0;
  while (start < text.length && isPythonSpace(text.charCodeAt(start))) start += 1;
  const lineEnd = text.indexOf('\n', start);
  return lineEnd !== -1 && pythonStrip(text.slice(start, lineEnd)) === pythonStrip(title);
}
