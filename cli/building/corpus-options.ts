import { CORPUS_FORMATS } from '../../corpus/corpus-formats.ts';
import type { CorpusOptions } from '../../corpus/open-corpus.ts';
import { DEFAULT_PASSAGE_TEMPLATE } from '../../corpus/passage-template.ts';
import { TSV_ID_TYPES, TSV_LAYOUTS } from '../../corpus/tsv-layout.ts';
import type { OptionTable, OptionValues } from '../../src/base/options/option-spec.ts';

/** Options for reading a corpus and for the text to embed. */
export const CORPUS_OPTIONS = {
  'passage-template': {
    type: 'string',
    value: 'TEMPLATE',
    default: DEFAULT_PASSAGE_TEMPLATE,
    help: "The text to embed, composed from the columns of a row: '{title} {text}'. {contents} is the column contents or, if there is none, the title in quotes, a newline and the text.",
  },
  format: { type: 'choice', choices: CORPUS_FORMATS, help: 'Format of all files. Default: by their names.' },
  'tsv-layout': {
    type: 'choice',
    choices: TSV_LAYOUTS,
    default: 'auto',
    help: 'Columns of TSV files: named by a header, DPR (id, text, title) or R1-Searcher (id, contents).',
  },
  'tsv-id-type': {
    type: 'choice',
    choices: TSV_ID_TYPES,
    default: 'auto',
    help: 'Type of TSV ids in replies. auto: integers for R1-Searcher files, strings for others.',
  },
  'skip-bad-lines': {
    type: 'flag',
    help: 'Skip and count bad lines instead of stopping at the first.',
  },
  'unique-ids': {
    type: 'flag',
    help: 'Stop if two passages have the same id. Without it, such passages are counted and reported.',
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
