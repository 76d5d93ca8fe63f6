import { usageError } from '../../src/base/errors.ts';
import { defined } from '../../src/base/objects.ts';
import { TRUNCATE_SIDES } from '../../src/encoder/text-encoder.ts';
import type { Filter } from '../../src/engine/filter/filter.ts';
import { HYBRID_FUSIONS } from '../../src/search/hybrid/hybrid-settings.ts';
import { BM25_ORDERS, SEARCH_MODES } from '../../src/search/search-mode.ts';
import type { ListenAddress } from '../../src/server/connections/listen.ts';
import type { ServerConfig } from '../../src/server/server-config.ts';
import { filterOption } from '../options/filter-option.ts';
import { hybridOptions } from '../options/hybrid-options.ts';
import { perturbRates } from './perturb-options.ts';

/** A further address of the server, for clients with a fixed port. */
export interface ExtraListener extends ListenAddress {
  /** The preferred dialect on this address; undefined for the preferences of the main address. */
  readonly dialect: string | undefined;
  /** Options that differ from the main address. */
  readonly settings: Partial<
    Pick<ServerConfig, 'topk' | 'shedAfterMs' | 'deadlineMs' | 'truncate' | 'mode' | 'bm25Order' | 'hybrid'>
  > & {
    /** The passages that requests to this address may find, in addition to the filter of all addresses. */
    readonly filter?: Filter;
    /** Depth of reranking; 0: only requests that ask for it are reranked. */
    readonly rerankDepth?: number;
    /** What is done to searches on purpose, in place of `--perturb`; null: nothing. */
    readonly perturb?: ReturnType<typeof perturbRates> | null;
    /** A view that limits the requests to this address, in addition to the view of all addresses. */
    readonly view?: string;
  };
}

const FORM = /^(?:(?:\[([^\]]+)\]|([^:=[\]]+)):)?(\d{1,5})(?:=([a-z0-9-]+))?((?::[a-z\d-]+=[\w.,=-]{1,64})*)$/;

const NUMBER = /^\d{1,9}$/;
const POSITIVE = /^[1-9]\d{0,8}$/;

/** Parses the value of each setting; undefined if it is not allowed. */
const SETTINGS: Readonly<Record<string, (value: string) => ExtraListener['settings'] | undefined>> = {
  topk: (value) => (POSITIVE.test(value) ? { topk: Number(value) } : undefined),
  'shed-after-ms': (value) => (NUMBER.test(value) ? { shedAfterMs: Number(value) } : undefined),
  'deadline-ms': (value) => (NUMBER.test(value) ? { deadlineMs: Number(value) } : undefined),
  truncate: choice(TRUNCATE_SIDES, (truncate) => ({ truncate })),
  mode: choice(SEARCH_MODES, (mode) => ({ mode })),
  'bm25-order': choice(BM25_ORDERS, (bm25Order) => ({ bm25Order })),
  'hybrid-fusion': choice(HYBRID_FUSIONS, (fusion) => ({ hybrid: { fusion } })),
  'hybrid-weights': (value) => hybridSetting({ 'hybrid-weights': value }),
  'hybrid-depth': (value) => (POSITIVE.test(value) ? hybridSetting({ 'hybrid-depth': Number(value) }) : undefined),
  'rerank-depth': (value) => (NUMBER.test(value) ? { rerankDepth: Number(value) } : undefined),
  perturb: (value) => ({ perturb: value === 'none' ? null : perturbRates(value) }),
  view: (view) => (/^[\w.-]+$/.test(view) ? { view } : undefined),
};

function choice<Name extends string>(names: readonly Name[], setting: (name: Name) => ExtraListener['settings']) {
  return (text: string): ExtraListener['settings'] | undefined => {
    const name = names.find((known) => known === text);
    return name === undefined ? undefined : setting(name);
  };
}

/** @throws TrawlError USAGE for values that the option of the same name refuses. */
function hybridSetting(given: { 'hybrid-weights'?: string; 'hybrid-depth'?: number }): ExtraListener['settings'] {
  const none = { 'hybrid-fusion': undefined, 'hybrid-weights': undefined, 'hybrid-rrf-k': undefined };
  return { hybrid: hybridOptions({ ...none, 'hybrid-depth': undefined, ...given }) };
}

/**
 * Parses `[HOST:]PORT[=DIALECT]` and the settings after it, each as `:NAME=VALUE`, a filter last; `host` is the default host.
 * The name of the dialect is checked when the server is created.
 *
 * @throws TrawlError USAGE.
 */
export function parseExtraListener(text: string, host: string): ExtraListener {
  // The filter is last, because its expression may have any character.
  const [head = '', ...expression] = text.split(':filter=');
  const [, bracketed, plain, port, dialect, settingsText = ''] = FORM.exec(head) ?? [];
  const settings = port === undefined ? undefined : readSettings(settingsText);
  if (port === undefined || Number(port) > 65_535 || settings === undefined) {
    throw usageError(
      `--listen is ${JSON.stringify(text)}; expected [HOST:]PORT[=DIALECT], such as 5003 or 6002=zerosearch, optionally followed by :topk=N, :shed-after-ms=N, :deadline-ms=N, :truncate=${TRUNCATE_SIDES.join('|')}, :mode=${SEARCH_MODES.join('|')}, :bm25-order=${BM25_ORDERS.join('|')}, :hybrid-fusion=${HYBRID_FUSIONS.join('|')}, :hybrid-weights=dense=N,bm25=N, :hybrid-depth=N, :rerank-depth=N, :perturb=NAME=RATE,… (or none) or :view=NAME, and at the end :filter=EXPRESSION.`,
    );
  }
  const filter =
    expression.length === 0 ? undefined : filterOption(expression.join(':filter='), `--listen ${head}:filter`);
  const all = filter === undefined ? settings : { ...settings, filter };
  return { host: bracketed ?? plain ?? host, port: Number(port), dialect, settings: all };
}

function readSettings(text: string): ExtraListener['settings'] | undefined {
  let settings: ExtraListener['settings'] = {};
  for (const setting of text.split(':').slice(1)) {
    const at = setting.indexOf('=');
    const [name, value] = [setting.slice(0, at), setting.slice(at + 1)];
    const read = Object.hasOwn(SETTINGS, name) ? SETTINGS[name]!(value) : undefined;
    if (read === undefined) return undefined;
    // The settings of hybrid search come one by one.
    const hybrid = { ...settings.hybrid, ...defined(read.hybrid) };
    settings = { ...settings, ...read, ...(Object.keys(hybrid).length === 0 ? {} : { hybrid }) };
  }
  return settings;
}
