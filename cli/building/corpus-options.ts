import { CORPUS_FORMATS } from '../../corpus/corpus-formats.ts';
import type { CorpusOptions } from '../../corpus/open-corpus.ts';
import { DEFAULT_PASSAGE_TEMPLATE } from '../../corpus/passage-template.ts';
import { TSV_ID_TYPES, TSV_LAYOUTS } from '../../corpus/tsv-layout.ts';
import { defined } from '../../src/base/objects.ts';
import type { OptionTable, OptionValues } from '../../src/base/options/option-spec.ts';
import * as option from '../options/option.ts';

const USUAL_NAME = 'Default: the one with a usual name, in any case:';

/** Options for reading a corpus and for the text to embed. */
export const CORPUS_OPTIONS = {
  'passage-template': option.text(
    { value: 'TEMPLATE', default: DEFAULT_PASSAGE_TEMPLATE },
    "The text to embed, composed from the columns of a row: '{title} {text}'. {contents} is the column contents or, if there is none, the title in quotes, a newline and the text.",
  ),
  format: option.choice(CORPUS_FORMATS, 'Format of all files. Default: by their names.'),
  'id-column': option.text(
    'NAME',
    `The column with the id of a passage. ${USUAL_NAME} id, _id, docid, pid and others.`,
  ),
  'text-column': option.text('NAME', `The column with the text. ${USUAL_NAME} text, contents, content, passage, body.`),
  'title-column': option.text('NAME', `The column with the title. ${USUAL_NAME} title.`),
  'tsv-layout': option.text(
    { value: `${TSV_LAYOUTS.join('|')}|NAMES`, default: 'auto' },
    'Columns of TSV files: named by a header, R1-Searcher (id, contents verbatim), or for a file without a header their names in its order, such as id,title,text.',
  ),
  'tsv-id-type': option.choice(
    { choices: TSV_ID_TYPES, default: 'auto' },
    'Type of TSV ids in replies. auto: integers for R1-Searcher files, strings for others.',
  ),
  'skip-bad-lines': option.flag(
    "Skip and count bad lines, and passages that the encoder's endpoint refuses, instead of stopping at the first.",
  ),
  'unique-ids': option.flag(
    'Stop if two passages have the same id. Without it, such passages are counted and reported.',
  ),
} as const satisfies OptionTable;

export function corpusOptions(options: OptionValues<typeof CORPUS_OPTIONS>): CorpusOptions {
  return {
    format: options.format,
    columns: defined({
      id: options['id-column'],
      text: options['text-column'],
      title: options['title-column'],
    }),
    tsvLayout: options['tsv-layout'],
    tsvIdType: options['tsv-id-type'],
    skipBadLines: options['skip-bad-lines'],
  };
}

/** The option of the commands that make columns for filters; `parseColumns` reads it. */
export const COLUMN_OPTIONS = {
  column: option.list(
    'NAME:TYPE',
    'A column of the corpus that searches can filter by (--filter): its key in the rows (meta.date for nested keys) and its type: string, number, boolean or date (2020-01-31 or 2020-01-31T12:30:00Z). A row may have no value, or an array of values; a value of another type is an error. Repeat it for several columns.',
  ),
} as const satisfies OptionTable;
