import type { OptionTable, OptionValues } from '../../src/options/option-spec.ts';
import { QUERY_FORM_OPTION, QUERY_TEMPLATE_OPTION } from '../query-form.ts';
import { RANKING_OPTIONS } from '../ranking-options.ts';
import { RERANK_OPTIONS } from '../rerank-options.ts';
import { RETRIEVER_OPTIONS } from '../retriever-options.ts';
import { VIEW_OPTIONS } from '../view-options.ts';

/** The options of a search in an index, for `trawl eval`. */
const INDEX_SYSTEM_OPTIONS = {
  ...RANKING_OPTIONS,
  ...VIEW_OPTIONS,
  ...RERANK_OPTIONS,
  ...RETRIEVER_OPTIONS,
} as const satisfies OptionTable;

/** The options that each system of `trawl eval` may have for itself, after `?`. */
export const SYSTEM_OPTIONS = {
  'query-form': QUERY_FORM_OPTION,
  'query-template': QUERY_TEMPLATE_OPTION,
  ...INDEX_SYSTEM_OPTIONS,
} as const satisfies OptionTable;

export type SystemOptions = OptionValues<typeof SYSTEM_OPTIONS>;
