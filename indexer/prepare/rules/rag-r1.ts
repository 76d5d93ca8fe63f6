import { BULLET_MARKER, SECTION_MARKER, SectionMap, sectionOf } from '../paragraphs.ts';
import { joinWords, splitWords } from '../python-text.ts';
import type { RuleDefinition, SplittingRule } from './splitting-rule.ts';

const WORDS = 100;

/** R1-Searcher uses RAG-R1's program. */
export const ragR1 = { names: ['rag-r1', 'r1-searcher'], open: () => rule } satisfies RuleDefinition;

/**
 * Splits as `split_kilt_to_100.py` of RAG-R1 and R1-Searcher does: joins the paragraphs, deletes KILT's markers and makes
 * every 100 words a passage; the last may be shorter. `contents` is `<title><3 spaces><words>`. Ids are integers from 0.
 */
const rule: SplittingRule = {
  ids: 'integer',
  firstId: 0,
  tsv: 'r1-searcher',
  columns: ({ title, text }) => ({ contents: `${title}   ${text}` }),
  split({ title, pieces }) {
    if (title === null)
      return { ok: false, reason: 'the document has no title, which this rule puts before every passage' };
    const { text, sections } = withoutMarkers(pieces.join(''));
    const words = splitWords(text);
    const passages = [];
    for (let from = 0; from < words.count; from += WORDS) {
      const to = Math.min(from + WORDS, words.count);
      passages.push({ title, text: joinWords(words, from, to), section: sections.at(words.starts[from]!) });
    }
    return { ok: true, passages };
  },
};

function withoutMarkers(joined: string): { text: string; sections: SectionMap } {
  const sections = new SectionMap();
  if (!joined.includes('::::')) return { text: joined, sections };
  const withoutBullets = joined.replaceAll(BULLET_MARKER, '');
  let removed = 0;
  for (let at = withoutBullets.indexOf(SECTION_MARKER); at !== -1; ) {
    if (at === 0 || withoutBullets[at - 1] === '\n') {
      const lineEnd = withoutBullets.indexOf('\n', at);
      sections.add(at - removed, sectionOf(withoutBullets.slice(at, lineEnd === -1 ? undefined : lineEnd)));
    }
    removed += SECTION_MARKER.length;
    at = withoutBullets.indexOf(SECTION_MARKER, at + SECTION_MARKER.length);
  }
  return { text: withoutBullets.replaceAll(SECTION_MARKER, ''), sections };
}
