import { basename, resolve } from 'node:path';
import { TrawlError, usageError } from '../../src/base/errors.ts';
import { isServerUrl } from '../../src/encoder/model-server/server-url.ts';
import { EncoderPools } from '../../src/encoder/pool/encoder-pools.ts';
import type { Reranker } from '../../src/encoder/rerank/reranker.ts';
import type { Filter } from '../../src/engine/filter/filter.ts';
import { openIndexDirectory, readAhead } from '../../src/search/opening/index-directory.ts';
import type { OpenRetrieverOptions } from '../../src/search/opening/open-retriever.ts';
import type { OpenRetriever } from '../../src/search/retriever.ts';
import type { OpenIndex } from '../../src/server/indexes/index-slot.ts';
import { openIndex } from '../../src/stores/open-index.ts';
import { isPublishedAddress, parsePublishedAddress } from '../../src/stores/published/published-address.ts';
import { checkFilter } from '../options/filter-option.ts';
import type { ServedViews } from './served-views.ts';

export interface ServedIndex {
  readonly name: string;
  /** Address of a published index, or absolute path with unresolved symbolic links, so that a reload follows a link to its new target. */
  readonly folder: string;
}

/** Names that need no escaping in a URL path, a metric label or a log line. */
const NAME = /^[\w.-]{1,64}$/;

/** Parses `NAME=DIR` and `DIR`. Without a name, the index has the name of its folder. @throws TrawlError USAGE. */
export function parseServedIndexes(texts: readonly string[]): ServedIndex[] {
  return texts.map((text) => {
    const [, given, folder] = /^([^=/\\]+)=(.+)$/.exec(text) ?? [];
    const place = folder ?? text;
    // Parsed also with a name, so that a wrong address ends the command before it listens.
    const published = isPublishedAddress(place) ? parsePublishedAddress(place).name : undefined;
    const path = published === undefined ? resolve(place) : place;
    const name = given ?? published ?? basename(path);
    if (NAME.test(name)) return { name, folder: path };
    throw usageError(
      `${JSON.stringify(name)} cannot be the name of an index: expected 1 to 64 letters, digits, dots, dashes and ` +
        'underscores. Choose another name with --index NAME=DIR.',
    );
  });
}

/**
 * Parses `NAME=INDEX,INDEX`. In an environment variable, where commas also separate the values, the text may arrive in parts.
 *
 * @throws TrawlError USAGE.
 */
export function parseGroups(texts: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  let names: string[] | undefined;
  for (const part of texts.flatMap((text) => text.split(',')).map((text) => text.trim())) {
    const [, group, first] = /^([^=]*)=(.*)$/.exec(part) ?? [];
    if (group !== undefined) {
      if (!NAME.test(group) || groups.has(group)) throw wrongGroup(part);
      names = [];
      groups.set(group, names);
    }
    const name = first ?? part;
    if (names === undefined || name === '' || names.includes(name)) throw wrongGroup(part);
    names.push(name);
  }
  return groups;
}

function wrongGroup(part: string): TrawlError {
  return usageError(
    `--group has the part ${JSON.stringify(part)}; expected NAME=INDEX,INDEX with each group and each of its indexes once. A ` +
      'name has 1 to 64 letters, digits, dots, dashes and underscores.',
  );
}

/**
 * The reranker of all indexes of a server. It is opened with the first index, when the server already listens, and kept when indexes
 * are reloaded.
 */
export class SharedReranker {
  readonly #open: () => Promise<Reranker>;
  #opening: Promise<Reranker> | undefined;

  constructor(open: () => Promise<Reranker>) {
    this.#open = open;
  }

  get(): Promise<Reranker> {
    const opening = this.#opening ?? this.#open();
    this.#opening = opening;
    // A reload tries again.
    opening.catch(() => {
      this.#opening = undefined;
    });
    return opening;
  }

  async close(): Promise<void> {
    const opened = await this.#opening?.catch(() => undefined);
    await opened?.close();
  }
}

interface IndexOpening {
  readonly warm: boolean;
  readonly filters?: readonly Filter[];
  readonly views?: ServedViews;
  readonly reranker?: SharedReranker;
  readonly signal: AbortSignal;
}

/**
 * Returns a function that opens an index with its encoder; with `warm`, it first reads the files into the page cache. Indexes with
 * the same model share encoder threads and weights. An index that lacks a column of `filters` or of a view is not opened.
 */
export function indexOpener(
  options: OpenRetrieverOptions,
  { warm, filters = [], views, reranker, signal }: IndexOpening,
): OpenIndex {
  const encoderPools = options.encoderPools ?? new EncoderPools();
  const start = performance.now();
  const opened = new Set<string>();
  return async (name, { folder, model }, report): Promise<OpenRetriever> => {
    if (model !== undefined && isServerUrl(model) && model !== options.model) {
      throw new TrawlError(
        'NOT_SUPPORTED',
        'A reload cannot name an endpoint, which would get the key of the other. Start the server with --model URL.',
      );
    }
    const isFolder = !isPublishedAddress(folder);
    if (filters.length > 0 && isFolder) {
      const { columns } = openIndexDirectory(folder);
      for (const filter of filters) checkFilter(filter, { columns, index: name });
    }
    if (warm && !isFolder) {
      options.onWarning?.(
        `--warm has no effect on ${name}: ${parsePublishedAddress(folder).store} holds its rows, not this machine.`,
      );
    }
    if (warm && isFolder) {
      await readAhead(openIndexDirectory(folder), {
        signal,
        onProgress(done, total) {
          const percent = total === 0 ? 100 : Math.floor((100 * done) / total);
          report({ stage: 'reading', doing: `reading the index: ${percent} %`, done, total });
        },
      });
    }
    // A reload asks the endpoint again; it may have been started with another model.
    const answersSince = opened.has(name) ? undefined : start;
    opened.add(name);
    if (reranker !== undefined) report({ stage: 'loading', doing: 'loading the reranker' });
    const retriever = await openIndex(folder, {
      ...options,
      views: views?.definitions ?? [],
      reranker: await reranker?.get(),
      encoderPools,
      answersSince,
      signal,
      model: model ?? options.model,
      name,
      onProgress: (doing, stage) => report({ stage, doing }),
    });
    if (isFolder) return retriever;
    try {
      for (const filter of filters) checkFilter(filter, { columns: retriever.info.columns, index: name });
      return retriever;
    } catch (error) {
      await retriever.close();
      throw error;
    }
  };
}
