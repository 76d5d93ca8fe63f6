import { throwIfCancelled } from '../../../base/abort.ts';
import { RunningCalls } from '../../../base/running-calls.ts';
import { type Analyse, analyser } from '../../../engine/lexical/analysis/analysers.ts';
import { type FieldCounts, inverseNorms, lengthCode, termScore, termWeight } from '../../../engine/lexical/bm25.ts';
import { checkedExplainRequest } from '../../../engine/lexical/lexical-checks.ts';
import type { LexicalFields } from '../../../engine/lexical/lexical-fields.ts';
import type {
  ExplainRequest,
  LexicalIndex,
  LexicalRequest,
  LexicalResult,
  TermScore,
} from '../../../engine/lexical/lexical-index.ts';
import type { AnalyserName, LexicalField } from '../../../engine/lexical/lexical-settings.ts';
import { fieldText } from '../../../index/passages/field-text.ts';
import { readRows } from '../opensearch-candidates.ts';
import type { OpenSearchClient } from '../opensearch-client.ts';
import { DOCUMENT_FIELD } from '../stored-rows.ts';
import { wordField } from './stored-words.ts';
import type { WordFacts } from './word-facts.ts';

/** Terms that are counted, and documents that are read, in a call. */
const TERMS_A_CALL = 256;
const DOCUMENTS_A_CALL = 256;

/** The words of one field. */
export class OpenSearchWordIndex implements LexicalIndex {
  readonly rows: number;
  readonly analyser: AnalyserName;
  readonly counts: FieldCounts;
  readonly mappedBytes = 0;
  readonly #client: OpenSearchClient;
  readonly #index: string;
  readonly #field: LexicalField;
  readonly #fields: Pick<LexicalFields, 'search'>;
  readonly #analyse: Analyse;
  readonly #calls = new RunningCalls('The index is closed.');

  constructor(
    client: OpenSearchClient,
    {
      field,
      facts,
      fields,
    }: { readonly field: LexicalField; readonly facts: WordFacts; readonly fields: Pick<LexicalFields, 'search'> },
  ) {
    this.rows = facts.rows;
    this.analyser = facts.words.analyser;
    this.counts = facts.counts.get(field)!;
    this.#client = client;
    this.#index = facts.index;
    this.#field = field;
    this.#fields = fields;
    this.#analyse = analyser(facts.words.analyser);
  }

  search({ queries, ...request }: LexicalRequest): Promise<LexicalResult> {
    const field = this.#field;
    const trees = queries.map((text) => ({ type: 'match', field, text }) as const);
    return this.#calls.run(() => this.#fields.search({ ...request, queries: trees }));
  }

  /** Computed here, of the documents and of OpenSearch's counts: its own explanations are rounded texts. */
  explain(request: ExplainRequest): Promise<TermScore[][]> {
    return this.#calls.run(() => this.#explain(request));
  }

  close(): Promise<void> {
    return this.#calls.close(() => undefined);
  }

  async #explain(request: ExplainRequest): Promise<TermScore[][]> {
    const { signal } = request;
    const { query, rows, parameters, weight, maxTerms } = checkedExplainRequest(request, this.rows);
    const boosts = new Map<string, number>();
    for (const term of this.#analyse(query)) boosts.set(term, (boosts.get(term) ?? 0) + 1);
    const frequencies = await this.#documentFrequencies([...boosts.keys()], signal);
    const inverse = inverseNorms(parameters, this.counts);
    const distinct = [...new Set(rows)];
    const explained = new Map<number, TermScore[]>();
    let left = maxTerms;
    for (let at = 0; at < distinct.length && left >= 0; at += DOCUMENTS_A_CALL) {
      throwIfCancelled(signal);
      const some = distinct.slice(at, at + DOCUMENTS_A_CALL);
      const hits = await readRows(this.#client, this.#index, { rows: some, source: [DOCUMENT_FIELD], signal });
      for (const [i, { _source }] of hits.entries()) {
        const terms = this.#analyse(fieldText(String(_source?.[DOCUMENT_FIELD]), this.#field));
        const times = new Map<string, number>();
        for (const term of terms) times.set(term, (times.get(term) ?? 0) + 1);
        const found: TermScore[] = [];
        for (const [term, count] of boosts) {
          const tf = times.get(term);
          if (tf === undefined) continue;
          const boost = Math.fround(Math.fround(weight) * count);
          const documentFrequency = frequencies.get(term)!;
          const { documents } = this.counts;
          const most = termWeight(parameters, boost, { documentFrequency, documents });
          const score = termScore(most, tf, inverse[lengthCode(terms.length)]!);
          found.push({ term, boost, documentFrequency, score });
        }
        explained.set(some[i]!, found);
        left -= found.length;
      }
    }
    return rows.map((row) => explained.get(row) ?? []);
  }

  /** Live rows with each term. */
  async #documentFrequencies(
    terms: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    for (let at = 0; at < terms.length; at += TERMS_A_CALL) {
      const some = terms.slice(at, at + TERMS_A_CALL);
      const replies = await this.#client.searchMany(
        this.#index,
        some.map((term) => ({ size: 0, query: { term: { [wordField(this.#field)]: term } } })),
        signal,
      );
      for (const [i, { total }] of replies.entries()) found.set(some[i]!, total);
    }
    return found;
  }
}
