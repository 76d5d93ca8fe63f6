import { basename, resolve } from 'node:path';
import { TrawlError } from '../src/errors.ts';
import type { OpenIndex } from '../src/http/index-slot.ts';
import { openIndexDirectory } from '../src/retrieval/index-directory.ts';
import { type OpenRetrieverOptions, openRetriever } from '../src/retrieval/open-retriever.ts';
import { readAhead } from '../src/retrieval/read-ahead.ts';
import type { Retriever } from '../src/retrieval/retriever.ts';

export interface ServedIndex {
  readonly name: string;
  /** Absolute, links unresolved: a reload follows a link to where it leads by then. */
  readonly folder: string;
}

/** What can stand in a path, a label and a log line as it is. */
const NAME = /^[\w.-]{1,64}$/;

/**
 * Reads a list of `NAME=DIR` and `DIR`; a directory without a name has that of its folder.
 *
 * @throws TrawlError USAGE.
 */
export function parseServedIndexes(texts: readonly string[]): ServedIndex[] {
  return texts.map((text) => {
    const [, given, folder] = /^([^=/\\]+)=(.+)$/.exec(text) ?? [];
    const path = resolve(folder ?? text);
    const name = given ?? basename(path);
    if (NAME.test(name)) return { name, folder: path };
    throw new TrawlError(
      'USAGE',
      `${JSON.stringify(name)} cannot be the name of an index: it has 1 to 64 letters, digits, dots, dashes and ` +
        'underscores. Name it by --index NAME=DIR.',
    );
  });
}

/** Opens an index with its encoder, and with `warm` reads it in first. */
export function indexOpener(
  options: Omit<OpenRetrieverOptions, 'name' | 'onProgress'>,
  { warm, signal }: { readonly warm: boolean; readonly signal: AbortSignal },
): OpenIndex {
  return async (name, { folder, model }, report): Promise<Retriever> => {
    if (warm) {
      await readAhead(openIndexDirectory(folder), {
        signal,
        onProgress: (done, total) =>
          report({ stage: 'reading', doing: `reading the index in: ${percent(done, total)}`, done, total }),
      });
    }
    return openRetriever(folder, {
      ...options,
      ...(model === undefined ? {} : { model }),
      name,
      onProgress: (doing, stage) => report({ stage, doing }),
    });
  };
}

function percent(done: number, total: number): string {
  return total === 0 ? '100 %' : `${Math.floor((100 * done) / total)} %`;
}
