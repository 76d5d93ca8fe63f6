import { CORPUS_FORMATS } from '../corpus/corpus-format.ts';
import type { CorpusOptions } from '../corpus/open-corpus.ts';
import { DEFAULT_PASSAGE_TEMPLATE } from '../corpus/passage-template.ts';
import { TSV_ID_TYPES } from '../corpus/read-tsv.ts';
import { TSV_LAYOUTS } from '../corpus/tsv-layout.ts';
import type { OptionTable, OptionValues } from '../src/options/option-spec.ts';

/** How a corpus is read, and which text of a passage is embedded. */
export const CORPUS_OPTIONS = {
  'passage-template': {
    kind: 'string',
    value: 'TEMPLATE',
    default: DEFAULT_PASSAGE_TEMPLATE,
    help: 'The text to embed, from the columns of a row: \'{title} {text}\'. {contents} is the column contents, or "title", newline, text where there is none.',
  },
  format: { kind: 'choice', choices: CORPUS_FORMATS, help: 'Kind of the files, where their names do not tell.' },
  'tsv-layout': {
    kind: 'choice',
    choices: TSV_LAYOUTS,
    default: 'auto',
    help: 'Order of the columns of TSV files: by header, DPR (id, text, title) or R1-Searcher (id, contents).',
  },
  'tsv-id-type': {
    kind: 'choice',
    choices: TSV_ID_TYPES,
    default: 'auto',
    help: 'Type of the ids of TSV files in replies. auto: integers for R1-Searcher files, strings for others.',
  },
  'skip-bad-lines': {
    kind: 'flag',
    help: 'Leave out lines that cannot be used, and count them, instead of stopping at the first.',
  },
  'unique-ids': {
    kind: 'flag',
    help: 'Stop when two passages have the same id. Without it they are counted and reported.',
  },
} as const satisfies OptionTable;

export function corpusOptions(options: OptionValues<typeof CORPUS_OPTIONS>): CorpusOptions {
  return {
    format: options.format,
    tsvLayout: options['tsv-layout'],
    tsvIdType: options['tsv-id-type'],
    skipBadLines: options['skip-bad-lines'],
  };
}
