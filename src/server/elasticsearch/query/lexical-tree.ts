import type { Column } from '../../../engine/filter/column.ts';
import { BOUND_NAMES, type BoundName, type Filter, type FilterValue } from '../../../engine/filter/filter.ts';
import { BM25_PROFILES, inverseNorms, termScore, termWeight } from '../../../engine/lexical/bm25.ts';
import {
  type LexicalQuery,
  type MinimumRule,
  minimumOf,
  type RowsQuery,
} from '../../../engine/lexical/lexical-query.ts';
import type { RowBitmap } from '../../../engine/row-bitmap.ts';
import { HAS_VECTOR } from '../../../index/document-store/written-row.ts';
import type { Retriever, SelectCall } from '../../../search/retriever.ts';
import { type ElasticsearchError, illegalArgument, queryFailure, searchPhaseFailure } from '../elasticsearch-error.ts';
import { parseNumber } from '../json-node.ts';
import { dateFormats, parseDateMath } from './date-math.ts';
import {
  type BoostedKnn,
  type DslQuery,
  type DslRange,
  type DslValue,
  fitsPattern,
  type TextSearch,
} from './dsl-query.ts';
import { nearestRows, scoredRowsQuery } from './knn-rows.ts';
import { queriedField } from './queried-field.ts';
import { refuseStoredField } from './stored-fields.ts';

export interface QueriedIndex {
  readonly retriever: Retriever;
  /** Hits of the search, which are the nearest passages of a knn without `k`. */
  readonly size: number;
  /** The time that `now` stands for, in milliseconds since 1970. */
  readonly now: number;
  readonly signal: AbortSignal;
}

/**
 * The query as the engine searches it. A field that the index does not have matches nothing, as in Elasticsearch.
 *
 * @throws ElasticsearchError for a query that this index cannot answer.
 */
export function lexicalTree(query: DslQuery, index: QueriedIndex): Promise<LexicalQuery> {
  return new TreeMaker(index).make(query);
}

/** The rows that match all of the queries, as a knn needs them; undefined without queries: all rows. */
export function matchingRows(queries: readonly DslQuery[], index: QueriedIndex): Promise<RowBitmap | undefined> {
  return new TreeMaker(index).rowsOf(queries);
}

type Query<Type extends DslQuery['type']> = Extract<DslQuery, { readonly type: Type }>;

const NOTHING: LexicalQuery = { type: 'match-none' };

/** Limit of the sets of rows of one query (ids, columns, knn), in bytes: a set has a bit for each row of the index. */
const MAX_SET_BYTES = 256 * 1024 ** 2;

/** 1 / k1: the length norm of a field without lengths, whose rows have one value. */
const ONE_VALUE = inverseNorms(BM25_PROFILES.elasticsearch, { documents: 1, tokens: 1 })[1]!;

class TreeMaker {
  readonly #index: QueriedIndex;
  readonly #info: Retriever['info'];
  #setBytes = 0;

  constructor(index: QueriedIndex) {
    this.#index = index;
    this.#info = index.retriever.info;
  }

