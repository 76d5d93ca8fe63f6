import { defined } from '../../base/objects.ts';
import type { QueryTemplate } from '../../encoder/identity/model-identity.ts';
import { applyTemplate, composeText } from '../../encoder/text-encoder.ts';
import { type Bm25Ranking, DEFAULT_BM25, type FieldRanking } from '../../engine/lexical/bm25.ts';
import type { LexicalFields } from '../../engine/lexical/lexical-fields.ts';
import type { LexicalResult } from '../../engine/lexical/lexical-index.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import { inputOf, isText, type RetrieveQuery } from '../calls/retrieve-call.ts';
import type { RetrieverInfo } from '../retriever-info.ts';
import { type LexicalLoad, NO_STATISTICS } from '../retriever-statistics.ts';
import { searchWords } from './search-words.ts';

interface TextSearch {
  readonly k: number;
  readonly bm25?: Bm25Ranking;
  /** The rows that may be found; undefined: all. */
  readonly filter: RowBitmap | undefined;
  readonly signal?: AbortSignal;
}

/** The inverted indexes of an index, the settings of their searches, and the count of them. */
export class LexicalSearch {
  readonly fields: LexicalFields;
  readonly #info: Pick<RetrieverInfo, 'index' | 'bm25' | 'model'>;
  readonly #fieldRanking: FieldRanking;
  #load: LexicalLoad = NO_STATISTICS.lexical;

  /** @param fieldRanking of the searches that set none */
  constructor(
    fields: LexicalFields,
    info: Pick<RetrieverInfo, 'index' | 'bm25' | 'model'>,
    fieldRanking: FieldRanking = {},
  ) {
    this.fields = fields;
    this.#info = info;
    this.#fieldRanking = fieldRanking;
  }

  get load(): LexicalLoad {
    return this.#load;
  }

  /** The text whose words are searched: the parts of the query that the template of the call or of the index has. */
  textOf(query: RetrieveQuery, template: QueryTemplate | undefined): string {
    return composeText(applyTemplate(inputOf(query), template ?? this.#info.model?.queryTemplate), '', null);
  }

  /** The ranking of a call; the index gives what the call does not set. */
  rankingOf(bm25: Bm25Ranking | undefined): Bm25Ranking {
    const { bm25: settings } = this.#info;
    const parameters = settings === null ? {} : { k1: settings.k1, b: settings.b };
    return { ...DEFAULT_BM25, ...parameters, ...defined(this.#fieldRanking), ...defined(bm25) };
  }

  search(texts: readonly string[], { k, bm25, filter, signal }: TextSearch): Promise<LexicalResult> {
    const { index } = this.#info;
    return searchWords(this.fields, { index, texts, k, ranking: this.rankingOf(bm25), filter, signal });
  }

  /** Counts a query once, also if later calls continue its search; the postings of each search are work and are added. */
  count(queries: readonly RetrieveQuery[], found: Pick<LexicalResult, 'postings' | 'postingsRead'>): void {
    const { postings, postingsRead } = found;
    this.add({ queries: queries.filter(isText).length, postings: sum(postings), postingsRead: sum(postingsRead) });
  }

  add({ queries, postings, postingsRead }: LexicalLoad): void {
    const before = this.#load;
    this.#load = {
      queries: before.queries + queries,
      postings: before.postings + postings,
      postingsRead: before.postingsRead + postingsRead,
    };
  }
}

function sum(values: Float64Array): number {
  return values.reduce((total, value) => total + value, 0);
}
