import { throwIfCancelled } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import { RunningCalls } from '../../base/running-calls.ts';
import type { Kernel } from '../native/kernel.ts';
import type { NativeLexicalIndex, NativeLexicalQuery } from '../native/lexical-functions.ts';
import { DEFAULT_BM25 } from './bm25.ts';
import { checkedExplainRequest, checkFieldsRequest, checkLexicalRequest } from './lexical-checks.ts';
import { type EngineSource, type LexicalFields, type LexicalIndex, openIndexes } from './lexical-index.ts';
import { type LexicalQuery, mapLeaves } from './lexical-query.ts';
import type { EngineAnalyser, LexicalField } from './lexical-settings.ts';
import type { LexicalWriter } from './lexical-writer.ts';

interface NativeIndex extends LexicalIndex {
  /** For searches over several fields. */
  readonly handle: NativeLexicalIndex;
}

/**
 * Opens an inverted index with the native engine, which searches by MaxScore over compressed blocks of postings in mapped files.
 *
 * @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN, naming the file.
 */
export async function openNativeLexicalIndex(
  { analyser, shards, deleted, liveRows }: EngineSource,
  kernel: Kernel,
): Promise<NativeIndex> {
  const paths = shards.map(({ path }) => path);
  const handle = await kernel.openLexical({ shards: paths, deleted, liveRows: liveRows?.bytes });
  const { rows, documents, tokens, mappedBytes, analyser: found } = kernel.lexicalFacts(handle);
  const expected = shards.reduce((sum, shard) => sum + shard.rows, 0);
  if (rows !== expected || found !== analyser) {
    kernel.closeLexical(handle);
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${paths[0] ?? 'the index'}: all shards have ${rows} rows and the analyser ${found}, but the manifest says ${expected} rows ` +
        `and ${analyser}. Build the files again with trawl optimize --bm25.`,
    );
  }
  const calls = new RunningCalls('The index is closed.');
  return {
    handle,
    rows,
    counts: { documents, tokens },
    mappedBytes,
    search: (request) =>
      calls.run(async () => {
        const { queries, k, parameters = DEFAULT_BM25, filter, signal } = request;
        checkLexicalRequest(request, rows);
        const result = await kernel.searchLexical(handle, { queries, k, parameters, filter: filter?.bytes }, signal);
        // The engine may finish before it sees an abort.
        throwIfCancelled(signal);
        return result;
      }),
    explain: (request) =>
      calls.run(async () => {
        const { rows: explained, ...checked } = checkedExplainRequest(request, rows);
        const found = await kernel.explainLexical(
          handle,
          { ...checked, rows: Float64Array.from(explained) },
          request.signal,
        );
        throwIfCancelled(request.signal);
        let at = 0;
        return Array.from(found.counts, (count) =>
          Array.from({ length: count }, () => {
            const place = found.terms[at]!;
            return {
              term: found.names[place]!,
              boost: found.boosts[place]!,
              documentFrequency: found.documentFrequencies[place]!,
              score: found.scores[at++]!,
            };
          }),
        );
      }),
    close: () => calls.close(() => kernel.closeLexical(handle)),
  };
}

/**
 * Opens the inverted indexes of several fields with the native engine. It searches query trees window by window, with bounds that skip
 * most postings.
 *
 * @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN, naming the file.
 */
export async function openNativeLexicalFields(
  sources: ReadonlyMap<LexicalField, EngineSource>,
  kernel: Kernel,
): Promise<LexicalFields> {
  const { closeAll, ...opened } = await openIndexes(sources, (source) => openNativeLexicalIndex(source, kernel));
  const fields = Array.from(opened.indexes, ([name, { handle }]) => ({ name, index: handle }));
  const calls = new RunningCalls('The index is closed.');
  return {
    ...opened,
    search: (request) =>
      calls.run(async () => {
        const { queries, k, parameters = DEFAULT_BM25, filter, signal, count, minScore } = request;
        checkFieldsRequest(request, opened);
        const search = { queries: queries.map(nativeQuery), k, parameters, filter: filter?.bytes, count, minScore };
        try {
          const result = await kernel.searchLexicalFields(fields, search, signal);
          throwIfCancelled(signal);
          return result;
        } catch (error) {
          // Only the engine finds these: too many terms after analysis, or a weight beyond float32.
          if (isBadArgument(error)) throw new TrawlError('INVALID_REQUEST', `${error.message}.`, { cause: error });
          throw error;
        }
      }),
    close: () => calls.close(closeAll),
  };
}

/** A query as the engine reads it: sets of rows as their bytes. */
function nativeQuery(query: LexicalQuery): NativeLexicalQuery {
  return mapLeaves(query, (leaf) => (leaf.type === 'rows' ? ({ ...leaf, rows: leaf.rows.bytes } as never) : leaf));
}

function isBadArgument(error: unknown): error is Error {
  return error instanceof Error && !(error instanceof TypeError) && 'code' in error && error.code === 'BAD_ARGUMENT';
}

/**
 * Writes an inverted index with the native engine: its threads sort parts of the texts into temporary files `<path>.run-N`, which
 * `finish` merges and removes.
 *
 * @throws TrawlError DISK_FULL or OUTPUT_NOT_WRITABLE.
 */
export function nativeLexicalWriter(path: string, analyser: EngineAnalyser, kernel: Kernel): LexicalWriter {
  const writer = kernel.createLexical(path, analyser);
  let isClosed = false;
  const abandon = (): void => {
    if (!isClosed) kernel.closeLexicalWriter(writer);
    isClosed = true;
  };
  return {
    async append(texts, signal) {
      const pieces = texts.map((text) => Buffer.from(text));
      let end = 0;
      const ends = Float64Array.from(pieces, ({ length }) => (end += length));
      await kernel.appendLexical(writer, Buffer.concat(pieces), ends, signal);
    },
    async finish(signal) {
      const counts = await kernel.finishLexical(writer, signal);
      abandon();
      return counts;
    },
    abandon,
  };
}