  async make(query: DslQuery): Promise<LexicalQuery> {
    const { boost } = query;
    switch (query.type) {
      case 'match':
        return this.#match(query.field, query, boost);
      case 'multi-match':
        return this.#multiMatch(query);
      case 'term':
        return this.#term(query.field, query.term, boost);
      case 'terms':
        return this.#terms(query);
      case 'range':
        return this.#range(query);
      case 'knn':
        return this.#knn(query);
      case 'ids':
        return this.#ids(query.ids, boost);
      case 'exists':
        return this.#exists(query.field, boost);
      case 'bool':
        return this.#bool(query);
      case 'dis-max':
        this.#checkTieBreaker(query.tieBreaker);
        return { type: 'dis-max', queries: await this.#all(query.queries), tieBreaker: query.tieBreaker, boost };
      case 'constant-score':
        return { type: 'constant-score', query: await this.make(query.filter), boost };
      case 'match-all':
        return { type: 'match-all', boost };
      case 'match-none':
        return NOTHING;
      default:
        throw new TypeError(`unknown query: ${query satisfies never}`);
    }
  }

  async rowsOf(queries: readonly DslQuery[]): Promise<RowBitmap | undefined> {
    if (queries.length === 0) return undefined;
    const { retriever, signal } = this.#index;
    return retriever.select({ query: { type: 'bool', filter: await this.#all(queries) }, signal });
  }

  async #all(queries: readonly DslQuery[]): Promise<LexicalQuery[]> {
    const made: LexicalQuery[] = [];
    for (const query of queries) made.push(await this.make(query));
    return made;
  }

  async #bool(query: Query<'bool'>): Promise<LexicalQuery> {
    const { must, should, filter, mustNot, minimumShouldMatch, adjustPureNegative, boost } = query;
    const required = must.length + filter.length;
    if (required + should.length + mustNot.length === 0) return { type: 'match-all', boost };
    const filters = await this.#all(filter);
    // A bool that only excludes finds all other passages, whatever its minimum is.
    const isNegative = adjustPureNegative && required + should.length === 0;
    if (isNegative) filters.push({ type: 'match-all' });
    return {
      type: 'bool',
      must: await this.#all(must),
      should: await this.#all(should),
      filter: filters,
      mustNot: await this.#all(mustNot),
      minimumShouldMatch: isNegative ? 0 : minimumOf(this.#minimum(minimumShouldMatch) ?? 0, should.length),
      boost,
    };
  }

  async #multiMatch(query: Query<'multi-match'>): Promise<LexicalQuery> {
    const { fields, tieBreaker, boost } = query;
    this.#checkTieBreaker(tieBreaker);
    const boosts = new Map<string, number>();
    for (const { pattern, boost: own } of fields) {
      for (const name of await this.#namesOf(pattern)) boosts.set(name, Math.fround((boosts.get(name) ?? 1) * own));
    }
    const queries: LexicalQuery[] = [];
    for (const [name, own] of boosts) queries.push(await this.#match(name, query, own));
    return { type: 'dis-max', queries, tieBreaker, boost };
  }

  /** The fields that a pattern names: among those with words, unless it is a whole name. */
  async #namesOf(pattern: string): Promise<readonly string[]> {
    const names = pattern.includes('*')
      ? (this.#info.bm25?.fields ?? []).filter((field) => fitsPattern(pattern, field))
      : [pattern].filter((name) => queriedField(name, this.#info) !== undefined);
    if (names.length === 0) await refuseStoredField(pattern, this.#index.retriever);
    return names;
  }

  async #match(name: string, search: TextSearch, boost: number): Promise<LexicalQuery> {
    const field = queriedField(name, this.#info);
    // A column's values are not analysed, so the whole text is one term.
    if (field?.kind !== 'text') return this.#term(name, { text: search.text, isNumber: false }, boost);
    return {
      type: 'match',
      field: field.field,
      text: search.text,
      operator: search.operator,
      minimumShouldMatch: this.#minimum(search.minimumShouldMatch),
      withoutTerms: search.zeroTerms,
      boost,
    };
  }

  async #term(name: string, term: DslValue, boost: number): Promise<LexicalQuery> {
    const field = queriedField(name, this.#info);
    switch (field?.kind) {
      case 'text':
        return { type: 'term', field: field.field, term: term.text, boost };
      case 'id':
        return this.#ids([term.text], boost);
      case 'column':
        return this.#columnTerm(field.column, term, boost);
      case 'vector':
        throw this.#failure(`Field [${name}] of type [dense_vector] doesn't support term queries`);
      default:
        await refuseStoredField(name, this.#index.retriever);
        return NOTHING;
    }
  }

  /** Elasticsearch scores texts, true and false as words, but not numbers and dates. */
  async #columnTerm(column: Column, term: DslValue, boost: number): Promise<LexicalQuery> {
    const found = await this.#rows({ filter: termsFilter(column, [term], this.#reading) }, boost);
    if (column.type === 'number' || column.type === 'date') return found;
    const { rows: any } = await this.#rowsWithValue(column.name, 1);
    const [documentFrequency, documents] = [found.rows.count(), any.count()];
    if (documentFrequency === 0) return NOTHING;
    const weight = termWeight(BM25_PROFILES.elasticsearch, boost, { documentFrequency, documents });
    return { ...found, boost: termScore(weight, 1, ONE_VALUE) };
  }

  async #terms({ field: name, terms, boost }: Query<'terms'>): Promise<LexicalQuery> {
    const field = queriedField(name, this.#info);
    if (field?.kind === 'id') {
      const ids = terms.map(({ text }) => text);
      return this.#ids(ids, boost);
    }
    if (field?.kind === 'column') return this.#rows({ filter: termsFilter(field.column, terms, this.#reading) }, boost);
    const should: LexicalQuery[] = [];
    for (const term of terms) should.push(await this.#term(name, term, 1));
    return { type: 'constant-score', query: { type: 'bool', should }, boost };
  }

  async #range({ field: name, boost, ...range }: Query<'range'>): Promise<LexicalQuery> {
    const field = queriedField(name, this.#info);
    if (field === undefined) {
      await refuseStoredField(name, this.#index.retriever);
      return NOTHING;
    }
    if (field.kind === 'column') return this.#rows({ filter: rangeFilter(field.column, range, this.#reading) }, boost);
    if (field.kind === 'text')
      throw illegalArgument(`[range] is not supported by this server for the text field [${name}]`);
    throw this.#failure(`Field [${name}] does not support range queries`);
  }

  async #exists(name: string, boost: number): Promise<LexicalQuery> {
    const field = queriedField(name, this.#info);
    if (field?.kind === 'column') return this.#rowsWithValue(field.column.name, boost);
    if (field?.kind === 'vector' && this.#info.written !== undefined) return this.#rowsWithValue(HAS_VECTOR, boost);
    // A title may be absent. Where it is a column, too, the column knows.
    if (field?.kind === 'text' && field.field === 'title') {
      if (this.#info.columns.some((column) => column.name === name)) return this.#rowsWithValue(name, boost);
      throw illegalArgument(
        '[exists] needs [title] as a column: trawl optimize INDEX --column title:string. Every passage has [text].',
      );
    }
    if (field === undefined && name !== '_index') {
      await refuseStoredField(name, this.#index.retriever);
      return NOTHING;
    }
    return { type: 'constant-score', query: { type: 'match-all' }, boost };
  }

  async #ids(ids: readonly string[], boost: number): Promise<LexicalQuery> {
    return ids.length === 0 ? NOTHING : this.#rows({ ids }, boost);
  }

  async #knn(knn: BoostedKnn): Promise<LexicalQuery> {
    const { retriever, size, signal } = this.#index;
    const rows = await this.rowsOf(knn.filter);
    const found = await nearestRows(retriever, { knn, k: Math.max(1, knn.k ?? size), rows, signal });
    if (found.length === 0) return NOTHING;
    this.#countSet();
    return scoredRowsQuery(found, this.#info.rows, { boost: knn.boost, among: rows });
  }

  #rowsWithValue(column: string, boost: number): Promise<RowsQuery> {
    return this.#rows({ filter: { column, op: 'exists' } }, boost);
  }

  async #rows(selection: Pick<SelectCall, 'ids' | 'filter'>, boost: number): Promise<RowsQuery> {
    const { retriever, signal } = this.#index;
    this.#countSet();
    return { type: 'rows', rows: await retriever.select({ ...selection, signal }), boost };
  }

  /** @throws ElasticsearchError if the query has too many sets of rows. */
  #countSet(): void {
    this.#setBytes += Math.ceil(this.#info.rows / 8);
    if (this.#setBytes <= MAX_SET_BYTES) return;
    throw illegalArgument(
      `The query has too many sets of passages (ids, columns, knn): they would need more than ${MAX_SET_BYTES} bytes`,
    );
  }

  get #reading() {
    return { now: this.#index.now, index: this.#info.index };
  }

  #minimum(text: string | undefined): readonly MinimumRule[] | undefined {
    if (text === undefined) return undefined;
    const rules = parseMinimum(text);
    if (rules !== undefined) return rules;
    throw this.#failure(`For input string: "${text.slice(0, 100)}"`);
  }

  #checkTieBreaker(tieBreaker: number): void {
    if (!(tieBreaker >= 0 && tieBreaker <= 1)) throw this.#failure('tieBreakerMultiplier must be in [0, 1]');
  }

  #failure(why: string): ElasticsearchError {
    return queryFailure(this.#info.index, why);
  }
}

/**
 * Parses Elasticsearch's minimum_should_match: `2`, `-1`, `75%`, `-25%`, `3<90%`, or several conditions with spaces in between.
 * Undefined for a text that is none of these.
 */
function parseMinimum(text: string): readonly MinimumRule[] | undefined {
  const spec = text.trim();
  const rules = spec.includes('<')
    ? spec
        .replace(/\s+<\s*|\s*<\s+/g, '<')
        .split(' ')
        .map((part) => {
          const [above = '', wanted = '', ...more] = part.split('<');
          return isInteger(above) && more.length === 0 ? ruleOf(wanted.trim(), Number(above)) : undefined;
        })
    : [ruleOf(spec, -1)];
  const known = rules.filter((rule) => rule !== undefined);
  return known.length === rules.length ? known : undefined;
}

function ruleOf(wanted: string, above: number): MinimumRule | undefined {
  const isPercent = wanted.endsWith('%');
  const number = isPercent ? wanted.slice(0, -1) : wanted;
  return isInteger(number) ? { above, count: Number(number), isPercent } : undefined;
}

/** What Java's Integer.parseInt accepts, in ASCII. */
function isInteger(text: string): boolean {
  return /^[+-]?\d{1,10}$/.test(text) && Number(text) >= -(2 ** 31) && Number(text) < 2 ** 31;
}

interface ValueReading {
  /** The time that `now` stands for, in milliseconds since 1970. */
  readonly now: number;
  /** Name of the index, for messages. */
  readonly index: string;
}

/**
 * The rows with one of these values. A date such as `2020-01-31` is the whole day, as in Elasticsearch.
 *
 * @throws ElasticsearchError for a value that cannot be compared with the column.
 */
function termsFilter(column: Column, terms: readonly DslValue[], reading: ValueReading): Filter {
  if (column.type !== 'date') {
    return { column: column.name, op: 'in', values: terms.map(({ text }) => exactValue(column, text, reading)) };
  }
  const days = terms.map((day) => rangeFilter(column, { bounds: { gte: day, lte: day }, format: undefined }, reading));
  return days.length === 0 ? { column: column.name, op: 'in', values: [] } : { or: days };
}

/**
 * The rows with a value within the bounds; those with any value if there are none.
 *
 * @throws ElasticsearchError for a bound that cannot be compared with the column.
 */
function rangeFilter(column: Column, { bounds, format }: DslRange, reading: ValueReading): Filter {
  // A number says that both bounds are milliseconds.
  const hasNumber = BOUND_NAMES.some((name) => bounds[name]?.isNumber);
  const formats = format ?? (hasNumber ? 'epoch_millis' : 'strict_date_optional_time||epoch_millis');
  const values: { [Name in BoundName]?: FilterValue } = {};
  for (const name of BOUND_NAMES) {
    const text = bounds[name]?.text;
    if (text === undefined) continue;
    // A day stands for its end in `gt` and `lte`, for its beginning in `gte` and `lt`.
    const roundUp = name === 'gt' || name === 'lte';
    values[name] =
      column.type === 'date' ? dateValue(text, formats, roundUp, reading) : exactValue(column, text, reading);
  }
  if (Object.keys(values).length === 0) return { column: column.name, op: 'exists' };
  if (column.type === 'boolean') return booleanRange(column.name, values);
  return { column: column.name, op: 'range', ...values };
}

/** Dates of columns have years of four digits. */
const [FIRST_DATE, LAST_DATE] = [Date.parse('0000-01-01T00:00:00Z'), Date.parse('9999-12-31T23:59:59.999Z')];

/** @param wanted names of formats, with `||` in between. */
function dateValue(text: string, wanted: string, roundUp: boolean, { now, index }: ValueReading): FilterValue {
  const formats = dateFormats(wanted);
  if (formats === undefined) throw queryFailure(index, `the date format [${wanted.slice(0, 100)}] is not supported`);
  const time = parseDateMath(text, { now, formats, roundUp });
  if (time === undefined) {
    const reason = `failed to parse date field [${text.slice(0, 100)}] with format [${wanted}]`;
    throw searchPhaseFailure({ type: 'parse_exception', reason });
  }
  return new Date(Math.min(Math.max(time, FIRST_DATE), LAST_DATE)).toISOString();
}

function exactValue({ name, type }: Column, text: string, { index }: ValueReading): FilterValue {
  if (type === 'number') {
    const value = parseNumber(text);
    if (Number.isFinite(value)) return value;
    throw queryFailure(index, `For input string: "${text.slice(0, 100)}"`);
  }
  if (type === 'boolean') {
    if (text === 'true') return true;
    if (text === 'false' || text === '') return false;
    const why = `Can't parse boolean value [${text.slice(0, 100)}], expected [true] or [false] in [${name}]`;
    throw queryFailure(index, why);
  }
  return text;
}

/** False is before true. */
function booleanRange(column: string, { gt, gte, lt, lte }: { readonly [Name in BoundName]?: FilterValue }): Filter {
  const values = [false, true].filter((value) => {
    const above = gt !== undefined ? Number(value) > Number(gt) : gte === undefined || Number(value) >= Number(gte);
    const below = lt !== undefined ? Number(value) < Number(lt) : lte === undefined || Number(value) <= Number(lte);
    return above && below;
  });
  return { column, op: 'in', values };
}
