import { pythonStrip } from '../python-text.ts';
import { type RuleDefinition, type SplittingRule, type WindowOptions, windows } from './splitting-rule.ts';

export const flashragWords = {
  names: ['flashrag-words'],
  defaultSize: 512,
  open: flashragWordsRule,
} satisfies RuleDefinition;

/**
 * Splits as FlashRAG's `chunk_doc_corpus.py --chunk_by word` does: at single spaces, as chonkie's word tokeniser, so empty
 * words count and line ends stay; `size` words are a passage. `contents` is title, line end, passage. Ids count from 0.
 */
function flashragWordsRule({ size, overlap }: WindowOptions): SplittingRule {
  return {
    ids: 'integer',
    firstId: 0,
    tsv: null,
    columns: ({ title, text }) => ({ title, contents: `${title}\n${text}` }),
    split({ title, pieces }) {
      if (title === null)
        return {
          ok: false,
          reason: 'the document has no title, neither in a column nor as the first line of "contents"',
        };
      const text = pieces.join('');
      if (pythonStrip(text) === '') return { ok: true, passages: [] };
      const words = text.split(' ');
      const passages = windows(words.length, size, overlap).map(([from, to]) => ({
        title,
        text: words.slice(from, to).join(' '),
        section: null,
      }));
      return { ok: true, passages };
    },
  };
}
