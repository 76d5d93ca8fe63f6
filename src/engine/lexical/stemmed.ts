import { setImmediate } from 'node:timers/promises';
import { throwIfCancelled } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import { RunningCalls } from '../../base/running-calls.ts';
import { snowballTerms } from './analysis/snowball.ts';
import { checkQueries } from './lexical-checks.ts';
import type { LexicalFields, LexicalIndex } from './lexical-index.ts';
import { type LexicalQuery, mapLeaves, textsOf } from './lexical-query.ts';
import { type AnalyserName, isSnowball, type SnowballAnalyser, STEMMER } from './lexical-settings.ts';
import type { LexicalWriter } from './lexical-writer.ts';

/** UTF-16 units of a text that are read in one time slice of the event loop: some milliseconds, even for made-up words. */
const UNITS_PER_SLICE = 4_096;

/**
 * The texts as the engine analyses them. With a Snowball analyser each text becomes its terms, separated by spaces, for the engine's
 * analyser `whitespace`. Runs in short slices of the event loop, so that a long query does not hold up others.
 *
 * @throws TrawlError CANCELLED
 */
export async function engineTexts(
  analyser: AnalyserName,
  texts: readonly string[],
  signal?: AbortSignal,
): Promise<readonly string[]> {
  if (!isSnowball(analyser)) return texts;
  throwIfCancelled(signal);
  const stemmed: string[] = [];
  let units = 0;
  for (const text of texts) {
    const terms: string[] = [];
    let before = 0;
    for (const found of snowballTerms(analyser, text)) {
      if (found !== null) {
        if (found.term !== '') terms.push(found.term);
        units += found.end - before;
        before = found.end;
        if (units < UNITS_PER_SLICE) continue;
      }
      units = 0;
      await setImmediate();
      throwIfCancelled(signal);
    }
    stemmed.push(terms.join(' '));
  }
  return stemmed;
}

/** An index with the terms of a Snowball analyser. Queries become terms here; `engine`, with the analyser `whitespace`, searches for them. */
export function stemmedIndex(analyser: SnowballAnalyser, engine: LexicalIndex): LexicalIndex {
  const { rows, counts, mappedBytes } = engine;
  const calls = new RunningCalls('The index is closed.');
  return {
    rows,
    counts,
    mappedBytes,
    search: (request) =>
      calls.run(async () => {
        const queries = await engineTexts(analyser, request.queries, request.signal);
        return engine.search({ ...request, queries });
      }),
    explain: (request) =>
      calls.run(async () => {
        const [query] = await engineTexts(analyser, [request.query], request.signal);
        return engine.explain({ ...request, query: query! });
      }),
    close: () => calls.close(() => engine.close()),
  };
}

/** As `stemmedIndex`, for query trees: the texts of a tree become terms. */
export function stemmedFields(analyser: SnowballAnalyser, engine: LexicalFields): LexicalFields {
  const { rows, mappedBytes } = engine;
  const indexes = new Map(Array.from(engine.indexes, ([field, index]) => [field, stemmedIndex(analyser, index)]));
  const calls = new RunningCalls('The index is closed.');
  return {
    rows,
    indexes,
    mappedBytes,
    search: (request) =>
      calls.run(async () => {
        // Before anything walks through the trees: they may be too deep.
        checkQueries(request.queries, { indexes, rows });
        const texts = request.queries.flatMap((query) => [...textsOf(query)]);
        const stemmed = (await engineTexts(analyser, texts, request.signal)).values();
        const withTerms = (leaf: LexicalQuery): LexicalQuery =>
          leaf.type === 'match' ? { ...leaf, text: stemmed.next().value! } : leaf;
        return engine.search({ ...request, queries: request.queries.map((query) => mapLeaves(query, withTerms)) });
      }),
    close: () =>
      calls.close(async () => {
        // The searches of the single fields end before the engine closes.
        await Promise.all(Array.from(indexes.values(), (index) => index.close()));
        await engine.close();
      }),
  };
}

/** Writes the terms of a Snowball analyser: texts become terms here, which `engine`, with the analyser `whitespace`, writes. */
export function stemmedWriter(analyser: SnowballAnalyser, engine: LexicalWriter): LexicalWriter {
  return {
    append: async (texts, signal) => engine.append(await engineTexts(analyser, texts, signal), signal),
    finish: (signal) => engine.finish(signal),
    abandon: () => engine.abandon(),
  };
}

/**
 * Other versions of the stemmers may make other terms, and a query would then miss passages.
 *
 * @throws TrawlError INDEX_VERSION_UNSUPPORTED if an index was made with other stemmers than this program has.
 */
export function checkStemmer(
  path: string,
  { analyser, stemmer }: { readonly analyser: AnalyserName; readonly stemmer?: string },
): void {
  if (!isSnowball(analyser) || stemmer === STEMMER) return;
  throw new TrawlError(
    'INDEX_VERSION_UNSUPPORTED',
    `${path}: the ${analyser} terms of the index were made with ${stemmer ?? 'unknown stemmers'}, but this program has ` +
      `${STEMMER}. Make them again with trawl optimize INDEX --bm25 --analyser ${analyser}.`,
  );
}
