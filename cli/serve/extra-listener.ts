import { TRUNCATE_SIDES } from '../../src/embedding/text-encoder.ts';
import { TrawlError } from '../../src/errors.ts';
import type { ListenAddress } from '../../src/http/connections/listen.ts';
import type { ServerConfig } from '../../src/http/server-config.ts';
import { HYBRID_FUSIONS } from '../../src/retrieval/hybrid-settings.ts';
import { BM25_ORDERS, SEARCH_MODES } from '../../src/retrieval/retriever.ts';

/** A further address of the server, for clients with a fixed port. */
export interface ExtraListener extends ListenAddress {
  /** The preferred dialect on this address; undefined for the preferences of the main address. */
  readonly dialect: string | undefined;
  /** Options that differ from those of the main address. */
  readonly settings: Partial<
    Pick<ServerConfig, 'shedAfterMs' | 'deadlineMs' | 'truncate' | 'mode' | 'bm25Order' | 'hybrid'>
  > & {
    /** Depth of reranking; 0: only requests that ask for it are reranked. */
    readonly rerankDepth?: number;
  };
}

const FORM = /^(?:(?:\[([^\]]+)\]|([^:=[\]]+)):)?(\d{1,5})(?:=([a-z0-9-]+))?((?::[a-z\d-]+=[a-z\d]{1,9})*)$/;

/** Parses the value of each setting; undefined if it is not allowed. */
const SETTINGS: Readonly<Record<string, (value: string) => ExtraListener['settings'] | undefined>> = {
  'shed-after-ms': (value) => (/^\d+$/.test(value) ? { shedAfterMs: Number(value) } : undefined),
  'deadline-ms': (value) => (/^\d+$/.test(value) ? { deadlineMs: Number(value) } : undefined),
  truncate(value) {
    const truncate = TRUNCATE_SIDES.find((side) => side === value);
    return truncate === undefined ? undefined : { truncate };
  },
  mode(value) {
    const mode = SEARCH_MODES.find((known) => known === value);
    return mode === undefined ? undefined : { mode };
  },
  'bm25-order'(value) {
    const bm25Order = BM25_ORDERS.find((known) => known === value);
    return bm25Order === undefined ? undefined : { bm25Order };
  },
  'hybrid-fusion'(value) {
    const fusion = HYBRID_FUSIONS.find((known) => known === value);
    return fusion === undefined ? undefined : { hybrid: { fusion } };
  },
  'rerank-depth': (value) => (/^\d+$/.test(value) ? { rerankDepth: Number(value) } : undefined),
};

/**
 * Parses `[HOST:]PORT[=DIALECT]` and the settings after it, each as `:NAME=VALUE`; `host` is the default host. The name of the
 * dialect is checked when the server is created.
 *
 * @throws TrawlError USAGE.
 */
export function parseExtraListener(text: string, host: string): ExtraListener {
  const [, bracketed, plain, port, dialect, settingsText = ''] = FORM.exec(text) ?? [];
  const settings = port === undefined ? undefined : readSettings(settingsText);
  if (port === undefined || Number(port) > 65_535 || settings === undefined) {
    throw new TrawlError(
      'USAGE',
      `--listen is ${JSON.stringify(text)}; expected [HOST:]PORT[=DIALECT], such as 5003 or 6002=zerosearch, optionally followed by :shed-after-ms=N, :deadline-ms=N, :truncate=${TRUNCATE_SIDES.join('|')}, :mode=${SEARCH_MODES.join('|')}, :bm25-order=${BM25_ORDERS.join('|')}, :hybrid-fusion=${HYBRID_FUSIONS.join('|')} or :rerank-depth=N.`,
    );
  }
  return { host: bracketed ?? plain ?? host, port: Number(port), dialect, settings };
}

function readSettings(text: string): ExtraListener['settings'] | undefined {
  let settings: ExtraListener['settings'] = {};
  for (const setting of text.split(':').slice(1)) {
    const [name = '', value = ''] = setting.split('=');
    const read = Object.hasOwn(SETTINGS, name) ? SETTINGS[name]!(value) : undefined;
    if (read === undefined) return undefined;
    settings = { ...settings, ...read };
  }
  return settings;
}
