import { existsSync, statSync } from 'node:fs';
import { addTexts, searchIndex } from '../../evaluation/systems/search-index.ts';
import { searchRun } from '../../evaluation/systems/search-run.ts';
import { searchServer } from '../../evaluation/systems/search-server.ts';
import type { Asked, SearchedSystem } from '../../evaluation/systems/searched-system.ts';
import { usageError } from '../../src/base/errors.ts';
import { suggestOption } from '../../src/base/options/closest.ts';
import { type OptionTable, type OptionValues, optionOf, optionValue } from '../../src/base/options/option-spec.ts';
import { shownPlace } from '../../src/stores/published/published-address.ts';
import { openReranked } from '../open/open-reranked.ts';
import { searchSettings } from '../open/search-source.ts';
import { readApiKey } from '../options/api-key.ts';
import * as option from '../options/option.ts';
import { EVAL_QUERY_FORM_OPTION, QUERY_TEMPLATE_OPTION } from '../options/query-form.ts';
import { RANKING_OPTIONS, rankingOf } from '../options/ranking-options.ts';
import { RERANK_OPTIONS } from '../options/rerank-options.ts';
import { RETRIEVER_OPTIONS } from '../options/retriever-options.ts';
import { VIEW_OPTIONS } from '../options/view-options.ts';

const INDEX_SYSTEM_OPTIONS = {
  ...RANKING_OPTIONS,
  ...VIEW_OPTIONS,
  ...RERANK_OPTIONS,
  ...RETRIEVER_OPTIONS,
} as const satisfies OptionTable;

/** The names of `SEARCH_DIALECTS`. A list, so that the help need not load the dialects. */
const DIALECT_NAMES =
  'search-r1-rerank, search-r1-rerank-text, rllm, skyrl, stepsearch, asearcher, agent-lightning, browsecomp-plus, rllm-legacy, ' +
  'zerosearch, search-r1, r1-searcher, ultrarag, serper, research, foldagent, openresearcher, massive-serve, ds-serve, ' +
  'research-batch, deep-research-gym, searchagent-x, verl-tool-question, verl-tool, native, stepsearch-rerank, elasticsearch';

const SERVER_SYSTEM_OPTIONS = {
  dialect: option.choice(
    { choices: DIALECT_NAMES.split(', '), value: 'NAME', default: 'search-r1' },
    `With a URL: how the server is asked: ${DIALECT_NAMES}. docs/dialects.md describes them; native is /v1/search of Trawl.`,
  ),
  concurrency: option.integer({ min: 1, max: 1024, default: 4 }, 'With a URL: requests at the same time.'),
  'queries-per-request': option.integer(
    { min: 1, max: 4096, default: 1 },
    'With a URL: queries in a request, if the dialect can have several.',
  ),
  'request-timeout-ms': option.integer(
    { min: 1, max: 999_999_999, default: 60_000 },
    'With a URL: time limit of a request in milliseconds. A request is repeated up to four times after 429, 503 or no answer.',
  ),
  'key-file': option.text('FILE', 'With a URL: file with the API key of the server.'),
  corpus: option.text(
    'FILE',
    "With a URL: the server's corpus. The relevant passages are then found by their texts in place of the server's ids, which some dialects do not have.",
  ),
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

/** What `trawl eval` searches: an index directory, a TREC run, or a server. */
export interface SystemSpec {
  readonly name: string;
  readonly kind: 'index' | 'run' | 'server';
  /** Path or URL. */
  readonly place: string;
  /** The options of the command line, replaced by its own. */
  readonly options: SystemOptions;
  /** Options that the command line or the system sets. */
  readonly given: ReadonlySet<string>;
  /** Options that the system sets. */
  readonly own: ReadonlySet<string>;
}

const WHY_UNUSED: Readonly<Record<SystemSpec['kind'], string>> = {
  index: 'an index, which is not asked over HTTP',
  run: 'a run file, which is not searched',
  server: 'a server, which has its own settings',
};

/**
 * Parses `[NAME=]PLACE[?option=value&…]`. `SYSTEM_OPTIONS` lists the options, written as on the command line, with `&`,
 * `%` and so on as in URLs. Without PLACE the place is `base`'s. Without NAME the text is the name.
 *
 * @throws TrawlError USAGE.
 */
export function parseSystem(
  text: string,
  base: { readonly place: string | undefined; readonly options: SystemOptions; readonly given: ReadonlySet<string> },
): SystemSpec {
  // A path that exists is meant, even with = or ? in it.
  const literal = existsSync(text);
  const [, given, rest] = (literal ? null : /^([^=?/\\:]+)=(.*)$/s.exec(text)) ?? [];
  const [, path, query] = literal ? [text, text] : /^([^?]*)(?:\?(.*))?$/s.exec(rest ?? text)!;
  const place = path === '' ? base.place : path;
  if (place === undefined || place === '')
    throw usageError(
      `The system ${JSON.stringify(shownPlace(text))} names no index, run file or URL, and there is no first one.`,
    );
  const own = new Map(parseOptions(text, query ?? ''));
  const kind = kindOf(place);
  const useless = UNUSED_OPTIONS[kind].find((option) => own.has(option));
  if (useless !== undefined)
    throw usageError(
      `${useless} of ${JSON.stringify(shownPlace(text))} has no effect: ${shownPlace(place)} is ${WHY_UNUSED[kind]}.`,
    );
  return {
    name: given ?? shownPlace(text),
    kind,
    place,
    options: { ...base.options, ...(Object.fromEntries(own) as Partial<SystemOptions>) },
    given: new Set([...base.given, ...own.keys()]),
    own: new Set(own.keys()),
  };
}

function* parseOptions(text: string, query: string): Generator<[string, unknown], void> {
  for (const part of query.split('&').filter((each) => each !== '')) {
    const [name = '', ...values] = part.split('=');
    const spec = optionOf(SYSTEM_OPTIONS, name);
    if (spec === undefined) {
      const near = suggestOption(name, Object.keys(SYSTEM_OPTIONS));
      throw usageError(
        `The system ${JSON.stringify(shownPlace(text))} has the unknown option ${JSON.stringify(name)}${near === undefined ? '' : `; did you mean ${near}?`} ` +
          'Expected PLACE?option=value&option=value with options that trawl eval has for a search, such as mode=bm25.',
      );
    }
    if (values.length === 0)
      throw usageError(`The option ${name} of the system ${JSON.stringify(text)} has no value: ${name}=VALUE.`);
    const value = decoded(text, values.join('='));
    yield [name, optionValue(spec, [value], 'USAGE', `${name} of ${JSON.stringify(text)}`)];
  }
}

function decoded(text: string, value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    throw usageError(`The system ${JSON.stringify(shownPlace(text))} has ${JSON.stringify(value)}; write % as %25.`);
  }
}

