import { createSecureContext } from 'node:tls';
import { TrawlError, usageError } from '../../src/base/errors.ts';
import { environmentVariable } from '../../src/base/options/environment.ts';
import type { FieldRanking } from '../../src/engine/lexical/bm25.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { AccessKeys } from '../../src/server/access/access-keys.ts';
import { makeAddressFolder } from '../../src/server/connections/listen.ts';
import type { TlsPem } from '../../src/server/server-config.ts';
import { isPublishedAddress } from '../../src/stores/published/published-address.ts';
import { readOptionFile } from '../options/api-key.ts';
import { fieldRanking } from '../options/ranking-options.ts';
import { type ExtraListener, parseExtraListener } from './extra-listener.ts';
import { checkPerturbOptions } from './perturb-options.ts';
import { replayedBundle } from './replayed-bundle.ts';
import type { ServeOptions } from './serve-options.ts';
import { parseGroups, parseServedIndexes, type ServedIndex } from './served-indexes.ts';
import { ServedViews } from './served-views.ts';

/** The options of `trawl serve`, after all files that they name were read and checked. */
export interface ServeSettings {
  readonly options: ServeOptions;
  /** At least one, unless there is `--writable`; the first is the default. With `--replay` the bundle. */
  readonly indexes: readonly ServedIndex[];
  /** Names of several indexes that requests can search as one. */
  readonly groups: ReadonlyMap<string, readonly string[]>;
  readonly extraListeners: readonly ExtraListener[];
  /** Weights of the fields and tie breaker of requests that set none. */
  readonly fieldRanking: FieldRanking;
  readonly keys: AccessKeys | null;
  readonly views: ServedViews;
  readonly tls: TlsPem | null;
  /** An existing, writable folder. */
  readonly addressFolder: string | undefined;
}

/**
 * Reads and checks the settings, so that mistakes are found before a port is used or an index is opened.
 *
 * @throws TrawlError USAGE, CONFIG_INVALID, OUTPUT_NOT_WRITABLE, DISK_FULL, or why an index folder cannot be read.
 */
export function readServeSettings(
  options: ServeOptions,
  positionals: readonly string[],
  given: ReadonlySet<string> = new Set(),
): ServeSettings {
  if (options.topk > options['max-k']) {
    throw usageError(`--topk is ${options.topk}, but --max-k is ${options['max-k']}. Lower --topk or raise --max-k.`);
  }
  const keys = readKeys(options['keys-file']);
  const tls = readTls(options['tls-cert'], options['tls-key']);
  const addressDir = options['address-dir'];
  const addressFolder = addressDir === undefined ? undefined : makeAddressFolder(addressDir);
  const indexes = servedIndexes(options, positionals);
  const extraListeners = options.listen.map((text) => parseExtraListener(text, options.host));
  if (options.replay !== undefined && extraListeners.some(({ settings: { filter, view } }) => filter ?? view)) {
    throw usageError('An address of --replay cannot have a filter or a view: a bundle has recorded answers only.');
  }
  if (options.rerank === undefined && extraListeners.some(({ settings }) => settings.rerankDepth !== undefined)) {
    throw usageError('The setting rerank-depth of --listen has no effect without --rerank MODEL.');
  }
  checkPerturbOptions(
    options,
    given,
    extraListeners.flatMap(({ settings: { perturb } }) => perturb ?? []),
  );
  if (options.writable !== undefined) checkWritable(options, extraListeners);
  const bound = [
    ...(options.view === undefined ? [] : [{ option: `--view ${options.view}`, view: options.view }]),
    ...extraListeners.flatMap(({ settings: { view } }) =>
      view === undefined ? [] : [{ option: `--listen …:view=${view}`, view }],
    ),
  ];
  const views = new ServedViews({ file: options.views, indexes: indexes.map(({ name }) => name), bound }, keys);
  return {
    options,
    indexes,
    groups: parseGroups(options.group),
    extraListeners,
    fieldRanking: fieldRanking(options),
    keys,
    views,
    tls,
    addressFolder,
  };
}

/** The indexes of the command line, which exist, or the bundle of `--replay`. */
function servedIndexes(options: ServeOptions, positionals: readonly string[]): readonly ServedIndex[] {
  if (options.replay !== undefined) return [replayedBundle(options, positionals)];
  const indexes = parseServedIndexes([...positionals, ...options.index]);
  if (indexes.length === 0 && options.writable === undefined) {
    throw usageError('<index> is missing: trawl serve <index>. See `trawl serve --help`.');
  }
  for (const { folder } of indexes) if (!isPublishedAddress(folder)) openIndexDirectory(folder);
  return indexes;
}

/** Indexes that are made over HTTP have no model for texts, and their columns are not known at the start. */
function checkWritable(options: ServeOptions, extraListeners: readonly ExtraListener[]): void {
  const dialects = [...options.dialect, ...extraListeners.map(({ dialect }) => dialect)];
  if (!dialects.includes('elasticsearch')) {
    throw usageError(
      '--writable needs an address with the interface of Elasticsearch: --dialect elasticsearch or --listen 9200=elasticsearch.',
    );
  }
  const modes = [options.mode, ...extraListeners.map(({ settings }) => settings.mode)];
  const other = modes.find((mode) => mode !== undefined && mode !== 'bm25');
  if (other !== undefined) {
    throw usageError(`--mode is ${other}, but the indexes of --writable are searched by BM25 alone.`);
  }
  if (options.filter !== undefined || extraListeners.some(({ settings }) => settings.filter !== undefined)) {
    throw usageError('A filter cannot be used with --writable: its indexes may lack the columns.');
  }
}

const KEYS_VARIABLE = 'TRAWL_API_KEYS';

/**
 * The keys in `--keys-file`, or else in TRAWL_API_KEYS (separated by line ends or commas); null if neither is set.
 *
 * @throws TrawlError CONFIG_INVALID.
 */
export function readKeys(file: string | undefined): AccessKeys | null {
  if (file !== undefined) return AccessKeys.parse(readOptionFile('--keys-file', file), file);
  const text = environmentVariable(KEYS_VARIABLE);
  return text === undefined || text === '' ? null : AccessKeys.parse(text.replaceAll(',', '\n'), KEYS_VARIABLE);
}

/**
 * Reads `--tls-cert` and `--tls-key` and checks that they belong together; null if neither is given.
 *
 * @throws TrawlError USAGE, CONFIG_INVALID.
 */
export function readTls(cert: string | undefined, key: string | undefined): TlsPem | null {
  if (cert === undefined && key === undefined) return null;
  if (cert === undefined || key === undefined) {
    throw usageError('--tls-cert and --tls-key must be given together: the certificate and its private key.');
  }
  const files = { cert: readOptionFile('--tls-cert', cert), key: readOptionFile('--tls-key', key) };
  try {
    createSecureContext(files);
  } catch (cause) {
    throw new TrawlError(
      'CONFIG_INVALID',
      `${cert} and ${key} cannot be used for TLS (${(cause as Error).message}). Expected a certificate chain and its ` +
        'private key without a passphrase, both in PEM.',
      { cause },
    );
  }
  return files;
}
