import { RunningCalls } from '../../base/running-calls.ts';
import { checkQueries } from './lexical-checks.ts';
import type { LexicalFields, LexicalFieldsRequest, LexicalFieldsResult } from './lexical-fields.ts';
import type { LexicalIndex } from './lexical-index.ts';
import type { LexicalQuery } from './lexical-query.ts';
import type { LexicalField, SnowballAnalyser } from './lexical-settings.ts';
import { StemmedIndex } from './stemmed-index.ts';
import { engineTexts } from './stemmed-texts.ts';

/** Query trees over fields with the terms of a Snowball analyser. The texts of a tree become terms here. */
export class StemmedFields implements LexicalFields {
  readonly rows: number;
  readonly indexes: ReadonlyMap<LexicalField, LexicalIndex>;
  readonly mappedBytes: number;
  readonly #analyser: SnowballAnalyser;
  readonly #engine: LexicalFields;
  readonly #calls = new RunningCalls('The index is closed.');

  /** All fields of `engine` have the analyser `whitespace`. */
  constructor(analyser: SnowballAnalyser, engine: LexicalFields) {
    this.rows = engine.rows;
    this.indexes = new Map([...engine.indexes].map(([field, index]) => [field, new StemmedIndex(analyser, index)]));
    this.mappedBytes = engine.mappedBytes;
    this.#analyser = analyser;
    this.#engine = engine;
  }

  search(request: LexicalFieldsRequest): Promise<LexicalFieldsResult> {
    return this.#calls.run(async () => {
      // Before anything walks through the trees: they may be too deep.
      checkQueries(request.queries, this);
      const queries = await this.#stemmed(request.queries, request.signal);
      return this.#engine.search({ ...request, queries });
    });
  }

  close(): Promise<void> {
    return this.#calls.close(async () => {
      // Their searches end before the engine closes.
      await Promise.all([...this.indexes.values()].map((index) => index.close()));
      await this.#engine.close();
    });
  }

  async #stemmed(queries: readonly LexicalQuery[], signal: AbortSignal | undefined): Promise<LexicalQuery[]> {
    const stemmed: LexicalQuery[] = [];
    for (const query of queries) stemmed.push(await this.#stemmedQuery(query, signal));
    return stemmed;
  }

  async #stemmedQuery(query: LexicalQuery, signal: AbortSignal | undefined): Promise<LexicalQuery> {
    switch (query.type) {
      case 'match': {
        const [text] = await engineTexts(this.#analyser, [query.text], signal);
        return { ...query, text: text! };
      }
      case 'bool': {
        const clauses = (list: readonly LexicalQuery[] | undefined) => this.#stemmed(list ?? [], signal);
        return {
          ...query,
          must: await clauses(query.must),
          should: await clauses(query.should),
          filter: await clauses(query.filter),
          mustNot: await clauses(query.mustNot),
        };
      }
      case 'dis-max':
        return { ...query, queries: await this.#stemmed(query.queries, signal) };
      case 'constant-score':
        return { ...query, query: await this.#stemmedQuery(query.query, signal) };
      default:
        return query;
    }
  }
}
