import { DIALECT_CLIENTS } from '../../evaluation/server/dialect-clients.ts';
import type { OptionTable, OptionValues } from '../../src/base/options/option-spec.ts';
import { QUERY_TEMPLATE_OPTION } from '../options/query-form.ts';
import { RANKING_OPTIONS } from '../options/ranking-options.ts';
import { RERANK_OPTIONS } from '../options/rerank-options.ts';
import { RETRIEVER_OPTIONS } from '../options/retriever-options.ts';
import { VIEW_OPTIONS } from '../options/view-options.ts';

import { EVAL_QUERY_FORM_OPTION } from './eval-queries.ts';

/** The options of a search in an index, for `trawl eval`. */
const INDEX_SYSTEM_OPTIONS = {
  ...RANKING_OPTIONS,
  ...VIEW_OPTIONS,
  ...RERANK_OPTIONS,
  ...RETRIEVER_OPTIONS,
} as const satisfies OptionTable;

/** The options of a server. */
const SERVER_SYSTEM_OPTIONS = {
  dialect: {
    type: 'choice',
    choices: DIALECT_CLIENTS.map(({ name }) => name),
    value: 'NAME',
    default: 'search-r1',
    help: `With a URL: how the server is asked: ${DIALECT_CLIENTS.map(({ name }) => name).join(', ')}. docs/dialects.md describes them; native is /v1/search of Trawl.`,
  },
  concurrency: { type: 'integer', min: 1, max: 1024, default: 4, help: 'With a URL: requests at the same time.' },
  'queries-per-request': {
    type: 'integer',
    min: 1,
    max: 4096,
    default: 1,
    help: 'With a URL: queries in a request, if the dialect can have several.',
  },
  'request-timeout-ms': {
    type: 'integer',
    min: 1,
    max: 999_999_999,
    default: 60_000,
    help: 'With a URL: time limit of a request in milliseconds. A request is repeated up to four times after 429, 503 or no answer.',
  },
  'key-file': { type: 'string', value: 'FILE', help: 'With a URL: file with the API key of the server.' },
  corpus: {
    type: 'string',
    value: 'FILE',
    help: "With a URL: the server's corpus. The relevant passages are then found by their texts in place of the server's ids, which some dialects do not have.",
  },
} as const satisfies OptionTable;

/** The options that each system of `trawl eval` may have for itself, after `?`. */
export const SYSTEM_OPTIONS = {
  'query-form': EVAL_QUERY_FORM_OPTION,
  'query-template': QUERY_TEMPLATE_OPTION,
  ...INDEX_SYSTEM_OPTIONS,
  ...SERVER_SYSTEM_OPTIONS,
} as const satisfies OptionTable;

export type SystemOptions = OptionValues<typeof SYSTEM_OPTIONS>;

/** The options that a kind of system does not use. A run file uses none. */
export const UNUSED_OPTIONS: Readonly<Record<'index' | 'run' | 'server', readonly string[]>> = {
  index: Object.keys(SERVER_SYSTEM_OPTIONS),
  server: Object.keys(INDEX_SYSTEM_OPTIONS),
  run: Object.keys(SYSTEM_OPTIONS),
};
