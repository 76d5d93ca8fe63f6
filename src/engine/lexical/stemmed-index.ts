import { TrawlError } from '../../base/errors.ts';
import { RunningCalls } from '../../base/running-calls.ts';
import type { FieldCounts } from './bm25.ts';
import type { ExplainRequest, LexicalIndex, LexicalRequest, LexicalResult, TermScore } from './lexical-index.ts';
import { type AnalyserName, isSnowball, type SnowballAnalyser, STEMMER } from './lexical-settings.ts';
import { engineTexts } from './stemmed-texts.ts';

/** An index with the terms of a Snowball analyser. Queries become terms here, and the engine searches for these. */
export class StemmedIndex implements LexicalIndex {
  readonly rows: number;
  readonly analyser: SnowballAnalyser;
  readonly counts: FieldCounts;
  readonly mappedBytes: number;
  readonly #engine: LexicalIndex;
  readonly #calls = new RunningCalls('The index is closed.');

  /** `engine` has the analyser `whitespace`. */
  constructor(analyser: SnowballAnalyser, engine: LexicalIndex) {
    this.rows = engine.rows;
    this.analyser = analyser;
    this.counts = engine.counts;
    this.mappedBytes = engine.mappedBytes;
    this.#engine = engine;
  }

  search(request: LexicalRequest): Promise<LexicalResult> {
    return this.#calls.run(async () => {
      const queries = await engineTexts(this.analyser, request.queries, request.signal);
      return this.#engine.search({ ...request, queries });
    });
  }

  explain(request: ExplainRequest): Promise<TermScore[][]> {
    return this.#calls.run(async () => {
      const [query] = await engineTexts(this.analyser, [request.query], request.signal);
      return this.#engine.explain({ ...request, query: query! });
    });
  }

  close(): Promise<void> {
    return this.#calls.close(() => this.#engine.close());
  }
}

interface MadeWith {
  readonly analyser: AnalyserName;
  readonly stemmer?: string;
}

/**
 * Other versions of the stemmers may make other terms, and a query would then miss passages.
 *
 * @throws TrawlError INDEX_VERSION_UNSUPPORTED if an index was made with other stemmers than this program has.
 */
export function checkStemmer(path: string, { analyser, stemmer }: MadeWith): void {
  if (!isSnowball(analyser) || stemmer === STEMMER) return;
  throw new TrawlError(
    'INDEX_VERSION_UNSUPPORTED',
    `${path}: the ${analyser} terms of the index were made with ${stemmer ?? 'unknown stemmers'}, but this program has ` +
      `${STEMMER}. Make them again with trawl optimize INDEX --bm25 --analyser ${analyser}.`,
  );
}
