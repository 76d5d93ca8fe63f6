import { decodeHTML } from 'entities';
import { BULLET_MARKER, SECTION_MARKER, SectionMap, sectionOf } from '../paragraphs.ts';
import { isPythonSpace, joinWords, pythonStrip, splitWords } from '../python-text.ts';
import type { SourceDocument } from '../source-document.ts';
import { type RuleDefinition, type SplitPassage, type SplittingRule, TITLE_AND_TEXT } from './splitting-rule.ts';

const WORDS = 100;

export const dpr = { names: ['dpr'], open: () => dprRule } satisfies RuleDefinition;
export const wiki18 = { names: ['wiki-18'], open: () => wiki18Rule } satisfies RuleDefinition;

/**
 * Splits as DPR's `psgs_w100.tsv` does, reconstructed from its authors' description and its rows: every 100 words of title
 * and text are a passage, and words from the beginning fill up the last one. Omits articles of fewer than 100 words and the
 * titles that DrQA omits (disambiguation pages, lists, indexes, outlines). Decodes HTML entities. Omits KILT's headings and
 * list items, which WikiExtractor does not write either. Ids count from 1.
 */
const dprRule: SplittingRule = {
  ...TITLE_AND_TEXT,
  firstId: 1,
  split(document) {
    if (document.title === null) {
      return { ok: false, reason: 'the document has no title, which this rule puts before the text' };
    }
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
        filled: missing,
      });
    }
    return { ok: true, passages };
  },
};

/**
 * Splits as `dpr`, with rows as in `wiki-18.jsonl`, which keeps part of the CSV quoting of `psgs_w100.tsv`: quotes in the
 * text are doubled, and a title with a space or a non-ASCII character is quoted. Ids count from 0.
 */
const wiki18Rule: SplittingRule = {
  ...dprRule,
  firstId: 0,
  tsv: null,
  columns: ({ title, text }) => ({ contents: `${titleField(title)}\n${text.replaceAll('"', '""')}` }),
};

function titleField(title: string): string {
  return /^[!#-~]*$/.test(title) ? title : `"${title.replaceAll('"', '""')}"`;
}

function isOmitted(title: string): boolean {
  const lowerCase = title.toLowerCase();
  return (
    lowerCase.includes('(disambiguation)') ||
    lowerCase.includes('(disambiguation page)') ||
    /^(?:List|Index|Outline) of ./.test(title)
  );
}

/** Title and text. Texts from WikiExtractor 2 and KILT already begin with the title, texts from WikiExtractor 3 do not. */
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
