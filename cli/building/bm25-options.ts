import { bm25Settings } from '../../indexer/lexical/make-lexical.ts';
import type { OptionTable, OptionValues } from '../../src/base/options/option-spec.ts';
import { DEFAULT_BM25 } from '../../src/engine/lexical/bm25.ts';
import {
  ANALYSERS,
  type Bm25Settings,
  type LexicalField,
  SNOWBALL_ANALYSERS,
} from '../../src/engine/lexical/lexical-settings.ts';
import { refuseOptions } from '../options/checks.ts';
import { numberFrom } from '../options/numbers.ts';
import * as option from '../options/option.ts';

const FIELD_CHOICES = ['contents', 'title,text'] as const;

/** Options of the commands that build inverted indexes. */
export const BM25_OPTIONS = {
  bm25: option.flag(
    "Build inverted indexes of the passages' words, for --mode bm25. Their size is about a fifth of the texts.",
  ),
  analyser: option.choice(
    { choices: ANALYSERS, value: 'NAME', default: 'english' },
    `With --bm25: how texts are split into terms. english and anserini: Lucene's EnglishAnalyzer, Pyserini's default; standard: Elasticsearch's default; whitespace; cjk: bigrams for Chinese, Japanese and Korean. A language takes its Snowball stemmer, which is not Lucene's analyser of that language: ${SNOWBALL_ANALYSERS.join(', ')}.`,
  ),
  'bm25-fields': option.choice(
    { choices: FIELD_CHOICES, default: 'contents' },
    "With --bm25: what is indexed. contents: title and text as one field, as in Search-R1 and Pyserini; title,text: two fields, each with its own statistics, of which the best one ranks a passage, as Elasticsearch's multi_match does.",
  ),
  k1: option.text(
    { value: 'NUMBER', default: String(DEFAULT_BM25.k1) },
    "With --bm25: default k1 of searches, 0 or larger. A smaller k1 counts repeated terms less. 0.9 is the default of Anserini and Pyserini; Lucene's own is 1.2.",
  ),
  b: option.text(
    { value: 'NUMBER', default: String(DEFAULT_BM25.b) },
    "With --bm25: default b of searches, from 0 to 1. A larger b prefers short passages more. 0.4 is the default of Anserini and Pyserini; Lucene's own is 0.75.",
  ),
} as const satisfies OptionTable;

/** The same options for an index that may have inverted indexes: what is not given stays as it is. */
export const CHANGED_BM25_OPTIONS = {
  bm25: option.flag(
    "Build inverted indexes of the passages' words, for --mode bm25, or replace those with other settings. With the settings that the index has, missing and damaged ones are made again.",
  ),
  analyser: keptByDefault(BM25_OPTIONS.analyser),
  'bm25-fields': keptByDefault(BM25_OPTIONS['bm25-fields']),
  k1: keptByDefault(BM25_OPTIONS.k1),
  b: keptByDefault(BM25_OPTIONS.b),
} as const satisfies OptionTable;

function keptByDefault<T extends { readonly help: string; readonly default: string }>(option: T): Omit<T, 'default'> {
  const { default: value, ...rest } = option;
  return { ...rest, help: `${option.help} Default: the index's, or ${value} if it has no inverted indexes.` };
}

/**
 * Returns the settings of the inverted indexes; undefined without --bm25.
 *
 * @param current settings of the index, which options that are not given keep. Default: the options' defaults.
 * @throws TrawlError USAGE if a value is out of range or an option has no effect.
 */
export function givenBm25(
  options: OptionValues<typeof BM25_OPTIONS> | OptionValues<typeof CHANGED_BM25_OPTIONS>,
  given: ReadonlySet<string>,
  current?: Bm25Settings,
): Bm25Settings | undefined {
  if (!options.bm25) {
    refuseOptions(given, ['analyser', 'bm25-fields', 'k1', 'b'], 'without --bm25');
    return undefined;
  }
  const wanted = {
    analyser: options.analyser ?? BM25_OPTIONS.analyser.default,
    k1: numberFrom('k1', options.k1 ?? BM25_OPTIONS.k1.default, { max: 1_000_000 }),
    b: numberFrom('b', options.b ?? BM25_OPTIONS.b.default, { max: 1 }),
    fields: (options['bm25-fields'] ?? BM25_OPTIONS['bm25-fields'].default).split(',') as LexicalField[],
  };
  if (current === undefined) return bm25Settings(wanted);
  return bm25Settings({
    analyser: given.has('analyser') ? wanted.analyser : current.analyser,
    k1: given.has('k1') ? wanted.k1 : current.k1,
    b: given.has('b') ? wanted.b : current.b,
    fields: given.has('bm25-fields') ? wanted.fields : current.fields,
  });
}