function kindOf(place: string): SystemSpec['kind'] {
  if (/^https?:\/\//.test(place)) return 'server';
  const isFile = statSync(place, { throwIfNoEntry: false })?.isFile() ?? false;
  return isFile ? 'run' : 'index';
}

/**
 * Searches all systems in turn, indexes last: the first of them gives the passages of run files their titles and texts. Returns the
 * systems in the given order.
 *
 * @param further indexes that are searched with the first system as one.
 * @param forRun whether the ids and scores must fit in a TREC run.
 * @throws TrawlError of the first system that cannot be searched.
 */
export async function searchSystems(
  specs: readonly SystemSpec[],
  { asked, further, forRun }: { readonly asked: Asked; readonly further: readonly string[]; readonly forRun: boolean },
): Promise<SearchedSystem[]> {
  const searched = new Map<SystemSpec, SearchedSystem>();
  for (const spec of specs) {
    const { name, kind, place, options } = spec;
    if (kind === 'run') searched.set(spec, await searchRun(name, place, asked));
    if (kind !== 'server') continue;
    const { SEARCH_DIALECTS } = await import('../../src/server/dialects/dispatch.ts');
    const server = {
      name,
      url: place,
      dialect: SEARCH_DIALECTS.find((each) => each.name === options.dialect)!,
      form: options['query-form'],
      template: options['query-template'],
      corpus: options.corpus,
      concurrency: options.concurrency,
      queriesPerRequest: options['queries-per-request'],
      timeoutMs: options['request-timeout-ms'],
      apiKey: readApiKey(options['key-file']),
    };
    searched.set(spec, await searchServer(server, asked, forRun));
  }
  for (const spec of specs) {
    if (spec.kind !== 'index') continue;
    const place = shownPlace(spec.place);
    const { retriever, close } = await openSystem(spec, asked, spec.place === specs[0]!.place ? further : []);
    try {
      const { name, options, own } = spec;
      const settings = [...own].map((option) => `${option}=${String(options[option as keyof SystemOptions])}`);
      // Hybrid search fuses as many rows for one passage more, so that its ranking stays the same.
      const ranking = { ...rankingOf(options, retriever.info, asked.k), template: options['query-template'] };
      const system = { name, place, settings, retriever, form: options['query-form'], ranking };
      searched.set(spec, await searchIndex(system, asked, forRun));
      for (const [other, found] of searched)
        if (!found.hasTexts) searched.set(other, await addTexts(found, { retriever, place: spec.place }, asked.signal));
    } finally {
      await close();
    }
  }
  return specs.map((spec) => searched.get(spec)!);
}

function openSystem({ place, options, given, own }: SystemSpec, asked: Asked, further: readonly string[]) {
  // An option of one mode may be for another system.
  const ofMode = own.has('mode')
    ? new Set([...given].filter((name) => own.has(name) || !(name in RANKING_OPTIONS)))
    : given;
  return openReranked(place, options, searchSettings(options, ofMode, asked), further);
}
